# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the secrets in the options before anything can fail [C1.6].

A secret is masked in every output. A secret that is too short for that, a value of the wrong shape
and the value of an unknown option are hidden only in the option itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..secret import clean_url, is_secret_name, secrets_of_url
from .input_check import Options, canonical_name
from .masking import HIDDEN

# Shorter secrets, like the words below, occur in too many other strings.
_SHORTEST_TEXT, _SHORTEST_NUMBER = 4, 6
_WORDS = frozenset({"true", "false", "none", "null"})


class OptionSecrets:
    """Walk through options as they were given, of any shape.

    :param failed: also hide all `private` values: only the server knows which values are secrets,
        and it may not have been queried
    """

    def __init__(self, options: Options, *, failed: bool = False) -> None:
        self._options, self._failed = options, failed
        #: Secrets to mask in every output.
        self.found: set[str] = set()

    def shown(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options as they may be shown; add their secrets to `found`."""
        return self._members(self._options, values)

    def _mask(self, texts: Iterable[str]) -> None:
        self.found.update(filter(_can_be_masked, texts))

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
            # the user in a token_json that Ansible has parsed is not a secret
            named = option.get("values") == "json" and isinstance(value, Mapping)
            self._mask(_secrets_by_name(value) if named else _texts_in(value))
            return HIDDEN
        if option.get("private") and option.get("type", "str") == "str":
            return HIDDEN if self._failed else value
        if option.get("private"):
            return self._private(value)
        if option.get("options"):
            return self._nested(option["options"], value)
        if name.endswith("url") and isinstance(value, str):
            self._mask(secrets_of_url(value))
            return clean_url(value, whole=True)
        return value

    def _nested(self, options: Options, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self._members(options, value)
        if isinstance(value, list):
            return [self._nested(options, each) for each in value]
        return HIDDEN

    def _private(self, value: Any) -> Any:
        """Hide the mapping members with secret names; hide other values whole."""
        if not isinstance(value, Mapping):
            return HIDDEN
        self._mask(_secrets_by_name(value))
        return dict(self._hidden(value, named_so=False))

    def _hidden(self, value: Any, named_so: bool) -> Any:
        if isinstance(value, Mapping):
            return {
                name: self._hidden(one, is_secret_name(str(name))) for name, one in value.items()
            }
        if isinstance(value, list):
            return [self._hidden(one, named_so) for one in value]
        single = value is not None and not isinstance(value, bool)
        return HIDDEN if single and (named_so or self._failed) else value


def _secrets_by_name(values: Any, named_so: bool = False) -> Iterator[str]:
    if isinstance(values, Mapping):
        for name, value in values.items():
            yield from _secrets_by_name(value, is_secret_name(str(name)))
    elif isinstance(values, list):
        for value in values:
            yield from _secrets_by_name(value, named_so)
    elif named_so:
        yield from _texts_in(values)


def _can_be_masked(text: str) -> bool:
    shortest = _SHORTEST_NUMBER if text.isdigit() else _SHORTEST_TEXT
    return len(text) >= shortest and text.lower() not in _WORDS


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for one in value.values():
            yield from _texts_in(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts_in(one)
    elif value is not None and not isinstance(value, bool) and str(value):
        yield str(value)
