# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose the names of the attachments of a page, which must differ without regard to case."""

from __future__ import annotations

import posixpath
import unicodedata
from collections import Counter


def attachment_key(name: str) -> str:
    """Return the key of a name: names compare in Unicode NFC and without regard to case."""
    return unicodedata.normalize("NFC", name).casefold()


class AttachmentNames:
    """Names of the attachments of a page, by path of the file."""

    def __init__(self) -> None:
        #: Path of each attached file, by attachment name.
        self.files: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._taken: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()

    def reserve(self, name: str, path: str | None) -> str | None:
        """Reserve a fixed name, also for an attachment without a local file.

        :return: the name of another file that is the same without regard to case, or None
        """
        other = self._taken.setdefault(attachment_key(name), name)
        if path is not None:
            if other != name and other in self.files:
                return other
            self.files[name] = path
            self._names.setdefault(path, name)
        return None

    def name(self, path: str) -> str:
        """Return the name of a file: its file name, or a free name if another file has it."""
        known = self._names.get(path)
        if known is not None:
            return known
        file = name = posixpath.basename(path)
        if attachment_key(name) in self._taken:
            name = path.replace("/", "_")
        stem, extension = posixpath.splitext(file)
        while attachment_key(name) in self._taken:
            self._numbers[attachment_key(file)] += 1
            name = f"{stem}-{self._numbers[attachment_key(file)] + 1}{extension}"
        self.reserve(name, path)
        return name
