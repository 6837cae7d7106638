# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run knows about a server: values that its tasks share in a folder on the controller.

The action passes the folder in an environment variable, and Ansible removes it at the end of the
run. A module that runs on another host does not get the variable, so it shares nothing.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from ..errors import ToolchainError
from ..files import atomic_write

#: The environment variable with the path of the folder.
VARIABLE = "TOOLCHAIN_RUN"


class RunFolder:
    """Values by kind and name, each in a file that is replaced as a whole.

    The values are optional: if one cannot be written, later tasks do without it.

    :param part: name of the folder for all servers
    :param path: folder of the server; `None` if nothing is shared
    """

    def __init__(self, part: str, server: str) -> None:
        above = os.environ.get(VARIABLE)
        self.path = _path_of(above, part, server) if above and server else None

    def create(self) -> Path | None:
        """Create the folder if necessary, and return it."""
        if self.path is not None:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.path

    def add(self, kind: str, *name: str, value: Any = True) -> None:
        """Store a value.

        :param name: parts of the name of the object
        :param value: a JSON value without secrets
        """
        with contextlib.suppress(OSError, ToolchainError):
            if (folder := self.create()) is not None:
                with atomic_write(str(folder / _file_name(kind, *name)), 0o600) as file:
                    file.write(json.dumps([name, value]).encode())

    def get(self, kind: str, *name: str) -> Any:
        """Return the value of an object, or `None`."""
        if self.path is None:
            return None
        try:
            return json.loads((self.path / _file_name(kind, *name)).read_text("utf-8"))[1]
        except (OSError, ValueError):
            return None

    def all(self, kind: str, parent: str) -> dict[str, Any]:
        """Return the values of all objects below a parent, by name.

        Only objects that were added with a name of two parts, `(parent, name)`, are returned.
        """
        found: dict[str, Any] = {}
        for path in self.path.glob(f"{digest(kind, parent)}-*") if self.path else ():
            with contextlib.suppress(OSError, ValueError):
                (_parent, name), value = json.loads(path.read_text("utf-8"))
                found[name] = value
        return found

    def remove(self, kind: str, *name: str) -> None:
        """Remove the value of an object."""
        if self.path is not None:
            with contextlib.suppress(OSError):
                (self.path / _file_name(kind, *name)).unlink()

    def clear(self) -> None:
        """Remove all values."""
        if self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)


@functools.lru_cache(maxsize=32)  # the items of a loop have the same folders
def _path_of(above: str, part: str, server: str) -> Path:
    return Path(above, part, digest(server.rstrip("/").lower()))


def _file_name(kind: str, *name: str) -> str:
    """Return a file name with a prefix for the kind and the first part of the object's name."""
    return f"{digest(kind, name[0])}-{digest(*name)}"


def digest(*parts: str) -> str:
    """Return the hexadecimal digest of a name with several parts."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
