# SPDX-License-Identifier: GPL-3.0-or-later
"""Read which tests a pytest run selects, so that shared fixtures prepare only what these tests
need.
"""

from __future__ import annotations

import pytest


def parameters(session: pytest.Session, name: str) -> set[str]:
    """Return the values of a parameter in the tests of this session."""
    return {
        str(item.callspec.params[name])
        for item in session.items
        if isinstance(item, pytest.Function)
        and hasattr(item, "callspec")
        and name in item.callspec.params
    }
