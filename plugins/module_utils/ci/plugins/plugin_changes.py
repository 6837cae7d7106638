# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the changes of plugins. This module sends no requests."""

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
#: A version contains a digit. Words such as `latest` would count as older than any version.
_VERSION = re.compile(r"(?=\D*\d)[A-Za-z0-9][A-Za-z0-9.+_~*-]*")


@dataclass(frozen=True)
class WantedPlugin:
    """Desired state of a plugin. `version` is the minimum version; `None` accepts any version."""

    name: str
    version: str | None
    state: State


@dataclass(frozen=True)
class PluginChange:
    """Planned change of a plugin.

    :param installed: the installed plugin, or `None`
    :param waiting: version that is being installed, or that the server loads after a restart
    :param joined: whether the installation is already running
    :param install: whether to install or update the plugin
    :param switch: other request to send: uninstall, enable or disable
    :param implied: whether the server installs the plugin as a dependency
    """

    wanted: WantedPlugin
    installed: Plugin | None
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

    def row(self, after: str | None, *, failed: bool = False) -> dict[str, Any]:
        return {
            "name": self.name,
            "before": self.before,
            "after": None if self.wanted.state == "absent" else after or self.waiting,
            "action": "failed" if failed and self.install else self.action,
            "implied": self.implied,
        }

    def untouched(self) -> dict[str, Any]:
        """Return the result row of a plugin that was not changed because the task failed before."""
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
    """Return the planned change of each plugin.

    Raises `not_found` if a plugin to disable is not installed, and `conflict` if the server will
    remove a required plugin when it restarts.
    """
    installed = {plugin.short_name: plugin for plugin in plugins}
    return [
        _change_of(wanted_plugin, installed.get(wanted_plugin.name), centre)
        for wanted_plugin in wanted
    ]


def _change_of(wanted: WantedPlugin, installed: Plugin | None, centre: CentreState) -> PluginChange:
    if wanted.state == "absent":
        gone = installed is None or installed.deleted is True
        return PluginChange(wanted, installed, switch=None if gone else "doUninstall")
    if installed is not None and installed.deleted is True:
        raise ToolchainError(
            "conflict",
            f"the plugin {wanted.name} is marked for removal: restart the server first",
        )
    newest = centre.newest(wanted.name)
    waiting = newest.version if newest is not None and (newest.waits or newest.runs) else None
    version = waiting or (None if installed is None else installed.version)
    if wanted.state == "disabled" and version is None:
        raise ToolchainError(
            "not_found", f"cannot disable the plugin {wanted.name}, because it is not installed"
        )
    missing = version is None
    old = not missing and wanted.version is not None and is_older(version or "", wanted.version)
    joined = waiting is not None and newest is not None and newest.runs and not old
    return PluginChange(
        wanted, installed, waiting, joined, missing or old, _switch(wanted, installed)
    )


def _switch(
    wanted: WantedPlugin, installed: Plugin | None
) -> Literal["makeEnabled", "makeDisabled"] | None:
    enabled = None if installed is None else installed.enabled
    if wanted.state == "enabled" and enabled is False:
        return "makeEnabled"
    return (
        "makeDisabled"
        if wanted.state == "disabled" and enabled is not False and installed
        else None
    )


def implied(
    changes: Sequence[PluginChange],
    plugins: Sequence[Plugin],
    centre: CentreState,
    offers: Mapping[str, Offer],
) -> list[PluginChange]:
    """Return the installations of dependencies that the server adds [ci-22, ci-23], by name."""
    installed = {plugin.short_name: plugin for plugin in plugins}
    listed = {change.name for change in changes}
    pending = [change.name for change in changes if change.install]
    found: dict[str, PluginChange] = {}
    while pending:
        offer = offers.get(pending.pop())
        for name, minimum in ({} if offer is None else offer.needs).items():
            plugin, newest = installed.get(name), centre.newest(name)
            version = "" if plugin is None else plugin.version
            if newest is not None and (newest.waits or newest.runs):
                version = newest.version
            if name in {*listed, *found} or name not in offers:
                continue
            if not version or is_older(version, minimum):
                found[name] = added(name, plugin)
                pending.append(name)
    return [found[name] for name in sorted(found)]


def added(name: str, installed: Plugin | None) -> PluginChange:
    """Return the change that installs a dependency.

    :param installed: the installed older version, or `None`
    """
    return PluginChange(WantedPlugin(name, None, "present"), installed, install=True, implied=True)


def require_offers(changes: Sequence[PluginChange], offers: Mapping[str, Offer]) -> None:
    """Raise an error that names all plugins which the update site cannot provide.

    The kind is `not_found` if it lacks a plugin, `rejected` if it only has older versions.
    """
    unknown, reasons = False, []
    for change in changes:
        version, offered = change.wanted.version, offers.get(change.name)
        if not change.install:
            continue
        if offered is None and change.installed is None:
            unknown = True
            reasons.append(f"{change.name} is unknown")
        elif offered is None:
            reasons.append(
                f"{change.name} {version} is required, but nothing newer than {change.before}"
            )
        elif version is not None and is_older(offered.version, version):
            newest = offered.version
            reasons.append(f"{change.name} {version} is required, but the newest is {newest}")
    if reasons:
        raise ToolchainError(
            "not_found" if unknown else "rejected",
            f"the update site of the server lacks plugins: {'; '.join(reasons)}",
        )


def dependants(changes: Sequence[PluginChange], plugins: Sequence[Plugin]) -> dict[str, list[str]]:
    """Return the plugins to remove or disable that active plugins depend on.

    The values are the names of the active plugins, which would then fail to load.
    """
    removed = {
        change.name: change
        for change in changes
        if change.switch in ("doUninstall", "makeDisabled")
    }
    found = {
        name: [
            plugin.short_name
            for plugin in plugins
            if name in plugin.needs and plugin.works and plugin.short_name not in removed
        ]
        for name in removed
    }
    return {name: needed_by for name, needed_by in found.items() if needed_by}


def wanted_once(wanted: Sequence[WantedPlugin]) -> list[WantedPlugin]:
    """Return the plugins as a list.

    Raises `invalid` for an invalid name or version, and for a plugin that is listed twice.
    """
    names = [plugin.name for plugin in wanted]
    for number, plugin in enumerate(wanted):
        if _SHORT_NAME.fullmatch(plugin.name) is None:
            raise invalid(
                f"plugins[{number}].name is '{plugin.name}': set it to the short name of the"
                " plugin, without a version"
            )
        if plugin.version is not None and _VERSION.fullmatch(plugin.version) is None:
            raise invalid(
                f"plugins[{number}].version is '{plugin.version}': set it to a minimum version such"
                " as 5.2.2, or omit it to accept any version"
            )
        if plugin.name in names[:number]:
            raise invalid(f"plugins[{number}]: {plugin.name} is listed twice")
        if plugin.version is not None and plugin.state == "absent":
            raise invalid(
                f"plugins[{number}].version cannot be combined with state: absent: omit it"
            )
    return list(wanted)
