# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, update and delete nodes, and take them offline: `ci_node` [C3.21]."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ...core.address import path
from ...core.errors import ToolchainError, invalid, not_found, protocol
from ...core.json_text import as_text, json_objects, member
from ...core.module.authorship import UNKNOWN, Author
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText, Positive
from ...core.operations.objects import Item, ItemKind, Objects, entries_of
from ...core.plan import Plan, plan, remaining, unordered, without_none
from ...core.progress import PollInterval
from .. import client
from ..client import READ_NODE, READ_SERVER, ServerObjects, server_of
from ..job_address import require_name
from ..jobs import configuration
from ..jobs.configuration import without_kept
from ..service import SERVICE
from ..xml_reader import XmlElement, put, text_of, wanted_configuration

BUILT_IN = "(built-in)"
_PACKAGE = "hudson.slaves"
_CLASS = f"{_PACKAGE}.DumbSlave"
_NAMES_OF_BUILT_IN = (BUILT_IN, "built-in", "master", "(master)")
_TREE = "displayName,offline,temporarilyOffline,offlineCauseReason,idle,numExecutors"
_LABELS = "assignedLabels[name]"
_ARCHITECTURE = "hudson.node_monitors.ArchitectureMonitor"
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
    :param system: operating system and architecture, such as `Linux (amd64)`; "" if it is unknown
    """

    name: str
    offline: bool
    temporarily_offline: bool
    offline_reason: str
    labels: tuple[str, ...]
    executors: int
    idle: bool
    system: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the return value `node`, which does not depend on what a monitor has measured."""
        shown = {**vars(self), "labels": list(self.labels)}
        del shown["system"]
        return shown


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
        tree = f"computer[_class,{_TREE},{_LABELS},monitorData]"
        shown = self._objects.shown(purpose, "computer", tree)
        if shown is None:
            raise not_found(f"{purpose}: the server returned no list of nodes", status=404)
        if not isinstance(shown.get("computer"), list):
            raise protocol(f"{purpose}: the response has no list of nodes")
        found = []
        for obj in json_objects(shown["computer"]):
            # the displayed name of the built-in node is localized
            is_built_in = str(obj.get("_class")).endswith("$MasterComputer")
            name = BUILT_IN if is_built_in else as_text(obj.get("displayName"))
            found.append(_state(name, obj))
        return found

    def configuration(self, name: str) -> XmlElement | None:
        return self._objects.document(f"reading the node '{name}'", self._path(name))

    def create(self, name: str, fields: Mapping[str, Any]) -> None:
        """Create a node that waits for its agent to connect, with these form fields."""
        described = {
            "name": name,
            **fields,
            "type": _CLASS,
            "retentionStrategy": {"stapler-class": "hudson.slaves.RetentionStrategy$Always"},
            "nodeProperties": {"stapler-class-bag": "true"},
            "launcher": {"stapler-class": f"{_PACKAGE}.JNLPLauncher"},
        }
        form = {"name": name, "type": _CLASS, "json": json.dumps(described)}
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

    def author(self, name: str) -> Author:
        return self._objects.author(f"reading the history of the node '{name}'", self._path(name))

    def _shows(self, name: str, **values: Any) -> Callable[[], bool]:
        """Return a function that returns whether a node exists, with these values."""

        def shows() -> bool:
            state = self.state(name)
            return state is not None and values.items() <= vars(state).items()

        return shows

    def _path(self, name: str) -> str:
        return self._built_in[0] if name == BUILT_IN else f"computer/{path(name)}"


def _state(name: str, shown: Mapping[str, Any]) -> NodeState:
    names = {name, as_text(shown.get("displayName")), ""}
    labels = {as_text(obj.get("name")) for obj in json_objects(shown.get("assignedLabels"))} - names
    taken_offline = shown.get("temporarilyOffline") is True
    reason = str(shown.get("offlineCauseReason") or "")
    if reason.startswith("Disconnected by "):
        # server fact [ci-41]: some releases return `Disconnected by USER : REASON`
        reason = reason.partition(" : ")[2]
    return NodeState(
        name,
        shown.get("offline") is True,
        taken_offline,
        reason if taken_offline else "",
        tuple(sorted(labels)),
        int(shown.get("numExecutors") or 0),
        shown.get("idle") is True,
        as_text(member(shown.get("monitorData"), _ARCHITECTURE)),
    )


def without_state(root: XmlElement) -> XmlElement:
    """Return a copy of a configuration without the elements of `_OFFLINE`."""
    copy = deepcopy(root)
    copy.children = [child for child in copy.children if child.name not in _OFFLINE]
    return copy


#: Options to XML elements of the configuration.
_ELEMENTS = {
    "description": "description",
    "executors": "numExecutors",
    "remote_root": "remoteFS",
    "labels": "label",
    "mode": "mode",
}
_COMPARISONS = {"labels": unordered}
#: Options that contain the complete configuration.
_XML_OPTIONS = ("config", "src")
_FORM_FIELDS = {
    "description": "nodeDescription",
    "executors": "numExecutors",
    "remote_root": "remoteFS",
    "labels": "labelString",
    "mode": "mode",
}
_POLL_INTERVAL = 5


@dataclass(frozen=True)
class CiNodeEntry:
    """The options of a node."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
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
        if not built_in:
            require_name(self.name, "node")
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


@dataclass(frozen=True)
class _Node:
    """A node on the server.

    :param root: configuration; `None` if it is not managed
    """

    state: NodeState
    root: XmlElement | None


class Nodes(ItemKind[CiNodeEntry, _Node]):
    """Compares and writes nodes."""

    noun = "node"
    accepts_server = True

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._store = NodeStore(task)
        self._configs: dict[str, XmlElement | None] = {}

    def name(self, entry: CiNodeEntry) -> str:
        name = canonical(entry.name)
        if name not in self._configs:
            root = wanted_configuration("node", entry.name, entry.config, entry.src)
            self._configs[name] = None if root is None else without_state(root)
        return name

    def load(self, items: Sequence[Item[CiNodeEntry, _Node]]) -> None:
        """Read the states of all nodes, with a single request for several nodes."""
        if len(items) == 1:
            states = {items[0].name: self._store.state(items[0].name)}
        else:
            states = {state.name: state for state in self._store.all()}
        for item in items:
            state = states.get(item.name)
            item.state = None if state is None else _Node(state, None)

    def compare(self, item: Item[CiNodeEntry, _Node]) -> Plan:
        entry, config = item.entry, self._configs[item.name]
        node = item.state = self._with_configuration(item.state, entry)
        if entry.state == "absent":
            return plan(None if node is None else _fields(node), None).with_result(node=None)
        if node is None:
            return self._creation(item)
        fields, wanted = _fields(node), {**_wanted_fields(entry), **_wanted_state(entry)}
        compared = None
        if config is not None and node.root is not None:
            compared = configuration.drift(without_state(node.root), config)
            left = without_kept(self._task, self.noun, item.name, compared)
            fields["config"], wanted["config"] = left.sides
        found = plan(fields, wanted, _COMPARISONS).with_data(compared)
        return found.with_result(node=_returned(node.state, found.after))

    def _with_configuration(self, node: _Node | None, entry: CiNodeEntry) -> _Node | None:
        """Return a node with its configuration, if options of the entry belong to it."""
        if node is None or not _is_configured(entry):
            return node
        live = self._store.configuration(node.state.name)
        return None if live is None else _Node(node.state, live)

    def _creation(self, item: Item[CiNodeEntry, _Node]) -> Plan:
        entry, name, config = item.entry, item.name, self._configs[item.name]
        if name == BUILT_IN:
            raise not_found(
                "the built-in node does not exist, or the account cannot see it", status=404
            )
        if entry.remote_root is None and config is None:
            raise invalid(f"the node '{name}' is new: set remote_root, config or src")
        wanted = {"executors": 1, "labels": [], "mode": "normal", **_wanted_fields(entry)}
        if config is not None:
            wanted = {"config": configuration.normalized(config)}
        found = plan(None, {"name": name, **wanted, **_wanted_state(entry)})
        state = NodeState(name, True, False, "", (), 1, True)
        return found.with_result(node=_returned(state, found.after))

    def write(self, item: Item[CiNodeEntry, _Node]) -> None:
        entry, name = item.entry, item.name
        if item.plan.action == "delete":
            polling = PollInterval(entry.wait_timeout, _POLL_INTERVAL)
            while not entry.force:
                state = self._store.state(name)
                if state is None or state.idle:
                    break
                polling.pause(f"the node '{name}' is running builds (set force=true to abort them)")
            self._store.delete(name)
            return
        wanted = _wanted_state(entry)
        before = self._store.state(name)
        if item.plan.action == "create":
            fields = {"executors": 1, "mode": "normal", "labels": [], "remote_root": "/"}
            fields |= _wanted_fields(entry)
            form = {_FORM_FIELDS[key]: _encoded(key, value) for key, value in fields.items()}
            self._store.create(name, form)
        elif before is not None and before.temporarily_offline:
            # server fact [ci-41]: some releases bring the node online with each save
            wanted = {"offline": True, "offline_reason": before.offline_reason, **wanted}
        self._save(item)
        self._switch(name, wanted)

    def left(self, item: Item[CiNodeEntry, _Node]) -> Plan:
        state = self._store.state(item.name)
        found = None if state is None else _Node(state, None)
        node = item.state = self._with_configuration(found, item.entry)
        if node is None or item.plan.action == "delete":
            return remaining(item.plan, None if node is None else _fields(node))
        item.returned = {"node": node.state.as_dict()}
        offline = _wanted_state(item.entry).get("offline", item.plan.before.get("offline") or None)
        if offline is not None and node.state.temporarily_offline is not offline:
            raise ToolchainError(
                "failed",
                f"{self.title(item)} was taken offline or online by another user at the same time",
            )
        left = remaining(item.plan, _fields(node), _COMPARISONS, ("config",))
        return left if node.root is None else self._left(item, left, node.root)

    def _left(self, item: Item[CiNodeEntry, _Node], left: Plan, root: XmlElement) -> Plan:
        """Add to a plan what differs in the configuration that an option sets as a whole."""
        config = self._configs[item.name]
        if config is None:
            return left
        found = configuration.drift(without_state(root), config)
        known = self._task.server_values.known(self.noun, item.name)
        return configuration.left_of(item.plan, left, found, "missing", "changed", known=known)

    def kept(self, item: Item[CiNodeEntry, _Node], left: Plan) -> Mapping[str, str]:
        return {} if left.data is None else left.data.kept(item.plan.data)

    def author(self, item: Item[CiNodeEntry, _Node]) -> Author:
        return UNKNOWN if item.state is None else self._store.author(item.name)

    def _save(self, item: Item[CiNodeEntry, _Node]) -> None:
        """Save the configuration if it differs."""

        def left() -> XmlElement | None:
            """Return the configuration if it differs."""
            root = self._store.configuration(item.name)
            if root is None:
                return None
            found = plan(configuration_of(root), _wanted_fields(item.entry), _COMPARISONS)
            return root if self._left(item, found, root).changed else None

        live, config = left() if _is_configured(item.entry) else None, self._configs[item.name]
        if live is not None:
            # the elements of `_OFFLINE` stay as they are on the server
            sent = deepcopy(live) if config is None else without_state(config)
            if config is None:
                for option, value in _wanted_fields(item.entry).items():
                    put(sent, _ELEMENTS[option], _encoded(option, value))
            else:
                sent.children += [child for child in live.children if child.name in _OFFLINE]
            self._store.save(item.name, sent, lambda: left() is None)

    def _switch(self, name: str, wanted: Mapping[str, Any]) -> None:
        """Take the node offline or bring it online, and set the reason, if they differ."""
        state = self._store.state(name) if wanted else None
        if state is None:
            return
        offline, reason = bool(wanted["offline"]), wanted.get("offline_reason")
        if state.temporarily_offline is not offline:
            self._store.toggle(name, offline=offline, reason=reason or "")
        elif offline and reason is not None and state.offline_reason != reason:
            self._store.change_reason(name, reason)


def _is_configured(entry: CiNodeEntry) -> bool:
    return bool(without_none(vars(entry), (*_ELEMENTS, *_XML_OPTIONS)))


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


def _fields(node: _Node) -> dict[str, Any]:
    """Return the current values of a node to compare with the options."""
    return {
        "name": node.state.name,
        "offline": node.state.temporarily_offline,
        "offline_reason": node.state.offline_reason,
        **({} if node.root is None else configuration_of(node.root)),
    }


def _wanted_fields(entry: CiNodeEntry) -> dict[str, Any]:
    """Return the fields to write, without the outer blanks that `text_of` removes."""
    return {
        name: value.strip() if isinstance(value, str) else value
        for name, value in without_none(vars(entry), tuple(_ELEMENTS)).items()
    }


def _wanted_state(entry: CiNodeEntry) -> dict[str, Any]:
    if entry.offline is False:
        return {"offline": False, "offline_reason": ""}
    return without_none(vars(entry), ("offline", "offline_reason"))


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
        SERVICE,
        {
            "read": reads(READ_SERVER, READ_NODE),
            "create": writes(READ_SERVER, unforeseen=(client.CREATE_NODE, READ_NODE)),
            "update": writes(READ_SERVER, READ_NODE, unforeseen=(client.CONFIGURE_NODE,)),
            "take offline": writes(READ_SERVER, unforeseen=(client.DISCONNECT_NODE,)),
            "bring online": writes(READ_SERVER, unforeseen=(client.CONNECT_NODE,)),
            "delete": writes(READ_SERVER, unforeseen=(client.DELETE_NODE,)),
        },
        kind="node",
        name="{name}",
        listed="results",
    )

    def __init__(self, task: Task, options: CiNodeOptions) -> None:
        super().__init__(Nodes(task), *entries_of(options, CiNodeEntry))
