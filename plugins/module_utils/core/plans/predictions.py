# SPDX-License-Identifier: GPL-3.0-or-later
"""Store the objects that tasks in check mode would create, for later tasks of the run.

The action names a folder of the run on the controller in an environment variable. A module that
runs elsewhere does not have it, and predicts nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

#: The environment variable with the folder.
FOLDER = "TOOLCHAIN_PREDICTIONS"


class Predictions:
    """Objects that earlier tasks of this run would create on a server.

    Without check mode nothing is predicted: a prediction never changes a task that writes.
    """

    def __init__(self, server: str = "", *, check_mode: bool = False) -> None:
        above = os.environ.get(FOLDER)
        self._check_mode = check_mode
        self._folder = Path(above, _digest(server.rstrip("/"))) if above and server else None

    @property
    def active(self) -> bool:
        """Return whether later tasks get what is added."""
        return self._folder is not None and self._check_mode

    def add(self, kind: str, *name: str, value: Any = True) -> None:
        """Remember an object.

        :param value: what later tasks need to know of it, a JSON value without secrets
        """
        if self._folder is None or not self.active:
            return
        # a prediction that cannot be written is one that later tasks do not have
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._folder / _file_name(kind, *name)
            path.write_text(json.dumps([name, value]), "utf-8")

    def get(self, kind: str, *name: str) -> Any:
        """Return the object that an earlier task would create; `None` if none would."""
        if self._folder is None or not self.active:
            return None
        try:
            return json.loads((self._folder / _file_name(kind, *name)).read_text("utf-8"))[1]
        except (OSError, ValueError):
            return None

    def all(self, kind: str, place: str) -> dict[str, Any]:
        """Return the objects of a kind whose two-part name starts with `place`."""
        if self._folder is None or not self.active:
            return {}
        found: dict[str, Any] = {}
        for path in self._folder.glob(f"{_digest(kind, place)}-*"):
            with contextlib.suppress(OSError, ValueError):
                (_place, name), value = json.loads(path.read_text("utf-8"))
                found[name] = value
        return found

    def remove(self, kind: str, *name: str) -> None:
        """Forget an object that a later task would delete."""
        if self._folder is not None and self.active:
            with contextlib.suppress(OSError):
                (self._folder / _file_name(kind, *name)).unlink()

    def follow(self, kind: str, name: str | None, action: str, rows: Any = None) -> None:
        """Remember the objects that a task creates or deletes.

        :param name: name of the object, with the `action` of its plan
        :param rows: return value `results` of a task with `entries`, instead of both
        """
        for row in rows or [{"name": name, "action": action}]:
            known = str(row["name"]).lower()
            if row["action"] in ("create", "created"):
                self.add(kind, known)
            elif row["action"] in ("delete", "deleted"):
                self.remove(kind, known)

    def end(self) -> None:
        """Forget all objects of the server: a task has changed it."""
        if self._folder is not None and not self._check_mode:
            shutil.rmtree(self._folder, ignore_errors=True)


def _file_name(kind: str, *name: str) -> str:
    """Return a name that begins with the kind and the first part of the object's name."""
    return f"{_digest(kind, name[0])}-{_digest(*name)}"


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
