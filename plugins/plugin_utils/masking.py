# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible's masking of results, sooner where a result is large.

Of 50,000 rows Ansible looks at every single value, which takes two seconds. Their text as a whole,
searched for the secrets, takes a tenth of that.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from ansible.module_utils.common.parameters import remove_values
from ansible.module_utils.common.text.converters import to_native

#: Elements from which on a list in a result is searched for secrets as a whole.
_LARGE = 100


def masked(value: Any, secrets: Collection[str]) -> Any:
    """What C(remove_values) of Ansible gives for the result of a module (or a line of its log).

    That looks at every single value, which for tens of thousands of rows takes longer than to get
    them from the server. A large list whose text, as a whole, shows no secret stays as it is.
    """
    if not isinstance(value, dict):
        return remove_values(value, secrets)
    forms = [_in_json(to_native(secret, errors="surrogate_or_strict")) for secret in secrets]
    clean = {name for name, one in value.items() if _is_large_and_clean(one, forms)}
    others = {name: None if name in clean else one for name, one in value.items()}
    checked: dict[str, Any] = remove_values(others, secrets)
    return {name: value[name] if name in clean else one for name, one in checked.items()}


def _is_large_and_clean(value: Any, forms: list[str]) -> bool:
    """Whether C(remove_values) would find nothing in a list: in no text and, as it reads it, in no
    number. What JSON has no word for is left to that.
    """
    if not isinstance(value, list) or len(value) < _LARGE:
        return False
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return not any(form in text for form in forms)


def _in_json(text: str) -> str:
    """How a part of a text looks in JSON, where each character is written for itself."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
