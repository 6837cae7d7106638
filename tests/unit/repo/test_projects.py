# SPDX-License-Identifier: GPL-3.0-or-later
"""Test builds and repositories of JFrog Projects [repo-32]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Operation
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds import (
    records,
    trace,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds.build_info import (
    BuildInfoOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds.build_promote import (
    BuildPromoteOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds.build_publish import (
    BuildPublishOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds.build_record import (
    BuildRecordOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds.build_retention import (
    BuildRetentionOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.cleanup.artifact_trash import (
    ArtifactTrashOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items.repo_info import (
    RepoInfoOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.transfer import (
    artifact_download,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply

BUILD = {"build_name": "app", "build_number": "7"}
OURS = {**BUILD, "project": "pay"}
LIST, RECORD = "GET /api/build/app?project=pay", "GET /api/build/app/7?project=pay"
MINE, THEIRS = "a" * 40, "b" * 40
MODULES = [{"id": "app", "artifacts": [{"name": "a.zip", "sha1": MINE}]}]
LOCAL = Reply(body={"key": "rel", "rclass": "local"})
AQL = "POST /api/search/aql"

Make = Callable[..., Operation]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_REWRITE", 0)


def record(**fields: Any) -> Reply:
    return Reply(body={"buildInfo": {"name": "app", "number": "7", **fields}})


def listed(*numbers: str) -> Reply:
    runs = [
        {"uri": f"/{number}", "started": f"2026-01-0{number}T00:00:00.000+0000"}
        for number in numbers
    ]
    return Reply(body={"buildsNumbers": runs})


def test_build_info_names_the_project(server: Server) -> None:
    server.on |= {LIST: listed("7"), RECORD: record()}
    _plan, values = server.run(BuildInfoOperation, OURS)
    assert values["build"]["number"] == "7"
    assert server.asked == [LIST, RECORD]


def test_promotion_names_the_project(server: Server) -> None:
    promote = "POST /api/build/promote/app/7?project=pay"
    done = record(statuses=[{"status": "ok", "timestamp": "2026-01-01T00:00:00.000+0000"}])
    server.on |= {RECORD: [record(), done], promote: Reply(body={"messages": []})}
    server.run(BuildPromoteOperation, {**OURS, "status": "ok"})
    assert server.asked == [RECORD, promote, RECORD]


def test_dry_run_names_the_project(server: Server) -> None:
    promote = "POST /api/build/promote/app/7?project=pay"
    known = Reply(200, record().body, headers={"X-JFrog-Version": "Artifactory/7.77.5"})
    server.on |= {RECORD: known, promote: Reply(body={"messages": []})}
    server.run(BuildPromoteOperation, {**OURS, "status": "ok"}, check=True)
    assert server.asked[-1] == promote


def test_later_promotion_of_another_project_is_ignored(server: Server) -> None:
    server.on[RECORD] = record(statuses=[{"status": "b", "timestamp": "2026-01-01T00:00:00.000Z"}])
    later = {**BUILD, "status": "b"}
    given = {**OURS, "status": "a", "followed_by": [later]}
    assert server.run(BuildPromoteOperation, given, check=True)[0].changed
    given = {**OURS, "status": "a", "followed_by": [{**later, "project": "pay"}]}
    assert not server.run(BuildPromoteOperation, given, check=True)[0].changed


def test_files_of_equally_named_build_do_not_count_as_promoted(server: Server) -> None:
    rows = [
        {"repo": "rel", "path": ".", "name": "a.zip", "actual_sha1": MINE},
        {"repo": "dev", "path": ".", "name": "a.zip", "actual_sha1": THEIRS},
    ]
    server.on |= {
        RECORD: record(modules=MODULES),
        "GET /api/build/app/7": record(modules=MODULES),
        "GET /api/repositories/rel": LOCAL,
        AQL: Reply(body={"results": rows, "range": {}}),
    }
    given = {"target_repo": "rel", "copy": False}
    assert not server.run(BuildPromoteOperation, {**OURS, **given})[0].changed
    assert server.run(BuildPromoteOperation, {**BUILD, **given}, check=True)[0].changed


def test_publishing_names_the_project(server: Server) -> None:
    put = "PUT /api/build?project=pay"
    digests = {"sha1": MINE, "sha256": "c" * 64}
    artifact = {"name": "a.zip", "type": "zip", **digests}
    stored = record(modules=[{"id": "app", "type": "generic", "artifacts": [artifact]}])
    server.on |= {RECORD: [Reply(404, "No build was found"), stored], put: Reply(204)}
    server.on[RECORD] = [Reply(404, "No build was found")] * 2 + [stored]
    given = {**OURS, "artifacts": [{"name": "a.zip", **digests}]}
    server.run(BuildPublishOperation, given)
    assert server.asked == [RECORD, RECORD, put, RECORD]


def test_retention_names_the_project(server: Server) -> None:
    discard = "POST /api/build/retention/app?async=false&project=pay"
    old = "GET /api/build/app/1?project=pay"
    server.on |= {LIST: [listed("1", "2"), listed("2")], old: record(), discard: Reply(204)}
    _plan, values = server.run(
        BuildRetentionOperation, {"build_name": "app", "project": "pay", "count": 1}
    )
    assert values["discarded"] == ["1"]
    assert server.asked == [LIST, old, discard, LIST]


def test_deletion_names_the_project(server: Server) -> None:
    delete = "DELETE /api/build/app?project=pay&buildNumbers=1"
    server.on |= {LIST: [listed("1", "2"), listed("2")], delete: Reply(204)}
    given = {"build_name": "app", "project": "pay", "build_numbers": ["1"]}
    server.run(BuildRecordOperation, given)
    assert server.asked == [LIST, delete, LIST]


def test_deletion_by_body_names_the_project(server: Server) -> None:
    delete = "POST /api/build/delete"
    both, left = listed("1", "2"), listed("2")
    odd = {"uri": "/1%2C5", "started": "2026-01-01T00:00:00.000+0000"}
    both = Reply(body={"buildsNumbers": [odd]})
    server.on |= {LIST: [both, left], delete: Reply(204)}
    given = {"build_name": "app", "project": "pay", "build_numbers": ["1,5"]}
    server.run(BuildRecordOperation, given)
    assert server.bodies(delete)[0]["project"] == "pay"


def test_download_names_the_project(server: Server, tmp_path: Any) -> None:
    rows = [
        {"repo": "dev", "path": ".", "name": "a.zip", "size": 1, "actual_sha1": MINE},
        {"repo": "dev", "path": ".", "name": "b.zip", "size": 1, "actual_sha1": THEIRS},
    ]
    server.on |= {RECORD: record(modules=MODULES), AQL: Reply(body={"results": rows, "range": {}})}
    operation = artifact_download.ArtifactDownloadOperation
    _plan, values = server.run(operation, {**OURS, "dest": str(tmp_path)}, check=True)
    assert [file["path"] for file in values["files"]] == ["a.zip"]


def test_trash_of_builds_names_the_project(server: Server) -> None:
    clean, trash = "DELETE /api/trash/clean/pay-build-info", "GET /api/storage/auto-trashcan"
    ours = Reply(body={"children": [{"uri": "/pay-build-info"}]})
    server.on |= {trash: [ours, Reply(body={"children": []})], clean: Reply(204)}
    server.run(ArtifactTrashOperation, {"state": "builds_clean", "project": "pay"})
    assert server.asked == [trash, clean, trash]


@pytest.mark.parametrize(
    "given", [{"state": "empty"}, {"state": "clean", "repo": "r", "path": "p"}]
)
def test_project_is_rejected_for_other_kinds_of_trash(
    server: Server, given: dict[str, Any]
) -> None:
    error = server.fails(ArtifactTrashOperation, {**given, "project": "pay"})
    assert error.message == "project requires state=builds_clean: set it, or omit project"
    error = server.fails(ArtifactTrashOperation, {"state": "builds_clean", "project": "a/b"})
    assert error.kind == "invalid"


def test_default_project_uses_the_default_repository(server: Server) -> None:
    assert server.client().builds_key("default") == "artifactory-build-info"
    assert server.client().builds_key(None) == "artifactory-build-info"


def test_repositories_are_listed_by_project(server: Server) -> None:
    rows, single = "GET /api/repositories?project=pay", "GET /api/repositories/pay-dev"
    server.on[rows] = Reply(body=b'[{"key": "pay-dev", "type": "LOCAL"}]')
    server.on[single] = Reply(body={"key": "pay-dev", "rclass": "local"})
    _plan, values = server.run(RepoInfoOperation, {"project": "pay"})
    assert [repository["key"] for repository in values["repositories"]] == ["pay-dev"]
    _plan, values = server.run(RepoInfoOperation, {"project": "pay", "repo": "pay-dev"})
    assert values["repositories"][0]["rclass"] == "local"
    error = server.fails(RepoInfoOperation, {"project": "pay", "repo": "other"})
    assert error.kind == "not_found"
    assert "project is 'pay'" in error.message


def test_trace_names_the_project(server: Server) -> None:
    server.on[RECORD] = record()
    found = trace.origin(server.task(), "build:app/7", "pay")
    assert found.build is not None
    assert found.build["number"] == "7"


def test_trace_of_a_repository_is_incomplete(server: Server) -> None:
    with pytest.raises(ToolchainError, match="'dev/' is incomplete: write repo/path"):
        trace.origin(server.task(), "artifact:dev/")
    assert server.asked == []


def test_trace_of_an_item_names_the_project(server: Server) -> None:
    server.on["HEAD /dev/a.zip"] = Reply(headers={"X-Checksum-Sha1": MINE})
    marks = {"build.name": ["app"], "build.number": ["7"]}
    server.on["GET /api/storage/dev/a.zip?properties"] = Reply(body={"properties": marks})
    assert trace.origin(server.task(), "artifact:dev/a.zip").build is None
    assert "outside projects: set project" in server.warnings[-1]
    assert trace.origin(server.task(), "artifact:dev/a.zip", "pay").build is None
    assert "in the project 'pay'" in server.warnings[-1]


DELETION = {"build_name": "app", "build_numbers": ["7"]}
MISSING: list[tuple[Make, dict[str, Any]]] = [
    (BuildInfoOperation, {"build_name": "app"}),
    (BuildInfoOperation, BUILD),
    (BuildPromoteOperation, {**BUILD, "status": "ok"}),
    (BuildRetentionOperation, {"build_name": "app", "count": 1}),
    (artifact_download.ArtifactDownloadOperation, {**BUILD, "dest": "fetched"}),
]


@pytest.mark.parametrize(("make", "given"), MISSING)
def test_missing_build_error_mentions_projects(
    server: Server, make: Make, given: dict[str, Any]
) -> None:
    server.on["GET /api/repositories"] = Reply(body=b"[]")
    error = server.fails(make, given)
    assert error.kind == "not_found"
    assert "builds of a project are only found if the option project is set" in error.message
    error = server.fails(make, {**given, "project": "pay"})
    assert error.kind == "not_found"
    assert "project is 'pay'" in error.message


def test_name_without_builds_suggests_missing_ok(server: Server) -> None:
    server.on["GET /api/repositories"] = Reply(body=b"[]")
    given = {"build_name": "app", "count": 1}
    assert "missing_ok: true" in server.fails(BuildRetentionOperation, given).message
    plan, _values = server.run(BuildRetentionOperation, {**given, "missing_ok": True})
    assert not plan.changed
    assert server.warnings == ["there are no builds of 'app'"]


@pytest.mark.parametrize(
    ("project", "where"), [({}, "outside projects: set"), ({"project": "pay"}, "project 'pay'")]
)
def test_absent_record_of_an_unknown_name_is_unchanged(
    server: Server, project: dict[str, str], where: str
) -> None:
    server.on["GET /api/repositories"] = Reply(body=b"[]")
    plan, values = server.run(BuildRecordOperation, {**DELETION, **project})
    assert (plan.changed, values["deleted"]) == (False, [])
    (said,) = server.warnings
    assert where in said


@pytest.mark.parametrize(
    ("make", "given"), [*MISSING[:4], (BuildRecordOperation, DELETION), (RepoInfoOperation, {})]
)
def test_server_without_projects_is_rejected(
    server: Server, make: Make, given: dict[str, Any]
) -> None:
    server.dialect = "generic"
    server.on |= {LIST: listed("7"), RECORD: record()}
    server.on["GET /api/repositories?project=pay"] = Reply(body=b"[]")
    error = server.fails(make, {**given, "project": "pay"})
    assert error.kind == "rejected"
    assert "does not support projects" in error.message


@pytest.mark.parametrize(
    ("make", "given"), [*MISSING, (BuildRecordOperation, DELETION), (RepoInfoOperation, {})]
)
def test_blank_project_is_invalid(server: Server, make: Make, given: dict[str, Any]) -> None:
    with pytest.raises(ToolchainError, match="project"):
        server.run(make, {**given, "project": " "})
    assert server.asked == []
