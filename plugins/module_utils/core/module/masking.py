# SPDX-License-Identifier: GPL-3.0-or-later
"""Mask secrets in results, with the same output as `remove_values` of Ansible.

Ansible deprecated that function in ansible-core 2.22. It is also slow, because it checks every
value: two seconds for 50,000 rows. A search in the JSON of a large list takes a tenth of that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any

from ansible.module_utils.common.text.converters import to_native

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


def mask_keys(value: Any, secrets: Collection[str]) -> Any:
    """Return a copy of a result with the secrets in keys masked, such as names in a diff.

    Keys of lower-case letters only stay, because they are names of options and return values.
    """
    return _masked_by(_with_masked_keys, value, secrets) if secrets else value


def _masked_by(mask: Callable[[Any, list[str]], Any], value: Any, secrets: Collection[str]) -> Any:
    strings = [to_native(secret, errors="surrogate_or_strict") for secret in secrets]
    strings.sort(key=len, reverse=True)  # a secret may be part of a longer secret
    if not isinstance(value, dict):
        return mask(value, strings)
    forms = [json.dumps(string, ensure_ascii=False)[1:-1] for string in strings]
    return {
        name: item if _is_large_and_clean(item, forms) else mask(item, strings)
        for name, item in value.items()
    }


def _with_masked_keys(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, Mapping):
        return {
            _masked_key(key, secrets): _with_masked_keys(item, secrets)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_with_masked_keys(item, secrets) for item in value]
    return value


def _masked_key(key: Any, secrets: list[str]) -> Any:
    if not isinstance(key, str) or _OWN_KEY.fullmatch(key):
        return key
    for secret in secrets:
        key = key.replace(secret, _STARS)
    return key


def _masked(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return _masked_string(value, secrets)
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


def _masked_string(text: str, secrets: list[str]) -> str:
    if text in secrets:
        return HIDDEN
    for secret in secrets:
        text = text.replace(secret, _STARS)
    return text


def _is_large_and_clean(value: Any, forms: list[str]) -> bool:
    """Return whether a value is a large list without any secret.

    :param forms: the secrets as escaped in JSON strings
    """
    if not isinstance(value, list) or len(value) < _LARGE:
        return False
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False  # the list contains a value that JSON does not support, such as a date
    return not any(form in text for form in forms)
