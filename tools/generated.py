# SPDX-License-Identifier: GPL-3.0-or-later
"""Write every file that is generated from other files of the checkout.

    python -m tools.generated

Each generator below has a function `files()` and also runs alone, as `python -m tools.reference`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.tree import ROOT

#: In this order: the actions depend on the action groups, which `tools.reference` writes.
GENERATORS = (
    *("tools.reference", "tools.actions", "tools.witnesses", "tests.helpers.request_table"),
    *("tools.role_readme", "tools.desired_schemas", "tools.awx"),
)


def stale(files: Mapping[Path, str | None]) -> dict[Path, str | None]:
    """Return the files with different content; None: the file must not exist."""
    return {
        path: text
        for path, text in files.items()
        if (path.read_text(encoding="utf-8") if path.exists() else None) != text
    }


def write(files: Mapping[Path, str | None]) -> None:
    """Write the stale files, and print their names."""
    for path, text in stale(files).items():
        print(path.relative_to(ROOT), flush=True)
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def problems() -> Iterator[str]:
    """Yield a sentence for each stale file."""
    for name in GENERATORS:
        for path in stale(importlib.import_module(name).files()):
            yield f"{path.relative_to(ROOT)} is stale: run python -m {name}"


if __name__ == "__main__":
    for generator in GENERATORS:
        write(importlib.import_module(generator).files())
