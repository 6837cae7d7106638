# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a desired configuration with the server's export, path by path [ci-43].

Only paths in the desired configuration are compared. A list is compared as a whole, because the
server replaces lists as a whole.

Items are matched by name, then by content, then by kind. The labels of items are in paths, messages
and keys of diffs, so an item without a name has a number: its content may be a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import ToolchainError
from ...core.http.transport import Transport
from ...core.module.task import Task
from ...core.secret import is_secret_name, mask_free_text, members_of, secrets_of_url
from ...core.yaml_text import UnreadableYaml, parse_yaml

MISSING = object()


@dataclass(frozen=True)
class ItemPair:
    """An item on both sides; `MISSING` on the side that does not have it."""

    label: str
    wanted: Any
    live: Any


def pairs_of(wanted: Sequence[Any], live: Sequence[Any], *, secret: bool) -> list[ItemPair]:
    """Return the items of both lists, matched, in the order of `wanted`.

    :param secret: items that are strings are secrets
    """
    found = _matched(wanted, live)
    labels = [_labels(side, secret=secret) for side in (wanted, live)]
    pairs = [
        ItemPair(labels[0][number], item, live[found[number]] if number in found else MISSING)
        for number, item in enumerate(wanted)
    ]
    for number in sorted(set(range(len(live))) - set(found.values())):
        label = labels[1][number]
        numbered = label == str(number)
        pairs.append(ItemPair(f"live {label}" if numbered else label, MISSING, live[number]))
    return pairs


def name_of(entry: Any) -> str | None:
    """Return the id or name of a list item, or `None` for an object without one."""
    if not isinstance(entry, Mapping):
        return None if is_nested(entry) else str(entry)
    # without a member `value`, the member `key` may be a secret
    for key in ("id", "name", "key") if "value" in entry else ("id", "name"):
        if isinstance(entry.get(key), (str, int)):
            return str(entry[key])
    if isinstance(entry.get("domain"), Mapping):
        return name_of(entry["domain"])
    if "credentials" in entry:
        return "global"
    inner = next(iter(entry.values())) if len(entry) == 1 else None
    return name_of(inner) if isinstance(inner, Mapping) else None


def content_of(entry: Any) -> str:
    return json.dumps(entry, sort_keys=True, default=str) if is_nested(entry) else str(entry)


def is_nested(value: Any) -> bool:
    return isinstance(value, (Mapping, Sequence)) and not isinstance(value, str)


def label_of(entry: Any, *, secret: bool = False) -> str | None:
    """Return the name of a list item, or `None` if it has none or the name contains a secret.

    :param secret: items that are strings are secrets
    """
    name = name_of(entry)
    if name is None or (secret and not is_nested(entry)) or secrets_of_url(name):
        return None
    return name if mask_free_text(name) == name else None


def _kind_of(entry: Any) -> str | None:
    """Return the only key of an object without a name, which is its kind: `{env: [...]}`."""
    if not isinstance(entry, Mapping) or len(entry) != 1 or name_of(entry) is not None:
        return None
    return str(next(iter(entry)))


def _matched(wanted: Sequence[Any], live: Sequence[Any]) -> dict[int, int]:
    """Return the indexes of matching items. Names and kinds that are repeated do not match."""
    found: dict[int, int] = {}
    for key_of in (name_of, content_of, _kind_of):
        ours = _by_key(wanted, key_of, set(found))
        theirs = _by_key(live, key_of, set(found.values()))
        for key, numbers in ours.items():
            others = theirs.get(key, [])
            if key_of is content_of or len(numbers) == len(others) == 1:
                found.update(zip(numbers, others, strict=False))
    return found


def _by_key(
    side: Sequence[Any], key_of: Callable[[Any], str | None], done: set[int]
) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, item in enumerate(side):
        key = None if number in done else key_of(item)
        if key is not None:
            found.setdefault(key, []).append(number)
    return found


def _labels(side: Sequence[Any], *, secret: bool) -> list[str]:
    names = [label_of(item, secret=secret) for item in side]
    return [
        str(number) if name is None or names.count(name) > 1 else name
        for number, name in enumerate(names)
    ]


_ENCRYPTED = re.compile(r"\{AQAA[A-Za-z0-9+/]{8,}={0,2}\}")
_SECRET = "(secret)"
#: Shorter secrets occur in other strings by chance.
_SHORTEST_SECRET = 4


def hide_secrets(task: Task, *configurations: Any) -> None:
    """Mask the secrets of configurations in all output, except those that are a part of a path."""
    words = {word for value in configurations for word in _path_words(value)}
    for secret in {text for value in configurations for text in _secrets_in("", value)}:
        if len(secret) >= _SHORTEST_SECRET and not any(secret in word for word in words):
            task.hide(secret)


def shown_value(name: str, value: Any) -> Any:
    """Return a value with masked secrets."""
    if isinstance(value, Mapping):
        return {key: shown_value(member, item) for key, member, item in members_of(value)}
    if isinstance(value, list):
        return [shown_value(name, item) for item in value]
    if value in (None, "") or isinstance(value, bool):
        return value
    if is_secret_name(name) or is_encrypted(value):
        return _SECRET
    return mask_free_text(value) if isinstance(value, str) else value


def is_encrypted(value: Any) -> bool:
    return isinstance(value, str) and _ENCRYPTED.fullmatch(value.strip()) is not None


def _secrets_in(name: str, value: Any) -> Iterator[str]:
    """Yield the strings whose names are those of secrets, and the secrets in addresses."""
    if isinstance(value, Mapping):
        for _key, member, item in members_of(value):
            yield from _secrets_in(member, item)
    elif isinstance(value, list):
        for item in value:
            yield from _secrets_in(name, item)
    elif isinstance(value, str):
        yield from [value] if is_secret_name(name) else secrets_of_url(value)


def _path_words(value: Any) -> Iterator[str]:
    """Yield the keys and the names of items, of which paths consist."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _path_words(item)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, Mapping):
                yield label_of(item) or ""
            yield from _path_words(item)


#: Path of the plugin's requests.
PLUGIN_PATH = "configuration-as-code"


def live_configuration(server: Transport) -> Mapping[str, Any]:
    """Return the exported configuration. Raises `protocol` if the export is not a YAML mapping."""
    purpose = "exporting the configuration of the server"
    try:
        response = server.read(purpose, f"{PLUGIN_PATH}/export", method="POST", form={})
    except ToolchainError as error:
        if error.status == 404:
            error.with_hint("the plugin configuration-as-code may be missing")
        raise
    try:
        live = parse_yaml(response.text)
    except UnreadableYaml as error:
        message = f"cannot parse the exported configuration: {error}"
        raise response.error("protocol", message) from None
    if not isinstance(live, Mapping):
        raise response.error("protocol", "the exported configuration is not a YAML mapping")
    return live


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
