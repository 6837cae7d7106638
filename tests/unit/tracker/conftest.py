# SPDX-License-Identifier: GPL-3.0-or-later
"""Isolate the tests from the environment of the user, like the tests of the core."""

from __future__ import annotations

from tests.unit.core.conftest import own_environment

__all__ = ["own_environment"]
