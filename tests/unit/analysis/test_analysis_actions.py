# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the 43 actions of the written interface: in the client, in the sandbox, in the
documentation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis import client
from sandbox.analysis.service import ACTIONS

ROOT = Path(__file__).resolve().parents[3]
PLUGINS = ROOT / "plugins"
PACKAGE = PLUGINS / "module_utils" / "_lib" / "analysis"
_ROLE = "name create_project manage_roles change_issue_status allowed_status_transitions"
_SOURCE = "sourceURL sourceAdmin sourcePassword"
#: Written interface [W4.5]: action to its parameters.
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
#: Modules that only read: they share code with modules that write, but do not send those actions.
READERS = {"analysis_export", "analysis_info", "analysis_issue_info", "analysis_report_info"}
#: `projects` is for the import of a project only. `analysis_config` only reads builds, because a
#: project with protected builds is not deleted.
NEVER_SENT = {
    "analysis_server_import": {"projects"},
    "analysis_config": {"delete_build", "update_build"},
}


@cache
def documented() -> dict[str, list[tuple[str, str]]]:
    """Map each action to kind and name of its plugins, from the documented table."""
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
    """Return the files of the analysis package that a file imports directly or indirectly."""
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
                # The client contains the whole table of actions, and does not show which plugin
                # sends them.
                if name != "client":
                    yield from PACKAGE.rglob(f"{name}.py")


def actions_of(path: Path) -> set[str]:
    """Return the actions that a file sends: named in a call or in a table of calls.

    The names of actions that write have no other meaning, except as keys of a mapping: two
    permissions have such names.
    """
    keys = [key for node in parsed(path) if isinstance(node, ast.Dict) for key in node.keys]
    constants = [
        node for node in parsed(path) if isinstance(node, ast.Constant) and node not in keys
    ]
    called = [
        node.args[0]
        for node in parsed(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("Call", "TopicQuery", "ReportKind")
        and node.args
    ]
    return {
        str(node.value)
        for node in constants
        if node in called or (isinstance(node.value, str) and node.value in client.WRITING)
    }


@cache
def sent_by(kind: str, name: str) -> set[str]:
    """Return the actions that a plugin can send."""
    path = PLUGINS / kind / f"{name}.py"
    found = {action for room in rooms_of(path) for action in actions_of(room)}
    if kind == "lookup" or name in READERS:
        return found & client.READING
    return found - NEVER_SENT.get(name, set())


def test_client_and_sandbox_have_the_documented_actions() -> None:
    assert len(WRITTEN) == 43
    assert set(WRITTEN) == client.ACTIONS
    assert set(WRITTEN) == set(ACTIONS)


@pytest.mark.parametrize("action", WRITTEN)
def test_sandbox_accepts_the_documented_parameters(action: str) -> None:
    assert ACTIONS[action].written == set(WRITTEN[action].split())
    assert ACTIONS[action].writes is (action in client.WRITING)


def test_documentation_names_every_action() -> None:
    assert set(documented()) == set(WRITTEN)


def plugins() -> list[tuple[str, str]]:
    return [
        (kind, path.stem)
        for kind in ("modules", "lookup")
        for path in sorted((PLUGINS / kind).glob("analysis_*.py"))
    ]


@pytest.mark.parametrize(("kind", "name"), plugins())
def test_plugin_sends_its_documented_actions(kind: str, name: str) -> None:
    reported = {action for action, users in documented().items() if (kind, name) in users}
    assert reported == sent_by(kind, name)


def test_documentation_names_only_existing_plugins() -> None:
    assert {user for users in documented().values() for user in users} == set(plugins())
