# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that every plugin can be imported without the libraries that only its work needs, without a
warning and without output. The sanity test `import` does this for each plugin in turn.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "ansible_collections.delivery.toolchain"
OF_MODULES = ("plugins/modules", "plugins/module_utils/_lib")
#: The libraries of ansible-core, and what these import.
OF_ANSIBLE = (
    *("_cffi_backend", "_yaml", "cffi", "cryptography", "jinja2", "markupsafe", "packaging"),
    *("resolvelib", "yaml"),
)


def imported(names: list[str], *libraries: str) -> str:
    """Import modules with these libraries only; return what was printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.helpers.imports_alone", *libraries],
        input="\n".join(names),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize("libraries", [(), OF_ANSIBLE], ids=["modules", "other plugins"])
def test_plugins_import_without_optional_libraries(libraries: tuple[str, ...]) -> None:
    found = [
        ".".join((PACKAGE, *path.relative_to(ROOT).with_suffix("").parts))
        for path in sorted(ROOT.glob("plugins/**/*.py"))
        if path.relative_to(ROOT).as_posix().startswith(OF_MODULES) is not bool(libraries)
    ]
    assert len(found) > 100
    assert imported(found, "ansible", "ansible_collections", *libraries) == ""


def test_missing_library_and_output_are_shown() -> None:
    shown = imported(["this", "requests"])
    assert "No module named 'requests'" in shown
    assert "Beautiful" in shown
