# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and change nodes of the CI server [ci-41]."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from ...core.address import path
from ...core.errors import ToolchainError
from ...core.json_text import as_text
from ...core.module.task import Task
from ..client import objects, server_of
from ..server_objects import ServerObjects
from ..xml_reader import XmlElement

BUILT_IN = "(built-in)"
_PACKAGE = "hudson.slaves"
_CLASS = f"{_PACKAGE}.DumbSlave"
_NAMES_OF_BUILT_IN = (BUILT_IN, "built-in", "master", "(master)")
_TREE = "displayName,offline,temporarilyOffline,offlineCauseReason,idle,numExecutors"
_LABELS = "assignedLabels[name]"
#: Elements in which some releases store that a user has taken the node offline.
_OFFLINE = ("temporaryOfflineCause", "temporarilyOffline")


def canonical(name: str) -> str:
    """Return the name of a node, and `(built-in)` for all names of the built-in node."""
    return BUILT_IN if name.lower() in _NAMES_OF_BUILT_IN else name


@dataclass(frozen=True)
class NodeState:
    """State of a node.

    :param offline: whether the node is offline for any reason
    :param temporarily_offline: whether a user has taken the node offline
    :param offline_reason: reason that this user gave
    """

    name: str
    offline: bool
    temporarily_offline: bool
    offline_reason: str
    labels: tuple[str, ...]
    executors: int
    idle: bool

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "labels": list(self.labels)}


class NodeStore:
    """Reads and writes the nodes of a server."""

    def __init__(self, task: Task) -> None:
        self._objects = ServerObjects(server_of(task))
        #: Paths of the built-in node in the releases of the server, the one to use first.
        self._built_in = ["computer/(built-in)", "computer/(master)"]

    def state(self, name: str) -> NodeState | None:
        """Return the state of a node, or `None` if the node does not exist."""
        purpose = f"reading the node '{name}'"
        shown = self._objects.shown(purpose, self._path(name), f"{_TREE},{_LABELS}")
        if shown is None and name == BUILT_IN and len(self._built_in) > 1:
            self._built_in.pop(0)
            return self.state(name)
        return None if shown is None else _state(name, shown)

    def all(self) -> list[NodeState]:
        purpose = "listing the nodes"
        shown = self._objects.shown(purpose, "computer", f"computer[_class,{_TREE},{_LABELS}]")
        if shown is None:
            raise ToolchainError(
                "not_found", f"{purpose}: the server returned no list of nodes", status=404
            )
        if not isinstance(shown.get("computer"), list):
            raise ToolchainError("protocol", f"{purpose}: the response has no list of nodes")
        return [_state(_name(obj), obj) for obj in objects(shown["computer"])]

    def configuration(self, name: str) -> XmlElement | None:
        return self._objects.document(f"reading the node '{name}'", self._path(name))

    def create(self, name: str, fields: Mapping[str, Any]) -> None:
        """Create a node that waits for its agent to connect, with these form fields."""
        form = {
            "name": name,
            "type": _CLASS,
            "json": json.dumps(
                {
                    "name": name,
                    **fields,
                    "type": _CLASS,
                    "retentionStrategy": {
                        "stapler-class": "hudson.slaves.RetentionStrategy$Always"
                    },
                    "nodeProperties": {"stapler-class-bag": "true"},
                    "launcher": {"stapler-class": f"{_PACKAGE}.JNLPLauncher"},
                }
            ),
        }
        purpose = f"creating the node '{name}'"
        verify = self._shows(name)
        try:
            self._objects.write(purpose, "computer/doCreateItem", verify, form=form)
        except ToolchainError as error:
            # another host may have created the node at the same time
            if error.status != 400 or not verify():
                raise

    def save(self, name: str, root: XmlElement, verify: Callable[[], bool]) -> None:
        purpose = f"changing the node '{name}'"
        config_path = f"{self._path(name)}/config.xml"
        self._objects.send(purpose, config_path, root, verify, repeatable=True)

    def delete(self, name: str) -> None:
        exists = self._shows(name)
        self._objects.delete(f"deleting the node '{name}'", self._path(name), lambda: not exists())

    def toggle(self, name: str, *, offline: bool, reason: str) -> None:
        """Take a node offline, or bring it online.

        The request toggles the state, so the caller must have checked the current state.
        """
        doing = (
            f"taking the node '{name}' offline" if offline else f"bringing the node '{name}' online"
        )
        self._objects.write(
            doing,
            f"{self._path(name)}/toggleOffline",
            self._shows(name, temporarily_offline=offline),
            form={"offlineMessage": reason if offline else ""},
        )

    def change_reason(self, name: str, reason: str) -> None:
        self._objects.write(
            f"changing the offline reason of the node '{name}'",
            f"{self._path(name)}/changeOfflineCause",
            self._shows(name, offline_reason=reason),
            form={"offlineMessage": reason},
            repeatable=True,
        )

    def _shows(self, name: str, **values: Any) -> Callable[[], bool]:
        """Return a function that returns whether a node exists, with these values."""

        def shows() -> bool:
            state = self.state(name)
            return state is not None and values.items() <= vars(state).items()

        return shows

    def _path(self, name: str) -> str:
        return self._built_in[0] if name == BUILT_IN else f"computer/{path(name)}"


def _name(shown: Mapping[str, Any]) -> str:
    """Return the name of a listed node. The displayed name of the built-in node is localized."""
    is_built_in = str(shown.get("_class")).endswith("$MasterComputer")
    return BUILT_IN if is_built_in else as_text(shown.get("displayName"))


def _state(name: str, shown: Mapping[str, Any]) -> NodeState:
    names = {name, as_text(shown.get("displayName")), ""}
    labels = {as_text(obj.get("name")) for obj in objects(shown.get("assignedLabels"))} - names
    taken_offline = shown.get("temporarilyOffline") is True
    return NodeState(
        name,
        shown.get("offline") is True,
        taken_offline,
        _reason(str(shown.get("offlineCauseReason") or "")) if taken_offline else "",
        tuple(sorted(labels)),
        int(shown.get("numExecutors") or 0),
        shown.get("idle") is not False,
    )


def _reason(shown: str) -> str:
    """Return the reason that a user gave for taking a node offline.

    Server fact [ci-41]: the server returns it as `Disconnected by USER : REASON`.
    """
    _by, colon, reason = shown.partition(" : ")
    if colon:
        return reason
    return "" if shown.startswith("Disconnected by ") else shown


def without_state(root: XmlElement) -> XmlElement:
    """Return a copy of a configuration without the elements of `_OFFLINE`."""
    copy = deepcopy(root)
    copy.children = [child for child in copy.children if child.name not in _OFFLINE]
    return copy


def with_state_of(root: XmlElement, live: XmlElement) -> XmlElement:
    """Return a copy of a configuration with the elements of `_OFFLINE` from `live`."""
    copy = without_state(root)
    copy.children += [child for child in live.children if child.name in _OFFLINE]
    return copy
