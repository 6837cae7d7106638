# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations with a promised number of requests, run once against a sandbox."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

FILES = 1000


@dataclass(frozen=True)
class Operation:
    """A task, the task that prepares it, and the number of its requests and writes."""

    module: str
    arguments: dict[str, Any]
    changed: bool
    requests: int | None = None
    writes: int = 0
    before: dict[str, Any] | None = None
    check: bool = False


@dataclass(frozen=True)
class Counted:
    """Requests and writes of an operation, from the log of the sandbox."""

    operation: Operation
    event: playbook.Event

    @property
    def requests(self) -> int:
        return len(self.event.requests)

    @property
    def writes(self) -> int:
        return len(self.event.writes)

    @property
    def kept(self) -> bool:
        """Return whether the operation succeeded and kept its promise."""
        wanted, promised = self.operation, self.operation.requests
        few = promised in (None, self.requests)
        as_wanted = self.event.result.get("changed") is wanted.changed
        return self.event.status == "ok" and as_wanted and few and self.writes == wanted.writes


_ROLE = {"name": "Developer", "permissions": {"access_source_files": True}}
_PAGE = {"page_id": "1003", "body": "<p>One page per version stands below.</p>"}
_PAGES = {
    "pages": [
        {"page_id": "1001", "body": "<h1>Releases</h1><p>What was released, and how.</p>"},
        _PAGE,
    ]
}
_FILE = {"repo": "generic-staging-local", "path": "counted/one.txt", "content": "one\n"}
_FOLDER = {"repo": "generic-staging-local", "path": "counted/many/", "src": "many/"}
_ARCHIVE = {
    "repo": "generic-staging-local",
    "path": "counted/many",
    "src": "many.zip",
    "explode": True,
}
_ATTACHMENTS = {"issue": "REL-2", "dest": "attachments"}
_BUILD = {"job": "no-parameters", "wait": False}
_MARK = {
    "repo": "generic-snapshot-local",
    "path": "agent/1.0.0/agent.txt",
    "properties": {"qa.status": "passed"},
}
_VERSION = {"project": "REL", "name": "1.1.0"}
_RELEASE = {**_VERSION, "state": "released", "release_date": "2026-05-31", "unresolved": "2.0.0"}
_ISSUE = {"issue": "REL-22", "priority": "High", "labels": [], "status": "Open"}
_MOVE = {"issue": "REL-23", "add": {"labels": ["counted"]}, "status": "In Progress"}
_MANY = {"jql": "project = REL AND labels = deploy", "add": {"labels": ["deploy"]}}
_PROMOTION = {
    "build_name": "agent",
    "build_number": "12",
    "status": "released",
    "target_repo": "generic-release-local",
}
_OLD = {
    "rules": [{"repo": "generic-snapshot-local", "path": "nightly/agent", "created_before": "4w"}]
}

OPERATIONS: dict[str, Operation] = {
    "unchanged analysis_role": Operation("analysis_role", _ROLE, False, requests=1),
    "unchanged attachments": Operation(
        "tracker_attachment", _ATTACHMENTS, False, requests=1, before=_ATTACHMENTS
    ),
    "unchanged tracker_version": Operation("tracker_version", _VERSION, False, requests=1),
    "check mode of a release of a version": Operation(
        "tracker_version", _RELEASE, True, requests=3, check=True
    ),
    "release of a version, whose open issues move": Operation(
        "tracker_version", _RELEASE, True, requests=5, writes=1
    ),
    "unchanged tracker_issue": Operation("tracker_issue", _ISSUE, False, requests=1),
    "unchanged tracker_issue with jql": Operation("tracker_issue", _MANY, False, requests=1),
    "check mode of labels and status of an issue": Operation(
        "tracker_issue", _MOVE, True, requests=3, check=True
    ),
    "unchanged wiki_page": Operation("wiki_page", _PAGE, False, requests=1),
    "labels and status of an issue": Operation("tracker_issue", _MOVE, True, requests=5, writes=2),
    "two unchanged pages of one wiki_page": Operation("wiki_page", _PAGES, False, requests=2),
    "unchanged deploy of one file": Operation(
        "artifact_deploy", _FILE, False, requests=2, before=_FILE
    ),
    f"unchanged folder of {FILES:,} files": Operation(
        "artifact_deploy", _FOLDER, False, requests=2, before=_ARCHIVE
    ),
    "unchanged artifact_properties": Operation(
        "artifact_properties", _MARK, False, requests=1, before=_MARK
    ),
    "cleanup of 4 files": Operation("artifact_cleanup", _OLD, True, requests=6, writes=4),
    "check mode of build_promote": Operation(
        "build_promote", _PROMOTION, True, requests=3, check=True
    ),
    "changed wiki_page": Operation(
        "wiki_page", {**_PAGE, "body": "<p>Other words.</p>"}, True, requests=2, writes=1
    ),
    "ci_job_build with an API token": Operation("ci_job_build", _BUILD, True, writes=1),
}


def count(sandbox: Sandbox, folder: Path, collections: Path | None = None) -> dict[str, Counted]:
    """Run all operations in `folder`, against a sandbox in its `real` flavour and first state.

    `collections` is the collections path, if it differs from that of the tests.
    """
    many = folder / "many"
    many.mkdir()
    with zipfile.ZipFile(folder / "many.zip", "w") as archive:
        for number in range(FILES):
            name, text = f"{number % 10}/{number}.txt", f"file {number}\n"
            (many / name).parent.mkdir(exist_ok=True)
            (many / name).write_text(text, encoding="utf-8")
            archive.writestr(name, text)
    tasks = []
    for name, operation in OPERATIONS.items():
        if operation.before is not None:
            tasks.append(playbook.task(operation.module, operation.before, f"before {name}"))
        tasks.append(
            playbook.task(operation.module, operation.arguments, name, check_mode=operation.check)
        )
    defaults = connections.module_defaults(sandbox.urls, repo={"dialect": "jfrog"})
    play = playbook.play(tasks, module_defaults=defaults)
    controls = {"localhost": sandbox.control}
    run = playbook.run(folder, [play], controls=controls, collections=collections)
    return {name: Counted(each, run.event(name)) for name, each in OPERATIONS.items()}
