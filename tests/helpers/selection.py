# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of pytest is about: what tests share is made for the tests that were asked for."""

from __future__ import annotations

import pytest


def parameters(session: pytest.Session, name: str) -> set[str]:
    """The values of a parameter in the tests of this session."""
    return {
        str(item.callspec.params[name])
        for item in session.items
        if isinstance(item, pytest.Function)
        and hasattr(item, "callspec")
        and name in item.callspec.params
    }
