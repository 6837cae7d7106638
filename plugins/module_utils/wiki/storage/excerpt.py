# SPDX-License-Identifier: GPL-3.0-or-later
"""Shorten the diff of a page in a task with many pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def excerpt(name: str, old: str, new: str) -> tuple[str, str]:
    """Return the lines that differ, with a line of context, below the name of the page."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    start = _common_lines(before, after)
    end = _common_lines(before[start:][::-1], after[start:][::-1])
    first, last = max(start - 1, 0), max(end - 1, 0)

    def cut(lines: list[str]) -> str:
        if not lines:
            return ""
        above, below = "...\n" if first > 0 else "", "...\n" if last > 0 else ""
        inner = "".join(lines[first : len(lines) - last])
        return f"{name}\n{above}{inner}{below}"

    return cut(before), cut(after)


def joined(sides: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return the diff of several pages as a single one."""
    texts = list(sides)
    return "".join(old for old, _new in texts), "".join(new for _old, new in texts)


def _common_lines(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the number of equal lines at the start."""
    pairs = zip(before, after, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))
