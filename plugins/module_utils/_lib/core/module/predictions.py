# SPDX-License-Identifier: GPL-3.0-or-later
"""Store the objects that tasks in check mode would create, for later tasks of the run.

They are stored in a folder on the controller, which the action passes in an environment variable.
A module that runs on another host does not get the variable, and predicts nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

#: The environment variable with the path of the folder.
FOLDER = "TOOLCHAIN_PREDICTIONS"


class Predictions:
    """The objects that earlier tasks of this run would create on a server.

    Empty unless in check mode, so that a prediction never affects a task that writes.
    """

    def __init__(self, server: str = "", *, check_mode: bool = False) -> None:
        above = os.environ.get(FOLDER)
        self._check_mode = check_mode
        self._folder = Path(above, _digest(server.rstrip("/"))) if above and server else None

    @property
    def active(self) -> bool:
        """Return whether predictions are stored and read."""
        return self._folder is not None and self._check_mode

    def add(self, kind: str, *name: str, value: Any = True) -> None:
        """Store an object.

        :param name: parts of the name of the object
        :param value: data for later tasks: a JSON value without secrets
        """
        if self._folder is None or not self.active:
            return
        # predictions are optional: if one cannot be written, later tasks do without it
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._folder / _file_name(kind, *name)
            path.write_text(json.dumps([name, value]), "utf-8")

    def get(self, kind: str, *name: str) -> Any:
        """Return the value of an object that an earlier task would create, or `None`."""
        if self._folder is None or not self.active:
            return None
        try:
            return json.loads((self._folder / _file_name(kind, *name)).read_text("utf-8"))[1]
        except (OSError, ValueError):
            return None

    def all(self, kind: str, parent: str) -> dict[str, Any]:
        """Return the values of all objects below a parent, by name.

        Only objects that were added with a name of two parts, `(parent, name)`, are returned.
        """
        if self._folder is None or not self.active:
            return {}
        found: dict[str, Any] = {}
        for path in self._folder.glob(f"{_digest(kind, parent)}-*"):
            with contextlib.suppress(OSError, ValueError):
                (_parent, name), value = json.loads(path.read_text("utf-8"))
                found[name] = value
        return found

    def remove(self, kind: str, *name: str) -> None:
        """Remove an object that this task would delete."""
        if self._folder is not None and self.active:
            with contextlib.suppress(OSError):
                (self._folder / _file_name(kind, *name)).unlink()

    def follow(self, kind: str, name: str, action: str) -> None:
        """Add the object that a task creates, or remove the object that it deletes.

        :param action: `action` of the plan of the object
        """
        if action == "create":
            self.add(kind, name.lower())
        elif action == "delete":
            self.remove(kind, name.lower())

    def clear(self) -> None:
        """Remove all predictions for the server, because a task outside check mode changed it."""
        if self._folder is not None and not self._check_mode:
            shutil.rmtree(self._folder, ignore_errors=True)


def _file_name(kind: str, *name: str) -> str:
    """Return a file name with a prefix for the kind and the first part of the object's name."""
    return f"{_digest(kind, name[0])}-{_digest(*name)}"


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
