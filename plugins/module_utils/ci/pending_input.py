# SPDX-License-Identifier: GPL-3.0-or-later
"""Inputs that a pipeline waits for [ci-28]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .client import objects, part

#: Query for the inputs among the actions of a build.
INPUT_FIELDS = (
    "executions[id,displayName,settled,input[id,message,ok,submitter,parameters[name,type]]]"
)


def pending_inputs(build: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the inputs that a build waits for: `id`, `message`, `ok`, `submitter`, `parameters`
    (each with `name` and `type`).
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
    """Return an input for messages, with what is needed to respond to it."""
    details = [f"id {asked['id']}"]
    if asked["submitter"]:
        details.append(f"submitter {asked['submitter']}")
    if asked["parameters"]:
        names = ", ".join(entry["name"] for entry in asked["parameters"])
        details.append(f"parameters {names}")
    return f"the input '{asked['message']}' ({'; '.join(details)})"
