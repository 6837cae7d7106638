# SPDX-License-Identifier: GPL-3.0-or-later
"""What every failure message keeps [C1.3]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ERROR_MEMBERS = {"kind", "status", "method", "url", "detail"}
#: The server's own words are cut at about 1 KB; operation, object and status come on top.
LONGEST = 1400


def assert_one_sentence(result: Mapping[str, Any], label: str) -> None:
    """One line of moderate length without markup, and an `error` of the promised shape."""
    message = result["msg"]
    assert message.strip(), label
    assert "\n" not in message, f"{label}: {message}"
    assert len(message) <= LONGEST, f"{label}: {message}"
    for markup in ("<html", "<body", "<!DOCTYPE", "Traceback"):
        assert markup.lower() not in message.lower(), f"{label}: {message}"
    assert set(result["error"]) == ERROR_MEMBERS, label
    assert "@" not in (result["error"]["url"] or ""), label
