# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose file names for attachments: safe in every folder, and unique [C4]."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

# Characters that end a path segment, control a terminal, change the writing direction, or cannot be
# encoded.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f/\\\\\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
# Device names in folders of Windows, which Linux can mount.
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
#: Maximum length of a name in common file systems, in bytes.
_LONGEST = 255


def safe_names(filenames: Mapping[str, str]) -> dict[str, str]:
    """Return the file names of the attachments, by id.

    Equal names, also on case-insensitive file systems, all get `-<id>` before the extension, so
    that no name depends on the order.

    :param filenames: the server's names by id
    """
    names = {number: _fitting(_safe(name), "") for number, name in filenames.items()}
    apart: set[str] = set()
    while True:
        counted = Counter(map(_same, names.values()))
        equal = {number for number, name in names.items() if counted[_same(name)] > 1} - apart
        if not equal:
            return names
        apart |= equal
        for number in equal:
            names[number] = _fitting(_safe(filenames[number]), f"-{_safe(number)}")


def _safe(name: str) -> str:
    """Return a name that is not empty or hidden, and does not leave the folder."""
    clean = _UNSAFE.sub("_", name).strip()
    if clean.startswith("."):
        clean = f"_{clean[1:]}"
    if _DEVICE.fullmatch(clean):
        clean = f"_{clean}"
    return clean or "attachment"


def _fitting(name: str, addition: str) -> str:
    """Return `name` with `addition` before its extension, truncated to the maximum length."""
    stem, extension = os.path.splitext(name)
    left = _LONGEST - len(f"{addition}{extension}".encode())
    if left < 1:  # this is not an extension
        stem, extension, left = name, "", _LONGEST - len(addition.encode())
    return stem.encode()[:left].decode(errors="ignore") + addition + extension


def _same(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
