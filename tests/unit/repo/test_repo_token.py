# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the options of `repo_token`."""

from __future__ import annotations

import pytest


def test_each_option_of_repo_token() -> None:
    pytest.fail("FILL_IN: test each option of repo_token, as the tests in this folder do")
