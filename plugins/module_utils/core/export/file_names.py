# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of files for objects that a server names: each names one place, below its folder, on every
usual file system.
"""

from __future__ import annotations

import hashlib
import unicodedata

#: Characters of a name; four bytes each at most, so that the usual limit of 255 holds.
_LONGEST = 50
#: Of a whole path; deeper down the digest alone stands for a name.
_LONGEST_PATH = 1000
_KEPT = "-_"
#: What other programs, and the module C(wiki_tree), take for something of their own.
_RESERVED = frozenset(
    {"index", "readme", "con", "prn", "aux", "nul"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in range(10)}
)


class FileNames:
    """Gives names that are told apart without regard to case. What cannot be kept of a name is
    replaced, and a digest behind it tells it from others; a blank becomes a dash.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def name(self, folder: str, given: str) -> str:
        """A path in C(folder), without an ending, for what the server calls C(given)."""
        kept = _kept(given)
        changed = kept != given.replace(" ", "-")
        if changed or kept.casefold() in _RESERVED or self._is_taken(folder, kept):
            digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:10]
            kept = f"{kept}-{digest}" if len(folder) < _LONGEST_PATH else digest
        number, name = 1, kept
        while self._is_taken(folder, name):
            number, name = number + 1, f"{kept}-{number + 1}"
        self._taken.add(_joined(folder, name).casefold())
        return _joined(folder, name)

    def _is_taken(self, folder: str, name: str) -> bool:
        return _joined(folder, name).casefold() in self._taken


def _kept(given: str) -> str:
    """What of a name a file may have: neither a separator nor a dot, and nothing unseen."""
    normal = unicodedata.normalize("NFC", given)
    text = "".join(each if each.isalnum() or each in _KEPT else "-" for each in normal)
    return text[:_LONGEST].strip("-") or "unnamed"


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
