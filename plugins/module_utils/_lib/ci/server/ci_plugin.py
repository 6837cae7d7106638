# SPDX-License-Identifier: GPL-3.0-or-later
"""Install, update, enable, disable and remove plugins, without a restart: `ci_plugin` [C8.5]."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar

from ...core import address
from ...core.errors import ToolchainError, combined, invalid
from ...core.files import read_text
from ...core.finding import Finding
from ...core.module.descriptor import Descriptor, writes
from ...core.module.sealing import PlannedChange
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText, Seconds
from ...core.plan import Plan
from ...core.progress import PollInterval, PollTimeout
from ..client import ADMINISTER, require_confirmation, server_of
from ..service import SERVICE
from ..waiting import PollingFactory, Timeout, WaitOptions
from . import installed_plugins, update_centre
from .installed_plugins import least_version, of_lock
from .update_centre import PluginEntry

_LOCK_FILE = "the lock file"


@dataclass(frozen=True, kw_only=True)
class CiPluginOptions(WaitOptions):
    """The options of `ci_plugin`."""

    plugins: Annotated[list[PluginEntry] | None, Option(empty=False)] = None
    lock_file: PathText | None = None
    wait_timeout: Timeout = 900
    poll_interval: Seconds = 2

    constraints: ClassVar[dict[str, Any]] = {
        "required_one_of": [("plugins", "lock_file")],
        "mutually_exclusive": [("plugins", "lock_file")],
    }


class CiPluginOperation:
    """Brings plugins into the desired state.

    :param make_polling: creates a `PollInterval` from a timeout and a maximum pause in seconds
    """

    descriptor: ClassVar = Descriptor(
        SERVICE,
        dict.fromkeys(("install", "update", "remove", "enable and disable"), writes(ADMINISTER)),
    )

    def __init__(
        self, task: Task, options: CiPluginOptions, make_polling: PollingFactory = PollInterval
    ) -> None:
        self._task, self._options, self._make_polling = task, options, make_polling
        self._wanted = _wanted(options)
        update_centre.require_names(self._wanted)
        self._server = server_of(task)

    def plan(self) -> Plan:
        planned = self._read()
        offers: update_centre.Offers = {}
        if planned.installing:
            offers = update_centre.read_offers(self._server)
            if offers and not offers.keys() >= set(planned.installing):
                # the update site no longer offers a plugin that another user has just installed
                planned = self._read()
        errors = {one.name: one.error for one in planned.changes if one.error is not None}
        if errors:
            messages = {name: error.message for name, error in errors.items()}
            failure = combined(list(errors.values()), "; ".join(messages.values()))
            failure.findings = _findings(planned.rows(planned.plugins, planned.centre), messages)
            raise failure
        planned = replace(planned, offers=offers)
        if offers:  # empty until a write lets the server read the update site
            try:
                update_centre.require_offers(planned.changes, offers)
            except ToolchainError as error:
                error.findings = _findings(planned.rows(planned.plugins, planned.centre), {})
                raise
        for name, needed_by in update_centre.dependants(planned.changes, planned.plugins).items():
            self._task.warn(
                f"{name} is a dependency of {', '.join(needed_by)}, which will fail to load"
            )
        return self._full_plan(planned)

    def _read(self) -> update_centre.PluginPlan:
        """Read the installed plugins, and compare them with the desired plugins."""
        plugins = installed_plugins.read(self._server)
        centre = update_centre.read_state(self._server)
        changes = update_centre.compared(self._wanted, plugins, centre)
        return update_centre.PluginPlan(changes, plugins, centre, {})

    def parts(self, plan: Plan) -> list[PlannedChange]:
        """Return the planned changes of plugins, for a sealed plan."""
        planned: update_centre.PluginPlan = plan.data
        return [
            PlannedChange(change.name, None, change.state_before, planned.state_after(change))
            for change in planned.effective
        ]

    def leave_out(self, plan: Plan, indexes: Collection[int]) -> Plan:
        """Return the plan without the changes at these indexes of `parts`."""
        planned: update_centre.PluginPlan = plan.data
        dropped = [plugin for n, plugin in enumerate(planned.effective) if n in indexes]
        left = [change for change in planned.changes if change not in dropped]
        return self._full_plan(replace(planned, changes=left))

    def _full_plan(self, planned: update_centre.PluginPlan) -> Plan:
        result = {
            "plugins": planned.rows(planned.plugins, planned.centre),
            "restart_required": planned.restart_required,
        }
        effective = [*planned.effective, *planned.implied]
        if not effective:
            waits = bool(planned.joined) and self._options.wait
            return Plan({}, {}, result=result, waits=waits, data=planned)
        before = {change.name: change.state_before for change in effective if change.installed}
        after = {change.name: planned.state_after(change) for change in effective}
        after = {name: state for name, state in after.items() if state is not None}
        return Plan(before, after, "update", result=result, data=planned)

    def findings(self, plan: Plan, values: Mapping[str, Any]) -> list[Finding]:
        """Return a finding for each plugin, except for dependencies that the server adds."""
        return _findings(values["plugins"], {})

    def preflight(self, plan: Plan) -> None:
        update_centre.require_right(self._server)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        planned: update_centre.PluginPlan = plan.data
        switched: list[str] = []
        requested: list[str] = []
        try:
            for change in planned.changes:
                if change.switch is not None:
                    self._switch(change)
                    switched.append(change.name)
            if planned.installing:
                if not planned.offers:  # now that a write is allowed, read the update site
                    update_centre.refresh(self._server)
                    planned = replace(planned, offers=update_centre.read_offers(self._server))
                    update_centre.require_offers(planned.changes, planned.offers)
                update_centre.install(self._server, planned.requests, planned.centre.last)
                requested = planned.installing
            self._task.unlock()
            centre = self._follow(planned) if self._options.wait else planned.centre
        except ToolchainError as error:
            values = self._values_after_error(planned, switched, requested)
            error.result.update(values)
            actions = {change.name: change.action for change in planned.changes}
            rows = values.get("plugins", ())
            left = [one["name"] for one in rows if one["action"] != actions.get(one["name"])]
            error.findings = _findings(rows, dict.fromkeys(left, error.message))
            raise
        plugins = installed_plugins.read(self._server)
        rows = planned.rows(plugins, centre, requested if self._options.wait else None)
        return {
            "plugins": rows,
            "restart_required": update_centre.restart_required(plugins, centre),
        }

    def _follow(self, planned: update_centre.PluginPlan) -> update_centre.CentreState:
        """Wait for the requested installations, including those that another user has started."""
        names, centre = [*planned.installing, *planned.joined], planned.centre
        if not names:
            return centre
        running = [found.number for found in centre.installations if found.runs]
        last = min([centre.last, *(number - 1 for number in running)])
        polling = self._make_polling(self._options.wait_timeout, self._options.poll_interval)
        try:
            return update_centre.follow(self._server, names, last, polling, self._task.progress)
        except PollTimeout as error:
            raise error.with_hint("the installation continues on the server") from None

    def _values_after_error(
        self, planned: update_centre.PluginPlan, switched: Sequence[str], requested: Sequence[str]
    ) -> dict[str, Any]:
        """Return the values for the result after an error.

        If the state cannot be read, requested installations count as started.
        """
        try:
            centre = update_centre.read_state(self._server)
            plugins = installed_plugins.read(self._server)
        except ToolchainError:
            return {"changed": bool(switched or requested)}
        started = centre.since(planned.centre.last) if requested else []
        done = {*switched, *(found.name for found in started if found.name in requested)}
        return {
            "plugins": planned.rows(plugins, centre, requested, done),
            "restart_required": update_centre.restart_required(plugins, centre),
            "changed": bool(switched) or not all(found.failed for found in started),
        }

    def _switch(self, change: update_centre.PluginChange) -> None:
        """Enable, disable or uninstall a plugin.

        Server fact [ci-22]: the change takes effect after a restart, but the list of plugins
        contains it immediately.
        """
        verbs = {"doUninstall": "removing", "makeEnabled": "enabling", "makeDisabled": "disabling"}
        step = change.switch or ""

        def verify() -> bool:
            found = {plugin.short_name: plugin for plugin in installed_plugins.read(self._server)}
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


def _wanted(options: CiPluginOptions) -> list[PluginEntry]:
    if options.lock_file is not None:
        locked = of_lock(read_text(options.lock_file, _LOCK_FILE), options.lock_file)
        if not locked:
            raise invalid(f"lock_file: {options.lock_file} contains no plugin")
        return [PluginEntry(name, version) for name, version in locked.items()]
    return [
        PluginEntry(
            entry.name.strip(),
            least_version(entry.version, f"plugins[{number}].version"),
            entry.state,
        )
        for number, entry in enumerate(options.plugins or ())
    ]


def _findings(rows: Iterable[Mapping[str, Any]], errors: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each plugin, except for dependencies that the server adds.

    :param rows: return value `plugins`
    :param errors: message for each plugin that failed
    """
    return [
        Finding(row["name"], "plugin", error={"msg": errors[row["name"]]})
        if row["name"] in errors
        else installed_plugins.finding_of(row["name"], row["action"], row["before"], row["after"])
        for row in rows
        if not row["implied"]
    ]
