# SPDX-License-Identifier: GPL-3.0-or-later
"""Test versions as a desired state: options of `tracker_version`, or left out by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.projects.tracker_export import (
    TrackerExportOperation,
    TrackerExportOptions,
)
from tests.unit.stub import Reply, Seen, Stub, connection_to

VERSIONS: list[dict[str, Any]] = [
    {"id": "1", "name": "1.10", "released": True, "releaseDate": "2026-01-02", "description": "x"},
    {"id": "2", "name": "2.0"},
    {"id": "3", "name": "old", "released": True, "archived": True},
    {"id": "4", "name": "OLD"},
    {"id": "5", "name": " blank"},
    {"id": "6", "name": "odd", "startDate": "yesterday"},
    {"id": "7", "name": "seven", "releaseDate": 7},
]
COMPONENTS: list[dict[str, Any]] = [
    {"id": "1", "name": "client", "lead": {"name": "alice"}, "assigneeType": "COMPONENT_LEAD"},
    {"id": "2", "name": "server", "description": "x", "archived": False},
    {"id": "3", "name": "a\tb"},
]
USER, GROUP = "atlassian-user-role-actor", "atlassian-group-role-actor"
ROLE = {
    "id": 7,
    "name": "Users",
    "actors": [
        {"type": USER, "name": "boris"},
        {"type": USER, "name": "alice"},
        {"type": GROUP, "actorGroup": {"name": "devs"}},
    ],
}
EMPTY = {"description": "", "start_date": "none", "release_date": "none"}


def export(folder: Path, replies: dict[str, Reply], **options: Any) -> dict[str, Any]:
    def response(seen: Seen) -> Reply:
        return next((replies[end] for end in replies if seen.path.endswith(end)), Reply(404))

    with Stub(response=response) as stub:
        connection = connection_to(stub.url, "tracker", settings={"retries": 0, "dialect": "auto"})
        task = Task(connection, lambda text: None, read_only=True)
        chosen = TrackerExportOptions(dest=str(folder), **options)
        operation = TrackerExportOperation(task, chosen)
        plan = operation.plan()
        operation.apply(plan)
        assert {seen.method for seen in stub.seen} == {"GET"}
    return dict(plan.result)


def test_versions_are_exported_as_module_options(tmp_path: Path) -> None:
    replies = {
        "/project": Reply(body=json.dumps([{"key": "REL"}, {"key": "HID"}])),
        "/project/REL/versions": Reply(body=json.dumps(VERSIONS)),
        "/project/REL/components": Reply(body=json.dumps(COMPONENTS)),
        "/project/REL/role": Reply(body=json.dumps({"Users": "https://x/project/REL/role/7"})),
        "/project/REL/role/7": Reply(body=json.dumps(ROLE)),
        "/project/HID/versions": Reply(403),
    }
    result = export(tmp_path, replies)
    assert yaml.safe_load((tmp_path / "tracker.yml").read_text("utf-8")) == {
        "versions": [
            {
                "project": "REL",
                "name": "1.10",
                "description": "x",
                "start_date": "none",
                "release_date": "2026-01-02",
                "state": "released",
            },
            {"project": "REL", "name": "2.0", **EMPTY, "state": "unreleased"},
            {"project": "REL", "name": "old", **EMPTY, "state": "archived"},
        ],
        "components": [
            {
                "project": "REL",
                "name": "client",
                "description": "",
                "lead": "alice",
                "assignee_type": "component_lead",
            },
            {
                "project": "REL",
                "name": "server",
                "description": "x",
                "lead": "",
                "assignee_type": "project_default",
                "archived": False,
            },
        ],
        "project_roles": [
            {"project": "REL", "role": "Users", "users": ["alice", "boris"], "groups": ["devs"]}
        ],
    }
    kinds = [(one["kind"], one["reason"][:11]) for one in result["left_out"]]
    assert kinds == [
        ("version", "another ver"),
        ("version", "its name is"),
        ("version", "start_date "),
        ("version", "one of its "),
        ("component", "name contai"),
        ("project", "reading the"),
    ]


def test_rejected_named_project_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError) as caught:
        export(tmp_path / "desired", {"/versions": Reply(403)}, projects=["HID"])
    assert caught.value.kind == "permission"
    assert list(tmp_path.iterdir()) == []


def test_hidden_roles_are_omitted(tmp_path: Path) -> None:
    replies = {
        "/project/REL/versions": Reply(body="[]"),
        "/project/REL/components": Reply(body="[]"),
        "/project/REL/role": Reply(403),
    }
    result = export(tmp_path, replies, projects=["REL"])
    assert [(one["kind"], one["name"]) for one in result["left_out"]] == [("roles", "REL")]
