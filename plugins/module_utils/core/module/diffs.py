# SPDX-License-Identifier: GPL-3.0-or-later
"""Diffs in a form that Ansible prints readably."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import escape_controls


def printable_diff(diff: Mapping[str, Any]) -> dict[str, Any]:
    r"""Return a diff with escaped control characters and unescaped letters.

    Ansible prints a mapping as JSON with every character that is not ASCII escaped (`Gr\u00f6`). If
    a side contains such characters, both sides become JSON strings.
    """
    found: dict[str, Any] = escape_controls(diff)
    if all(not isinstance(side, dict) or _json(side).isascii() for side in found.values()):
        return found
    return {name: _json(side) if isinstance(side, dict) else side for name, side in found.items()}


def _json(side: Mapping[str, Any]) -> str:
    return json.dumps(side, indent=4, sort_keys=True, ensure_ascii=False, default=str) + "\n"
