# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify the properties of every failure message [C1.3]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ERROR_MEMBERS = {"kind", "status", "method", "url", "detail"}
#: The error message from the server is cut at about 1 KB; operation, object and status are added.
LONGEST = 1400


def assert_one_sentence(result: Mapping[str, Any], label: str) -> None:
    """Verify that the message is one line of moderate length without markup, and that `error` has
    the promised keys.
    """
    message = result["msg"]
    assert message.strip(), label
    assert "\n" not in message, f"{label}: {message}"
    assert len(message) <= LONGEST, f"{label}: {message}"
    for markup in ("<html", "<body", "<!DOCTYPE", "Traceback"):
        assert markup.lower() not in message.lower(), f"{label}: {message}"
    assert set(result["error"]) == ERROR_MEMBERS, label
    assert "@" not in (result["error"]["url"] or ""), label
