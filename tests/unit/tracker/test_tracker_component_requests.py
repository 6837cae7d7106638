# SPDX-License-Identifier: GPL-3.0-or-later
"""Test components of projects against a stub, for servers that the sandbox does not play."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.predictions import (
    Predictions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.projects.tracker_component import (
    TrackerComponentOperation,
    TrackerComponentOptions,
)
from tests.unit.stub import Reply, Seen, Stub
from tests.unit.tracker.running import Run

_CLIENT = {"id": "7", "name": "client"}


def _run(stub: Stub, **options: Any) -> Run:
    given = TrackerComponentOptions(project="REL", **options)
    return Run(stub, TrackerComponentOperation, given, read_only=False, dialect="server")


def test_component_of_an_earlier_task_in_check_mode_gets_the_issues(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    with Stub(Reply(200, json.dumps([_CLIENT]))) as stub:
        run = _run(stub, name="client", state="absent", move_issues_to="new")
        predictions = Predictions(stub.url, check_mode=True)
        predictions.add("component", "REL", "new", value="new")
        run.task = replace(run.task, predictions=predictions)
        run(check=True)
    assert run.plan is not None
    assert run.plan.after == {"move_issues_to": "new"}


def test_lead_that_the_server_gives_a_new_component_is_removed() -> None:
    stored: dict[str, Any] = {"id": "7", "name": "new", "lead": {"name": "alice"}}

    def response(seen: Seen) -> Reply:
        if seen.method == "POST":
            return Reply(201, stored)
        if seen.method == "PUT":
            assert json.loads(seen.body) == {"leadUserName": ""}
            del stored["lead"]
        is_list = seen.path.endswith("/components")
        return Reply(200, "[]" if is_list else stored)

    with Stub(response=response) as stub:
        done = _run(stub, name="new", lead="")()
        sent = [(seen.method, json.loads(seen.body)) for seen in stub.seen if seen.body]
    assert sent[0] == ("POST", {"name": "new", "project": "REL"})
    assert done["component"]["lead"] == ""
