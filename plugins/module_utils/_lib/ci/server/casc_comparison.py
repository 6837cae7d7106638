# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a desired configuration with the server's export, path by path [ci-43].

Only paths in the desired configuration are compared. Whole lists are compared, because the
server replaces whole lists. The export differs from what was sent: it leaves out defaults and
empty values, sorts sets, and writes `{x: {}}` as `x`.

Items of lists are matched by name, then by content, then by kind, then by equal members. The labels
of items are in paths, messages and keys of diffs, so an item without a name has a number: its
content may be a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import ToolchainError
from ...core.free_text import mask_free_text
from ...core.http.transport import Transport
from ...core.module.task import Task
from ...core.secret import is_secret_name, members_of, secrets_of_url
from ...core.yaml_text import UnreadableYaml, parse_yaml

MISSING = object()
#: Server fact [ci-43]: obsolete symbols of the core, with the ones that exports show.
_SYMBOLS = {"dumb": "permanent", "slave": "permanent", "jnlp": "inbound"}
#: Kinds of role assignments, whose value is the name.
_ACCOUNTS = ("user", "group", "userOrGroup")


@dataclass(frozen=True)
class ItemPair:
    """An item on both sides; `MISSING` on the side that does not have it.

    :ivar place: index in the live list if the order of such items matters, else `None`
    """

    label: str
    wanted: Any
    live: Any
    place: int | None = None


def pairs_of(wanted: Sequence[Any], live: Sequence[Any], *, secret: bool) -> list[ItemPair]:
    """Return the items of both lists, matched, in the order of `wanted`.

    :param secret: items that are strings are secrets
    """
    found: dict[int, int] = {}
    # names and kinds that are repeated do not match
    for key_of in (identity_of, name_of, _content_key, _kind_of_unnamed):
        ours = _by_key(wanted, key_of, set(found))
        theirs = _by_key(live, key_of, set(found.values()))
        for key, numbers in ours.items():
            others = theirs.get(key, [])
            if key_of is _content_key or len(numbers) == len(others) == 1:
                found.update(zip(numbers, others, strict=False))
    _match_by_members(wanted, live, found)
    labels = []
    for side in (wanted, live):
        names = [label_of(item, secret=secret) for item in side]
        labels.append(
            [
                str(number) if name is None or names.count(name) > 1 else name
                for number, name in enumerate(names)
            ]
        )
    kinds = [identity_of(item) for item in live]
    pairs = []
    for number, item in enumerate(wanted):
        place = found.get(number)
        other = MISSING if place is None else live[place]
        ordered = place is not None and (kinds[place] is None or kinds.count(kinds[place]) > 1)
        pairs.append(ItemPair(labels[0][number], item, other, place if ordered else None))
    for number in sorted(set(range(len(live))) - set(found.values())):
        label = labels[1][number]
        numbered = label == str(number)
        pairs.append(ItemPair(f"live {label}" if numbered else label, MISSING, live[number]))
    return pairs


def is_reordered(pairs: Sequence[ItemPair]) -> bool:
    """Return whether items without a name, or with the same kind, are in another order."""
    places = [pair.place for pair in pairs if pair.place is not None]
    return places != sorted(places)


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
    kind, inner = next(iter(entry.items())) if len(entry) == 1 else ("", None)
    if kind in _ACCOUNTS and isinstance(inner, str):
        return inner
    return name_of(inner) if isinstance(inner, Mapping) else None


def content_of(entry: Any) -> str:
    return json.dumps(entry, sort_keys=True, default=str) if is_nested(entry) else str(entry)


def is_nested(value: Any) -> bool:
    return isinstance(value, (Mapping, Sequence)) and not isinstance(value, str)


def kind_of(entry: Any) -> str | None:
    """Return the kind of an object, `x` of `{x: {...}}` and of the symbol `x`; `None` if it has
    none.
    """
    if isinstance(entry, Mapping) and len(entry) == 1:
        return _normal(next(iter(entry)))
    return _normal(entry) if isinstance(entry, str) else None


def key_in(value: Mapping[Any, Any], key: Any) -> Any:
    """Return the spelling of a key in an object, or the key if the object does not have it.

    Server fact [ci-43]: the server ignores the case of names.
    """
    if key in value:
        return key
    return next((other for other in value if _normal(other) == _normal(key)), key)


def with_symbol(value: Any, other: Any) -> Any:
    """Return the symbol `x` as `{x: {}}`, if the other value is an object of this kind. An obsolete
    symbol is returned as the other value spells it.
    """
    if isinstance(value, str) and value in _SYMBOLS and other == _SYMBOLS[value]:
        return other
    if isinstance(value, str) and isinstance(other, Mapping) and kind_of(value) == kind_of(other):
        return {next(iter(other)): {}}
    return value


def label_of(entry: Any, *, secret: bool = False) -> str | None:
    """Return the name of a list item, or `None` if it has none or the name contains a secret.

    :param secret: items that are strings are secrets
    """
    name = name_of(entry)
    if name is None or (secret and not is_nested(entry)) or secrets_of_url(name):
        return None
    return name if mask_free_text(name) == name else None


def is_same_scalar(wanted: Any, live: Any) -> bool:
    if isinstance(wanted, bool) or isinstance(live, bool):
        return str(wanted).lower() == str(live).lower()
    return bool(_plain(wanted) == _plain(live))


def _normal(key: Any) -> str:
    name = str(key).lower()
    return _SYMBOLS.get(name, name)


def _plain(value: Any) -> Any:
    return value if is_nested(value) else str(value).replace("\r\n", "\n").strip()


def identity_of(entry: Any) -> str | None:
    """Return the identity of an item in its list: name and kind, or either of them."""
    name, kind = name_of(entry), kind_of(entry)
    if isinstance(entry, Mapping) and not {"id", "name"}.isdisjoint(entry):
        kind = None
    return f"{kind} {name}" if name and kind else name or kind


def _match_by_members(wanted: Sequence[Any], live: Sequence[Any], found: dict[int, int]) -> None:
    """Match the items without a name that share members.

    First those without a different member, because exports leave out defaults and add members. Then
    the last item, if it has an equal member: without one, it is a different object, whose secrets
    must not be mixed.
    """

    def left(side: Sequence[Any], done: set[int]) -> list[int]:
        return [n for n, item in enumerate(side) if n not in done and name_of(item) is None]

    for number in left(wanted, set(found)):
        for other in left(live, set(found.values())):
            equal, different = _likeness(wanted[number], live[other])
            if equal and not different:
                found[number] = other
                break
    ours, theirs = left(wanted, set(found)), left(live, set(found.values()))
    if len(ours) == len(theirs) == 1 and _likeness(wanted[ours[0]], live[theirs[0]])[0]:
        found[ours[0]] = theirs[0]


def _likeness(wanted: Any, live: Any) -> tuple[int, int]:
    """Return the numbers of equal and different values that both objects have."""
    wanted, live = with_symbol(wanted, live), with_symbol(live, wanted)
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        pairs = [(item, live.get(key_in(live, key), MISSING)) for key, item in wanted.items()]
        counts = [_likeness(item, other) for item, other in pairs if other is not MISSING]
        return sum(count[0] for count in counts), sum(count[1] for count in counts)
    if isinstance(wanted, list) and isinstance(live, list):
        same = sorted(map(content_of, wanted)) == sorted(map(content_of, live))
    else:
        same = is_same_scalar(wanted, live)
    return (1, 0) if same else (0, 1)


def _content_key(entry: Any) -> str:
    """Return the content of an item, equal for `x` and `{x: {}}`."""
    alone = isinstance(entry, Mapping) and len(entry) == 1 and not next(iter(entry.values()))
    return content_of(next(iter(entry)) if alone else entry)


def _kind_of_unnamed(entry: Any) -> str | None:
    """Return the kind of an object without a name, such as `envvars` of `{envVars: ...}`."""
    symbol = isinstance(entry, str)
    return kind_of(entry) if symbol or name_of(entry) is None else None


def _by_key(
    side: Sequence[Any], key_of: Callable[[Any], str | None], done: set[int]
) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, item in enumerate(side):
        key = None if number in done else key_of(item)
        if key is not None:
            found.setdefault(key, []).append(number)
    return found


_ENCRYPTED = re.compile(r"\{AQAA[A-Za-z0-9+/]{8,}={0,2}\}")
#: Server fact [ci-43]: the export shows a secret that is not encrypted as stars.
MASKED = "****"
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
    """Return whether a value is a secret that the server encrypted or masked."""
    text = value.strip() if isinstance(value, str) else ""
    return text == MASKED or _ENCRYPTED.fullmatch(text) is not None


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
#: Server facts [ci-43]: sections that no export shows, and lists that the server sorts.
_UNSHOWN = frozenset({"configuration-as-code", "groovy", "items", "jobs"})
_SETS = frozenset(
    {"agentprotocols", "disabledadministrativemonitors", "entries", "grantedpermissions"}
    | {"labelatoms", "labels", "permissions"}
)
_ITEM_NAME = re.compile(r"\[[^\]]*\]")


@dataclass
class ConfigurationComparison:
    """Differences between the desired and the exported configuration.

    :ivar changes: objects with `path`, `before` and `after`, with masked secrets
    :ivar live: the exported values of the changes by path
    :ivar unknown: paths that cannot be compared
    :ivar lost: path of a list to the names of the items that the change would remove
    :ivar unclear: error messages for ambiguous values
    """

    changes: list[dict[str, Any]] = field(default_factory=list)
    live: dict[str, Any] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    lost: dict[str, list[str]] = field(default_factory=dict)
    unclear: list[str] = field(default_factory=list)

    def compare(self, path: str, wanted: Any, live: Any, name: str = "") -> None:
        """Compare two values.

        :param name: the name that decides whether the values are secrets
        """
        wanted, live = with_symbol(wanted, live), with_symbol(live, wanted)
        if _is_unknown(wanted, live):
            self.unknown.append(path)
        elif isinstance(wanted, Mapping) and wanted and isinstance(live, Mapping):
            kind_alone = len(wanted) == 1 and next(iter(wanted.values())) in (None, {})
            if "." in path and kind_alone and kind_of(wanted) == kind_of(live):
                return  # the export writes `{x: {}}` as `x`; other members are not compared
            names = {key: member for key, member, _item in members_of({**live, **wanted})}
            for key, value in wanted.items():
                inner = f"{path}.{key}".lstrip(".")
                self.compare(inner, value, live.get(key_in(live, key), MISSING), names[key])
        elif isinstance(wanted, list) and isinstance(live, list):
            self._compare_lists(path, wanted, live, name)
        elif isinstance(live, list) and live:
            self.unclear.append(f"{path} is a list on the server: set it to the complete list")
        elif isinstance(live, Mapping) and live and wanted in (None, "", {}, []):
            self.unclear.append(f"{path} is empty, but has values on the server: omit or set it")
        elif not _is_equal(path, wanted, live):
            self._add(path, live, wanted, name)

    def _compare_lists(self, path: str, wanted: list[Any], live: list[Any], name: str) -> None:
        pairs = pairs_of(wanted, live, secret=is_secret_name(name))
        is_set = path.rpartition(".")[2].lower() in _SETS
        if not any(isinstance(item, Mapping) for item in (*wanted, *live)):
            order: Any = sorted if is_set else list
            if order(map(str, wanted)) != order(map(str, live)):
                self._add(path, live, wanted, name)
        else:
            for pair in pairs:
                if pair.wanted is MISSING:
                    self._add(f"{path}[{pair.label}]", pair.live, None, name)
                else:
                    self.compare(f"{path}[{pair.label}]", pair.wanted, pair.live, name)
            if not is_set and is_reordered(pairs):
                self._add(path, live, wanted, name)
        removed = [pair.label for pair in pairs if pair.wanted is MISSING]
        if removed:
            self.lost.setdefault(plain_path(path), []).extend(removed)

    def _add(self, path: str, before: Any, after: Any, name: str) -> None:
        self.live[path] = before
        before = None if before is MISSING else before
        shown = {"before": shown_value(name, before), "after": shown_value(name, after)}
        if isinstance(shown["after"], str) and shown["after"] == shown["before"]:
            shown["after"] += " (new)"  # only the masked part differs
        self.changes.append({"path": path, **shown})


def compared(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> ConfigurationComparison:
    """Compare two configurations."""
    found = ConfigurationComparison(unknown=_unshown(wanted, live))
    shown = {name: value for name, value in wanted.items() if name not in found.unknown}
    found.compare("", shown, live)
    return found


def _unshown(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> list[str]:
    """Return the sections that no export shows."""
    found = (name for name in wanted if str(name).lower() in _UNSHOWN)
    return [name for name in found if key_in(live, name) not in live]


def sections(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration to send: the sections of the second level that differ.

    Members that only the live configuration contains are added to them. The sections that no export
    shows are sent with them, because `configuration-as-code` says how the server reads the others.
    """
    sent: dict[str, Any] = {}
    unshown = _unshown(wanted, live)
    for top, content in wanted.items():
        live_items = live.get(key_in(live, top))
        if top in unshown:
            continue
        if not isinstance(content, Mapping) or not isinstance(live_items, Mapping):
            if compared({top: content}, live).changes:
                sent[top] = content
            continue
        for name, value in content.items():
            found = ConfigurationComparison()
            found.compare(top, {name: value}, live_items)
            if found.changes:
                section = live_items.get(key_in(live_items, name))
                sent.setdefault(top, {})[name] = _with_live_members(value, section)
    return {**{name: wanted[name] for name in unshown}, **sent} if sent else {}


def without_failed(sent: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Remove values that the server could not export.

    Returns the remaining configuration, and the paths of the removed values. The server may reset
    these values when it applies the configuration.
    """
    lost: list[str] = []

    def cleaned(path: str, value: Any) -> Any:
        if isinstance(value, str) and (FAILED in value or value.strip() == MASKED):
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
    wanted, live = with_symbol(wanted, live), with_symbol(live, wanted)
    if isinstance(wanted, list) and isinstance(live, list):
        pairs = pairs_of(wanted, live, secret=False)
        return [
            _with_live_members(pair.wanted, pair.live)
            for pair in pairs
            if pair.wanted is not MISSING
        ]
    if not isinstance(wanted, Mapping) or not isinstance(live, Mapping):
        return wanted
    alone = len(wanted) == len(live) == 1 and kind_of(wanted) != kind_of(live)
    if alone and all(isinstance(item, Mapping) for item in (*wanted.values(), *live.values())):
        return wanted  # another kind, as `{ldap: ...}` instead of `{local: ...}`
    spelled = {key_in(live, name): value for name, value in wanted.items()}
    return {
        **live,
        **{name: _with_live_members(value, live.get(name)) for name, value in spelled.items()},
    }


def _is_unknown(wanted: Any, live: Any) -> bool:
    """Return whether two values cannot be compared.

    Reasons: a value is encrypted, the server could not export it, or the desired value contains a
    variable that the server replaces.
    """
    if any(isinstance(item, str) and FAILED in item for item in (wanted, live)):
        return True
    if live is MISSING:
        return False
    replaced = isinstance(wanted, str) and _VARIABLE.search(wanted) is not None
    return replaced or is_encrypted(live) or is_encrypted(wanted)


def _is_equal(path: str, wanted: Any, live: Any) -> bool:
    """Return whether two values have the same meaning.

    A value that the export lacks may be the default, which need not be the wanted value. Only empty
    values of settings without a default are equal to it.
    """
    if live is MISSING or live is None:
        # server fact [ci-43]: the export shows defaults for members of `jenkins` and of sections
        # such as `unclassified.mailer`, but not for nested objects
        depth = 2 if path.lower().startswith("jenkins.") else 3
        shows_defaults = "[" not in path and path.count(".") < depth
        return wanted in (None, {}) or (wanted in ("", []) and shows_defaults)
    if wanted is None:
        return live in ("", [], {})
    if path.endswith(".labelString") and _is_list_of_words(wanted) and _is_list_of_words(live):
        return sorted(wanted.split()) == sorted(live.split())
    nested = is_nested(wanted) and is_nested(live)
    return is_same_scalar(wanted, live) or (nested and content_of(wanted) == content_of(live))


def _is_list_of_words(value: Any) -> bool:
    return isinstance(value, str) and '"' not in value
