# SPDX-License-Identifier: GPL-3.0-or-later
"""Mask secrets in results, with the same output as `remove_values` of Ansible.

Ansible deprecated that function in ansible-core 2.22. It is also slow, because it checks every
value: two seconds for 50,000 rows. A search in the JSON of a large list takes a tenth of that.

Secrets are masked in all output. Short secrets, values of the wrong type and values of unknown
options are hidden only in the options of the result, because they could match other strings.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from ansible.module_utils.common.text.converters import to_native

from ..free_text import mask_free_text
from ..secret import can_be_masked, clean_url, is_secret_name, members_of, secrets_of_url
from .input_check import Options, canonical_name

#: Ansible's replacement for a value that is a secret as a whole.
HIDDEN = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
_STARS = "********"
_OWN_KEY = re.compile(r"[a-z_]*")
#: Minimum number of entries of a list that is searched as JSON.
_LARGE = 100


def mask_values(value: Any, secrets: Collection[str]) -> Any:
    """Return a copy of a result with the secrets masked.

    A string that is a secret, and a number that contains a secret, become `HIDDEN`. A secret inside
    a longer string becomes stars. Keys are not masked. Large lists at the top level are copied only
    if they contain a secret.
    """
    return _masked_by(_masked, value, secrets)


def mask_keys(value: Any, secrets: Collection[str], known: Collection[str] | None = None) -> Any:
    """Return a copy of a result with the secrets in keys masked, such as names in a diff.

    Keys of lower-case letters only stay, because they are names of options and return values.

    :param known: the keys that stay, if they are known
    """
    stays = known.__contains__ if known is not None else _OWN_KEY.fullmatch
    mask = functools.partial(_with_masked_keys, stays=stays)
    return _masked_by(mask, value, secrets) if secrets else value


def _masked_by(mask: Callable[[Any, list[str]], Any], value: Any, secrets: Collection[str]) -> Any:
    strings = [to_native(secret, errors="surrogate_or_strict") for secret in secrets]
    strings.sort(key=len, reverse=True)  # a secret may be part of a longer secret
    if not isinstance(value, dict):
        return mask(value, strings)
    return {
        name: item if _is_large_and_clean(item, strings) else mask(item, strings)
        for name, item in value.items()
    }


def _with_masked_keys(value: Any, secrets: list[str], stays: Callable[[str], object]) -> Any:
    if isinstance(value, Mapping):
        found: dict[Any, Any] = {}
        for key, item in value.items():
            shown = key
            for secret in secrets if isinstance(key, str) and not stays(key) else ():
                shown = shown.replace(secret, _STARS)
            found[shown] = _with_masked_keys(item, secrets, stays)
        return found
    if isinstance(value, (list, tuple)):
        return [_with_masked_keys(item, secrets, stays) for item in value]
    return value


def _masked(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        if value in secrets:
            return HIDDEN
        for secret in secrets:
            value = value.replace(secret, _STARS)
        return value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return HIDDEN if any(secret in str(value) for secret in secrets) else value
    if isinstance(value, Mapping):
        return {name: _masked(item, secrets) for name, item in value.items()}
    if isinstance(value, Set):
        return {_masked(item, secrets) for item in value}
    if isinstance(value, Sequence):
        return [_masked(item, secrets) for item in value]
    return value  # dates, and warnings of Ansible, which it masks itself


def _is_large_and_clean(value: Any, secrets: list[str]) -> bool:
    """Return whether a value is a large list without any secret."""
    if not isinstance(value, list) or len(value) < _LARGE:
        return False
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False  # the list contains a value that JSON does not support, such as a date
    return not any(json.dumps(secret, ensure_ascii=False)[1:-1] in text for secret in secrets)


def private_options(options: Options) -> frozenset[str]:
    """Return the names of the options that may contain secrets that nothing recognises, such as a
    short one in XML: `private` at any depth, and files if there is another one.
    """
    private = {
        name
        for name, option in options.items()
        if option.get("private") or private_options(option.get("options") or {})
    }
    files = {name for name, option in options.items() if option.get("type") == "path"}
    return frozenset(private | files if private else ())


def names_of(options: Options) -> frozenset[str]:
    """Return the names and aliases of the options at any depth."""
    names = {*options}
    for option in options.values():
        names |= {*option.get("aliases", ()), *names_of(option.get("options") or {})}
    return frozenset(names)


class OptionSecrets:
    """Finds the secrets in the raw options of a task, which may have any type.

    :param failed: hide all `private` values, because the server, which knows the secret ones, may
        not have been queried
    """

    def __init__(self, options: Options, *, failed: bool = False) -> None:
        self._options, self._failed = options, failed
        #: Secrets to mask in every output.
        self.found: set[str] = set()
        #: All secrets, also those that are too short to be masked.
        self.all: set[str] = set()

    def shown(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options with secrets hidden, and add the secrets to `found`."""
        return self._members(self._options, values)

    def _mask(self, texts: Iterable[str]) -> None:
        new = set(texts)
        self.all |= new
        self.found.update(filter(can_be_masked, new))

    def _members(self, options: Options, values: Mapping[str, Any]) -> dict[str, Any]:
        shown = {}
        for name, value in values.items():
            option = canonical_name(options, name)
            shown[name] = self._option(options.get(option), option, value)
        return shown

    def _option(self, option: Mapping[str, Any] | None, name: str, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if option is None:
            return HIDDEN
        if option.get("no_log"):
            # if Ansible has parsed the JSON, as of token_json, only some members are secrets
            parsed = option.get("values") == "json" and isinstance(value, Mapping)
            self._mask(_secrets_by_name(value) if parsed else _strings_in(value))
            return HIDDEN
        if option.get("private") and option.get("type", "str") == "str":
            return HIDDEN
        if option.get("private"):
            return self._private(value)
        if option.get("options"):
            return self._nested(option["options"], value)
        if name.endswith("url") and isinstance(value, str):
            self._mask(secrets_of_url(value))
            return clean_url(value, whole=True)
        return _without_secrets(value)

    def _nested(self, options: Options, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self._members(options, value)
        if isinstance(value, list):
            return [self._nested(options, item) for item in value]
        return HIDDEN

    def _private(self, value: Any) -> Any:
        """Hide the members of mappings with secret names, and values of other types."""
        if isinstance(value, list):
            return [self._private(item) for item in value]
        if not isinstance(value, Mapping):
            return HIDDEN
        names = set(_names_in(value))
        secrets = _secrets_by_name(value)
        self._mask(text for text in secrets if not any(text in name for name in names))
        return dict(self._hidden(value, secret=False))

    def _hidden(self, value: Any, secret: bool) -> Any:
        if isinstance(value, Mapping):
            return {
                name: self._hidden(item, is_secret_name(member))
                for name, member, item in members_of(value)
            }
        if isinstance(value, list):
            return [self._hidden(item, secret) for item in value]
        scalar = value is not None and not isinstance(value, bool)
        return HIDDEN if scalar and (secret or self._failed) else _without_secrets(value)


def _without_secrets(value: Any) -> Any:
    """Mask the secrets in free text, at any depth."""
    if isinstance(value, str):
        return mask_free_text(value)
    if isinstance(value, Mapping):
        return {name: _without_secrets(item) for name, item in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value


def _secrets_by_name(values: Any, secret: bool = False) -> Iterator[str]:
    """Yield the values whose names suggest that they are secrets, at any depth."""
    if isinstance(values, Mapping):
        for _key, name, value in members_of(values):
            yield from _secrets_by_name(value, is_secret_name(name))
    elif isinstance(values, list):
        for value in values:
            yield from _secrets_by_name(value, secret)
    elif secret:
        yield from _strings_in(values)


def _names_in(value: Any) -> Iterator[str]:
    """Yield the keys and names of objects, which are a part of paths in messages."""
    if isinstance(value, Mapping):
        yield from map(str, value)
        yield from (str(value[key]) for key in ("id", "key", "name") if key in value)
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _names_in(item)


def _strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _strings_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings_in(item)
    elif value is not None and not isinstance(value, bool) and str(value):
        yield str(value)
