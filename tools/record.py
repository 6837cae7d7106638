# SPDX-License-Identifier: GPL-3.0-or-later
"""Take the light and the dark picture of the drift page for docs/pictures, and write what they show
as text. A test compares this text with the page that the present code makes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tools import tree

tree.make_importable()

from tests.helpers import browser, drift_page

PICTURES = tree.ROOT / "docs" / "pictures"


def main() -> None:
    """Write the pictures and their text."""
    with tempfile.TemporaryDirectory() as name, browser.browser() as driven:
        file = drift_page.write_page(Path(name))
        for scheme in ("light", "dark"):
            text = drift_page.shown(driven, file, scheme)
            (PICTURES / "drift.txt").write_text(f"{text}\n", encoding="utf-8")
            driven.picture(PICTURES / f"drift-{scheme}.png")


if __name__ == "__main__":
    main()
