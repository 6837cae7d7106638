# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the installed plugins of the CI server, over HTTP or SSH [W2.4, W4.4]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.http.transport import Transport
from ...core.json_text import as_text
from ...core.module.task import Task
from ..client import object_of, objects, server_of
from ..ssh_commands import SshCommands, SshOptions

_TREE = (
    "plugins[shortName,longName,version,enabled,active,deleted,hasUpdate,"
    "dependencies[shortName,optional]]"
)
_PRIVATE = " (private-"


@dataclass(frozen=True)
class Plugin:
    """An installed plugin. `None` means unknown.

    :param deleted: whether the plugin is removed when the server restarts
    :param needs: short names of the mandatory dependencies
    """

    short_name: str
    long_name: str
    version: str
    enabled: bool | None
    active: bool | None
    deleted: bool | None
    has_update: bool | None
    needs: tuple[str, ...] = ()

    @property
    def works(self) -> bool:
        """Return whether the plugin is enabled and loaded, as far as known.

        Server fact [ci-17]: an enabled plugin that is not active has failed to load, or waits for a
        restart.
        """
        return self.enabled is not False and self.active is not False

    @property
    def waits(self) -> bool:
        """Return whether a restart will enable, disable or remove the plugin."""
        reported = None not in (self.enabled, self.active)
        return reported and (self.enabled != self.active or (self.deleted is True and self.works))

    def as_dict(self) -> dict[str, Any]:
        """Return the plugin as an item of the return value `plugins`."""
        names = ("short_name", "long_name", "version", "enabled", "active", "has_update")
        return {name: getattr(self, name) for name in names}


def reader_of(task: Task, options: SshOptions) -> Callable[[], list[Plugin]]:
    """Return a function that reads the plugins over HTTP or SSH and sorts them by name."""
    if options.transport == "ssh":
        commands = SshCommands(task, options)
        return lambda: listed(
            commands.run("listing the plugins", "list-plugins", reads=True).output
        )
    server = server_of(task)
    return lambda: read(server)


def read(server: Transport) -> list[Plugin]:
    """Read the plugins over HTTP, sorted by name."""
    purpose, path = "reading the plugins", "pluginManager/api/json"
    response = server.read(purpose, path, query={"tree": _TREE})
    entries = object_of(response).get("plugins")
    if not isinstance(entries, list):
        raise response.error("protocol", "the response has no list of plugins: check url")
    return _sorted(_plugin(entry) for entry in objects(entries) if entry.get("shortName"))


def listed(output: str) -> list[Plugin]:
    """Parse the output of the SSH command `list-plugins`, which does not show disabled plugins as
    such.
    """
    found = []
    for line in output.splitlines():
        name, *rest = line.split(None, 1)[:2] or [""]
        if rest:
            title, version, update = _title_and_version(rest[0].rstrip())
            found.append(Plugin(name, title, version, None, None, None, update))
    return _sorted(found)


def _title_and_version(text: str) -> tuple[str, str, bool]:
    """Split the end of a line into title, version, and whether a newer version exists.

    Server fact [ci-17]: the columns are padded with blanks. Titles and private versions may contain
    blanks, and a newer version follows in brackets.
    """
    start = text.rfind(_PRIVATE)
    end = text.find(")", start) + 1 if start >= 0 else 0
    head, private, suffix = (text[:start], text[start:end], text[end:]) if end else (text, "", "")
    if not private and head.endswith(")"):
        shorter, _blank, last = head.rpartition(" ")
        if shorter and last.startswith("("):
            head, suffix = shorter, last
    title, _blank, version = head.rstrip().rpartition(" ")
    return title.rstrip(), f"{version}{private}", suffix != ""


def _plugin(entry: Mapping[str, Any]) -> Plugin:
    states = (entry.get(name) for name in ("enabled", "active", "deleted", "hasUpdate"))
    enabled, active, deleted, has_update = (
        None if state is None else str(state).lower() == "true" for state in states
    )
    name, version = str(entry["shortName"]), str(entry.get("version") or "")
    title = str(entry.get("longName") or name)
    needs = tuple(
        as_text(obj.get("shortName"))
        for obj in objects(entry.get("dependencies"))
        if obj.get("optional") is not True
    )
    return Plugin(name, title, version, enabled, active, deleted, has_update, needs)


def _sorted(plugins: Iterable[Plugin]) -> list[Plugin]:
    return sorted(plugins, key=lambda plugin: plugin.short_name)
