# SPDX-License-Identifier: GPL-3.0-or-later
"""Test what operations tell about the last change of their objects, with responses of servers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs.ci_job import (
    CiJobOperation,
    CiJobOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_node import (
    CiNodeOperation,
    CiNodeOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    resolve,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.authorship import (
    Attributed,
    Author,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.cleanup.artifact_cleanup import (
    ArtifactCleanupOperation,
    ArtifactCleanupOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing.tracker_issue import (
    TrackerIssueOperation,
    TrackerIssueOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.projects.tracker_version import (
    TrackerVersionOperation,
    TrackerVersionOptions,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from sandbox.client import Sandbox
from tests.helpers import connections
from tests.helpers.options import build
from tests.unit.stub import Reply, Seen, Stub, connection_to


def _authors(task: Task, operation: Any, options: Any) -> list[Author]:
    made = operation(task, options)
    assert isinstance(made, Attributed)
    plan: Any = made.plan()  # type: ignore[attr-defined]
    assert plan.changed
    return list(made.authors(plan))


def _task(url: str, service: str, **login: Any) -> Task:
    settings = {"retries": 0, "dialect": "jfrog"} if service == "repo" else {"retries": 0}
    return Task(connection_to(url, service, settings=settings, **login), print, read_only=True)


JOB = {"fullName": "agent", "buildable": True}
XML = "<project><description>old</description></project>"
HISTORY = [
    {"date": "2026-11-26_05-00-00", "user": "Alice A", "userID": "alice"},
    {"date": "2026-11-27_05-00-00", "user": "Bob B", "userID": "bob"},
    {"date": None, "userID": "mallory"},
]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(body={"jobConfigHistory": HISTORY}), Author("bob")),
        (Reply(body={"jobConfigHistory": []}), Author()),
        (Reply(body={"jobConfigHistory": "x"}), Author()),
        (Reply(body="<html/>"), Author()),
        (Reply(404), Author()),
        (Reply(403), Author()),
        (Reply(500), Author()),
    ],
)
def test_history_plugin_names_who_changed_a_job(reply: Reply, expected: Author) -> None:
    def respond(seen: Seen) -> Reply:
        if "jobConfigHistory" in seen.path:
            return reply
        return Reply(body=XML) if seen.path.endswith("config.xml") else Reply(body=JOB)

    options = build(CiJobOptions, job="agent", config=XML.replace("old", "new"))
    with Stub(response=respond) as stub:
        assert _authors(_task(stub.url, "ci"), CiJobOperation, options) == [expected]


def test_history_plugin_names_who_changed_a_node() -> None:
    def respond(seen: Seen) -> Reply:
        if seen.path.endswith("/computer/agent/jobConfigHistory/api/json"):
            return Reply(body={"jobConfigHistory": HISTORY})
        if seen.path.endswith("/computer/agent/config.xml"):
            return Reply(body="<slave><name>agent</name><numExecutors>1</numExecutors></slave>")
        return Reply(body={"displayName": "agent", "numExecutors": 1})

    options = build(CiNodeOptions, name="agent", executors=4)
    with Stub(response=respond) as stub:
        assert _authors(_task(stub.url, "ci"), CiNodeOperation, options) == [Author("bob")]


def _record(number: str, by: str, day: int, kind: str = "VERSION") -> dict[str, Any]:
    item = {"id": number, "name": "8.2", "typeName": kind}
    return {"authorKey": by, "created": f"2026-11-{day}T05:00:00.000+0000", "objectItem": item}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            Reply(
                body={
                    "records": [
                        _record("7", "alice", 26),
                        _record("7", "bob", 27),
                        # of other objects with the name
                        _record("8", "mallory", 28),
                        _record("7", "mallory", 28, "PROJECT"),
                    ]
                }
            ),
            Author("bob", "2026-11-27T05:00:00.000Z"),
        ),
        (Reply(body={"records": []}), Author()),
        (Reply(body="[]"), Author()),
        (Reply(403), Author()),
    ],
)
def test_audit_log_names_who_changed_a_version(reply: Reply, expected: Author) -> None:
    version = {"id": "7", "name": "8.2", "description": "one", "self": "https://t/version/7"}

    def respond(seen: Seen) -> Reply:
        return (
            reply
            if seen.path.endswith("/rest/api/2/auditing/record")
            else Reply(body=json.dumps([version]))
        )

    options = build(TrackerVersionOptions, project="REL", name="8.2", description="two")
    with Stub(response=respond) as stub:
        assert _authors(_task(stub.url, "tracker"), TrackerVersionOperation, options) == [expected]


@pytest.fixture(scope="module")
def sandbox() -> Any:
    with Sandbox.start(flavour="real") as started:
        yield started


def _connection(sandbox: Sandbox, service: str) -> Any:
    login, times = connections.LOGINS[service], {"timeout": 10.0, "retries": 0}
    options = {"url": sandbox.urls[service], **login, **times, "retry_max_wait": 0.0}
    options |= (
        {"dialect": "jfrog", "vendor": "artifactory"} if service == "repo" else {"dialect": "auto"}
    )
    return resolve(SERVICES[service], options.get, environ={})


def test_history_names_who_changed_an_issue(sandbox: Sandbox) -> None:
    task = Task(_connection(sandbox, "tracker"), print, read_only=False)
    first = build(TrackerIssueOptions, issue="REL-1", summary="By hand")
    made = TrackerIssueOperation(task, first)
    made.apply(made.plan())
    again = build(TrackerIssueOptions, issue="REL-1", summary="Wanted")
    (found,) = _authors(task, TrackerIssueOperation, again)
    assert found.by
    assert found.at.endswith("Z")


def test_server_names_who_modified_an_item(sandbox: Sandbox) -> None:
    rules = [{"repo": "generic-snapshot-local", "path": "nightly/agent", "created_before": "1d"}]
    options = build(ArtifactCleanupOptions, rules=rules, max_deletions=50)
    found = _authors(
        Task(_connection(sandbox, "repo"), print, read_only=True), ArtifactCleanupOperation, options
    )
    assert found
    assert all(author.by and author.at.endswith("Z") for author in found)
