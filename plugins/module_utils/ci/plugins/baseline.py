# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare plugins with a baseline; read and write the lock file with a baseline.

The lock file has the format of the server's plugin installation manager (`plugins.txt`): a line
`name:version` for every plugin, comments after `#`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ...core.errors import invalid
from .plugin_list import Plugin
from .versions import is_newer, is_older

_HEAD = "# Plugins of the CI server, name:version; written by delivery.toolchain.ci_plugin_info\n"
#: Words instead of a version that stand for any version.
_ANY_VERSION = ("latest", "experimental")
#: Versions that can be compared with the version of a plugin: not a range, and not `5.x`, which
#: every version would meet, or none.
_VERSION = re.compile(r"(?=\D*\d)(?!.*\.x\Z)\w[\w.+-]*", re.ASCII)
_WORKING = ("present", "enabled")
_IDLE = ("absent", "disabled")

#: Plugin to its minimum version, `None` for any.
Baseline: TypeAlias = "Mapping[str, str | None]"


def of_option(required: Any) -> dict[str, str | None]:
    """Return the baseline in the option `required`."""
    idle = idle_of(required)
    if isinstance(required, Mapping):
        pairs = list(required.items())
    else:
        pairs = [(entry["name"], entry.get("version")) for entry in required]
        pairs = [pair for pair in pairs if pair[0] not in idle]
    wrong = [name for name, version in pairs if not isinstance(version, (str, type(None)))]
    if wrong:
        raise invalid(f"required: the version of {', '.join(map(str, wrong))} is not a string")
    found: dict[str, str | None] = {}
    for name, version in pairs:
        least = _any_or_least(version, f"required: the version of {name}")
        if found.setdefault(str(name), least) != least:
            raise invalid(f"required: {name} is listed twice, with different versions")
    return found


def idle_of(required: Any) -> dict[str, str]:
    """Return the plugins in the option `required` that must not be active, as `absent` or
    `disabled`.
    """
    if isinstance(required, Mapping):
        return {}
    if not isinstance(required, Sequence) or isinstance(required, str):
        raise invalid(
            "required must be a list of entries with name and version, or a dict of name to version"
        )
    states: dict[str, set[str]] = {}
    for entry in required:
        name, state = _state(entry)
        states.setdefault(name, set()).add("enabled" if state in _WORKING else state)
    twice = [name for name, found in states.items() if len(found) > 1]
    if twice:
        raise invalid(f"required: {twice[0]} is listed twice, with different states")
    return {name: state for name, (state,) in states.items() if state in _IDLE}


def of_lock(text: str, file: str) -> dict[str, str | None]:
    """Return the baseline in a lock file."""
    found: dict[str, str | None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.partition("#")[0].strip()
        if not entry:
            continue
        name, _colon, rest = entry.partition(":")
        if not name or len(entry.split()) != 1:
            raise invalid(f"{file}, line {number}: this is not name:version")
        # name:version:url, where version may be incrementals;group;version
        version = rest.partition(":")[0].rpartition(";")[2]
        found[name] = _any_or_least(version, f"{file}, line {number}: the version")
    return found


def lock_of(plugins: Iterable[Plugin]) -> str:
    """Return the content of a lock file for these plugins, without inactive plugins, which a check
    would report.
    """
    loaded = (plugin for plugin in plugins if plugin.works)
    return _HEAD + "".join(f"{plugin.short_name}:{plugin.version}\n" for plugin in loaded)


def judged(
    plugins: Iterable[Plugin], baseline: Baseline, idle: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the return values for the differences from the baseline.

    :param idle: plugins that must not be active, as :func:`idle_of` returns them
    """
    there = {plugin.short_name: plugin for plugin in plugins}
    lacking = [name for name, state in (idle or {}).items() if state == "disabled"]
    missing = sorted({*baseline, *lacking} - set(there))
    inactive = sorted(name for name in baseline if name in there and not there[name].works)
    outdated = [
        {"name": name, "installed": there[name].version, "required": version}
        for name, version in sorted(baseline.items())
        if version is not None and name in there and is_older(there[name].version, version)
    ]
    unwanted = [
        {"name": name, "installed": there[name].version, "state": state}
        for name, state in sorted((idle or {}).items())
        if name in there and not _is_idle(there[name], state)
    ]
    return {
        "missing": missing,
        "outdated": outdated,
        "inactive": inactive,
        "unwanted": unwanted,
        "compliant": not (missing or outdated or inactive or unwanted),
    }


def _is_idle(plugin: Plugin, state: str) -> bool:
    """Return whether a plugin is removed or disabled, at the latest with the next start [ci-22]."""
    return plugin.deleted is True or (state == "disabled" and plugin.enabled is False)


def beyond(plugins: Iterable[Plugin], baseline: Baseline) -> dict[str, Any]:
    """Return the return values for plugins of the server that the lock file lacks."""
    extra, newer = [], []
    for plugin in plugins:
        locked = baseline.get(plugin.short_name)
        if plugin.short_name not in baseline:
            extra.append(plugin.short_name)
        elif locked is not None and is_newer(plugin.version, locked):
            entry = {"name": plugin.short_name, "installed": plugin.version, "required": locked}
            newer.append(entry)
    return {"extra": extra, "newer": newer}


def _state(entry: Any) -> tuple[str, str]:
    """Return name and state of an entry of `required`."""
    known = {"name", "version", "state"}
    if not isinstance(entry, Mapping) or not entry.get("name") or set(entry) - known:
        raise invalid(f"required: {entry!r} is not a dict of name, version and state")
    name, state = str(entry["name"]), entry.get("state") or "present"
    if state not in (*_WORKING, *_IDLE):
        message = ", ".join((*_WORKING, *_IDLE))
        raise invalid(f"required: the state of {name} is {state!r}, but must be one of {message}")
    if state in _IDLE and entry.get("version"):
        raise invalid(f"required: {name} should be {state}, so omit its version")
    return name, state


def least_version(version: str | None, place: str) -> str | None:
    """Return the minimum version in the option at `place`; raise `invalid` for an
    invalid version.
    """
    text = "" if version is None else version.strip()
    if text and not _VERSION.fullmatch(text):
        raise invalid(
            f"{place} is '{text}', but must be the minimum version, such as 5.2.2; omit it to"
            " accept any version"
        )
    return text or None


def _any_or_least(version: str | None, place: str) -> str | None:
    text = "" if version is None else version.strip()
    return None if text in _ANY_VERSION else least_version(text, place)
