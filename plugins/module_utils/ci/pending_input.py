# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the inputs that a pipeline build waits for [ci-28]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .client import objects, part

#: `tree` query for the inputs in the `actions` of a build.
INPUT_FIELDS = (
    "executions[id,displayName,settled,input[id,message,ok,submitter,parameters[name,type]]]"
)


def pending_inputs(build: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the inputs that a build waits for.

    An input has the keys `id`, `message`, `ok`, `submitter` and `parameters`, a list of objects
    with `name` and `type`.
    """
    return [
        _shown(execution)
        for action in objects(build.get("actions"))
        for execution in objects(action.get("executions"))
        if execution.get("settled") is not True and isinstance(execution.get("input"), Mapping)
    ]


def _shown(execution: Mapping[str, Any]) -> dict[str, Any]:
    asked = part(execution.get("input"))
    return {
        "id": str(asked.get("id") or execution.get("id")),
        "message": asked.get("message"),
        "ok": asked.get("ok"),
        "submitter": asked.get("submitter"),
        "parameters": [
            {"name": str(entry.get("name")), "type": str(entry.get("type"))}
            for entry in objects(asked.get("parameters"))
        ],
    }


def described(asked: Mapping[str, Any]) -> str:
    """Return the text for an input in messages: its message, id, submitter and parameter names."""
    details = [f"id {asked['id']}"]
    if asked["submitter"]:
        details.append(f"submitter {asked['submitter']}")
    if asked["parameters"]:
        names = ", ".join(entry["name"] for entry in asked["parameters"])
        details.append(f"parameters {names}")
    return f"the input '{asked['message']}' ({'; '.join(details)})"
