# SPDX-License-Identifier: GPL-3.0-or-later
"""Local files to upload, and their comparison with attachments [tracker-6]."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ...core.errors import ToolchainError, invalid
from ..issues.attachments import Attachment, AttachmentContents
from .site import Site

#: Error kinds that only prevent a download. Server fact [tracker-7]: some servers do not accept a
#: login for attachments that they accept for issues.
_NO_DOWNLOAD = frozenset({"auth", "permission", "not_found", "protocol"})
#: Characters that servers may replace in file names.
_REPLACED = re.compile(r'[<>:"/\\|?*\x00-\x1f]')


@dataclass(frozen=True)
class UploadFile:
    """A file on the host where the task runs. `size` is in bytes."""

    src: str
    size: int

    @property
    def name(self) -> str:
        return unicodedata.normalize("NFC", os.path.basename(self.src))

    def named(self, attachments: Sequence[Attachment]) -> list[Attachment]:
        stored = re.compile("".join(map(_pattern, self.name)))
        return [
            attachment
            for attachment in attachments
            if stored.fullmatch(unicodedata.normalize("NFC", attachment.filename))
        ]

    def is_stored(self, attachments: Sequence[Attachment], known: Collection[str]) -> bool:
        """Return whether the file has been uploaded as a new attachment.

        :param known: ids of the attachments before the upload
        """
        return any(
            attachment.number not in known and attachment.size in (None, self.size)
            for attachment in self.named(attachments)
        )


def _pattern(character: str) -> str:
    # Letters and digits must be equal: an older attachment with a matching name gets deleted.
    return r"[\W_]" if _REPLACED.match(character) else re.escape(character)


def files_of(paths: Sequence[str]) -> list[UploadFile]:
    """Return the files of the option `attachments`.

    Raises `invalid` if a path is not a readable file, or two files have the same name.
    """
    found: dict[str, UploadFile] = {}
    for number, path in enumerate(paths):
        place = f"attachments[{number}]"
        try:
            status = os.stat(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise invalid(
                f"{place} is '{path}' (from the folder {os.getcwd()}): {reason}"
            ) from None
        if not stat.S_ISREG(status.st_mode) or not os.access(path, os.R_OK):
            raise invalid(f"{place} is '{path}', which is not a readable file")
        file = UploadFile(path, status.st_size)
        if '"' in file.name or "\n" in file.name or "\\" in file.name:
            raise invalid(
                f"{place} is '{path}', but file names must not contain quotation marks, backslashes"
                " and line breaks"
            )
        other = found.setdefault(file.name, file)
        if other.src != path:
            raise invalid(
                f"{place} is '{path}', which has the same file name as '{other.src}': rename a file"
            )
    return list(found.values())


class ComparedFiles:
    """Compare files with attachments by content, because servers report no digest.

    :param limit: maximum size in bytes of a file whose attachment is downloaded
    """

    def __init__(self, site: Site, limit: int) -> None:
        self._site, self._limit = site, limit
        self._same: dict[tuple[str, str], bool] = {}
        #: Files that were only compared by name and size, as `KEY: name`.
        self.uncompared: list[str] = []

    def is_same(self, key: str, file: UploadFile, attachment: Attachment) -> bool:
        """Return whether an attachment has the content of a file. The result is cached.

        If the content cannot be compared, warn and return whether the sizes are equal.

        :param key: key of the issue
        """
        pair = (file.src, attachment.number)
        if pair not in self._same:
            self._same[pair] = self._is_same(key, file, attachment)
        return self._same[pair]

    def _is_same(self, key: str, file: UploadFile, attachment: Attachment) -> bool:
        if attachment.size not in (None, file.size):
            return False
        if attachment.size == 0:
            return True
        if file.size > self._limit:
            return self._unknown(
                key, file, f"it has {file.size} bytes, but compare_max is {self._limit}"
            )
        try:
            return AttachmentContents(self._site.client, key).read(
                attachment, lambda _response, blocks: _has_content(file, blocks)
            )
        except ToolchainError as error:
            if error.kind not in _NO_DOWNLOAD:
                raise
            return self._unknown(key, file, error.message)

    def _unknown(self, key: str, file: UploadFile, reason: str) -> bool:
        self.uncompared.append(f"{key}: {file.name}")
        self._site.task.warn(
            f"attachments: '{file.name}' of the issue '{key}' is assumed to be unchanged because"
            f" its name and size match; its content was not compared: {reason}"
        )
        return True


def _has_content(file: UploadFile, blocks: Iterator[bytes]) -> bool:
    try:
        with open(file.src, "rb") as stream:
            same = all(stream.read(len(block)) == block for block in blocks)
            return same and not stream.read(1)
    except OSError as error:
        raise invalid(f"attachments: cannot read {file.src}: {error.strerror}") from None
