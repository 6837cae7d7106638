# SPDX-License-Identifier: GPL-3.0-or-later
"""Write every file that is generated from other files of the checkout.

python -m tools.generated
"""

from __future__ import annotations

import importlib
from pathlib import Path

from tools.tree import ROOT

#: Modules with a function `files()`, which returns path and content; None: no such file may exist.
GENERATORS = (
    *("tools.reference", "tools.permissions", "tools.witnesses", "tests.helpers.request_table"),
    *("tests.helpers.scope_table", "tests.helpers.repository_settings"),
    *("tools.role_options", "tools.role_readme", "tools.desired_state", "tools.awx"),
)


def stale() -> dict[Path, str | None]:
    """Return the files that differ from their generated content, with this content."""
    files: dict[Path, str | None] = {}
    for name in GENERATORS:
        files |= importlib.import_module(name).files()
    return {path: text for path, text in files.items() if _text(path) != text}


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def problems() -> list[str]:
    """Return a sentence for each stale file."""
    return [f"{path.relative_to(ROOT)} is stale: run python -m tools.generated" for path in stale()]


def main() -> None:
    """Write the stale files, and print their names."""
    for path, text in stale().items():
        print(path.relative_to(ROOT))
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
