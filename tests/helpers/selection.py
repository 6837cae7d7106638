# SPDX-License-Identifier: GPL-3.0-or-later
"""Read which tests a pytest run selects, so that shared fixtures prepare only what these tests
need.
"""

from __future__ import annotations

import pytest


def parameters(session: pytest.Session, name: str) -> set[str]:
    """Return the values of a parameter in the tests of this session."""
    return {str(values[0]) for values in combinations(session, name)}


def combinations(session: pytest.Session, *names: str) -> set[tuple[object, ...]]:
    """Return the values of several parameters in the tests of this session that have all of them."""
    return {
        tuple(item.callspec.params[name] for name in names)
        for item in session.items
        if isinstance(item, pytest.Function)
        and hasattr(item, "callspec")
        and item.callspec.params.keys() >= set(names)
    }
