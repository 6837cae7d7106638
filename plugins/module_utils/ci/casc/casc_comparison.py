# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a wanted configuration with the exported one by its paths [ci-43].

Only paths that the wanted configuration names are compared. The server replaces lists as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.secret import is_secret_name

#: Mark of a part that the server could not export.
FAILED = "FAILED TO EXPORT"
_ENCRYPTED = re.compile(r"\{[A-Za-z0-9+/]{8,}={0,2}\}")
_VARIABLE = re.compile(r"(?<!\^)\$\{")
_PLACE = re.compile(r"\[[^\]]*\]")
#: The value of a variable in a list, with the name of the variable.
_VALUE = re.compile(r"\[([^\]]*)\]\.value$")
_SECRET = "(secret)"
_MISSING = object()


@dataclass
class ConfigurationComparison:
    """Differences between the wanted and the exported configuration.

    :ivar changes: `path`, `before` and `after`, without secrets
    :ivar unknown: paths that cannot be compared
    :ivar lost: path of a list to the names of the entries that it would lose
    :ivar unclear: sentences about values whose meaning is not clear
    """

    changes: list[dict[str, Any]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    lost: dict[str, list[str]] = field(default_factory=dict)
    unclear: list[str] = field(default_factory=list)

    def compare(self, path: str, wanted: Any, live: Any) -> None:
        if _is_unknown(wanted, live):
            self.unknown.append(path)
        elif isinstance(wanted, Mapping) and wanted and isinstance(live, Mapping):
            for name, value in wanted.items():
                self.compare(f"{path}.{name}".lstrip("."), value, live.get(name, _MISSING))
        elif isinstance(wanted, list) and isinstance(live, list):
            self._compare_lists(path, wanted, live)
        elif isinstance(live, list) and live:
            # the server would take a single value for a list with one entry
            self.unclear.append(f"{path} is a list on the server: list all of its entries")
        elif isinstance(live, Mapping) and live and wanted in (None, "", {}, []):
            self.unclear.append(f"{path} is empty: omit it, or list its values")
        elif not _is_equal(wanted, live):
            self._add(path, None if live is _MISSING else live, wanted)

    def _compare_lists(self, path: str, wanted: list[Any], live: list[Any]) -> None:
        ours, theirs = _by_name(wanted, live)
        if [*ours] != [*theirs] and not any(isinstance(each, Mapping) for each in (*wanted, *live)):
            self._add(path, live, wanted)
        else:
            for name, each in ours.items():
                self.compare(f"{path}[{name}]", each, theirs.get(name, _MISSING))
            for name, each in theirs.items():
                if name not in ours:
                    self._add(f"{path}[{name}]", each, None)
        gone = [name for name in theirs if name not in ours]
        if gone:
            self.lost.setdefault(plain_path(path), []).extend(gone)

    def _add(self, path: str, before: Any, after: Any) -> None:
        variable = _VALUE.search(path)
        name = variable[1] if variable else plain_path(path).rpartition(".")[2]
        shown = {"before": shown_value(name, before), "after": shown_value(name, after)}
        self.changes.append({"path": path, **shown})


def compared(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> ConfigurationComparison:
    """Compare two configurations."""
    found = ConfigurationComparison()
    found.compare("", wanted, live)
    return found


def sections(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the wanted configuration to send: sections of the second level that
    differ, with their live members that the wanted configuration does not name.
    """
    sent: dict[str, Any] = {}
    for top, content in wanted.items():
        theirs = live.get(top)
        if not isinstance(content, Mapping) or not isinstance(theirs, Mapping):
            if compared({top: content}, live).changes:
                sent[top] = content
            continue
        for name, value in content.items():
            if compared({name: value}, theirs).changes:
                sent.setdefault(top, {})[name] = _completed(value, theirs.get(name))
    return sent


def without_failed(sent: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return sections without the parts that the server could not export, and the paths of these
    parts: the server may reset them.
    """
    lost: list[str] = []

    def cleaned(path: str, value: Any) -> Any:
        if isinstance(value, str) and FAILED in value:
            lost.append(path)
            return _MISSING
        if isinstance(value, Mapping):
            members = {
                name: cleaned(f"{path}.{name}".lstrip("."), each) for name, each in value.items()
            }
            return {name: each for name, each in members.items() if each is not _MISSING}
        if isinstance(value, list):
            entries = [cleaned(f"{path}[{number}]", each) for number, each in enumerate(value)]
            return [each for each in entries if each is not _MISSING]
        return value

    return cleaned("", sent), lost


def plain_path(path: str) -> str:
    """Return a path without the names of list entries."""
    return _PLACE.sub("", path)


def _by_name(wanted: list[Any], live: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the entries of both lists by their names, or by their content for repeated names."""
    sides: list[dict[str, Any]] = []
    for name in (name_of, _content_of):
        sides = [{name(each): each for each in entries} for entries in (wanted, live)]
        if [*map(len, sides)] == [len(wanted), len(live)]:
            break
    return sides[0], sides[1]


def name_of(entry: Any) -> str:
    """Return the name of a list entry, which identifies it in the list."""
    if isinstance(entry, Mapping):
        # alone, a key may be a secret
        for key in ("id", "name", "key") if "value" in entry else ("id", "name"):
            if isinstance(entry.get(key), (str, int)):
                return str(entry[key])
        if isinstance(entry.get("domain"), Mapping):
            return name_of(entry["domain"])
        if "credentials" in entry:
            return "global"
        if len(entry) == 1:
            ((_kind, inner),) = entry.items()
            if isinstance(inner, Mapping):
                return name_of(inner)
    return _content_of(entry)


def _content_of(entry: Any) -> str:
    return json.dumps(entry, sort_keys=True, default=str) if _is_nested(entry) else str(entry)


def _members(value: Mapping[Any, Any]) -> Iterator[tuple[Any, str, Any]]:
    """Yield the members of an object with the names that show if they are secrets: a variable is
    named by its key.
    """
    variable = value.get("key", value.get("name"))
    is_variable = "value" in value and isinstance(variable, str)
    for key, each in value.items():
        member = {"key": "", "value": variable}.get(key, str(key)) if is_variable else str(key)
        yield key, str(member), each


def shown_value(name: str, value: Any) -> Any:
    """Return a value without its secrets."""
    if isinstance(value, Mapping):
        return {key: shown_value(name, each) for key, name, each in _members(value)}
    if isinstance(value, list):
        return [shown_value(name, each) for each in value]
    is_secret = is_secret_name(name) or _is_encrypted(value)
    return _SECRET if is_secret and value not in (None, "") else value


def secrets_in(name: str, value: Any) -> list[str]:
    """Return the values under names of secrets."""
    if isinstance(value, Mapping):
        members = _members(value)
        return [text for _key, name, each in members for text in secrets_in(name, each)]
    if isinstance(value, list):
        return [text for each in value for text in secrets_in(name, each)]
    return [value] if isinstance(value, str) and value and is_secret_name(name) else []


def _completed(wanted: Any, live: Any) -> Any:
    """Return a wanted value with the members that only the live one has, such as secrets: the
    server creates nested objects and entries of lists again [ci-43].
    """
    if isinstance(wanted, list) and isinstance(live, list):
        ours, theirs = _by_name(wanted, live)
        return [_completed(each, theirs.get(name)) for name, each in ours.items()]
    if not isinstance(wanted, Mapping) or not isinstance(live, Mapping):
        return wanted
    if _is_other_kind(wanted, live):
        return wanted
    return {**live, **{name: _completed(value, live.get(name)) for name, value in wanted.items()}}


def _is_other_kind(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Return whether both are objects of different kinds, as `{ldap: ...}` and `{local: ...}`."""
    objects = all(isinstance(each, Mapping) for each in (*wanted.values(), *live.values()))
    return objects and len(wanted) == len(live) == 1 and [*wanted] != [*live]


def _is_unknown(wanted: Any, live: Any) -> bool:
    """Return whether two values cannot be compared: the live one is encrypted or could not be
    exported, or the server replaces a variable in the wanted one.
    """
    if any(isinstance(each, str) and FAILED in each for each in (wanted, live)):
        return True
    if live is _MISSING:
        return False
    replaced = isinstance(wanted, str) and _VARIABLE.search(wanted) is not None
    return replaced or _is_encrypted(live) or _is_encrypted(wanted)


def _is_encrypted(value: Any) -> bool:
    return isinstance(value, str) and _ENCRYPTED.fullmatch(value.strip()) is not None


def _is_nested(value: Any) -> bool:
    return isinstance(value, (Mapping, Sequence)) and not isinstance(value, str)


def _is_equal(wanted: Any, live: Any) -> bool:
    """Return whether two values mean the same. The export leaves out defaults."""
    if live is _MISSING or live is None:
        return wanted is None or wanted is False or wanted in ("", [], {})
    if wanted is None:
        return live in ("", [], {})
    return bool(_plain(wanted) == _plain(live))


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return value if _is_nested(value) else str(value).replace("\r\n", "\n").strip()
