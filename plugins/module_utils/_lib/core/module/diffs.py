# SPDX-License-Identifier: GPL-3.0-or-later
"""Format diffs so that Ansible prints them in a readable form, without the secrets in free text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from ..errors import escape_controls
from ..free_text import mask_free_text
from ..plan import Change
from ..secret import MASK

_NEW = f"{MASK} (new)"


def printable_diff(diff: Mapping[str, Any]) -> dict[str, Any]:
    r"""Return a diff with control characters escaped and the secrets in free text masked [C12].

    If `before` or `after` contains characters outside ASCII, both become JSON strings, because
    Ansible would print such characters of a mapping as escapes (`Gr\u00f6`).
    """
    others = {"after": diff.get("before")}
    escaped: dict[str, Any] = escape_controls(
        {name: _masked(state, others.get(name)) for name, state in diff.items()}
    )
    if all(not isinstance(state, dict) or _json(state).isascii() for state in escaped.values()):
        return escaped
    return {
        name: _json(state) if isinstance(state, dict) else state for name, state in escaped.items()
    }


def shown_change(change: Change) -> dict[str, Any]:
    """Return a change with the secrets in free text masked, for a return value."""
    shown = {"before": _masked(change.before), "after": _masked(change.after, change.before)}
    return {**vars(change), **shown}


def _masked(value: Any, other: Any = None) -> Any:
    """Mask the secrets in free text.

    :param other: the value before the task; strings that differ from it only in a secret say so
    """
    if isinstance(value, Mapping):
        named = other if isinstance(other, Mapping) else {}
        return {name: _masked(item, named.get(name)) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        others = other if isinstance(other, (list, tuple)) else ()
        return [_masked(item, old) for item, old in zip_longest(value, others[: len(value)])]
    if not isinstance(value, str):
        return value
    masked = mask_free_text(value)
    is_new = isinstance(other, str) and value != other and masked == mask_free_text(other)
    return masked.replace(MASK, _NEW) if is_new else masked


def _json(state: Mapping[str, Any]) -> str:
    return json.dumps(state, indent=4, sort_keys=True, ensure_ascii=False, default=str) + "\n"
