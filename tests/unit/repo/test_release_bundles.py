# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the creation and deletion of release bundles [repo-33]."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds import records
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.bundles.release_bundle import (
    ReleaseBundleOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.bundles.release_bundle_info import (
    ReleaseBundleInfoOperation,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

API = "/lifecycle/api/v2"
EXISTS, STATUS = (
    f"GET {API}/release_bundle/existence/agent/1",
    f"GET {API}/release_bundle/statuses/agent/1",
)
RECORD, DELETE = (
    f"GET {API}/release_bundle/records/agent/1",
    f"DELETE {API}/release_bundle/records/agent/1?async=true",
)
CREATE = f"POST {API}/release_bundle?async=true"
OLD, NEW = "a" * 64, "b" * 64
ITEM = {"repo": "dev", "path": "a.zip"}
HEAD = "HEAD /dev/a.zip"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_REWRITE", 0)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)


def bundle(**given: Any) -> dict[str, Any]:
    return {"name": "agent", "version": "1", "sources": {"artifacts": [ITEM]}, **given}


def there(exists: bool = True) -> Reply:
    return Reply(body={"exists": exists})


def status(name: str, *messages: Any) -> Reply:
    return Reply(body={"status": name, "messages": list(messages)})


def record(*digests: str, **fields: Any) -> Reply:
    files = [{"path": f"{digest[0]}.zip", "checksum": digest, "size": 1} for digest in digests]
    return Reply(body={"created_by": "u", "created": "then", "artifacts": files, **fields})


def item(digest: str) -> Reply:
    return Reply(headers={"X-Checksum-Sha256": digest, "X-Checksum-Sha1": "c" * 40})


def completed(server: Server, *digests: str) -> None:
    server.on |= {EXISTS: there(), STATUS: status("COMPLETED"), RECORD: record(*digests)}


def absent(server: Server, *after: Reply) -> None:
    """Let a bundle be absent until it is created."""
    server.on |= {
        EXISTS: there(False),
        HEAD: item(OLD),
        CREATE: Reply(202, {"created": "then"}),
        STATUS: [*after, status("COMPLETED")],
        RECORD: record(OLD),
    }


def test_creation_is_awaited(server: Server) -> None:
    absent(server, Reply(404, {"errors": [{"code": "NOT_FOUND"}]}), status("STARTED"))
    given = bundle(signing_key="pair", skip_docker_manifest_resolution=True)
    plan, values = server.run(ReleaseBundleOperation, given)
    assert plan.action == "create"
    assert values["bundle"]["status"] == "COMPLETED"
    assert values["bundle"]["artifacts"] == 1
    assert server.asked == [EXISTS, HEAD, CREATE, STATUS, STATUS, STATUS, RECORD]
    assert server.bodies(CREATE) == [
        {
            "release_bundle_name": "agent",
            "release_bundle_version": "1",
            "skip_docker_manifest_resolution": True,
            "source_type": "artifacts",
            "source": {"artifacts": [{"path": "dev/a.zip"}]},
        }
    ]
    sent = next(seen for seen in server.stub.seen if seen.method == "POST")
    assert sent.headers["X-JFrog-Signing-Key-Name"] == "pair"


def test_creation_is_not_awaited_without_wait(server: Server) -> None:
    absent(server, status("PROCESSING"))
    _plan, values = server.run(ReleaseBundleOperation, bundle(wait=False))
    assert values["bundle"]["status"] == "PROCESSING"
    assert server.asked == [EXISTS, HEAD, CREATE, STATUS]


def test_timeout_is_an_error(server: Server) -> None:
    absent(server)
    server.on[STATUS] = status("PENDING")
    error = server.fails(ReleaseBundleOperation, bundle(wait_timeout=0.01))
    assert error.kind == "timeout"
    assert "the server still reports PENDING" in error.message
    assert error.result["changed"] is True


@pytest.mark.parametrize("word", ["FAILED", "REJECTED"])
def test_failed_creation_is_an_error(server: Server, word: str) -> None:
    absent(server, status(word, {"source": "x", "text": "no such file"}, "and more"))
    error = server.fails(ReleaseBundleOperation, bundle())
    assert error.kind == "failed"
    assert f"{word}: no such file; and more" in error.message
    assert error.result["changed"] is True


def test_check_mode_writes_nothing(server: Server) -> None:
    absent(server)
    plan, values = server.run(ReleaseBundleOperation, bundle(), check=True)
    assert plan.changed
    assert values["bundle"]["status"] is None
    assert server.asked == [EXISTS, HEAD]


def test_lost_response_to_creation_is_verified(server: Server) -> None:
    absent(server)
    server.on[EXISTS] = [there(False), there()]
    server.on[CREATE] = Reply(cut=True)
    _plan, values = server.run(ReleaseBundleOperation, bundle())
    assert values["bundle"]["status"] == "COMPLETED"
    assert server.asked.count(CREATE) == 1


def test_equal_version_is_unchanged(server: Server) -> None:
    completed(server, OLD)
    server.on[HEAD] = item(OLD)
    plan, values = server.run(ReleaseBundleOperation, bundle())
    assert not plan.changed
    assert values["bundle"] == {
        "name": "agent",
        "version": "1",
        "project": None,
        "repository_key": "release-bundles-v2",
        "status": "COMPLETED",
        "created": "then",
        "created_by": "u",
        "artifacts": 1,
    }
    assert server.asked == [EXISTS, STATUS, RECORD, HEAD]


@pytest.mark.parametrize(
    ("recorded", "words"),
    [
        ([NEW], "it lacks dev/a.zip; it also has b.zip"),
        ([OLD, NEW], "it also has b.zip"),
        ([], "lacks"),
    ],
)
def test_different_content_is_a_conflict(server: Server, recorded: list[str], words: str) -> None:
    completed(server, *recorded)
    server.on[HEAD] = item(OLD)
    error = server.fails(ReleaseBundleOperation, bundle())
    assert error.kind == "conflict"
    assert words in error.message


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (["a.zip", "b/a.zip"], None),
        (["a.zip"], "it lacks dev/b/a.zip"),
        (["b/a.zip"], "it lacks dev/a.zip"),
        (["dev/b/a.zip"], "it lacks dev/a.zip"),
        (["a.zip", "b/a.zip", "c/a.zip"], "it also has c/a.zip"),
    ],
)
def test_artifacts_with_the_same_content_are_counted(
    server: Server, paths: list[str], words: str | None
) -> None:
    completed(server)
    server.on[RECORD] = Reply(body={"artifacts": [{"path": p, "checksum": OLD} for p in paths]})
    server.on |= {HEAD: item(OLD), "HEAD /dev/b/a.zip": item(OLD)}
    given = bundle(sources={"artifacts": [ITEM, {"repo": "dev", "path": "b/a.zip"}]})
    if words is None:
        assert not server.run(ReleaseBundleOperation, given)[0].changed
    else:
        error = server.fails(ReleaseBundleOperation, given)
        assert (error.kind, words in error.message) == ("conflict", True)


def test_different_content_is_replaced_with_force(server: Server) -> None:
    completed(server, NEW)
    server.on |= {HEAD: item(OLD), DELETE: Reply(204), CREATE: Reply(201, {})}
    server.on |= {EXISTS: [there(), there(False)], RECORD: [record(NEW), record(OLD)]}
    plan, values = server.run(ReleaseBundleOperation, bundle(replace=True))
    assert plan.action == "update"
    assert values["bundle"]["artifacts"] == 1
    assert server.asked.index(DELETE) < server.asked.index(CREATE)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("check", [False, True])
def test_wrong_digest_is_rejected_before_any_write(
    server: Server, replace: bool, exists: bool, check: bool
) -> None:
    completed(server, NEW)
    server.on |= {EXISTS: there(exists), HEAD: item(NEW)}
    given = bundle(replace=replace, sources={"artifacts": [{**ITEM, "sha256": OLD.upper()}]})
    operation = server.operation(ReleaseBundleOperation, given, check=check)
    with pytest.raises(ToolchainError, match=f"has the sha256 {NEW}, not {OLD}"):
        operation.plan()
    assert {seen.method for seen in server.stub.seen} <= {"GET", "HEAD"}


def test_missing_source_is_not_found(server: Server) -> None:
    server.on[EXISTS] = there(False)
    error = server.fails(ReleaseBundleOperation, bundle())
    assert (error.kind, "dev/a.zip" in error.message) == ("not_found", True)


@pytest.mark.parametrize("path", ["a.zip", "dev/a.zip"])
def test_moved_source_is_unchanged(server: Server, path: str) -> None:
    completed(server)
    files = [{"path": path, "sha256": OLD}]
    server.on[RECORD] = Reply(body={"artifacts": files})
    assert not server.run(ReleaseBundleOperation, bundle())[0].changed


def test_bundle_without_digests_is_not_compared(server: Server) -> None:
    completed(server, NEW)
    server.on[HEAD] = Reply()
    assert not server.run(ReleaseBundleOperation, bundle())[0].changed


def test_image_layers_are_not_a_difference(server: Server) -> None:
    completed(server, OLD, NEW)
    server.on["HEAD /docker/app/1/manifest.json"] = item(OLD)
    image = {"artifacts": [{"repo": "docker", "path": "app/1/manifest.json"}]}
    given = bundle(sources=image)
    assert not server.run(ReleaseBundleOperation, given)[0].changed
    error = server.fails(ReleaseBundleOperation, {**given, "skip_docker_manifest_resolution": True})
    assert error.kind == "conflict"


@pytest.mark.parametrize("word", ["PENDING", "STARTED", "processing"])
def test_bundle_in_creation_is_awaited(server: Server, word: str) -> None:
    completed(server, OLD)
    server.on |= {STATUS: [status(word), status(word), status("COMPLETED")], HEAD: item(OLD)}
    operation = server.operation(ReleaseBundleOperation, bundle())
    plan = operation.plan()
    assert not plan.changed
    assert plan.waits
    assert operation.apply(plan)["bundle"]["status"] == "COMPLETED"
    assert CREATE not in server.asked


def test_bundle_created_by_another_client_with_other_content_is_a_conflict(server: Server) -> None:
    completed(server, NEW)
    server.on |= {STATUS: [status("STARTED"), status("COMPLETED")], HEAD: item(OLD)}
    operation = server.operation(ReleaseBundleOperation, bundle())
    plan = operation.plan()
    with pytest.raises(ToolchainError, match="different content") as caught:
        operation.apply(plan)
    assert caught.value.result["changed"] is False


@pytest.mark.parametrize(
    ("word", "kind"), [("FAILED", "failed"), ("REJECTED", "failed"), ("DRAFT", "conflict")]
)
def test_incomplete_version_is_an_error(server: Server, word: str, kind: str) -> None:
    absent(server)
    server.on |= {EXISTS: [there()] * 2 + [there(False)], DELETE: Reply(200, {})}
    server.on[STATUS] = status(word, "why")
    error = server.fails(ReleaseBundleOperation, bundle())
    assert error.kind == kind
    assert f"{word}: why" in error.message
    server.on[STATUS] = [status(word), status("COMPLETED")]
    assert server.run(ReleaseBundleOperation, bundle(replace=True))[0].action == "update"


def test_version_in_deletion_is_a_conflict(server: Server) -> None:
    server.on |= {EXISTS: there(), STATUS: status("DELETING")}
    assert server.fails(ReleaseBundleOperation, bundle()).kind == "conflict"


def test_deletion_is_awaited(server: Server) -> None:
    server.on |= {EXISTS: [there(), there(), there(False)], STATUS: status("DELETING")}
    server.on |= {STATUS: [status("COMPLETED"), status("DELETING")], DELETE: Reply(200, {})}
    given = {"name": "agent", "version": "1", "state": "absent"}
    plan, values = server.run(ReleaseBundleOperation, given)
    assert plan.action == "delete"
    assert values["bundle"]["status"] is None
    assert server.asked == [EXISTS, STATUS, DELETE, EXISTS, STATUS, EXISTS]


def test_missing_bundle_is_absent(server: Server) -> None:
    server.on[EXISTS] = there(False)
    given = {"name": "agent", "version": "1", "state": "absent"}
    assert not server.run(ReleaseBundleOperation, given)[0].changed
    server.on[EXISTS] = Reply(404, {"errors": [{"code": "NOT_FOUND"}]})
    assert not server.run(ReleaseBundleOperation, given)[0].changed


@pytest.mark.parametrize("state", ["present", "absent"])
def test_missing_interface_is_not_absent(server: Server, state: str) -> None:
    server.on[EXISTS] = Reply(404, {"errors": [{"status": 404, "message": "Not Found"}]})
    error = server.fails(ReleaseBundleOperation, bundle(state=state))
    assert error.kind == "not_found"
    assert "requires Artifactory 7.63.2 or newer" in error.message


def test_sources_of_all_kinds_are_sent(server: Server) -> None:
    absent(server)
    project, theirs = "?project=pay", f"{API}/release_bundle"
    modules = [
        {
            "id": "m",
            "artifacts": [{"name": "a.zip", "sha1": "c" * 40, "sha256": OLD}],
            "dependencies": [{"id": "d.zip", "sha1": "d" * 40}],
        }
    ]
    built = Reply(body={"buildInfo": {"name": "app", "number": "7", "modules": modules}})
    row = {"repo": "dev", "path": ".", "name": "d", "actual_sha1": "d" * 40, "sha256": NEW}
    create = f"POST {theirs}?project=pay&async=true"
    server.on |= {
        f"GET {theirs}/existence/agent/1{project}": there(False),
        f"GET {theirs}/statuses/agent/1{project}": status("COMPLETED"),
        f"GET {theirs}/records/agent/1{project}": record(OLD, NEW, "e" * 64),
        f"GET {theirs}/records/lib/2{project}": record("e" * 64),
        "GET /api/build/app/7?project=pay": built,
        "GET /api/build/app/8": built,
        "POST /api/search/aql": Reply(body={"results": [row], "range": {}}),
        create: Reply(202, {}),
    }
    sources = {
        "builds": [
            {"build_name": "app", "build_number": "7", "include_dependencies": True},
            {
                "build_name": "app",
                "build_number": "8",
                "build_repository": "artifactory-build-info",
            },
        ],
        "bundles": [{"name": "lib", "version": "2"}],
    }
    server.run(ReleaseBundleOperation, bundle(project="pay", sources=sources))
    found = server.bodies(create)[0]["sources"]
    assert [one["source_type"] for one in found] == ["builds", "release_bundles"]
    assert [build["build_repository"] for build in found[0]["builds"]] == [
        "pay-build-info",
        "artifactory-build-info",
    ]
    assert found[0]["builds"][0]["include_dependencies"] is True
    assert found[1]["release_bundles"] == [
        {
            "project": "pay",
            "project_key": "pay",
            "repository_key": "pay-release-bundles-v2",
            "release_bundle_name": "lib",
            "release_bundle_version": "2",
        }
    ]


def test_default_project_has_the_build_records_outside_projects(server: Server) -> None:
    absent(server)
    server.on["GET /api/build/app/7?project=default"] = Reply(
        body={"buildInfo": {"name": "app", "number": "7"}}
    )
    create = f"POST {API}/release_bundle?async=true"
    server.on |= {create: Reply(202, {}), STATUS: status("COMPLETED"), RECORD: record()}
    build = {"build_name": "app", "build_number": "7", "project": "default"}
    server.run(ReleaseBundleOperation, bundle(sources={"builds": [build]}))
    (sent,) = server.bodies(create)[0]["source"]["builds"]
    assert sent["build_repository"] == "artifactory-build-info"


def test_query_is_not_compared(server: Server) -> None:
    completed(server, OLD, NEW)
    given = bundle(sources={"aql": 'items.find({"repo": "dev"})'}, repository_key="own")
    for name in (EXISTS, STATUS, RECORD):
        server.on[f"{name}?repository_key=own"] = server.on.pop(name)
    plan, values = server.run(ReleaseBundleOperation, given)
    assert not plan.changed
    assert values["bundle"]["repository_key"] == "own"


def test_discarded_build_record_is_unchanged(server: Server) -> None:
    completed(server, OLD)
    build = {"build_name": "app", "build_number": "7", "project": "pay"}
    given = bundle(sources={"builds": [build]})
    assert not server.run(ReleaseBundleOperation, given)[0].changed
    assert "no longer exists" in server.warnings[0]
    server.on[EXISTS] = there(False)
    assert server.fails(ReleaseBundleOperation, given).kind == "not_found"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "a b"}, "name is 'a b'"),
        ({"name": "a" * 129}, "at most 128"),
        ({"version": "-1"}, "version is '-1'"),
        ({"version": "1" * 33}, "at most 32"),
        ({"project": "a/b"}, "project"),
        ({"sources": {}}, "sources: set at least one"),
        ({"sources": {"artifacts": [{"repo": "dev", "path": "/"}]}}, "name a file"),
        ({"sources": {"artifacts": [{"repo": "dev", "path": "*.zip"}]}}, "wildcards"),
        ({"sources": {"bundles": [{"name": "a b", "version": "1"}]}}, "name is 'a b'"),
        ({"wait_timeout": 0}, "wait_timeout is 0: set it to more than 0"),
        ({"poll_interval": 0}, "poll_interval is 0: set it to more than 0"),
    ],
)
def test_invalid_options_are_rejected_before_any_request(
    server: Server, given: dict[str, Any], words: str
) -> None:
    error = server.fails(ReleaseBundleOperation, bundle(**given))
    assert error.kind == "invalid"
    assert words in error.message
    assert server.asked == []


# --- reading


def test_info_of_a_version(server: Server) -> None:
    completed(server, OLD)
    rows = [
        {"status": "COMPLETED", "environment": "QA", "created_millis": 1},
        {"status": "STARTED", "environment": "PROD", "created_millis": 2},
    ]
    first = f"GET {API}/promotion/records/agent/1?include=MSG&offset=0&limit=100"
    server.on[first] = Reply(body={"promotions": rows, "total": 2})
    _plan, values = server.run(ReleaseBundleInfoOperation, {"name": "agent", "version": "1"})
    (found,) = values["bundles"]
    assert [promotion["environment"] for promotion in found["promotions"]] == ["PROD", "QA"]
    server.on[EXISTS] = there(False)
    error = server.fails(ReleaseBundleInfoOperation, {"name": "agent", "version": "1"})
    assert error.kind == "not_found"


def test_info_of_a_version_in_creation(server: Server) -> None:
    server.on |= {EXISTS: there(), STATUS: status("STARTED")}
    _plan, values = server.run(ReleaseBundleInfoOperation, {"name": "agent", "version": "1"})
    assert values["bundles"][0]["promotions"] == []


def paged(rows: list[dict[str, Any]], most: int, total: bool) -> Any:
    """Return a handler that sends at most `most` rows of a list at once."""

    def response(seen: Seen) -> Reply:
        offset = int(seen.target.partition("offset=")[2].partition("&")[0])
        shown = {"release_bundles": rows[offset : offset + most]}
        return Reply(body={**shown, "total": len(rows)} if total else shown)

    return response


@pytest.mark.parametrize("total", [False, True])
def test_info_reads_all_pages(server: Server, total: bool) -> None:
    rows = [{"release_bundle_name": "agent", "release_bundle_version": str(n)} for n in range(5)]
    for path in (f"{API}/release_bundle/records/agent", f"{API}/release_bundle/groups"):
        for offset in range(7):
            where = f"?repository_key=own&offset={offset}&limit=100"
            server.on[f"GET {path}{where}"] = paged(rows, 2, total)
    _plan, values = server.run(
        ReleaseBundleInfoOperation, {"name": "agent", "repository_key": "own"}
    )
    assert [one["version"] for one in values["bundles"]] == list("01234")
    _plan, values = server.run(ReleaseBundleInfoOperation, {"repository_key": "own"})
    assert len(values["bundles"]) == 5


def test_truncated_list_is_an_error(server: Server) -> None:
    row = {"release_bundle_name": "agent"}
    reply = Reply(body={"release_bundles": [row], "total": 3})
    for offset in (0, 1):
        server.on[f"GET {API}/release_bundle/groups?project=pay&offset={offset}&limit=100"] = reply
    error = server.fails(ReleaseBundleInfoOperation, {"project": "pay"})
    assert error.kind == "protocol"
    assert "announced 3 entries, but returned 1" in error.message


@pytest.mark.parametrize("total", [None, 250])
def test_list_that_repeats_a_full_page_is_an_error(server: Server, total: int | None) -> None:
    rows = [{"release_bundle_name": f"agent-{number}"} for number in range(200)]
    for offset, part in ((0, rows[:100]), (100, rows[100:]), (200, rows[100:])):
        where = f"?project=pay&offset={offset}&limit=100"
        body = (
            {"release_bundles": part}
            if total is None
            else {"release_bundles": part, "total": total}
        )
        server.on[f"GET {API}/release_bundle/groups{where}"] = Reply(body=body)
    error = server.fails(ReleaseBundleInfoOperation, {"project": "pay"})
    assert error.kind == "protocol"
    assert "but returned 200" in error.message
