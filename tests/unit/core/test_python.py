# SPDX-License-Identifier: GPL-3.0-or-later
"""An older Python is named in a sentence."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[3] / "plugins" / "module_utils" / "core" / "__init__.py"


def test_an_older_python_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 18, "final", 0))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(FILE))
    told = json.loads(capsys.readouterr().out)
    assert ended.value.code == 1
    assert told["failed"] is True
    assert "need Python 3.10 or newer" in told["msg"]
    assert f"{sys.executable} is Python 3.9" in told["msg"]


def test_the_running_python_will_do() -> None:
    assert runpy.run_path(str(FILE))["OLDEST"] == (3, 10)
