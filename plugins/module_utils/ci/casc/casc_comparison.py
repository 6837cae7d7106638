# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a desired configuration with the server's export, path by path [ci-43].

Only paths in the desired configuration are compared. A list is compared as a whole, because the
server replaces lists as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.secret import is_secret_name

#: Marker in a value that the server could not export.
FAILED = "FAILED TO EXPORT"
_ENCRYPTED = re.compile(r"\{[A-Za-z0-9+/]{8,}={0,2}\}")
_VARIABLE = re.compile(r"(?<!\^)\$\{")
_ITEM_NAME = re.compile(r"\[[^\]]*\]")
#: Path of a variable's value; the group is the name of the variable.
_VALUE = re.compile(r"\[([^\]]*)\]\.value$")
_SECRET = "(secret)"
_MISSING = object()


@dataclass
class ConfigurationComparison:
    """Differences between the desired and the exported configuration.

    :ivar changes: objects with `path`, `before` and `after`, with masked secrets
    :ivar unknown: paths that cannot be compared
    :ivar lost: path of a list to the names of the items that the change would remove
    :ivar unclear: error messages for ambiguous values
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
            # the server would accept a single value as a list with one item
            self.unclear.append(f"{path} is a list on the server: set it to the complete list")
        elif isinstance(live, Mapping) and live and wanted in (None, "", {}, []):
            self.unclear.append(f"{path} is empty, but has values on the server: omit or set it")
        elif not _is_equal(wanted, live):
            self._add(path, None if live is _MISSING else live, wanted)

    def _compare_lists(self, path: str, wanted: list[Any], live: list[Any]) -> None:
        wanted_items, live_items = _items_by_name(wanted, live)
        if [*wanted_items] != [*live_items] and not any(
            isinstance(item, Mapping) for item in (*wanted, *live)
        ):
            self._add(path, live, wanted)
        else:
            for name, item in wanted_items.items():
                self.compare(f"{path}[{name}]", item, live_items.get(name, _MISSING))
            for name, item in live_items.items():
                if name not in wanted_items:
                    self._add(f"{path}[{name}]", item, None)
        removed = [name for name in live_items if name not in wanted_items]
        if removed:
            self.lost.setdefault(plain_path(path), []).extend(removed)

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
    """Return the configuration to send: the sections of the second level that differ.

    Members that only the live configuration contains are added to them.
    """
    sent: dict[str, Any] = {}
    for top, content in wanted.items():
        live_items = live.get(top)
        if not isinstance(content, Mapping) or not isinstance(live_items, Mapping):
            if compared({top: content}, live).changes:
                sent[top] = content
            continue
        for name, value in content.items():
            if compared({name: value}, live_items).changes:
                sent.setdefault(top, {})[name] = _with_live_members(value, live_items.get(name))
    return sent


def without_failed(sent: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Remove values that the server could not export.

    Returns the remaining configuration, and the paths of the removed values. The server may reset
    these values when it applies the configuration.
    """
    lost: list[str] = []

    def cleaned(path: str, value: Any) -> Any:
        if isinstance(value, str) and FAILED in value:
            lost.append(path)
            return _MISSING
        if isinstance(value, Mapping):
            members = {
                name: cleaned(f"{path}.{name}".lstrip("."), item) for name, item in value.items()
            }
            return {name: item for name, item in members.items() if item is not _MISSING}
        if isinstance(value, list):
            entries = [cleaned(f"{path}[{number}]", item) for number, item in enumerate(value)]
            return [item for item in entries if item is not _MISSING]
        return value

    return cleaned("", sent), lost


def plain_path(path: str) -> str:
    """Return a path without the names of list items."""
    return _ITEM_NAME.sub("", path)


def _items_by_name(wanted: list[Any], live: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the items of both lists by name, or by content if a name is repeated."""
    sides: list[dict[str, Any]] = []
    for name in (name_of, _as_text):
        sides = [{name(item): item for item in entries} for entries in (wanted, live)]
        if [*map(len, sides)] == [len(wanted), len(live)]:
            break
    return sides[0], sides[1]


def name_of(entry: Any) -> str:
    """Return the id or name of a list item, or its content if the item has neither."""
    if isinstance(entry, Mapping):
        # without a member `value`, the member `key` may be a secret
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
    return _as_text(entry)


def _as_text(entry: Any) -> str:
    return json.dumps(entry, sort_keys=True, default=str) if _is_nested(entry) else str(entry)


def _members(value: Mapping[Any, Any]) -> Iterator[tuple[Any, str, Any]]:
    """Yield key, name and value of the members of an object.

    The name decides whether the value is a secret. For the value of a variable it is the name of
    the variable.
    """
    variable = value.get("key", value.get("name"))
    is_variable = "value" in value and isinstance(variable, str)
    for key, item in value.items():
        member = {"key": "", "value": variable}.get(key, str(key)) if is_variable else str(key)
        yield key, str(member), item


def shown_value(name: str, value: Any) -> Any:
    """Return a value with masked secrets."""
    if isinstance(value, Mapping):
        return {key: shown_value(name, item) for key, name, item in _members(value)}
    if isinstance(value, list):
        return [shown_value(name, item) for item in value]
    is_secret = is_secret_name(name) or _is_encrypted(value)
    return _SECRET if is_secret and value not in (None, "") else value


def secrets_in(name: str, value: Any) -> list[str]:
    """Return the strings in a value whose names are those of secrets."""
    if isinstance(value, Mapping):
        members = _members(value)
        return [text for _key, name, item in members for text in secrets_in(name, item)]
    if isinstance(value, list):
        return [text for item in value for text in secrets_in(name, item)]
    return [value] if isinstance(value, str) and value and is_secret_name(name) else []


def _with_live_members(wanted: Any, live: Any) -> Any:
    """Add members that only the live value has, for example secrets, to a desired value.

    Server fact [ci-43]: the server creates nested objects and list items again and so would lose
    these members.
    """
    if isinstance(wanted, list) and isinstance(live, list):
        wanted_items, live_items = _items_by_name(wanted, live)
        return [
            _with_live_members(item, live_items.get(name)) for name, item in wanted_items.items()
        ]
    if not isinstance(wanted, Mapping) or not isinstance(live, Mapping):
        return wanted
    if _is_other_kind(wanted, live):
        return wanted
    return {
        **live,
        **{name: _with_live_members(value, live.get(name)) for name, value in wanted.items()},
    }


def _is_other_kind(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Return whether two objects differ in kind, such as `{ldap: ...}` and `{local: ...}`."""
    objects = all(isinstance(item, Mapping) for item in (*wanted.values(), *live.values()))
    return objects and len(wanted) == len(live) == 1 and [*wanted] != [*live]


def _is_unknown(wanted: Any, live: Any) -> bool:
    """Return whether two values cannot be compared.

    This is so if a value is encrypted, the server could not export it, or the desired value
    contains a variable that the server replaces.
    """
    if any(isinstance(item, str) and FAILED in item for item in (wanted, live)):
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
    """Return whether two values have the same meaning. The export omits default values."""
    if live is _MISSING or live is None:
        return wanted is None or wanted is False or wanted in ("", [], {})
    if wanted is None:
        return live in ("", [], {})
    return bool(_plain(wanted) == _plain(live))


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return value if _is_nested(value) else str(value).replace("\r\n", "\n").strip()
