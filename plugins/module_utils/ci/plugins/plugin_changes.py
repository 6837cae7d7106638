# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the changes of plugins, without a server."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...core.errors import ToolchainError, invalid
from .plugin_list import Plugin
from .update_centre import CentreState, Offer
from .versions import is_older

State = Literal["present", "absent", "enabled", "disabled"]

_SHORT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: Requires a digit: a word or an operator is not a version, and would be older than any version.
_VERSION = re.compile(r"(?=\D*\d)[A-Za-z0-9][A-Za-z0-9.+_~*-]*")


@dataclass(frozen=True)
class WantedPlugin:
    """A wanted plugin. `version`: the minimum version; `None` for any."""

    name: str
    version: str | None
    state: State


@dataclass(frozen=True)
class PluginChange:
    """The planned change of a plugin. `waiting`: the version that the next start of the server
    loads; `joined`: its installation is already running; `implied`: the server installs it as a
    dependency.
    """

    wanted: WantedPlugin
    there: Plugin | None
    waiting: str | None = None
    joined: bool = False
    install: bool = False
    switch: Literal["doUninstall", "makeEnabled", "makeDisabled"] | None = None
    implied: bool = False

    @property
    def name(self) -> str:
        return self.wanted.name

    @property
    def action(self) -> str:
        if self.install:
            return "installed" if self.there is None else "updated"
        words = {"doUninstall": "removed", "makeEnabled": "enabled", "makeDisabled": "disabled"}
        return "unchanged" if self.switch is None else words[self.switch]

    @property
    def before(self) -> str | None:
        return None if self.there is None else self.there.version

    @property
    def waits(self) -> bool:
        """Return whether the change takes effect only with the next start of the server [ci-22]; a
        new plugin may need no restart.
        """
        if self.there is None or self.switch is None:
            return self.there is not None and self.install
        if self.switch == "doUninstall":
            return replace(self.there, deleted=True).waits
        return replace(self.there, enabled=self.switch == "makeEnabled").waits

    def row(self, after: str | None, *, failed: bool = False) -> dict[str, Any]:
        return {
            "name": self.name,
            "before": self.before,
            "after": None if self.wanted.state == "absent" else after or self.waiting,
            "action": "failed" if failed and self.install else self.action,
            "implied": self.implied,
        }

    def untouched(self) -> dict[str, Any]:
        """Return the row of a plugin that the failed task had not reached."""
        return {
            "name": self.name,
            "before": self.before,
            "after": self.before,
            "action": "unchanged",
            "implied": self.implied,
        }


def compared(
    wanted: Sequence[WantedPlugin], plugins: Sequence[Plugin], centre: CentreState
) -> list[PluginChange]:
    """Return the planned changes; raise `not_found` if a plugin to disable is missing, `conflict`
    if the next start removes a wanted plugin.
    """
    there = {plugin.short_name: plugin for plugin in plugins}
    return [
        _compared(wanted_plugin, there.get(wanted_plugin.name), centre) for wanted_plugin in wanted
    ]


def _compared(wanted: WantedPlugin, there: Plugin | None, centre: CentreState) -> PluginChange:
    if wanted.state == "absent":
        gone = there is None or there.deleted is True
        return PluginChange(wanted, there, switch=None if gone else "doUninstall")
    if there is not None and there.deleted is True:
        raise ToolchainError(
            "conflict",
            f"the plugin {wanted.name} will be removed when the server restarts: restart it first",
        )
    newest = centre.newest(wanted.name)
    waiting = newest.version if newest is not None and (newest.waits or newest.runs) else None
    known = waiting or (None if there is None else there.version)
    if wanted.state == "disabled" and known is None:
        raise ToolchainError(
            "not_found", f"the plugin {wanted.name} cannot be disabled: it is not installed"
        )
    missing = known is None
    old = not missing and wanted.version is not None and is_older(known or "", wanted.version)
    joined = waiting is not None and newest is not None and newest.runs and not old
    return PluginChange(wanted, there, waiting, joined, missing or old, _switch(wanted, there))


def _switch(
    wanted: WantedPlugin, there: Plugin | None
) -> Literal["makeEnabled", "makeDisabled"] | None:
    enabled = None if there is None else there.enabled
    if wanted.state == "enabled" and enabled is False:
        return "makeEnabled"
    return "makeDisabled" if wanted.state == "disabled" and enabled is not False and there else None


def implied(
    changes: Sequence[PluginChange],
    plugins: Sequence[Plugin],
    centre: CentreState,
    offers: Mapping[str, Offer],
) -> list[PluginChange]:
    """Return the installations that the server adds for dependencies [ci-22, ci-23], by name."""
    there = {plugin.short_name: plugin for plugin in plugins}
    listed = {change.name for change in changes}
    pending = [change.name for change in changes if change.install]
    found: dict[str, PluginChange] = {}
    while pending:
        offer = offers.get(pending.pop())
        for name, version in ({} if offer is None else offer.needs).items():
            plugin, newest = there.get(name), centre.newest(name)
            known = "" if plugin is None else plugin.version
            if newest is not None and (newest.waits or newest.runs):
                known = newest.version
            if name in {*listed, *found} or name not in offers:
                continue
            if not known or is_older(known, version):
                found[name] = added(name, plugin)
                pending.append(name)
    return [found[name] for name in sorted(found)]


def added(name: str, there: Plugin | None) -> PluginChange:
    """Return the installation of a dependency."""
    return PluginChange(WantedPlugin(name, None, "present"), there, install=True, implied=True)


def require_offers(changes: Sequence[PluginChange], offers: Mapping[str, Offer]) -> None:
    """Raise for plugins that the update site does not have, or only in older versions; all are
    named.
    """
    unknown, words = False, []
    for change in changes:
        version, offered = change.wanted.version, offers.get(change.name)
        if not change.install:
            continue
        if offered is None and change.there is None:
            unknown = True
            words.append(f"{change.name} is unknown")
        elif offered is None:
            words.append(
                f"{change.name} {version} is required, but nothing newer than {change.before}"
            )
        elif version is not None and is_older(offered.version, version):
            newest = offered.version
            words.append(f"{change.name} {version} is required, but the newest is {newest}")
    if words:
        raise ToolchainError(
            "not_found" if unknown else "rejected",
            f"the update site of the server does not have all plugins: {'; '.join(words)}",
        )


def dependants(changes: Sequence[PluginChange], plugins: Sequence[Plugin]) -> dict[str, list[str]]:
    """Return the remaining plugins that depend on a plugin to remove or disable: they fail to load
    afterwards.
    """
    going = {
        change.name: change
        for change in changes
        if change.switch in ("doUninstall", "makeDisabled")
    }
    found = {
        name: [
            plugin.short_name
            for plugin in plugins
            if name in plugin.needs and plugin.works and plugin.short_name not in going
        ]
        for name in going
    }
    return {name: needed_by for name, needed_by in found.items() if needed_by}


def wanted_once(wanted: Sequence[WantedPlugin]) -> list[WantedPlugin]:
    """Raise `invalid` for a plugin that is listed twice, and for an invalid name."""
    names = [plugin.name for plugin in wanted]
    for number, each in enumerate(wanted):
        if _SHORT_NAME.fullmatch(each.name) is None:
            raise invalid(
                f"plugins[{number}].name is '{each.name}', but must be the short name of the"
                " plugin; set its version in version"
            )
        if each.version is not None and _VERSION.fullmatch(each.version) is None:
            raise invalid(
                f"plugins[{number}].version is '{each.version}', but must be the minimum version"
                " as the server writes it (5.2.2); omit it to accept any version"
            )
        if each.name in names[:number]:
            raise invalid(f"plugins[{number}]: {each.name} is listed twice")
        if each.version is not None and each.state == "absent":
            raise invalid(f"plugins[{number}].version cannot be combined with state=absent")
    return list(wanted)
