# SPDX-License-Identifier: GPL-3.0-or-later
"""`ci_plugin`: install, update, enable, disable and remove plugins; never restart [C8.5]."""

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
    """The suboptions of `plugins`."""

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
    """Converge plugins to the wanted state; `make_polling` makes the pauses between two
    status reads.
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
        plugins = self._verify()
        if self._installing:
            self._offers = update_centre.read_offers(self._server)
            if self._offers and not self._offers.keys() >= set(self._installing):
                # a plugin that was installed meanwhile is not offered any more
                plugins = self._verify()
            if self._offers:  # without offers the site was never asked; that request is a write
                require_offers(self._changes, self._offers)
        for name, needed_by in dependants(self._changes, plugins).items():
            self._task.warn(
                f"{name} is needed by {', '.join(needed_by)}, which cannot load without it"
            )
        self._plugins = plugins
        return self._full_plan()

    @property
    def _acting(self) -> list[PluginChange]:
        return [change for change in self._changes if change.action != "unchanged"]

    def parts(self, plan: Plan) -> list[PlannedChange]:
        """Return the changes of plugins, for a sealed plan."""
        return [
            PlannedChange(
                change.name,
                None,
                None if change.there is None else _side(change.there),
                None if change.action == "removed" else self._after(change),
            )
            for change in self._acting
        ]

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        """Drop the changes of plugins, and return the plan of the others."""
        dropped = [each for n, each in enumerate(self._acting) if n in places]
        self._changes = [change for change in self._changes if change not in dropped]
        return self._full_plan()

    def _full_plan(self) -> Plan:
        self._implied = implied(self._changes, self._plugins, self._centre, self._offers)
        acting = [*self._acting, *self._implied]
        values = self._values(self._plugins, self._centre, planned=True)
        if not acting:
            return Plan({}, {}, result=values, waits=bool(self._joined) and self._options.wait)
        before = {change.name: _side(change.there) for change in acting if change.there is not None}
        after = {
            change.name: self._after(change) for change in acting if change.action != "removed"
        }
        return Plan(before, after, "update", result=values)

    def preflight(self, plan: Plan) -> None:
        update_centre.require_right(self._server)

    def _verify(self) -> Sequence[Plugin]:
        """Read the installed plugins, and compare them with the wanted plugins."""
        plugins = plugin_list.read(self._server)
        self._centre = update_centre.read_state(self._server)
        self._changes = compared(self._wanted, plugins, self._centre)
        return plugins

    @property
    def _installing(self) -> list[str]:
        return [change.name for change in self._changes if change.install]

    @property
    def _joined(self) -> list[str]:
        """Return the wanted plugins whose installation somebody else has started."""
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
            known = self._known()
            error.result.update(known, changed=bool(self._done) or self._installs(bool(known)))
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

    def _installs(self, told: bool) -> bool:
        """Return whether the server installs, or has installed, a requested plugin or a dependency;
        true if unknown.
        """
        if not told:
            return bool(self._asked)
        ours = [
            installation
            for installation in self._centre.installations
            if installation.number > self._last
        ]
        return bool(self._asked) and any(not installation.failed for installation in ours)

    def _follow(self) -> None:
        """Wait for the requested installations, and for those that somebody else has started."""
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
        """Raise `failed` with all installations that have failed or never began."""
        wrong = update_centre.failures(self._centre, last)
        begun = {
            installation.name
            for installation in self._centre.installations
            if installation.number > last
        }
        wrong += [
            f"{name}: the server did not start its installation"
            for name in names
            if name not in begun
        ]
        if wrong:
            raise ToolchainError(
                "failed", f"{len(wrong)} plugin installations failed: {'; '.join(wrong)}"
            )

    def _switch(self, change: PluginChange) -> None:
        """Server fact [ci-22]: effective with the next start; the plugin list shows the change at
        once.
        """
        words = {"doUninstall": "removing", "makeEnabled": "enabling", "makeDisabled": "disabling"}
        step = change.switch or ""

        def verify() -> bool:
            found = {plugin.short_name: plugin for plugin in plugin_list.read(self._server)}
            now = found.get(change.name)
            if step == "doUninstall":
                return now is None or now.deleted is True
            return now is not None and now.enabled is (step == "makeEnabled")

        self._server.write(
            f"{words[step]} the plugin {change.name}",
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
        there = {plugin.short_name: plugin for plugin in self._plugins}
        listed = {change.name for change in self._changes}
        ours = {
            installation.name
            for installation in centre.installations
            if installation.number > self._last
        }
        return [added(name, there.get(name)) for name in sorted(ours - listed)]

    def _after(self, change: PluginChange) -> dict[str, Any]:
        version = self._offered(change)
        current = _side(change.there) if change.there is not None else {"enabled": True}
        enabled = current["enabled"] if change.switch is None else change.switch == "makeEnabled"
        return {"version": version if change.install else change.before, "enabled": enabled}

    def _known(self) -> dict[str, Any]:
        """Return the values after a failure, as far as they can be read."""
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
        """Return the return values; `done`: the plugins that were processed, if not all."""
        versions = {plugin.short_name: plugin.version for plugin in plugins}
        rows = []
        predicted = planned or (done is None and not self._options.wait)
        shown = self._implied if predicted else self._installed(centre)
        for change in (*self._changes, *shown):
            newest = centre.newest(change.name)
            loading = newest.version if newest is not None and newest.waits else None
            will_be = loading or versions.get(change.name)
            if change.install and (planned or not self._options.wait):
                will_be = self._offered(change)
            failed = newest is not None and newest.failed and newest.number > self._last
            row = change.row(will_be, failed=failed and not planned)
            reached = done is None or change.implied or change.name in done
            rows.append(row if reached else change.untouched())
        waits = self._waits(plugins, planned) or any(
            installation.waits for installation in centre.installations
        )
        return {"plugins": rows, "restart_required": centre.restart_required or waits}

    def _waits(self, plugins: Sequence[Plugin], planned: bool) -> bool:
        """Return whether a plugin waits for a restart; `planned`: or will wait after the planned
        changes.
        """
        ahead = {
            change.name: change
            for change in (*self._changes, *self._implied)
            if planned and change.action != "unchanged"
        }
        others = (plugin.waits for plugin in plugins if plugin.short_name not in ahead)
        return any(change.waits for change in ahead.values()) or any(others)


def _wanted(options: CiPluginOptions) -> list[WantedPlugin]:
    if options.lock_file is not None:
        locked = of_lock(read_text(options.lock_file, _LOCK_FILE), options.lock_file)
        if not locked:
            raise invalid(f"lock_file: {options.lock_file} lists no plugin")
        return [WantedPlugin(name, version, "present") for name, version in locked.items()]
    return [
        WantedPlugin(
            each.name.strip(),
            least_version(each.version, f"plugins[{number}].version"),
            each.state,
        )
        for number, each in enumerate(options.plugins or ())
    ]


def _side(plugin: Plugin | None) -> dict[str, Any]:
    if plugin is None:
        return {}
    return {"version": plugin.version, "enabled": plugin.enabled}
