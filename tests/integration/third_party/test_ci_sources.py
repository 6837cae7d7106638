# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare requests of the modules with those in the source of a public client for the CI server:
api4jenkins 2.1.0 (`input.py`, `job.py`). It is not a dependency, because it brings another HTTP library.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

import pytest
import requests

from sandbox.client import Sandbox
from tests.helpers import connections, in_process

#: Flavour of the fixture `sandbox`.
FLAVOUR = "real"
#: Arguments of the module, the client's request for the same, and its form.
INPUTS: list[tuple[dict[str, Any], str, dict[str, str]]] = [
    ({"job": "plain"}, "proceedEmpty", {}),
    ({"job": "plain", "action": "abort"}, "abort", {}),
    (
        {"job": "approval", "parameters": {"TARGET": "live"}},
        "submit",
        {"proceed": "Ok", "json": json.dumps({"parameter": [{"name": "TARGET", "value": "live"}]})},
    ),
]
#: The client presses the button of the page, the module sends what the button leads to.
SAME = {"submit": "proceed"}


@pytest.mark.parametrize(("given", "request_name", "form"), INPUTS)
def test_inputs_are_submitted_like_by_the_client(
    sandbox: Sandbox, given: dict[str, Any], request_name: str, form: dict[str, str]
) -> None:
    asked: dict[str, Any] = {"id": "Go", "message": "Go on?"}
    more = {**asked, "parameters": [{"name": "TARGET", "type": "StringParameterDefinition"}]}
    sandbox.seed(
        {
            "ci": {
                "jobs": {
                    "plain": {"kind": "pipeline", "input": asked},
                    "approval": {"kind": "pipeline", "input": more},
                },
                "builds": [
                    {"job": job, "running": True, "repeat": 2} for job in ("plain", "approval")
                ],
            }
        }
    )
    login = connections.connection("ci", sandbox.urls["ci"])
    result = in_process.run("ci_build_input", {**login, **given, "build": "1"})
    assert result["changed"], result
    sent = [request for request in sandbox.requests("ci") if request["method"] == "POST"][-1]
    place = f"job/{given['job']}/1/input/{result['input']['id']}"
    assert sent["path"].endswith(f"{place}/{SAME.get(request_name, request_name)}")
    fields = parse_qs(sent["body"])
    assert fields.get("json", [None]) == [form.get("json")]

    address = f"{login['url']}/{place}/{request_name}".replace("/1/", "/2/")
    response = requests.post(
        address,
        data=form,
        auth=(login["username"], login["password"]),
        timeout=10,
        allow_redirects=False,
    )
    assert response.status_code in (200, 302)


def test_scan_is_started_like_by_the_client(sandbox: Sandbox) -> None:
    """The client sends `delay=0`, and reads `indexing/consoleText`."""
    login = connections.connection("ci", sandbox.urls["ci"])
    auth = (login["username"], login["password"])
    result = in_process.run("ci_branch_scan", {**login, "job": "delivery/service"})
    assert result["scan"]["result"] == "SUCCESS", result
    (sent,) = [request for request in sandbox.requests("ci") if request["method"] == "POST"]
    assert sent["path"].endswith("/job/delivery/job/service/build")
    assert parse_qs(sent["query"])["delay"] == ["0sec"]

    address = f"{login['url']}/job/delivery/job/service"
    log = requests.get(f"{address}/indexing/consoleText", auth=auth, timeout=10)
    assert log.text == result["scan"]["log"]
    response = requests.post(
        f"{address}/build?delay=0", auth=auth, timeout=10, allow_redirects=False
    )
    assert response.status_code == 302
