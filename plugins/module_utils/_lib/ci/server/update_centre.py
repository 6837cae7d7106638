# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the plugins that the update centre offers, and install plugins through it [ci-22, ci-23].

The update centre installs plugins in the background.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

from ...core.errors import ToolchainError, conflict, invalid, not_found, shorten
from ...core.http.messages import Response
from ...core.http.transport import Transport
from ...core.json_text import as_text, json_objects
from ...core.module.rules import Rule
from ...core.progress import PollInterval
from ..client import object_of, part, require_confirmation
from .installed_plugins import Plugin, is_older

_PATH = "updateCenter/api/json"
_JOBS = "jobs[id,type,errorMessage,status[type,success],plugin[name,version]]"
_OFFER = "[name,version,dependencies,optionalDependencies,sourceId]"
_OFFERS = f"sites[id,availables{_OFFER},updates{_OFFER}]"
#: The update site that a request without the name of a site means.
_DEFAULT_SITE = "default"
_INSTALLATION = "InstallationJob"
_RUNNING = ("", "Pending", "Installing")
_NEEDS_RESTART = "SuccessButRequiresRestart"
#: Maximum number of status reads before a requested installation must appear.
_MAX_READS = 5


@dataclass(frozen=True)
class Installation:
    """A job of the update centre that installs a plugin.

    :param number: id of the job, which increases with time
    :param state: name of the state on the server, for example `Installing`
    :param reason: error message of a failed installation
    """

    number: int
    name: str
    version: str
    state: str
    reason: str

    @property
    def runs(self) -> bool:
        return self.state in _RUNNING

    @property
    def waits(self) -> bool:
        """Return whether the plugin is installed, but only loaded when the server restarts."""
        return self.state == _NEEDS_RESTART

    @property
    def failed(self) -> bool:
        return self.state == "Failure"


@dataclass(frozen=True)
class Offer:
    """The newest version of a plugin on an update site.

    :param needs: dependencies with their minimum versions
    :param site: id of the site
    :param optional: dependencies that are updated if they are installed in an older version
    """

    version: str
    needs: Mapping[str, str]
    site: str = _DEFAULT_SITE
    optional: Mapping[str, str] = field(default_factory=dict)

    def request(self, name: str) -> str:
        """Return how a request names the plugin: `NAME`, or `NAME.SITE` [ci-22]."""
        return name if self.site == _DEFAULT_SITE else f"{name}.{self.site}"


#: The offers of each plugin, in the order of the update sites.
Offers = Mapping[str, Sequence[Offer]]


def offer_of(offers: Offers, name: str, least: str | None = None) -> Offer | None:
    """Return the offer of the first site that has a plugin, with at least this version. The server
    chooses in the same way [ci-23].
    """
    found = offers.get(name, ())
    return next((each for each in found if not (least and is_older(each.version, least))), None)


@dataclass(frozen=True)
class CentreState:
    """State of the update centre.

    :param installations: installations since the start of the server, oldest first
    :param restart_required: whether an installation requires a restart
    """

    installations: Sequence[Installation]
    restart_required: bool

    @property
    def last(self) -> int:
        return max((installation.number for installation in self.installations), default=0)

    def newest(self, name: str) -> Installation | None:
        """Return the newest installation of a plugin, or `None`."""
        return next((found for found in reversed(self.installations) if found.name == name), None)

    def coming(self, name: str) -> Installation | None:
        """Return the newest installation of a plugin if it runs or waits for a restart."""
        newest = self.newest(name)
        return newest if newest is not None and (newest.waits or newest.runs) else None

    def since(self, number: int) -> list[Installation]:
        """Return the installations after the one with this number."""
        return [found for found in self.installations if found.number > number]


def read_state(server: Transport) -> CentreState:
    """Return the state of the update centre. It is empty if the server has no update centre."""
    response = server.read(
        "reading the installations of plugins",
        _PATH,
        query={"tree": f"restartRequiredForCompletion,{_JOBS}"},
        expect=(200, 404),
    )
    shown = {} if response.status == 404 else object_of(response)
    found = []
    for job in json_objects(shown.get("jobs")):
        plugin, status, number = part(job.get("plugin")), part(job.get("status")), job.get("id")
        if str(job.get("type") or _INSTALLATION) == _INSTALLATION and plugin:
            found.append(
                Installation(
                    number if isinstance(number, int) else 0,
                    as_text(plugin.get("name")),
                    str(plugin.get("version") or ""),
                    str(status.get("type") or ""),
                    shorten(str(job.get("errorMessage") or "")),
                )
            )
    found.sort(key=lambda installation: installation.number)
    return CentreState(found, shown.get("restartRequiredForCompletion") is True)


def read_offers(server: Transport) -> Offers:
    """Return the offers of all update sites by the name of the plugin.

    Server facts [ci-23]: the list is empty until the server has read its update sites once. The
    updates of a site are those of all sites, so `sourceId` decides.
    """
    response = server.read(
        "reading the plugins of the update site", _PATH, query={"tree": _OFFERS}, expect=(200, 404)
    )
    if response.status == 404:
        raise response.error(
            "rejected", "cannot install plugins, because the server has no update centre (404)"
        )
    found: dict[str, list[Offer]] = {}
    for site in json_objects(object_of(response).get("sites")):
        for obj in (*json_objects(site.get("availables")), *json_objects(site.get("updates"))):
            offer = Offer(
                str(obj.get("version") or ""),
                _versions(obj.get("dependencies")),
                str(obj.get("sourceId") or site.get("id") or _DEFAULT_SITE),
                _versions(obj.get("optionalDependencies")),
            )
            known = found.setdefault(as_text(obj.get("name")), [])
            if offer not in known:
                known.append(offer)
    return found


def _versions(value: Any) -> dict[str, str]:
    return {name: str(version) for name, version in part(value).items()}


def require_right(server: Transport) -> None:
    """Raise `permission` if the account may not change plugins [ci-22].

    If the server does not support the request, the permission is assumed.
    """
    try:
        server.read(
            "checking the permission to change plugins",
            "pluginManager/prevalidateConfig",
            method="POST",
            body=b"<jenkins/>",
            headers={"Content-Type": "text/xml"},
        )
    except ToolchainError as error:
        if error.kind == "permission":
            raise


def refresh(server: Transport) -> None:
    """Let the server read the list of plugins from its update site again."""
    server.write(
        "refreshing the plugins of the update site",
        "POST",
        "pluginManager/checkUpdatesServer",
        form={},
        expect=(200, 204, 302),
        validate=partial(require_confirmation, server),
        repeatable=True,
    )


def install(server: Transport, requests: Mapping[str, str], after: int) -> None:
    """Queue the installation of the newest versions, with their dependencies.

    Server fact [ci-22]: if a name is unknown, the names before it are queued anyway.

    :param requests: how the request names each plugin, by name
    :param after: number of the last installation before the request
    """
    purpose = f"installing {', '.join(requests)}"

    def validate(response: Response) -> None:
        require_confirmation(server, response)
        if response.status == 200 and object_of(response).get("status") != "ok":
            message = shorten(str(object_of(response).get("message") or "no reason was given"))
            raise response.error(
                "rejected", f"the server rejected the installation: {message}", message
            )

    def is_begun() -> bool:
        return any(found.name in requests for found in read_state(server).since(after))

    server.write(
        purpose,
        "POST",
        "pluginManager/installPlugins",
        json={"dynamicLoad": True, "plugins": list(requests.values())},
        expect=(200, 204, 302),
        validate=validate,
        verify=is_begun,
    )


def follow(
    server: Transport,
    names: Collection[str],
    after: int,
    polling: PollInterval,
    say: Callable[[str], None],
) -> CentreState:
    """Wait until the installations and their dependencies have finished.

    Raises `failed` with all installations that have failed or were not started.

    :param names: names of the requested plugins
    :param after: number of the last installation before the request
    :param say: receives progress lines
    """
    reads = 0
    while True:
        state = read_state(server)
        started = state.since(after)
        running = [installation.name for installation in started if installation.runs]
        missing = set(names) - {installation.name for installation in started}
        reads += 1
        if not running and (not missing or reads > _MAX_READS):
            break
        count = f"{len(started) - len(running)} of {len(started) + len(missing)} done"
        line = f"installing plugins: {count}: {', '.join(running) or 'waiting for the server'}"
        say(line)
        polling.pause(line)
    newest = {installation.name: installation for installation in started}
    errors = [
        f"{installation.name}: {installation.reason or 'the server gave no reason'}"
        for installation in newest.values()
        if installation.failed
    ]
    errors += [
        f"{name}: the server did not start its installation" for name in names if name not in newest
    ]
    if errors:
        raise ToolchainError(
            "failed", f"{len(errors)} plugin installations failed: {'; '.join(errors)}"
        )
    return state


#: Request that changes an installed plugin.
Switch = Literal["doUninstall", "makeEnabled", "makeDisabled"]
_SHORT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class PluginEntry:
    """Entry of the option `plugins`. `version` is the minimum version; `None` accepts any."""

    option_rules: ClassVar[tuple[Rule, ...]] = (Rule("state=absent", forbids="version"),)

    name: str
    version: str | None = None
    state: Literal["present", "absent", "enabled", "disabled"] = "present"


@dataclass(frozen=True)
class PluginChange:
    """Planned change of a plugin.

    :param installed: the installed plugin, or `None`
    :param waiting: version that is being installed, or that the server loads after a restart
    :param joined: whether the installation is already running
    :param install: whether to install or update the plugin
    :param switch: other request to send: uninstall, enable or disable
    :param implied: whether the server installs the plugin as a dependency
    :param error: why the change is impossible
    """

    wanted: PluginEntry
    installed: Plugin | None
    waiting: str | None = None
    joined: bool = False
    install: bool = False
    switch: Switch | None = None
    implied: bool = False
    error: ToolchainError | None = None

    @property
    def name(self) -> str:
        return self.wanted.name

    @property
    def action(self) -> str:
        if self.install:
            return "installed" if self.installed is None else "updated"
        reasons = {"doUninstall": "removed", "makeEnabled": "enabled", "makeDisabled": "disabled"}
        return "unchanged" if self.switch is None else reasons[self.switch]

    @property
    def before(self) -> str | None:
        return None if self.installed is None else self.installed.version

    @property
    def waits(self) -> bool:
        """Return whether the change requires a restart of the server [ci-22].

        A new plugin may be loaded without a restart.
        """
        if self.installed is None or self.switch is None:
            return self.installed is not None and self.install
        if self.switch == "doUninstall":
            return replace(self.installed, deleted=True).waits
        return replace(self.installed, enabled=self.switch == "makeEnabled").waits

    @property
    def state_before(self) -> dict[str, Any] | None:
        """Return version and state of the installed plugin, or `None`."""
        there = self.installed
        return None if there is None else {"version": there.version, "enabled": there.enabled}


@dataclass(frozen=True)
class PluginPlan:
    """The changes of plugins, and the state of the server from which they follow.

    :param offers: plugins of the update sites; empty until a write lets the server read it
    """

    changes: Sequence[PluginChange]
    plugins: Sequence[Plugin]
    centre: CentreState
    offers: Offers

    @property
    def effective(self) -> list[PluginChange]:
        return [change for change in self.changes if change.action != "unchanged"]

    @property
    def installing(self) -> list[str]:
        return [change.name for change in self.changes if change.install]

    @property
    def requests(self) -> dict[str, str]:
        """Return how the request names each plugin to install, by name."""
        chosen = {
            change.name: offer_of(self.offers, change.name, change.wanted.version)
            for change in self.changes
            if change.install
        }
        return {name: offer.request(name) if offer else name for name, offer in chosen.items()}

    @property
    def joined(self) -> list[str]:
        """Return the desired plugins whose installation another user has started."""
        return [change.name for change in self.changes if change.joined]

    @cached_property
    def implied(self) -> list[PluginChange]:
        """Return the installations of dependencies that the server adds [ci-22, ci-23], by name."""
        listed = {change.name for change in self.changes}
        pending = [change.wanted for change in self.changes if change.install]
        found: dict[str, PluginChange] = {}
        while pending:
            entry = pending.pop()
            offer = offer_of(self.offers, entry.name, entry.version) or Offer("", {})
            for name, minimum in {**offer.optional, **offer.needs}.items():
                change, coming = self._implied_change(name, minimum), self.centre.coming(name)
                version = change.before if coming is None else coming.version
                # a dependency that is missing or too old
                wanted = is_older(version, minimum) if version else name in offer.needs
                available = offer_of(self.offers, name, minimum) is not None
                if wanted and available and name not in {*listed, *found}:
                    found[name] = change
                    pending.append(change.wanted)
        return [found[name] for name in sorted(found)]

    def _implied_change(self, name: str, minimum: str | None = None) -> PluginChange:
        installed = next((plugin for plugin in self.plugins if plugin.short_name == name), None)
        return PluginChange(PluginEntry(name, minimum), installed, install=True, implied=True)

    def state_after(self, change: PluginChange) -> dict[str, Any] | None:
        """Return version and state of a plugin after its change, or `None` if it is removed."""
        if change.action == "removed":
            return None
        enabled = True if change.installed is None else change.installed.enabled
        if change.switch is not None:
            enabled = change.switch == "makeEnabled"
        version = self._offered(change) if change.install else change.before
        return {"version": version, "enabled": enabled}

    def _offered(self, change: PluginChange) -> str | None:
        offer = offer_of(self.offers, change.name, change.wanted.version)
        return change.wanted.version if offer is None else offer.version

    @property
    def restart_required(self) -> bool:
        """Return whether the server must restart after the changes."""
        changed = {change.name: change for change in (*self.effective, *self.implied)}
        others = [plugin for plugin in self.plugins if plugin.short_name not in changed]
        waits = any(change.waits for change in changed.values())
        return waits or restart_required(others, self.centre)

    def rows(
        self,
        plugins: Sequence[Plugin],
        centre: CentreState,
        requested: Collection[str] | None = None,
        done: Collection[str] | None = None,
    ) -> list[dict[str, Any]]:
        """Return the items of the return value `plugins`.

        :param requested: plugins whose installation was requested and has finished; `None` means
            that the installations have not finished, so the expected versions are returned
        :param done: names of the plugins that were changed before an error; `None` means all
        """
        versions = {plugin.short_name: plugin.version for plugin in plugins}
        added = self.implied
        if requested is not None:
            started = {installation.name for installation in centre.since(self.centre.last)}
            listed = {change.name for change in self.changes}
            names = sorted(started - listed) if requested else ()
            added = [self._implied_change(name) for name in names]
        rows = []
        for change in (*self.changes, *added):
            newest = centre.newest(change.name)
            version = versions.get(change.name)
            if change.install and requested is None:
                version = self._offered(change)
            elif newest is not None and newest.waits:
                version = newest.version
            tried = newest if change.install or change.joined else None
            if tried is not None and not change.joined and tried.number <= self.centre.last:
                tried = None  # an earlier installation
            action = "failed" if tried is not None and tried.failed else change.action
            is_done = done is None or change.implied or change.name in done
            if not is_done and action != "failed":
                version, action = change.before, "unchanged"
            else:
                version = version or change.waiting
            absent = change.wanted.state == "absent"
            rows.append(
                {
                    "name": change.name,
                    "before": change.before,
                    "after": None if absent else version,
                    "action": action,
                    "implied": change.implied,
                }
            )
        return rows


def restart_required(plugins: Sequence[Plugin], centre: CentreState) -> bool:
    """Return whether a change takes effect only when the server restarts."""
    waits = any(plugin.waits for plugin in plugins)
    return waits or centre.restart_required or any(found.waits for found in centre.installations)


def compared(
    wanted: Sequence[PluginEntry], plugins: Sequence[Plugin], centre: CentreState
) -> list[PluginChange]:
    """Return the planned change of each plugin.

    Its error is `not_found` for a plugin to disable that is not installed, and `conflict` for a
    required plugin that the server will remove when it restarts.
    """
    installed = {plugin.short_name: plugin for plugin in plugins}
    return [_change_of(entry, installed.get(entry.name), centre) for entry in wanted]


def _change_of(wanted: PluginEntry, installed: Plugin | None, centre: CentreState) -> PluginChange:
    if wanted.state == "absent":
        gone = installed is None or installed.deleted is True
        return PluginChange(wanted, installed, switch=None if gone else "doUninstall")
    if installed is not None and installed.deleted is True:
        error = conflict(
            f"the plugin {wanted.name} is marked for removal: restart the server first"
        )
        return PluginChange(wanted, installed, error=error)
    coming = centre.coming(wanted.name)
    waiting = None if coming is None else coming.version
    version = waiting or (None if installed is None else installed.version)
    if wanted.state == "disabled" and version is None:
        error = not_found(f"cannot disable the plugin {wanted.name}, because it is not installed")
        return PluginChange(wanted, installed, error=error)
    missing = version is None
    old = not missing and wanted.version is not None and is_older(version or "", wanted.version)
    joined = coming is not None and coming.runs and not old
    switch: Switch | None = None
    if installed is not None and wanted.state == "enabled" and installed.enabled is False:
        switch = "makeEnabled"
    if installed is not None and wanted.state == "disabled" and installed.enabled is not False:
        switch = "makeDisabled"
    return PluginChange(wanted, installed, waiting, joined, missing or old, switch)


def require_offers(changes: Sequence[PluginChange], offers: Offers) -> None:
    """Raise an error that names all plugins which the update sites cannot provide.

    The kind is `not_found` if they lack a plugin, else `rejected`.
    """
    reasons, unknown = [], False
    for change in (change for change in changes if change.install):
        name, version = change.name, change.wanted.version
        chosen, known = offer_of(offers, name, version), offers.get(name, ())
        if name not in offers and change.installed is None:
            unknown = True
            reasons.append(f"{name} is unknown")
        elif name not in offers:
            reasons.append(f"{name} {version} is required, but nothing newer than {change.before}")
        elif chosen is None:
            newest = known[0].version
            for offer in known:
                newest = offer.version if is_older(newest, offer.version) else newest
            reasons.append(f"{name} {version} is required, but the newest is {newest}")
        elif "." in chosen.site:
            # server fact [ci-22]: the server splits the name of a request at each dot
            site = f"is on the site '{chosen.site}'"
            reasons.append(f"{name} {site}, and a request cannot name a site with a dot")
    if reasons:
        raise ToolchainError(
            "not_found" if unknown else "rejected",
            f"the update site of the server lacks plugins: {'; '.join(reasons)}",
        )


def dependants(changes: Sequence[PluginChange], plugins: Sequence[Plugin]) -> dict[str, list[str]]:
    """Return the plugins to remove or disable that active plugins depend on.

    The values are the names of the active plugins, which would then fail to load.
    """
    removed = [
        change.name for change in changes if change.switch in ("doUninstall", "makeDisabled")
    ]
    found = {
        name: [
            plugin.short_name
            for plugin in plugins
            if name in plugin.needs and plugin.works and plugin.short_name not in removed
        ]
        for name in removed
    }
    return {name: needed_by for name, needed_by in found.items() if needed_by}


def require_names(wanted: Sequence[PluginEntry]) -> None:
    """Raise `invalid` for an invalid name, and for a plugin that is listed twice."""
    names = [plugin.name for plugin in wanted]
    for number, name in enumerate(names):
        if _SHORT_NAME.fullmatch(name) is None:
            raise invalid(
                f"plugins[{number}].name is '{name}': set it to the short name of the plugin,"
                " without a version"
            )
        if name in names[:number]:
            raise invalid(f"plugins[{number}]: {name} is listed twice")
