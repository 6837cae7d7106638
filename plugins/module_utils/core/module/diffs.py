# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences as a person reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import escape_controls


def shown(sides: Mapping[str, Any]) -> dict[str, Any]:
    """Both sides of a difference, as Ansible is to print them.

    Of a mapping Ansible prints JSON, with every character that is not ASCII escaped (C(Gr\\u00f6)).
    Where one side has such characters both are given as that JSON without the escapes. Whoever
    needs the mapping reads it back.
    """
    found: dict[str, Any] = escape_controls(sides)
    if all(_is_plain(side) for side in found.values()):
        return found
    return {name: _text(side) if isinstance(side, dict) else side for name, side in found.items()}


def _is_plain(side: Any) -> bool:
    """Whether nothing in it is escaped; a text is shown as it is."""
    return not isinstance(side, dict) or _text(side).isascii()


def _text(side: Mapping[str, Any]) -> str:
    """In the form of Ansible."""
    return json.dumps(side, indent=4, sort_keys=True, ensure_ascii=False, default=str) + "\n"
