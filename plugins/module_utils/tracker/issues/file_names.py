# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose safe and unique file names for attachments [C4]."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

# Path separators, control characters, characters that change the writing direction, and surrogates.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f/\\\\\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
# Windows rejects these device names, and the folder may be on a Windows share.
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
#: Maximum length of a name in common file systems, in bytes.
_LONGEST = 255


def safe_names(filenames: Mapping[str, str]) -> dict[str, str]:
    """Return the file names of attachments by id.

    All equal names get `-<id>` before the extension, so no file name depends on the order of the
    attachments. Names that only differ in case are equal.

    :param filenames: names of the attachments by id
    """
    names = {number: _fitting(_safe(name), "") for number, name in filenames.items()}
    renamed: set[str] = set()
    while True:
        counted = Counter(map(_normalized, names.values()))
        equal = {number for number, name in names.items() if counted[_normalized(name)] > 1}
        equal -= renamed
        if not equal:
            return names
        renamed |= equal
        for number in equal:
            names[number] = _fitting(_safe(filenames[number]), f"-{_safe(number)}")


def _safe(name: str) -> str:
    """Return a file name that is neither empty nor hidden, and stays inside its folder."""
    clean = _UNSAFE.sub("_", name).strip()
    if clean.startswith("."):
        clean = f"_{clean[1:]}"
    if _DEVICE.fullmatch(clean):
        clean = f"_{clean}"
    return clean or "attachment"


def _fitting(name: str, addition: str) -> str:
    """Insert `addition` before the extension of a name, and truncate it to the maximum length."""
    stem, extension = os.path.splitext(name)
    available = _LONGEST - len(f"{addition}{extension}".encode())
    if available < 1:  # too long for an extension
        stem, extension, available = name, "", _LONGEST - len(addition.encode())
    return stem.encode()[:available].decode(errors="ignore") + addition + extension


def _normalized(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
