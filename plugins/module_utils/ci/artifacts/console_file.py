# SPDX-License-Identifier: GPL-3.0-or-later
"""Save the complete console log of a build as a file [ci-13]."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core.errors import invalid
from ...core.files import require_replaceable
from ...core.http.download import download
from ...core.http.file_download import Fetched, RemoteContent, download_file
from ...core.http.messages import Response
from ...core.http.transport import Transport

if TYPE_CHECKING:
    from ...core.http.bodies import Incoming

_BLOCK = 1024 * 1024


@dataclass(frozen=True)
class FetchedFile:
    """A file of a build and its local file.

    :param place: path of the local file
    :param present: the existing local file, or `None`
    :param action: `downloaded` or `unchanged`
    :param save: downloads the file to `place`
    :param path: path of the artifact; empty for the console log
    """

    place: str
    present: Fetched | None
    action: str
    save: Callable[[], Fetched]
    path: str = ""

    def as_dict(self, fetched: Fetched | None = None) -> dict[str, Any]:
        known = fetched or (self.present if self.action == "unchanged" else None)
        return {
            **({"path": self.path} if self.path else {}),
            "dest": self.place,
            "size": None if known is None else known.size,
            "sha256": None if known is None else known.sha256,
            "action": self.action,
        }


def local_file(path: str) -> Fetched | None:
    """Return the regular file at a path, or `None` without one. Symbolic links are not followed.

    Raises `invalid` for a file that cannot be read, and for a path that a file cannot replace.
    """
    if os.path.lexists(path):
        require_replaceable(path, os.lstat(path))
    if not os.path.isfile(path) or os.path.islink(path):
        return None
    digest, size = hashlib.sha256(), 0
    try:
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(_BLOCK), b""):
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise invalid(f"{path} cannot be read: {error.strerror or error}") from None
    return Fetched(size, digest.hexdigest())


def console_file(server: Transport, path: str, purpose: str, place: str) -> FetchedFile:
    """Return the console log of a build.

    The server reports neither length nor digest of a log, so the contents are compared.

    :param path: path of the build below the URL of the server
    :param purpose: name of the build for messages
    """
    purpose, source = f"reading the console log of {purpose}", f"{path}/consoleText"
    present = local_file(place)

    def is_equal(response: Incoming) -> bool:
        """Compare the contents up to the first difference."""
        with open(place, "rb") as file:
            for block in response.iter_content():
                if file.read(len(block)) != block:
                    return False
            return file.read(1) == b""

    same = present is not None and download(server, purpose, source, is_equal, validate=_validate)
    content = RemoteContent()
    save = partial(
        download_file, server, purpose, source, place, content=content, validate=_validate
    )
    return FetchedFile(place, present, "unchanged" if same else "downloaded", save)


def _validate(response: Response) -> None:
    """Raise `protocol` for a web page, which a login or a proxy returns instead of the log."""
    if response.status == 200 and "html" in response.headers.get("Content-Type", ""):
        raise response.error(
            "protocol",
            "the server returned 200 with a web page instead of the log: check url and login",
        )
