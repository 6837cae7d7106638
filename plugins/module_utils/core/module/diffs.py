# SPDX-License-Identifier: GPL-3.0-or-later
"""Format diffs so that Ansible prints them in a readable form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import escape_controls


def printable_diff(diff: Mapping[str, Any]) -> dict[str, Any]:
    r"""Return a diff with control characters escaped.

    If `before` or `after` contains characters outside ASCII, both become JSON strings, because
    Ansible would print such characters of a mapping as escapes (`Gr\u00f6`).
    """
    escaped: dict[str, Any] = escape_controls(diff)
    if all(not isinstance(state, dict) or _json(state).isascii() for state in escaped.values()):
        return escaped
    return {
        name: _json(state) if isinstance(state, dict) else state for name, state in escaped.items()
    }


def _json(state: Mapping[str, Any]) -> str:
    return json.dumps(state, indent=4, sort_keys=True, ensure_ascii=False, default=str) + "\n"
