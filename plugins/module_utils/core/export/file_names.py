# SPDX-License-Identifier: GPL-3.0-or-later
"""Unique and portable file names for objects of a server."""

from __future__ import annotations

import hashlib
import unicodedata

#: Maximum characters of a name: even with four bytes each, they fit the usual limit of 255 bytes.
_LONGEST = 50
#: In folders with a path of this length or more, names with a digest consist of the digest only.
_LONGEST_PATH = 1000
_KEPT = "-_"
#: Names with a meaning for other programs and for the module `wiki_tree`.
_RESERVED = frozenset(
    {"index", "readme", "con", "prn", "aux", "nul"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in range(10)}
)


class FileNames:
    """Create file names that are unique even on a file system that ignores case.

    Spaces become dashes. Other special characters are replaced, and a digest makes the name unique.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def name(self, folder: str, title: str) -> str:
        """Return a unique path in `folder`, without suffix, for the object with this title."""
        stem = _plain(title)
        changed = stem != title.replace(" ", "-")
        if changed or stem.casefold() in _RESERVED or self._is_taken(folder, stem):
            digest = hashlib.sha256(title.encode("utf-8", "surrogatepass")).hexdigest()[:10]
            stem = f"{stem}-{digest}" if len(folder) < _LONGEST_PATH else digest
        number, name = 1, stem
        while self._is_taken(folder, name):
            number, name = number + 1, f"{stem}-{number + 1}"
        self._taken.add(_joined(folder, name).casefold())
        return _joined(folder, name)

    def _is_taken(self, folder: str, name: str) -> bool:
        return _joined(folder, name).casefold() in self._taken


def _plain(title: str) -> str:
    """Return a name without separators, dots and invisible characters."""
    normal = unicodedata.normalize("NFC", title)
    text = "".join(char if char.isalnum() or char in _KEPT else "-" for char in normal)
    return text[:_LONGEST].strip("-") or "unnamed"


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
