# SPDX-License-Identifier: GPL-3.0-or-later
"""Remember which values a server keeps, whatever is sent, so that they are no differences [C11.1].

Without this record, each run would send them again. It is in the folder of the run's report, or
in a temporary folder of the run without a report. It contains digests, never the values.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import ToolchainError
from ..files import atomic_write

#: The environment variable with the path of the folder.
FOLDER = "TOOLCHAIN_SERVER_VALUES"


class ServerValues:
    """The record of a server. Without a folder it is always empty."""

    def __init__(self, server: str = "") -> None:
        above = os.environ.get(FOLDER)
        self._server = server.rstrip("/")
        self._folder = Path(above) if above and server else None

    def known(self, kind: str, name: str) -> Mapping[str, str]:
        """Return the digests of the values that the server keeps in an object, by path."""
        if self._folder is None:
            return {}
        try:
            found = json.loads(self._file(self._folder, kind, name).read_text("utf-8"))["values"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return found if isinstance(found, dict) else {}

    def remember(self, kind: str, name: str, values: Mapping[str, str]) -> None:
        """Add digests of values, by path."""
        if self._folder is None or not values:
            return
        # the record is optional: without it, the next run sends the values once more
        with contextlib.suppress(OSError, ToolchainError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _alone_in(self._folder):
                known = {**self.known(kind, name), **values}
                record = {"server": self._server, "kind": kind, "name": name, "values": known}
                with atomic_write(str(self._file(self._folder, kind, name)), 0o600) as file:
                    file.write(json.dumps(record, indent=2, sort_keys=True).encode())

    def _file(self, folder: Path, kind: str, name: str) -> Path:
        key = json.dumps([self._server, kind, name]).encode()
        return folder / f"{hashlib.sha256(key).hexdigest()}.json"


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Let other tasks wait, so that two tasks that add values at the same time keep both."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system without locks for folders
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
