# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep the line ends of a text file that is edited."""

from __future__ import annotations

import re
from difflib import SequenceMatcher


def with_line_ends(text: str, own: str) -> str:
    """Return a text whose lines end as those that they replace, and new ones as most of the file.

    :param text: new text of the file, with `\\n` as line end
    :param own: present text of the file, with `\\r\\n`, `\\n` or both
    """
    parts = re.split("(\r?\n)", own)
    old, ends = parts[::2], parts[1::2]
    if "\r\n" not in ends:
        return text
    lines = text.split("\n")
    usual = max(("\r\n", "\n"), key=ends.count)
    new = [usual] * (len(lines) - 1)
    if "\n" in ends:
        codes = SequenceMatcher(None, old, lines, autojunk=False).get_opcodes()
        for _kind, at, old_stop, to, stop in codes:
            # the last line of a text has no end
            size = min(old_stop - at, stop - to, len(ends) - at, len(new) - to)
            new[to : to + size] = ends[at : at + size]
    return "".join(map("".join, zip(lines, [*new, ""], strict=True)))
