# SPDX-License-Identifier: GPL-3.0-or-later
"""Mask secrets in results, as `remove_values` of Ansible does up to ansible-core 2.21.

Since 2.22 that function is deprecated. It also checks every value on its own: two seconds for
50,000 rows. Searching the JSON of a large list as a whole takes a tenth of that.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

from ansible.module_utils.common.text.converters import to_native

#: Ansible's replacement for an option or a value that is a secret.
HIDDEN = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
_STARS = "********"
#: Minimum number of entries for a list to be searched as a whole.
_LARGE = 100


def mask_values(value: Any, secrets: Collection[str]) -> Any:
    """Return a copy of a result, or of a part of it, without the secrets.

    A string or number that is a secret becomes `HIDDEN`; a secret inside a longer string becomes
    stars. Keys stay. A large list at the top level that contains no secret is not copied.
    """
    strings = [to_native(secret, errors="surrogate_or_strict") for secret in secrets]
    strings.sort(key=len, reverse=True)  # a secret may be part of a longer secret
    if not isinstance(value, dict):
        return _masked(value, strings)
    forms = [json.dumps(string, ensure_ascii=False)[1:-1] for string in strings]
    return {
        name: one if _is_large_and_clean(one, forms) else _masked(one, strings)
        for name, one in value.items()
    }


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
        return {name: _masked(one, secrets) for name, one in value.items()}
    if isinstance(value, Set):
        return {_masked(one, secrets) for one in value}
    if isinstance(value, Sequence):
        return [_masked(one, secrets) for one in value]
    return value  # dates, and warnings of Ansible, which it masks itself


def _masked_string(text: str, secrets: list[str]) -> str:
    if text in secrets:
        return HIDDEN
    for secret in secrets:
        text = text.replace(secret, _STARS)
    return text


def _is_large_and_clean(value: Any, forms: list[str]) -> bool:
    """Return whether a large list contains no secret, neither in strings nor in numbers.

    :param forms: the secrets as JSON escapes them
    """
    if not isinstance(value, list) or len(value) < _LARGE:
        return False
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False  # JSON cannot express a value in it, such as a date
    return not any(form in text for form in forms)
