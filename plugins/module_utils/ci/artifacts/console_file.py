# SPDX-License-Identifier: GPL-3.0-or-later
"""Save the complete console log of a build as a file [ci-13]."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
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
class PresentFile:
    """Size in bytes and digest of an existing local file."""

    size: int
    sha256: str


def local_file(path: str) -> PresentFile | None:
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
    return PresentFile(size, digest.hexdigest())


class ConsoleFile:
    """The console log of a build and its local file.

    The server reports neither length nor digest of a log, so the contents are compared.

    :param path: path of the build below the URL of the server
    :param purpose: name of the build for messages
    :param place: path of the local file
    """

    def __init__(self, server: Transport, path: str, purpose: str, place: str) -> None:
        self._server, self._log_path, self.place = server, f"{path}/consoleText", place
        self._purpose = f"reading the console log of {purpose}"
        self.present = local_file(place)
        self.action = "downloaded" if self._differs() else "unchanged"

    def _differs(self) -> bool:
        """Return whether the local file is missing or differs. Stop at the first difference."""
        if self.present is None:
            return True

        def compare(response: Incoming) -> bool:
            with open(self.place, "rb") as file:
                for block in response.iter_content():
                    if file.read(len(block)) != block:
                        return True
                return file.read(1) != b""

        return download(self._server, self._purpose, self._log_path, compare, validate=_validate)

    def save(self) -> Fetched:
        return download_file(
            self._server,
            self._purpose,
            self._log_path,
            self.place,
            content=RemoteContent(),
            validate=_validate,
        )

    def as_dict(self, fetched: Fetched | None = None) -> dict[str, Any]:
        """Return the module's return value `console`."""
        known = fetched or (self.present if self.action == "unchanged" else None)
        return {
            "dest": self.place,
            "size": None if known is None else known.size,
            "sha256": None if known is None else known.sha256,
            "action": self.action,
        }


def _validate(response: Response) -> None:
    """Raise `protocol` for a web page, which a login or a proxy returns instead of the log."""
    if response.status == 200 and "html" in response.headers.get("Content-Type", ""):
        raise response.error(
            "protocol",
            "the server returned 200 with a web page instead of the log: check url and login",
        )
