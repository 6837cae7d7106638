# SPDX-License-Identifier: GPL-3.0-or-later
"""The 43 actions of the written interface: in the client, in the sandbox, in the documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils.analysis import client
from sandbox.analysis.service import ACTIONS

ROOT = Path(__file__).resolve().parents[3]
PLUGINS = ROOT / "plugins"
ROOM = PLUGINS / "module_utils" / "analysis"
_ROLE = "name create_project manage_roles change_issue_status allowed_status_transitions"
_SOURCE = "sourceURL sourceAdmin sourcePassword"
#: Written interface, 4.5: action to its parameters.
WRITTEN = {
    "import_server_configuration": _SOURCE,
    "license_count": "feature",
    "task_status": "",
    "version": "",
    "roles": "search",
    "create_role": _ROLE,
    "update_role_permissions": _ROLE,
    "delete_role": "name",
    "users": "search limit",
    "create_user": "name password",
    "delete_user": "name",
    "role_assignments": "search",
    "update_role_assignment": "name project account group remove",
    "groups": "search limit",
    "create_group": "name users",
    "update_group": "name users",
    "delete_group": "name",
    "projects": "",
    "import_project": f"project {_SOURCE}",
    "delete_project": "name",
    "update_project": "name new_name",
    "import_status": "",
    "modules": "project",
    "taxonomies": "project",
    "project_configuration": "project build",
    "builds": "project username",
    "defect_types": "project",
    "update_defect_type": "project code enabled",
    "delete_build": "project name",
    "create_module": "project name allow_all paths",
    "update_module": "project name new_name allow_all paths",
    "delete_module": "project name",
    "update_build": "name new_name",
    "issue_details": "project id",
    "search": "project query view limit summary",
    "update_status": "project ids status comment owner",
    "views": "project",
    "create_view": "project name query",
    "delete_view": "project name",
    "update_view": "project name tags",
    "fchurns": "component",
    "metrics": "project query",
    "report": "project build x y",
}


@cache
def documented() -> dict[str, list[tuple[str, str]]]:
    """Action to kind and name of the plugins that use it, by the table of the documentation."""
    text = (ROOT / "docs" / "analysis.md").read_text(encoding="utf-8")
    text = text.partition("\n## Actions\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE)
    assert len({action for action, _users in rows}) == len(rows)
    return {
        action: [
            ("lookup" if lookup else "modules", name)
            for lookup, name in re.findall(r"(lookup )?`(\w+)`", users)
        ]
        for action, users in rows
    }


@cache
def parsed(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def rooms_of(path: Path) -> set[Path]:
    """The files of the analysis room that a file imports, and those that they import."""
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        for imported in _imported(waiting.pop()):
            if imported not in found:
                found.add(imported)
                waiting.append(imported)
    return found


def _imported(path: Path) -> Iterator[Path]:
    for node in parsed(path):
        if isinstance(node, ast.ImportFrom):
            origin = (node.module or "").rpartition(".")[2]
            for name in (origin, *(alias.name for alias in node.names)):
                file = ROOM / f"{name}.py"
                # The client has the table itself, and says nothing of who sends what.
                if file.exists() and name != "client":
                    yield file


def texts(paths: set[Path]) -> set[str]:
    return {
        node.value
        for path in paths
        for node in parsed(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_the_client_and_the_sandbox_have_the_actions_of_the_interface() -> None:
    assert len(WRITTEN) == 43
    assert set(WRITTEN) == client.ACTIONS
    assert set(WRITTEN) == set(ACTIONS)


@pytest.mark.parametrize("action", WRITTEN)
def test_the_sandbox_takes_the_parameters_of_the_interface(action: str) -> None:
    assert ACTIONS[action].written == set(WRITTEN[action].split())
    assert ACTIONS[action].writes is (action in client.WRITING)


def test_the_documentation_names_every_action() -> None:
    assert set(documented()) == set(WRITTEN)


@pytest.mark.parametrize("action", WRITTEN)
def test_an_action_is_used_by_the_modules_that_the_documentation_names(action: str) -> None:
    users = documented()[action]
    assert users
    for kind, name in users:
        path = PLUGINS / kind / f"{name}.py"
        assert action in texts(rooms_of(path)), f"{name} never sends {action}"
