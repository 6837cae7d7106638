# SPDX-License-Identifier: GPL-3.0-or-later
"""The input that a pipeline build waits for, as JSON data [ci-28]."""

from __future__ import annotations

from typing import Any

from sandbox.ci.formats.exports import Exported, constants

_STEP = "org.jenkinsci.plugins.workflow.support.steps.input"


def exported(build: dict[str, Any]) -> list[Exported]:
    """Return the items of `actions` for the pending input, if there is one [ci-28]."""
    asked = build.get("input")
    if asked is None or build["done"]:
        return []
    shown = Exported(
        f"{_STEP}.InputStep",
        constants(
            id=asked["id"],
            message=asked.get("message"),
            ok=asked.get("ok", "Proceed"),
            submitter=asked.get("submitter"),
            parameters=[
                Exported(
                    f"hudson.model.{entry['type']}",
                    constants(name=entry["name"], type=entry["type"]),
                )
                for entry in asked.get("parameters") or []
            ],
        ),
    )
    execution = Exported(
        f"{_STEP}.InputStepExecution",
        constants(id=asked["id"], displayName=asked.get("message"), input=shown, settled=False),
    )
    fields = constants(waitingForInput=True, executions=[execution])
    return [Exported(f"{_STEP}.InputAction", fields)]
