# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a desired configuration with the server's export, path by path [ci-43].

Only paths in the desired configuration are compared. Whole lists are compared, because the
server replaces whole lists. The export is no echo: it leaves out defaults and empty values,
sorts sets, and writes `{x: {}}` as `x`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import ToolchainError
from ...core.free_text import mask_free_text
from ...core.http.transport import Transport
from ...core.module.task import Task
from ...core.secret import is_secret_name, members_of, secrets_of_url
from ...core.yaml_text import UnreadableYaml, parse_yaml
from .casc_items import (
    MISSING,
    content_of,
    is_nested,
    is_reordered,
    is_same_scalar,
    key_in,
    kind_of,
    label_of,
    pairs_of,
    with_symbol,
)

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
            self._compare_objects(path, wanted, live)
        elif isinstance(wanted, list) and isinstance(live, list):
            self._compare_lists(path, wanted, live, name)
        elif isinstance(live, list) and live:
            self.unclear.append(f"{path} is a list on the server: set it to the complete list")
        elif isinstance(live, Mapping) and live and wanted in (None, "", {}, []):
            self.unclear.append(f"{path} is empty, but has values on the server: omit or set it")
        elif not _is_equal(path, wanted, live):
            self._add(path, live, wanted, name)

    def _compare_objects(
        self, path: str, wanted: Mapping[str, Any], live: Mapping[str, Any]
    ) -> None:
        if "." in path and _is_kind_alone(wanted) and kind_of(wanted) == kind_of(live):
            return  # members that are not wanted are not compared
        names = {key: member for key, member, _item in members_of({**live, **wanted})}
        for key, value in wanted.items():
            inner = f"{path}.{key}".lstrip(".")
            self.compare(inner, value, live.get(key_in(live, key), MISSING), names[key])

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
    if _is_other_kind(wanted, live):
        return wanted
    spelled = {key_in(live, name): value for name, value in wanted.items()}
    return {
        **live,
        **{name: _with_live_members(value, live.get(name)) for name, value in spelled.items()},
    }


def _is_other_kind(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Return whether two objects differ in kind, such as `{ldap: ...}` and `{local: ...}`."""
    objects = all(isinstance(item, Mapping) for item in (*wanted.values(), *live.values()))
    return objects and len(wanted) == len(live) == 1 and kind_of(wanted) != kind_of(live)


def _is_kind_alone(value: Mapping[str, Any]) -> bool:
    """Return whether an object is only a kind, as `{x: {}}`, which the export writes as `x`."""
    return len(value) == 1 and next(iter(value.values())) in (None, {})


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
        return wanted in (None, {}) or (wanted in ("", []) and _shows_defaults(path))
    if wanted is None:
        return live in ("", [], {})
    if path.endswith(".labelString") and _is_list_of_words(wanted) and _is_list_of_words(live):
        return sorted(wanted.split()) == sorted(live.split())
    return is_same_scalar(wanted, live) or _same_content(wanted, live)


def _shows_defaults(path: str) -> bool:
    """Return whether the export shows defaults of this setting. Server fact [ci-43]: it does for
    members of `jenkins` and of sections such as `unclassified.mailer`, but not for nested objects.
    """
    return "[" not in path and path.count(".") < (2 if path.lower().startswith("jenkins.") else 3)


def _is_list_of_words(value: Any) -> bool:
    return isinstance(value, str) and '"' not in value


def _same_content(wanted: Any, live: Any) -> bool:
    return is_nested(wanted) and is_nested(live) and content_of(wanted) == content_of(live)
