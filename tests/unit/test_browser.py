# SPDX-License-Identifier: GPL-3.0-or-later
"""Test what the helper that drives Chromium reports about a browser that does not start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import installed
from tests.helpers.browser import browser


def test_output_of_a_browser_that_ends_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "browser"
    program.write_text("#!/bin/sh\necho a library is missing >&2\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(installed, "program", lambda _name: program)
    with pytest.raises(RuntimeError, match="It printed: a library is missing"), browser():
        pass
