# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the nodes as hosts of an inventory: the plugin `ci_nodes`."""

from __future__ import annotations

import re
from typing import Any

from ...core.errors import ToolchainError
from ...core.module.task import Task
from ..xml_reader import child_of, text_of
from .ci_node import BUILT_IN, NodeState, NodeStore


def hosts(task: Task) -> list[dict[str, Any]]:
    """Return a mapping for each node: `name`, `groups`, `variables`, and if known `host`, `port`.

    The address of a node is in its configuration, which needs Agent/ExtendedRead. If the account
    may not read it, the addresses are unknown, with one warning.
    """
    store = NodeStore(task)
    found = []
    may_read = True
    for state in store.all():
        node = _described(state)
        if may_read and state.name != BUILT_IN:
            try:
                node.update(_address(store, state.name))
            except ToolchainError as error:
                if error.kind != "permission":
                    raise
                may_read = False
                task.warn(f"the addresses of the nodes are unknown: {error.message}")
        found.append(node)
    return found


def _described(state: NodeState) -> dict[str, Any]:
    # `Linux (amd64)`, `Windows Server 2022 (amd64)`; the versions of Windows are one system
    system = state.system.partition(" (")[0].lower()
    system = "windows" if system.startswith("windows") else re.sub(r"\W+", "_", system)
    groups = [f"label_{label}" for label in state.labels]
    groups += ["offline" if state.offline else "online", *([f"os_{system}"] if system else [])]
    shown = {f"ci_node_{key}": value for key, value in state.as_dict().items()}
    variables = {**shown, "ci_node_system": state.system}
    return {"name": state.name, "groups": groups, "variables": variables}


def _address(store: NodeStore, name: str) -> dict[str, str | int]:
    root = store.configuration(name)  # `None` if it was deleted since it was listed
    launcher = None if root is None else child_of(root, "launcher")
    if launcher is None:
        return {}
    host, port = text_of(launcher, "host").strip(), text_of(launcher, "port").strip()
    found: dict[str, str | int] = {"host": host} if host else {}
    return {**found, "port": int(port)} if host and port.isdecimal() else found
