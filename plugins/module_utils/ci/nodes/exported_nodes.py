# SPDX-License-Identifier: GPL-3.0-or-later
"""Export nodes as entries for `ci_node` [ci-41]."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...core.module import typed_options
from .. import xml_reader
from ..export_run import ExportRun
from ..jobs.kept_secrets import may_have_secrets
from ..xml_reader import XmlElement
from .ci_node import CiNodeEntry, configuration_of
from .node_store import BUILT_IN, NodeState, NodeStore, without_state

#: Root element of a node that was not created by a cloud.
_PERMANENT = "slave"


def exported_nodes(run: ExportRun) -> list[dict[str, Any]] | None:
    """Return entries for the nodes, or `None` if the nodes cannot be listed."""
    store = NodeStore(run.task)
    states = run.listed("node", "*", store.all, required=run.requested)
    if states is None:
        return None
    entries = [_offline_options(state) for state in states if state.name == BUILT_IN]
    nodes = [state for state in states if state.name != BUILT_IN]
    found = run.read_each(
        "node", nodes, lambda node: store.configuration(node.name), lambda node: node.name
    )
    for state, root in found:
        if root.name != _PERMANENT:
            run.state.leave_out("node", state.name, f"a cloud creates this node ({root.name})")
            continue
        entry = {**_offline_options(state), **_configuration_options(run, state, root)}
        if run.is_valid("node", state.name, partial(typed_options.check, CiNodeEntry(**entry))):
            entries.append(entry)
    return entries


def _offline_options(state: NodeState) -> dict[str, Any]:
    """Return the options that name a node and take it offline."""
    entry = {"name": state.name, "offline": state.temporarily_offline}
    return entry | ({"offline_reason": state.offline_reason} if state.offline_reason else {})


def _configuration_options(run: ExportRun, state: NodeState, root: XmlElement) -> dict[str, Any]:
    """Return the option `src` for an exported file, or separate options if the configuration
    contains secrets.
    """
    text = xml_reader.written_in_lines(without_state(root))
    if may_have_secrets(text):
        reason = "it contains secrets, so only settings with an option of ci_node are exported"
        run.state.leave_out("configuration of the node", state.name, reason)
        return configuration_of(root)
    return {"src": run.file("ci/nodes", state.name, text)}
