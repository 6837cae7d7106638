# SPDX-License-Identifier: GPL-3.0-or-later
"""Install, update, enable, disable and remove plugins, without a restart: `ci_plugin` [C8.5]."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from ...core import address
from ...core.errors import ToolchainError, invalid
from ...core.files import read_text
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText
from ...core.plan import Plan
from ...core.plans.sealing import PlannedChange
from ...core.polling import PollInterval, PollTimeout
from ..client import require_confirmation, server_of
from ..permissions import ADMINISTER
from ..waiting import PollingFactory, WaitOptions
from . import plugin_list, update_centre
from .baseline import least_version, of_lock
from .plugin_changes import (
    PluginChange,
    State,
    WantedPlugin,
    added,
    compared,
    dependants,
    implied,
    require_offers,
    wanted_once,
)
from .plugin_list import Plugin
from .update_centre import CentreState, Offer

_LOCK_FILE = "the lock file"


@dataclass(frozen=True)
class PluginEntry:
    """Entry of the option `plugins`."""

    name: str
    version: str | None = None
    state: State = "present"


@dataclass(frozen=True, kw_only=True)
class CiPluginOptions(WaitOptions):
    """The options of `ci_plugin`."""

    plugins: Annotated[list[PluginEntry] | None, Option(empty=False)] = None
    lock_file: PathText | None = None
    wait_timeout: float = 900
    poll_interval: float = 2

    constraints: ClassVar[dict[str, Any]] = {
        "required_one_of": [("plugins", "lock_file")],
        "mutually_exclusive": [("plugins", "lock_file")],
    }


class CiPluginOperation:
    """Brings plugins into the desired state.

    :param make_polling: creates a `PollInterval` from a timeout and a maximum pause in seconds
    """

    descriptor: ClassVar = Descriptor(
        "ci",
        dict.fromkeys(("install", "update", "remove", "enable and disable"), writes(ADMINISTER)),
    )

    def __init__(
        self, task: Task, options: CiPluginOptions, make_polling: PollingFactory = PollInterval
    ) -> None:
        options.check()
        self._task, self._options, self._make_polling = task, options, make_polling
        self._wanted = wanted_once(_wanted(options))
        self._server = server_of(task)
        self._changes: list[PluginChange] = []
        self._implied: list[PluginChange] = []
        self._plugins: Sequence[Plugin] = ()
        self._offers: dict[str, Offer] = {}
        self._centre = CentreState((), False)
        self._done: set[str] = set()
        self._asked: set[str] = set()
        self._last = 0

    def plan(self) -> Plan:
        plugins = self._read_plugins()
        if self._installing:
            self._offers = update_centre.read_offers(self._server)
            if self._offers and not self._offers.keys() >= set(self._installing):
                # the update site no longer offers a plugin that another user has just installed
                plugins = self._read_plugins()
            if self._offers:  # empty until a write lets the server read the update site
                require_offers(self._changes, self._offers)
        for name, needed_by in dependants(self._changes, plugins).items():
            self._task.warn(
                f"{name} is a dependency of {', '.join(needed_by)}, which will fail to load"
            )
        self._plugins = plugins
        return self._full_plan()

    @property
    def _effective(self) -> list[PluginChange]:
        return [change for change in self._changes if change.action != "unchanged"]

    def parts(self, plan: Plan) -> list[PlannedChange]:
        """Return the planned changes of plugins, for a sealed plan."""
        return [
            PlannedChange(
                change.name,
                None,
                None if change.installed is None else _version_and_enabled(change.installed),
                None if change.action == "removed" else self._after(change),
            )
            for change in self._effective
        ]

    def leave_out(self, plan: Plan, indexes: Collection[int]) -> Plan:
        """Return the plan without the changes at these indexes of `parts`."""
        dropped = [plugin for n, plugin in enumerate(self._effective) if n in indexes]
        self._changes = [change for change in self._changes if change not in dropped]
        return self._full_plan()

    def _full_plan(self) -> Plan:
        self._implied = implied(self._changes, self._plugins, self._centre, self._offers)
        effective = [*self._effective, *self._implied]
        values = self._values(self._plugins, self._centre, planned=True)
        if not effective:
            return Plan({}, {}, result=values, waits=bool(self._joined) and self._options.wait)
        before = {
            change.name: _version_and_enabled(change.installed)
            for change in effective
            if change.installed is not None
        }
        after = {
            change.name: self._after(change) for change in effective if change.action != "removed"
        }
        return Plan(before, after, "update", result=values)

    def preflight(self, plan: Plan) -> None:
        update_centre.require_right(self._server)

    def _read_plugins(self) -> Sequence[Plugin]:
        """Read the installed plugins, and compare them with the desired plugins."""
        plugins = plugin_list.read(self._server)
        self._centre = update_centre.read_state(self._server)
        self._changes = compared(self._wanted, plugins, self._centre)
        return plugins

    @property
    def _installing(self) -> list[str]:
        return [change.name for change in self._changes if change.install]

    @property
    def _joined(self) -> list[str]:
        """Return the desired plugins whose installation another user has started."""
        return [change.name for change in self._changes if change.joined]

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        try:
            for change in self._changes:
                if change.switch is not None:
                    self._switch(change)
            if self._installing:
                self._install(self._installing)
            if self._options.wait:
                self._follow()
        except ToolchainError as error:
            values = self._values_after_error()
            error.result.update(values, changed=bool(self._done) or self._installs(bool(values)))
            raise
        return self._values(plugin_list.read(self._server), self._centre)

    def _install(self, names: Sequence[str]) -> None:
        if not self._offers:
            update_centre.refresh(self._server)
            self._offers = update_centre.read_offers(self._server)
            require_offers(self._changes, self._offers)
        self._last = self._centre.last
        update_centre.install(self._server, names, self._last)
        self._asked.update(names)

    def _installs(self, centre_known: bool) -> bool:
        """Return whether an installation was started for the task and has not failed.

        :param centre_known: whether the state of the update centre could be read after an error; if
            not, a requested installation counts as started
        """
        if not centre_known:
            return bool(self._asked)
        started = [
            installation
            for installation in self._centre.installations
            if installation.number > self._last
        ]
        return bool(self._asked) and any(not installation.failed for installation in started)

    def _follow(self) -> None:
        """Wait for the requested installations, including those that another user has started."""
        names = [*self._installing, *self._joined]
        if not names:
            return
        running = [
            installation.number for installation in self._centre.installations if installation.runs
        ]
        last = min([self._centre.last, *(number - 1 for number in running)])
        polling = self._make_polling(self._options.wait_timeout, self._options.poll_interval)
        try:
            self._centre = update_centre.follow(
                self._server, names, last, polling, self._task.progress
            )
        except PollTimeout as error:
            raise error.with_hint("the installation continues on the server") from None
        self._validate(names, last)

    def _validate(self, names: Sequence[str], last: int) -> None:
        """Raise `failed` with all installations that have failed or were not started."""
        errors = update_centre.failures(self._centre, last)
        started = {
            installation.name
            for installation in self._centre.installations
            if installation.number > last
        }
        errors += [
            f"{name}: the server did not start its installation"
            for name in names
            if name not in started
        ]
        if errors:
            raise ToolchainError(
                "failed", f"{len(errors)} plugin installations failed: {'; '.join(errors)}"
            )

    def _switch(self, change: PluginChange) -> None:
        """Enable, disable or uninstall a plugin.

        Server fact [ci-22]: the change takes effect after a restart, but the list of plugins
        contains it immediately.
        """
        verbs = {"doUninstall": "removing", "makeEnabled": "enabling", "makeDisabled": "disabling"}
        step = change.switch or ""

        def verify() -> bool:
            found = {plugin.short_name: plugin for plugin in plugin_list.read(self._server)}
            now = found.get(change.name)
            if step == "doUninstall":
                return now is None or now.deleted is True
            return now is not None and now.enabled is (step == "makeEnabled")

        self._server.write(
            f"{verbs[step]} the plugin {change.name}",
            "POST",
            f"pluginManager/plugin/{address.path(change.name)}/{step}",
            form={},
            expect=(200, 204, 302),
            validate=partial(require_confirmation, self._server),
            verify=verify,
            repeatable=True,
        )
        self._done.add(change.name)

    def _offered(self, change: PluginChange) -> str | None:
        offer = self._offers.get(change.name)
        return change.wanted.version if offer is None else offer.version

    def _installed(self, centre: CentreState) -> list[PluginChange]:
        """Return the dependencies that the server has installed for the task."""
        if not self._asked:
            return []
        installed = {plugin.short_name: plugin for plugin in self._plugins}
        listed = {change.name for change in self._changes}
        started = {
            installation.name
            for installation in centre.installations
            if installation.number > self._last
        }
        return [added(name, installed.get(name)) for name in sorted(started - listed)]

    def _after(self, change: PluginChange) -> dict[str, Any]:
        version = self._offered(change)
        current = (
            _version_and_enabled(change.installed)
            if change.installed is not None
            else {"enabled": True}
        )
        enabled = current["enabled"] if change.switch is None else change.switch == "makeEnabled"
        return {"version": version if change.install else change.before, "enabled": enabled}

    def _values_after_error(self) -> dict[str, Any]:
        """Return the values for the result after an error, or {} if they cannot be read."""
        try:
            self._centre = update_centre.read_state(self._server)
            done = self._done | {
                installation.name
                for installation in self._centre.installations
                if installation.number > self._last and installation.name in self._asked
            }
            return self._values(plugin_list.read(self._server), self._centre, done=done)
        except ToolchainError:
            return {}

    def _values(
        self,
        plugins: Sequence[Plugin],
        centre: CentreState,
        *,
        planned: bool = False,
        done: Collection[str] | None = None,
    ) -> dict[str, Any]:
        """Return the values for the result.

        :param planned: whether the changes are only planned
        :param done: names of the plugins that were changed before an error; `None` means all
        """
        versions = {plugin.short_name: plugin.version for plugin in plugins}
        rows = []
        predicted = planned or (done is None and not self._options.wait)
        shown = self._implied if predicted else self._installed(centre)
        for change in (*self._changes, *shown):
            newest = centre.newest(change.name)
            loading = newest.version if newest is not None and newest.waits else None
            version = loading or versions.get(change.name)
            if change.install and (planned or not self._options.wait):
                version = self._offered(change)
            failed = newest is not None and newest.failed and newest.number > self._last
            row = change.row(version, failed=failed and not planned)
            reached = done is None or change.implied or change.name in done
            rows.append(row if reached else change.untouched())
        waits = self._waits(plugins, planned) or any(
            installation.waits for installation in centre.installations
        )
        return {"plugins": rows, "restart_required": centre.restart_required or waits}

    def _waits(self, plugins: Sequence[Plugin], planned: bool) -> bool:
        """Return whether a plugin requires a restart of the server.

        :param planned: whether to include the planned changes
        """
        changed = {
            change.name: change
            for change in (*self._changes, *self._implied)
            if planned and change.action != "unchanged"
        }
        others = (plugin.waits for plugin in plugins if plugin.short_name not in changed)
        return any(change.waits for change in changed.values()) or any(others)


def _wanted(options: CiPluginOptions) -> list[WantedPlugin]:
    if options.lock_file is not None:
        locked = of_lock(read_text(options.lock_file, _LOCK_FILE), options.lock_file)
        if not locked:
            raise invalid(f"lock_file: {options.lock_file} contains no plugin")
        return [WantedPlugin(name, version, "present") for name, version in locked.items()]
    return [
        WantedPlugin(
            plugin.name.strip(),
            least_version(plugin.version, f"plugins[{number}].version"),
            plugin.state,
        )
        for number, plugin in enumerate(options.plugins or ())
    ]


def _version_and_enabled(plugin: Plugin | None) -> dict[str, Any]:
    if plugin is None:
        return {}
    return {"version": plugin.version, "enabled": plugin.enabled}
