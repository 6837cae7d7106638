# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that an edited file keeps the line ends of its lines."""

from __future__ import annotations

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.line_ends import (
    with_line_ends,
)


@pytest.mark.parametrize(
    ("own", "text", "expected"),
    [
        ("a\nb\n", "a\nc\n", "a\nc\n"),
        ("a\r\nb", "a\nc\n", "a\r\nc\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\nx\nc\n", "a\r\nb\nx\r\nc\r\n"),
        ("a\nb\r\nc\n", "x\nb\nc", "x\nb\r\nc"),
        ("a\r\nb\nc", "a\nB\nc\nd\n", "a\r\nB\nc\r\nd\r\n"),
        # a single \r is part of a line
        ("a\r\nb\rc\n\n", "b\rc\n\n", "b\rc\n\n"),
    ],
)
def test_lines_keep_their_ends(own: str, text: str, expected: str) -> None:
    assert with_line_ends(text, own) == expected
