# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the code analysis server with third-party sources: the API page of a real server, and the
records that public clients decode. No third-party client is available as a package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
import requests
import yaml

from sandbox.analysis.service import ACTIONS, COMMON
from sandbox.client import Sandbox
from tests.helpers import connections, in_process
from tests.helpers.cases import CASES
from tools.witnesses import SOURCE

#: Flavour of the fixture `sandbox`.
FLAVOUR = "real"
FOUND = yaml.safe_load((SOURCE.parent / "analysis_reference.yml").read_text(encoding="utf-8"))
LISTED: dict[str, dict[str, list[str]]] = FOUND["actions"]
RECORDS: dict[str, dict[str, str]] = FOUND["records"]
NUMBERS = {"id": "101", "ids": "101"}
KINDS: dict[str, type | tuple[type, ...]] = {
    "text": str,
    "number": (int, float),
    "flag": bool,
    "list": list,
}
#: The API actions behind the operations of the modules.
OPERATIONS: dict[str, dict[str, str]] = {
    "analysis_build": {"read": "builds", "rename": "update_build", "delete": "delete_build"},
    "analysis_config": {
        "read": "groups",
        "create": "create_group",
        "update": "update_group",
        "delete": "delete_group",
    },
    "analysis_defect_type": {"read": "defect_types", "update": "update_defect_type"},
    "analysis_export": {"read": "groups"},
    "analysis_group": {
        "read": "groups",
        "create": "create_group",
        "update": "update_group",
        "delete": "delete_group",
    },
    "analysis_info": {"read": "version"},
    "analysis_issue": {"read": "issue_details", "update": "update_status"},
    "analysis_issue_info": {"search": "search"},
    "analysis_module": {
        "read": "modules",
        "create": "create_module",
        "update": "update_module",
        "delete": "delete_module",
    },
    "analysis_project": {
        "read": "projects",
        "create": "import_project",
        "update": "update_project",
        "delete": "delete_project",
    },
    "analysis_report_info": {"read": "report"},
    "analysis_role": {
        "read": "roles",
        "create": "create_role",
        "update": "update_role_permissions",
        "delete": "delete_role",
    },
    "analysis_role_assignment": {
        "read": "role_assignments",
        "create": "update_role_assignment",
        "delete": "update_role_assignment",
    },
    "analysis_server_import": {"import": "import_server_configuration"},
    "analysis_user": {"read": "users", "create": "create_user", "delete": "delete_user"},
    "analysis_view": {
        "read": "views",
        "create": "create_view",
        "update": "update_view",
        "delete": "delete_view",
    },
}


def _allowed(action: str) -> set[str]:
    listed = LISTED[action]
    return {*COMMON, *listed.get("needs", []), *listed.get("takes", [])}


@pytest.mark.parametrize("module", OPERATIONS)
def test_module_sends_the_listed_parameters(
    sandbox: Sandbox, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verify that a module sends listed parameters only, and all required parameters.

    The test runs the steps of the module's contract case.
    """
    monkeypatch.chdir(tmp_path)
    case = CASES[module]
    login = connections.connection("analysis", sandbox.urls["analysis"])
    for step in ("run", "create", "update", "delete"):
        if step in case:
            result = in_process.run(module, {**login, **case[step]})
            assert not result.get("failed"), result["msg"]
    seen = set()
    for request in sandbox.requests("analysis"):
        form = dict(parse_qsl(request["body"], keep_blank_values=True))
        action = form["action"]
        assert set(form) <= _allowed(action), action
        assert set(LISTED[action].get("needs", [])) <= set(form), action
        seen.add(action)
    assert set(OPERATIONS[module].values()) <= seen


def test_sandbox_has_the_listed_actions() -> None:
    assert set(LISTED) - set(ACTIONS) == set()
    more = {
        name: sorted({*action.written, *action.more} - _allowed(name))
        for name, action in ACTIONS.items()
        if name in LISTED
    }
    # written interface [W4.5], and not on the page
    assert {name: found for name, found in more.items() if found} == {"builds": ["username"]}
    less = {name: _allowed(name) - COMMON - ACTIONS[name].written for name in LISTED}
    missing = {name: found - ACTIONS[name].more for name, found in less.items()}
    assert {name: found for name, found in missing.items() if found} == {}


def _post(sandbox: Sandbox, action: str, **form: str) -> requests.Response:
    login = {"user": "analyst", "ltoken": connections.LTOKEN}
    address = sandbox.urls["analysis"] + "/review/api"
    return requests.post(address, data={**login, "action": action, **form}, timeout=10)


def test_sandbox_requires_the_listed_parameters(sandbox: Sandbox) -> None:
    for action, listed in LISTED.items():
        given = {name: NUMBERS.get(name, "toolchain") for name in listed.get("needs", [])}
        if action == "import_project":
            given["project"] = "not there yet"
        for missing in given:
            form = {name: value for name, value in given.items() if name != missing}
            response = _post(sandbox, action, **form)
            wanted = (400, f"Missing required parameter: {missing}")
            assert (response.status_code, response.json()["message"]) == wanted, action


def _is_known(record: Mapping[str, Any], members: Mapping[str, str]) -> bool:
    return set(record) <= set(members) and all(
        isinstance(value, KINDS[members[name]]) for name, value in record.items()
    )


@pytest.mark.parametrize("action", RECORDS)
def test_records_of_the_sandbox_have_the_members_read_by_clients(
    sandbox: Sandbox, action: str
) -> None:
    form = {"project": "toolchain"} if "project" in LISTED[action].get("needs", []) else {}
    response = _post(sandbox, action, **form)
    records: list[dict[str, Any]] = [json.loads(line) for line in response.text.splitlines()]
    assert records
    for record in records:
        assert _is_known(record, RECORDS[action]), record
