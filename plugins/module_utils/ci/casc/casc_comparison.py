# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a desired configuration with the server's export, path by path [ci-43].

Only paths in the desired configuration are compared. A list is compared as a whole, because the
server replaces lists as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.secret import is_secret_name, members_of
from .casc_secrets import is_encrypted, shown_value
from .list_items import MISSING, is_nested, pairs_of

#: Marker in a value that the server could not export.
FAILED = "FAILED TO EXPORT"
_VARIABLE = re.compile(r"(?<!\^)\$\{")
_ITEM_NAME = re.compile(r"\[[^\]]*\]")


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

    def compare(self, path: str, wanted: Any, live: Any, name: str = "") -> None:
        """Compare two values.

        :param name: the name that decides whether the values are secrets
        """
        if _is_unknown(wanted, live):
            self.unknown.append(path)
        elif isinstance(wanted, Mapping) and wanted and isinstance(live, Mapping):
            names = {key: member for key, member, _item in members_of({**live, **wanted})}
            for key, value in wanted.items():
                inner = f"{path}.{key}".lstrip(".")
                self.compare(inner, value, live.get(key, MISSING), names[key])
        elif isinstance(wanted, list) and isinstance(live, list):
            self._compare_lists(path, wanted, live, name)
        elif isinstance(live, list) and live:
            # the server would accept a single value as a list with one item
            self.unclear.append(f"{path} is a list on the server: set it to the complete list")
        elif isinstance(live, Mapping) and live and wanted in (None, "", {}, []):
            self.unclear.append(f"{path} is empty, but has values on the server: omit or set it")
        elif not _is_equal(wanted, live):
            self._add(path, None if live is MISSING else live, wanted, name)

    def _compare_lists(self, path: str, wanted: list[Any], live: list[Any], name: str) -> None:
        pairs = pairs_of(wanted, live, secret=is_secret_name(name))
        plain = not any(isinstance(item, Mapping) for item in (*wanted, *live))
        if plain and [*map(str, wanted)] != [*map(str, live)]:
            self._add(path, live, wanted, name)
        else:
            for pair in pairs:
                if pair.wanted is MISSING:
                    self._add(f"{path}[{pair.label}]", pair.live, None, name)
                else:
                    self.compare(f"{path}[{pair.label}]", pair.wanted, pair.live, name)
        removed = [pair.label for pair in pairs if pair.wanted is MISSING]
        if removed:
            self.lost.setdefault(plain_path(path), []).extend(removed)

    def _add(self, path: str, before: Any, after: Any, name: str) -> None:
        shown = {"before": shown_value(name, before), "after": shown_value(name, after)}
        if isinstance(shown["after"], str) and shown["after"] == shown["before"]:
            shown["after"] += " (new)"  # only the masked part differs
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
            return MISSING
        if isinstance(value, Mapping):
            members = {
                name: cleaned(f"{path}.{name}".lstrip("."), item) for name, item in value.items()
            }
            return {name: item for name, item in members.items() if item is not MISSING}
        if isinstance(value, list):
            entries = [cleaned(f"{path}[{number}]", item) for number, item in enumerate(value)]
            return [item for item in entries if item is not MISSING]
        return value

    return cleaned("", sent), lost


def plain_path(path: str) -> str:
    """Return a path without the names of list items."""
    return _ITEM_NAME.sub("", path)


def _with_live_members(wanted: Any, live: Any) -> Any:
    """Add members that only the live value has, for example secrets, to a desired value.

    Server fact [ci-43]: the server creates nested objects and list items again and so would lose
    these members.
    """
    if isinstance(wanted, list) and isinstance(live, list):
        pairs = pairs_of(wanted, live, secret=False)
        return [
            _with_live_members(pair.wanted, pair.live)
            for pair in pairs
            if pair.wanted is not MISSING
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
    if live is MISSING:
        return False
    replaced = isinstance(wanted, str) and _VARIABLE.search(wanted) is not None
    return replaced or is_encrypted(live) or is_encrypted(wanted)


def _is_equal(wanted: Any, live: Any) -> bool:
    """Return whether two values have the same meaning. The export omits default values."""
    if live is MISSING or live is None:
        return wanted is None or wanted is False or wanted in ("", [], {})
    if wanted is None:
        return live in ("", [], {})
    return bool(_plain(wanted) == _plain(live))


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return value if is_nested(value) else str(value).replace("\r\n", "\n").strip()
