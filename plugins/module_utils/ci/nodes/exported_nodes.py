# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of the server as entries for `ci_node` [ci-41]."""

from __future__ import annotations

from typing import Any

from ...core.errors import ToolchainError
from ...core.plan import without_none
from .. import xml_reader
from ..export_run import ExportRun
from ..jobs.kept_secrets import without_secrets
from ..xml_reader import XmlElement
from .ci_node import CiNodeEntry, configuration_of
from .node_store import BUILT_IN, NodeState, NodeStore, without_state

#: Root of the configuration of a node that a user has made.
_PERMANENT = "slave"


def exported_nodes(run: ExportRun) -> list[dict[str, Any]] | None:
    """Return the nodes as entries; `None` if they cannot be listed."""
    store = NodeStore(run.task)
    try:
        states = store.all()
    except ToolchainError as error:
        if error.kind not in ("permission", "not_found") or run.requested:
            raise
        run.leave_out("node", "*", error)
        return None
    entries = [_switched(state) for state in states if state.name == BUILT_IN]
    nodes = [state for state in states if state.name != BUILT_IN]
    found = run.read_each(
        "node", nodes, lambda one: store.configuration(one.name), lambda one: one.name
    )
    for state, root in found:
        if root.name != _PERMANENT:
            run.state.leave_out("node", state.name, f"a cloud creates it itself ({root.name})")
            continue
        entry = {**_switched(state), **_configured(run, state, root)}
        try:
            CiNodeEntry(**entry).require_sense()
        except ToolchainError as error:
            run.leave_out("node", state.name, error)
        else:
            entries.append(entry)
    return entries


def _switched(state: NodeState) -> dict[str, Any]:
    """Return the name of a node, and whether it is offline by hand."""
    reason = state.offline_reason or None
    return {
        "name": state.name,
        "offline": state.temporarily_offline,
        **without_none({"offline_reason": reason}),
    }


def _configured(run: ExportRun, state: NodeState, root: XmlElement) -> dict[str, Any]:
    """Return the configuration as a file, or as options if it has secrets."""
    text = xml_reader.written_in_lines(without_state(root))
    if without_secrets(text)[1]:
        reason = (
            "it contains secrets, so only the settings that ci_node has options for are exported"
        )
        run.state.leave_out("configuration of the node", state.name, reason)
        return configuration_of(root)
    return {"src": run.file("ci/nodes", state.name, text)}
