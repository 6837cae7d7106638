# SPDX-License-Identifier: GPL-3.0-or-later
"""Installed plugins, and the effects of a restart [ci-18].

In addition to the members that the server shows, a plugin in a seed may have `update_waiting:
version` (an update is installed and needs a restart) and `fails_to_load: true`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox.ci.formats.exports import Exported, constants

if TYPE_CHECKING:
    from sandbox.context import Context

_PLUGINS = "ci.plugin"
_OWN = ("update_waiting", "fails_to_load", "comes_with_restart")
# Server fact [ci-18]: the members of a plugin, with defaults for plugins of a seed.
_DEFAULTS: dict[str, Any] = {
    "active": True,
    "backupVersion": None,
    "bundled": False,
    "deleted": False,
    "dependencies": [],
    "detached": False,
    "downgradable": False,
    "enabled": True,
    "hasUpdate": False,
    "longName": "",
    "pinned": False,
    "requiredCoreVersion": "2.426.3",
    "shortName": "",
    "supportsDynamicLoad": "MAYBE",
    "url": None,
    "version": "1.0",
}


def put(context: Context, plugin: dict[str, Any]) -> None:
    context.store.put(_PLUGINS, plugin["shortName"], plugin)


def _all(context: Context) -> list[dict[str, Any]]:
    return [{**_DEFAULTS, **plugin} for plugin in context.store.values(_PLUGINS)]


def installed(context: Context) -> list[dict[str, Any]]:
    """Return the installed plugins, except those that the server loads only after a restart."""
    return [plugin for plugin in _all(context) if not plugin.get("comes_with_restart")]


def versions(context: Context) -> dict[str, str]:
    """Return the versions of the plugins that are loaded."""
    return {plugin["shortName"]: plugin["version"] for plugin in installed(context)}


def updates_wait(context: Context) -> bool:
    """Return whether an installed update requires a restart."""
    return any("update_waiting" in plugin for plugin in _all(context))


def receive(context: Context, offered: dict[str, Any]) -> bool:
    """Install a plugin of the update site. Return whether a restart is required.

    Server fact [ci-22]: the update of a loaded plugin always requires a restart.
    """
    name, version = offered["name"], offered["version"]
    there = {plugin["shortName"]: plugin for plugin in installed(context)}.get(name)
    if there is not None:
        put(context, {**there, "update_waiting": version})
        return True
    needs = [{"shortName": need, "optional": False} for need in offered.get("dependencies") or []]
    late = bool(offered.get("needs_restart"))
    fresh = {"longName": offered.get("title") or name, "version": version, "dependencies": needs}
    if late:
        fresh["comes_with_restart"] = True
    put(context, {"shortName": name, **fresh})
    return late


def switch(context: Context, name: str, enabled: bool) -> bool:
    """Enable or disable a plugin after the next restart. Return false if it does not exist."""
    return _change(context, name, enabled=enabled)


def uninstall(context: Context, name: str) -> bool:
    """Uninstall a plugin. Server fact [ci-22]: it is loaded and listed until the restart."""
    return _change(context, name, deleted=True)


def _change(context: Context, name: str, **changes: bool) -> bool:
    plugin = context.store.get(_PLUGINS, name)
    if plugin is not None:
        put(context, {**plugin, **changes})
    return plugin is not None


def settle(context: Context) -> None:
    """Carry out the changes that take effect at a restart."""
    for plugin in _all(context):
        plugin.pop("comes_with_restart", None)
        if plugin["deleted"]:
            context.store.delete(_PLUGINS, plugin["shortName"])
            continue
        plugin["version"] = plugin.pop("update_waiting", plugin["version"])
        plugin["active"] = plugin["enabled"] and not plugin.get("fails_to_load", False)
        put(context, plugin)


def manager_view(context: Context) -> Exported:
    """Return the plugin list. Server fact [ci-18]: without `depth` or `tree`, plugins have almost
    no members.
    """
    entries = [
        Exported(None, constants(**{k: v for k, v in plugin.items() if k not in _OWN}), ())
        for plugin in installed(context)
    ]
    return Exported("hudson.LocalPluginManager", constants(plugins=entries), ())


def lines(plugins: list[dict[str, Any]]) -> str:
    """Return the output of the SSH command `list-plugins` [ci-17].

    A line has the padded name and title, and the version. If there is a newer version, it follows
    in parentheses.
    """
    shown = [{**_DEFAULTS, **plugin} for plugin in plugins]
    name_width = max((len(plugin["shortName"]) for plugin in shown), default=1)
    title_width = max((len(plugin["longName"]) for plugin in shown), default=1)
    return "".join(
        f"{plugin['shortName']:<{name_width}} {plugin['longName']:<{title_width}}"
        f" {plugin['version']}{' (99.9)' if plugin['hasUpdate'] else ''}\n"
        for plugin in shown
    )
