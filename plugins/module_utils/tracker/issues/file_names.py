# SPDX-License-Identifier: GPL-3.0-or-later
"""File names for attachments: safe in every folder, and each one once [C4]."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

# What ends a segment of a path, controls a terminal, turns the direction of writing round, or
# cannot be encoded.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f/\\\\\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
# Names of devices in the folders of Windows, which Linux mounts, too.
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
#: The longest name of the usual file systems, in bytes.
_LONGEST = 255


def safe_names(filenames: Mapping[str, str]) -> dict[str, str]:
    """A name in a folder for each attachment, by its id.

    Names that are equal, also where a file system does not tell small letters from capitals, all
    get C(-<id>) before the extension, so that no name depends on the order.

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
    """Neither empty nor hidden, nor a way to another folder."""
    clean = _UNSAFE.sub("_", name).strip()
    if clean.startswith("."):
        clean = f"_{clean[1:]}"
    if _DEVICE.fullmatch(clean):
        clean = f"_{clean}"
    return clean or "attachment"


def _fitting(name: str, addition: str) -> str:
    """C(name) with C(addition) before its extension, cut so that a file system takes it."""
    stem, extension = os.path.splitext(name)
    left = _LONGEST - len(f"{addition}{extension}".encode())
    if left < 1:  # what looks like an extension is none
        stem, extension, left = name, "", _LONGEST - len(addition.encode())
    return stem.encode()[:left].decode(errors="ignore") + addition + extension


def _same(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
