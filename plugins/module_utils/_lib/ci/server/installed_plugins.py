# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the installed plugins of the CI server over HTTP or SSH [W2.4, W4.4], and compare them with
a baseline, which is an option or a lock file.

The lock file has the format of the server's plugin installation manager (`plugins.txt`): a line
`name:version` per plugin, and comments after `#`.

The server compares versions with `hudson.util.VersionNumber` of its library lib-version-number:
numbers by value, without trailing zeros. The qualifiers `snapshot` to `rc` come before the release,
all other qualifiers after it. `-` before a number opens a nested list, so `1-1` is between `1` and
`1.1`. Versions with a commit, such as `1371.vfee6b_095f0a_3`, are ordered by the number before it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeAlias

from ...core.errors import excerpt, invalid
from ...core.finding import Finding
from ...core.http.transport import Transport
from ...core.json_text import as_text, json_objects
from ...core.module.input_check import check_options
from ...core.module.task import Task
from ..client import object_of, server_of
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
    found = []
    for entry in json_objects(entries):
        if not entry.get("shortName"):
            continue
        states = (entry.get(name) for name in ("enabled", "active", "deleted", "hasUpdate"))
        enabled, active, deleted, has_update = (
            None if state is None else str(state).lower() == "true" for state in states
        )
        name, version = str(entry["shortName"]), str(entry.get("version") or "")
        title = str(entry.get("longName") or name)
        needs = tuple(
            as_text(obj.get("shortName"))
            for obj in json_objects(entry.get("dependencies"))
            if obj.get("optional") is not True
        )
        found.append(Plugin(name, title, version, enabled, active, deleted, has_update, needs))
    return sorted(found, key=lambda plugin: plugin.short_name)


def listed(output: str) -> list[Plugin]:
    """Parse the output of the SSH command `list-plugins`, which does not show disabled plugins as
    such.
    """
    found = []
    for line in output.splitlines():
        name, *rest = line.split(None, 1)[:2] or [""]
        if rest:
            # The columns are padded with blanks. Titles and private versions may contain blanks,
            # and a newer version follows in brackets [ci-17].
            text, private, suffix = rest[0].rstrip(), "", ""
            start = text.rfind(_PRIVATE)
            end = text.find(")", start) + 1 if start >= 0 else 0
            if end:
                text, private, suffix = text[:start], text[start:end], text[end:]
            if not private and text.endswith(")"):
                shorter, _blank, last = text.rpartition(" ")
                if shorter and last.startswith("("):
                    text, suffix = shorter, last
            title, _blank, version = text.rstrip().rpartition(" ")
            version, update = f"{version}{private}", suffix != ""
            found.append(Plugin(name, title.rstrip(), version, None, None, None, update))
    return sorted(found, key=lambda plugin: plugin.short_name)


#: A number, a qualifier, a nested list, or `_ANY`.
_Item: TypeAlias = "int | str | float | list[Any]"

_TOKEN = re.compile(r"[0-9]+|[.*-]|[^0-9.*-]+")
_SNAPSHOT = re.compile(r"(-[0-9]{8}\.[0-9]{6}-[0-9]+|-SNAPSHOT)( \(.*\))?$")
_QUALIFIERS = ("snapshot", "alpha", "beta", "milestone", "rc", "", "sp")
_ALIASES = {"ga": "", "final": "", "cr": "rc", "ea": "rc"}
_BEFORE_NUMBER = {"a": "alpha", "b": "beta", "m": "milestone"}
_RELEASE = _QUALIFIERS.index("")
#: Maximum number of characters to compare. No real version is longer.
_MAX_LENGTH = 200
#: Item for `*` in `1.*`, which is newer than any other item.
_ANY = math.inf
_RANKS: dict[type, int] = {str: 0, list: 1, int: 2, float: 3}


def is_older(version: str, than: str) -> bool:
    """Return whether `version` is older than `than`. Builds of the same snapshot count as equal."""
    return _order(_parsed(version), _parsed(than)) < 0


def is_newer(version: str, other: str) -> bool:
    """Return whether `version` is newer than `other`."""
    return is_older(other, than=version)


def _parsed(version: str) -> list[Any]:
    """Parse a version into items. A `-` between two numbers opens a nested list."""
    text = version.strip()[:_MAX_LENGTH]
    tokens = _TOKEN.findall(_SNAPSHOT.sub("-SNAPSHOT", text).lower())
    items: list[Any] = []
    lists = [items]
    for before, token, following in zip([".", *tokens], tokens, [*tokens[1:], ""], strict=False):
        if token in (".", "-"):
            if before in (".", "-"):
                items.append(0)
            if token == "-" and before.isdigit():
                _trim(items)
                if following.isdigit():
                    items.append([])
                    items = items[-1]
                    lists.append(items)
        elif token == "*":
            items.append(_ANY)
        else:
            text = _BEFORE_NUMBER.get(token, token) if following.isdigit() else token
            items.append(int(token) if token.isdigit() else _ALIASES.get(text, text))
    for nested in reversed(lists):
        _trim(nested)
    return lists[0]


def _trim(items: list[Any]) -> None:
    """Remove items at the end that do not change the order: 0, "" and empty lists."""
    while items and items[-1] in (0, "", []):
        items.pop()


def _order(left: _Item, right: _Item) -> int:
    """Return a negative number, zero or a positive number if `left` is older than, equal to or
    newer than `right`.
    """
    if isinstance(left, list) and isinstance(right, list):
        for mine, other in zip_longest(left, right):
            if mine is None:
                order = -_order_against_end(other)
            else:
                order = _order_against_end(mine) if other is None else _order(mine, other)
            if order:
                return order
        return 0
    left_rank, right_rank = _RANKS[type(left)], _RANKS[type(right)]
    if left_rank != right_rank:
        return left_rank - right_rank
    key, other_key = _key(left), _key(right)
    return int(key > other_key) - int(key < other_key)


def _order_against_end(item: _Item) -> int:
    """Compare a version with an additional item to the version without the item.

    Returns a negative number if the longer version is older, a positive number if it is newer.
    """
    if isinstance(item, list):
        return _order_against_end(item[0]) if item else 0
    if isinstance(item, str):
        return -1 if _key(item) < (_RELEASE, "") else int(_key(item) > (_RELEASE, ""))
    return int(item > 0)


def _key(item: _Item) -> Any:
    """Return the sort key for items of the same type."""
    if not isinstance(item, str):
        return item
    if item in _QUALIFIERS:
        return _QUALIFIERS.index(item), ""
    return len(_QUALIFIERS), item


_HEAD = "# Plugins of the CI server, name:version; written by delivery.toolchain.ci_plugin_info\n"
#: Values in a lock file that accept any version.
_ANY_VERSION = ("latest", "experimental")
#: Versions that can be compared. Ranges and `5.x` are not versions.
_VERSION = re.compile(r"(?=\D*\d)(?!.*\.x\Z)\w[\w.+-]*", re.ASCII)
_ACTIVE_STATES = ("present", "enabled")
_INACTIVE_STATES = ("absent", "disabled")

#: Options for `check_options`, because `required` may also be a dict of names.
_ENTRIES = {
    "required": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": {"type": "str", "required": True},
            "version": {"type": "str", "empty": True},
            "state": {"type": "str"},
        },
    }
}

#: Plugin name to minimum version; `None` accepts any version.
Baseline: TypeAlias = "Mapping[str, str | None]"


def of_option(required: Any) -> dict[str, str | None]:
    """Return the baseline in the option `required`, a list of entries or a dict."""
    unwanted_states = unwanted_of(required)
    if isinstance(required, Mapping):
        pairs = list(required.items())
    else:
        pairs = [(entry["name"], entry.get("version")) for entry in required]
        pairs = [pair for pair in pairs if pair[0] not in unwanted_states]
    invalid_names = [name for name, version in pairs if not isinstance(version, (str, type(None)))]
    if invalid_names:
        raise invalid(
            f"required: the version of {', '.join(map(str, invalid_names))} is not a string"
        )
    found: dict[str, str | None] = {}
    for name, version in pairs:
        minimum = _minimum_or_any(version, f"required: the version of {name}")
        if found.setdefault(str(name), minimum) != minimum:
            raise invalid(f"required: {name} is listed twice, with different versions")
    return found


def unwanted_of(required: Any) -> dict[str, str]:
    """Return the plugins in the option `required` that must not be active, by name.

    The value is `absent` or `disabled`.
    """
    if isinstance(required, Mapping):
        return {}
    if not isinstance(required, Sequence) or isinstance(required, str):
        raise invalid(
            "required must be a list of entries with name and version, or a dict of name to version"
        )
    states: dict[str, set[str]] = {}
    known = (*_ACTIVE_STATES, *_INACTIVE_STATES)
    for entry in check_options(_ENTRIES, {"required": required})["required"]:
        name = entry["name"]
        state = entry.get("state") or "present"
        if state not in known:
            raise invalid(
                f"required: the state of {name} is {excerpt(state)}: set it to one of"
                f" {', '.join(known)}"
            )
        if state in _INACTIVE_STATES and entry.get("version"):
            raise invalid(
                f"required: version of {name} cannot be combined with state: {state}: omit it"
            )
        states.setdefault(name, set()).add("enabled" if state in _ACTIVE_STATES else state)
    duplicates = [name for name, found in states.items() if len(found) > 1]
    if duplicates:
        raise invalid(f"required: {duplicates[0]} is listed twice, with different states")
    return {name: state for name, (state,) in states.items() if state in _INACTIVE_STATES}


def of_lock(text: str, file: str) -> dict[str, str | None]:
    """Return the baseline in a lock file."""
    found: dict[str, str | None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.partition("#")[0].strip()
        if not entry:
            continue
        name, _colon, rest = entry.partition(":")
        if not name or len(entry.split()) != 1:
            raise invalid(f"{file}, line {number}: '{entry}' is not name:version")
        # name:version:url, where version may be incrementals;group;version
        version = rest.partition(":")[0].rpartition(";")[2]
        found[name] = _minimum_or_any(version, f"{file}, line {number}: the version")
    return found


def lock_of(plugins: Iterable[Plugin]) -> str:
    """Return the content of a lock file for the active plugins.

    Inactive plugins are omitted, because a check would report them.
    """
    loaded = (plugin for plugin in plugins if plugin.works)
    return _HEAD + "".join(f"{plugin.short_name}:{plugin.version}\n" for plugin in loaded)


def compliance(
    plugins: Iterable[Plugin], baseline: Baseline, unwanted_states: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Compare the plugins with a baseline. Return the differences as return values of the module.

    :param unwanted_states: plugins that must not be active, from `unwanted_of`
    """
    installed = {plugin.short_name: plugin for plugin in plugins}
    disabled = [name for name, state in (unwanted_states or {}).items() if state == "disabled"]
    missing = sorted({*baseline, *disabled} - set(installed))
    inactive = sorted(name for name in baseline if name in installed and not installed[name].works)
    outdated = [
        {"name": name, "installed": installed[name].version, "required": version}
        for name, version in sorted(baseline.items())
        if version is not None and name in installed and is_older(installed[name].version, version)
    ]
    unwanted = [
        {"name": name, "installed": installed[name].version, "state": state}
        for name, state in sorted((unwanted_states or {}).items())
        # a restart removes or disables such a plugin [ci-22]
        if name in installed
        and installed[name].deleted is not True
        and not (state == "disabled" and installed[name].enabled is False)
    ]
    return {
        "missing": missing,
        "outdated": outdated,
        "inactive": inactive,
        "unwanted": unwanted,
        "compliant": not (missing or outdated or inactive or unwanted),
    }


def not_in_lock(plugins: Iterable[Plugin], baseline: Baseline) -> dict[str, Any]:
    """Return the return values for plugins that the lock file lacks or has in older versions."""
    extra, newer = [], []
    for plugin in plugins:
        locked = baseline.get(plugin.short_name)
        if plugin.short_name not in baseline:
            extra.append(plugin.short_name)
        elif locked is not None and is_newer(plugin.version, locked):
            entry = {"name": plugin.short_name, "installed": plugin.version, "required": locked}
            newer.append(entry)
    return {"extra": extra, "newer": newer}


def finding_of(name: str, action: str, before: Any, after: Any) -> Finding:
    """Return the finding of a plugin.

    :param action: value of `action` in the return value `plugins` of `ci_plugin`
    :param before: version before the task
    """
    was, will = {"version": before}, {"version": after}
    if action == "installed":
        return Finding(name, "plugin", "create", after=will)
    if action == "updated":
        text = f"is {before}, but should be {after}"
        return Finding(name, "plugin", "update", was, will, text)
    if action == "removed":
        return Finding(name, "plugin", "delete", was)
    if action not in ("enabled", "disabled"):
        return Finding(name, "plugin")
    enabled = action == "enabled"
    text = "disabled or not loaded" if enabled else "enabled, but should be disabled"
    return Finding(name, "plugin", "update", {"enabled": not enabled}, {"enabled": enabled}, text)


def least_version(version: str | None, option: str) -> str | None:
    """Return a minimum version, or `None` if it is empty. Raises `invalid` for other values.

    :param option: name of the option for messages
    """
    text = "" if version is None else version.strip()
    if text and not _VERSION.fullmatch(text):
        raise invalid(
            f"{option} is '{text}': set it to a minimum version such as 5.2.2, or omit it to accept"
            " any version"
        )
    return text or None


def _minimum_or_any(version: str | None, option: str) -> str | None:
    text = "" if version is None else version.strip()
    return None if text in _ANY_VERSION else least_version(text, option)
