# SPDX-License-Identifier: GPL-3.0-or-later
"""Store the objects that tasks in check mode would create, for later tasks of the run."""

from __future__ import annotations

from typing import Any

from .run_folder import RunFolder

#: Prefix of the kind of objects that earlier tasks would remove.
_GONE = "no "


class Predictions:
    """The objects that earlier tasks of this run would create on a server.

    Empty unless in check mode, so that a prediction never affects a task that writes.
    """

    def __init__(self, server: str = "", *, check_mode: bool = False) -> None:
        self._folder, self._check_mode = RunFolder("predictions", server), check_mode

    @property
    def active(self) -> bool:
        """Return whether predictions are stored and read."""
        return self._folder.path is not None and self._check_mode

    def add(self, kind: str, *name: str, value: Any = True) -> None:
        """Store an object.

        :param name: parts of the name of the object
        :param value: data for later tasks: a JSON value without secrets
        """
        if self._check_mode:
            self._folder.add(kind, *name, value=value)
            self._folder.remove(_GONE + kind, *name)

    def get(self, kind: str, *name: str) -> Any:
        """Return the value of an object that an earlier task would create, or `None`."""
        return self._folder.get(kind, *name) if self._check_mode else None

    def all(self, kind: str, parent: str) -> dict[str, Any]:
        """Return the values of all objects below a parent, by name; see `RunFolder.all`."""
        return self._folder.all(kind, parent) if self._check_mode else {}

    def remove(self, kind: str, *name: str) -> None:
        """Remove an object that this task would delete, or a name that it would no longer have."""
        if self._check_mode:
            self._folder.remove(kind, *name)
            self._folder.add(_GONE + kind, *name)

    def is_free(self, kind: str, *name: str) -> bool:
        """Return whether an earlier task would have removed the object with this name.

        Not for another deletion of the object: a role compares deletions before it makes them.
        """
        return self.get(_GONE + kind, *name) is not None

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
        if not self._check_mode:
            self._folder.clear()
