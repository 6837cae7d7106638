# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, update and delete nodes, and take them offline: `ci_node` [C3.21]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.objects import Item, ItemKind, Objects, entries_of
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText, Positive
from ...core.plan import Plan, plan, unordered, without_none
from ...core.polling import PollInterval
from .. import xml_reader
from ..jobs import configuration
from ..permissions import (
    CONFIGURE_NODE,
    CONNECT_NODE,
    CREATE_NODE,
    DELETE_NODE,
    DISCONNECT_NODE,
    READ_NODE,
    READ_SERVER,
)
from ..xml_elements import put, text_of, wanted_configuration
from ..xml_reader import XmlElement
from .node_store import (
    BUILT_IN,
    NodeState,
    NodeStore,
    canonical,
    with_state_of,
    without_state,
)

#: Options to XML elements of the configuration.
_ELEMENTS = {
    "description": "description",
    "executors": "numExecutors",
    "remote_root": "remoteFS",
    "labels": "label",
    "mode": "mode",
}
#: Options that contain the complete configuration.
_XML_OPTIONS = ("config", "src")
_FORM_FIELDS = {
    "description": "nodeDescription",
    "executors": "numExecutors",
    "remote_root": "remoteFS",
    "labels": "labelString",
    "mode": "mode",
}
_BAD_NAME = re.compile(r"[?*/\\%!@#$^&|<>\[\]:;\x00-\x1f\x7f]|^\s|\s$|^\.{1,2}$")
_POLL_INTERVAL = 5


@dataclass(frozen=True)
class CiNodeEntry:
    """The options of a node."""

    rules: ClassVar = (
        Rule("state=absent", forbids=(*_ELEMENTS, *_XML_OPTIONS, "offline", "offline_reason")),
        Rule("config", "src", forbids=tuple(_ELEMENTS)),
        Rule("offline_reason", requires="offline=true"),
    )

    name: str
    description: Annotated[str | None, Option(empty=True)] = None
    executors: Positive | None = None
    remote_root: str | None = None
    labels: list[str] | None = None
    mode: Literal["normal", "exclusive"] | None = None
    config: Annotated[str | None, Option(private=True)] = None
    src: PathText | None = None
    offline: bool | None = None
    offline_reason: Annotated[str | None, Option(empty=True)] = None
    force: bool = False
    wait_timeout: Annotated[float, Option(least=0)] = 300
    state: Literal["present", "absent"] = "present"

    def check(self) -> None:
        """Raise `invalid` for an invalid name or label, and for the built-in node."""
        built_in = canonical(self.name) == BUILT_IN
        if not built_in and _BAD_NAME.search(self.name):
            raise invalid(f"name '{self.name}' is not a valid node name")
        if built_in and self.state == "absent":
            raise invalid("the built-in node cannot be deleted")
        names = list(without_none(vars(self), (*_ELEMENTS, *_XML_OPTIONS)))
        if built_in and names:
            raise invalid(f"{names[0]} cannot be set for the built-in node: use ci_configuration")
        for label in self.labels or ():
            if re.search(r"\s", label):
                raise invalid(f"labels: '{label}' must not contain blanks")


@dataclass(frozen=True)
class CiNodeOptions(CiNodeEntry):
    """The options of `ci_node`."""

    entries: Annotated[list[CiNodeEntry] | None, Option(empty=False)] = None


class Nodes(ItemKind[CiNodeEntry, Any]):
    """Compares and writes nodes."""

    noun = "node"

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._store = NodeStore(task)
        self._configs: dict[str, XmlElement] = {}

    def name(self, entry: CiNodeEntry) -> str:
        name = canonical(entry.name)
        if name not in self._configs:
            root = wanted_configuration("node", entry.name, entry.config, entry.src)
            if root is not None:
                self._configs[name] = without_state(root)
        return name

    def compare(self, item: Item[CiNodeEntry, Any]) -> Plan:
        entry = item.entry
        name = self.name(entry)
        state = self._store.state(name)
        if entry.state == "absent":
            before = None if state is None else _fields(state, None)
            return plan(before, None).with_result(node=None)
        if state is None:
            return self._creation(entry)
        live = self._store.configuration(name) if self._is_configured(entry) else None
        before = _fields(state, live)
        wanted = {**self._configured(entry, live), **_wanted_state(entry)}
        if name in self._configs and live is not None:
            before["config"] = configuration.normalized(_text(live))
        found = plan(before, wanted, {"labels": unordered})
        return found.with_result(node=_returned(state, found.after))

    def _creation(self, entry: CiNodeEntry) -> Plan:
        name = self.name(entry)
        if name == BUILT_IN:
            raise ToolchainError(
                "not_found",
                "the built-in node does not exist, or the account cannot see it",
                status=404,
            )
        if entry.remote_root is None and name not in self._configs:
            raise invalid(f"the node '{name}' is new: set remote_root, config or src")
        wanted = without_none(vars(entry), tuple(_ELEMENTS))
        if name in self._configs:
            wanted["config"] = configuration.normalized(_text(self._configs[name]))
        else:
            wanted = {"executors": 1, "labels": [], "mode": "normal", **wanted}
        found = plan(None, {"name": name, **wanted, **_wanted_state(entry)})
        state = NodeState(name, True, False, "", (), 1, True)
        return found.with_result(node=_returned(state, found.after))

    def _is_configured(self, entry: CiNodeEntry) -> bool:
        return bool(without_none(vars(entry), (*_ELEMENTS, *_XML_OPTIONS)))

    def _configured(self, entry: CiNodeEntry, live: XmlElement | None) -> dict[str, Any]:
        """Return the configuration fields to compare with the server."""
        config = self._configs.get(self.name(entry))
        if config is None or live is None:
            return without_none(vars(entry), tuple(_ELEMENTS))
        found = configuration.drift(_text(live), _text(config))
        return {"config": found.after} if found.found else {}

    def write(self, item: Item[CiNodeEntry, Any]) -> None:
        entry, plan = item.entry, item.plan
        name = self.name(entry)
        if plan.action == "delete":
            self._delete(entry, name)
            return
        wanted = _wanted_state(entry)
        before = self._store.state(name)
        if plan.action == "create":
            self._store.create(name, _form(entry))
        elif before is not None and before.temporarily_offline:
            # server fact [ci-41]: some releases bring the node online with each save
            wanted = {"offline": True, "offline_reason": before.offline_reason, **wanted}
        self._save(entry, name)
        self._switch(name, wanted)
        item.returned = {"node": self._require_state(name).as_dict()}

    def _save(self, entry: CiNodeEntry, name: str) -> None:
        """Save the configuration if it differs, and verify that the server kept it."""
        if not self._is_configured(entry):
            return
        live = self._store.configuration(name)
        if live is None:
            raise ToolchainError(
                "failed",
                f"the node '{name}': the server accepted the request, but the node does not exist",
                result={"changed": False},
            )
        if not self._differences(entry, live):
            return
        if name in self._configs:
            root = with_state_of(self._configs[name], live)
        else:
            root = _with_fields(live, entry)

        def done() -> bool:
            now = self._store.configuration(name)
            return now is not None and not self._differences(entry, now)

        self._store.save(name, root, done)
        saved = self._store.configuration(name)
        unsaved = [] if saved is None else self._differences(entry, saved)
        if unsaved:
            raise ToolchainError(
                "rejected",
                f"the node '{name}': the server did not save {', '.join(unsaved)}",
                result={"changed": True},
            )

    def _differences(self, entry: CiNodeEntry, live: XmlElement) -> list[str]:
        """Return the names of the fields that differ from the options."""
        config = self._configs.get(self.name(entry))
        if config is not None:
            found = configuration.drift(_text(live), _text(config))
            return [difference.path for difference in found.differences]
        wanted = without_none(vars(entry), tuple(_ELEMENTS))
        changes = plan(configuration_of(live), wanted, {"labels": unordered}).changes
        return [change.field for change in changes]

    def _switch(self, name: str, wanted: Mapping[str, Any]) -> None:
        """Take the node offline or bring it online, and set the reason, if they differ."""
        if not wanted:
            return
        state = self._require_state(name)
        offline, reason = bool(wanted["offline"]), wanted.get("offline_reason")
        if state.temporarily_offline is not offline:
            self._store.toggle(name, offline=offline, reason=reason or "")
        elif offline and reason is not None and state.offline_reason != reason:
            self._store.change_reason(name, reason)
        else:
            return
        if self._require_state(name).temporarily_offline is not offline:
            raise ToolchainError(
                "failed",
                f"the node '{name}' was taken offline or online by another user at the same time",
            )

    def _require_state(self, name: str) -> NodeState:
        state = self._store.state(name)
        if state is None:
            raise ToolchainError("failed", f"the node '{name}' was deleted by another user")
        return state

    def _delete(self, entry: CiNodeEntry, name: str) -> None:
        polling = PollInterval(entry.wait_timeout, _POLL_INTERVAL)
        while not entry.force:
            state = self._store.state(name)
            if state is None or state.idle:
                break
            polling.pause(f"the node '{name}' is running builds (set force: true to abort them)")
        self._store.delete(name)


def _text(root: XmlElement) -> str:
    return xml_reader.written(without_state(root))


def configuration_of(live: XmlElement) -> dict[str, Any]:
    """Return the values of the options in a node's configuration."""
    executors = text_of(live, "numExecutors")
    return {
        "description": text_of(live, "description"),
        "executors": int(executors) if executors.isdigit() else 1,
        "remote_root": text_of(live, "remoteFS"),
        "labels": sorted(text_of(live, "label").split()),
        "mode": text_of(live, "mode").lower() or "normal",
    }


def _fields(state: NodeState, live: XmlElement | None) -> dict[str, Any]:
    """Return the current values of a node to compare with the options."""
    fields = {
        "name": state.name,
        "offline": state.temporarily_offline,
        "offline_reason": state.offline_reason,
    }
    return fields if live is None else {**fields, **configuration_of(live)}


def _wanted_state(entry: CiNodeEntry) -> dict[str, Any]:
    if entry.offline is False:
        return {"offline": False, "offline_reason": ""}
    return without_none(vars(entry), ("offline", "offline_reason"))


def _with_fields(live: XmlElement, entry: CiNodeEntry) -> XmlElement:
    root = deepcopy(live)
    for option, value in without_none(vars(entry), tuple(_ELEMENTS)).items():
        put(root, _ELEMENTS[option], _encoded(option, value))
    return root


def _form(entry: CiNodeEntry) -> dict[str, Any]:
    fields = {"executors": 1, "mode": "normal", "labels": [], "remote_root": "/"}
    fields |= without_none(vars(entry), tuple(_ELEMENTS))
    return {_FORM_FIELDS[option]: _encoded(option, value) for option, value in fields.items()}


def _encoded(option: str, value: Any) -> str:
    if option == "labels":
        return " ".join(value)
    return str(value).upper() if option == "mode" else str(value)


def _returned(state: NodeState, after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the return value `node` as it will be after the task."""
    shown = state.as_dict()
    taken_offline = bool(after.get("offline", state.temporarily_offline))
    return {
        **shown,
        "offline": taken_offline or (state.offline and not state.temporarily_offline),
        "temporarily_offline": taken_offline,
        "offline_reason": after.get("offline_reason", "") if taken_offline else "",
        "labels": sorted(after.get("labels", shown["labels"])),
        "executors": after.get("executors", shown["executors"]),
    }


class CiNodeOperation(Objects[CiNodeEntry, Any]):
    """Manages a node, or the nodes of `entries`."""

    descriptor: ClassVar = Descriptor(
        "ci",
        {
            "read": reads(READ_SERVER, READ_NODE),
            "create": writes(READ_SERVER, unforeseen=(CREATE_NODE, READ_NODE)),
            "update": writes(READ_SERVER, READ_NODE, unforeseen=(CONFIGURE_NODE,)),
            "take offline": writes(READ_SERVER, unforeseen=(DISCONNECT_NODE,)),
            "bring online": writes(READ_SERVER, unforeseen=(CONNECT_NODE,)),
            "delete": writes(READ_SERVER, unforeseen=(DELETE_NODE,)),
        },
        kind="node",
        name="{name}",
        listed="results",
    )

    def __init__(self, task: Task, options: CiNodeOptions) -> None:
        super().__init__(Nodes(task), *entries_of(options, CiNodeEntry))
