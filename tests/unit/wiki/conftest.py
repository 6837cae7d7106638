# SPDX-License-Identifier: GPL-3.0-or-later
"""As for the core: the environment of whoever runs the tests must not decide them."""

from __future__ import annotations

from tests.unit.core.conftest import own_environment

__all__ = ["own_environment"]
