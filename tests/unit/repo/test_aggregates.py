# SPDX-License-Identifier: GPL-3.0-or-later
"""Test aggregated builds: records with modules of the type `build` [repo-35]."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds import (
    records,
    trace,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds.build_promote import (
    BuildPromoteOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.bundles.release_bundle import (
    ReleaseBundleOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.transfer import (
    artifact_download,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

Download = artifact_download.ArtifactDownloadOperation
AQL = "POST /api/search/aql"
LOCAL = Reply(body={"key": "rel", "rclass": "local"})


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_REWRITE", 0)


def digest(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def info(name: str, *modules: dict[str, Any], **fields: Any) -> dict[str, Any]:
    name, _slash, number = name.rpartition("/")
    return {"name": name, "number": number, "modules": list(modules), **fields}


def refers(*builds: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"type": "build", "id": build, **fields} for build in builds]


def files(*names: str) -> dict[str, Any]:
    artifacts = [{"name": name, "path": name, "sha1": digest(name)} for name in names]
    return {"id": "m", "type": "generic", "artifacts": artifacts}


def serve(server: Server, *builds: dict[str, Any], query: str = "") -> None:
    """Serve records whose builds can be promoted."""

    def promote(found: dict[str, Any], key: str) -> Callable[[Seen], Reply]:
        def reply(_seen: Seen) -> Reply:
            entry = {"status": "done", "repository": "rel", "timestamp": "2026-01-01T00:00:00Z"}
            found.setdefault("statuses", []).append(entry)
            server.on[f"GET /api/build/{key}"] = Reply(body={"buildInfo": found})
            return Reply(200, {"messages": [{"level": "INFO", "message": key}]})

        return reply

    server.on["GET /api/repositories/rel"] = LOCAL
    server.on[AQL] = Reply(body={"results": []})
    server.on["GET /api/storage/rel?list"] = Reply(403)
    for found in builds:
        key = f"{found['name']}/{found['number']}{query}"
        server.on[f"GET /api/build/{key}"] = Reply(body={"buildInfo": found})
        server.on[f"POST /api/build/promote/{key}"] = promote(found, key)


def promotion(build: str, **options: Any) -> dict[str, Any]:
    name, _slash, number = build.rpartition("/")
    return {
        "build_name": name,
        "build_number": number,
        "status": "done",
        "target_repo": "rel",
        **options,
    }


def posts(server: Server) -> list[str]:
    return [
        name.removeprefix("POST /api/build/promote/")
        for name in server.asked
        if name.startswith("POST /api/build/promote/")
    ]


@pytest.mark.parametrize("given", [{}, {"target_repo": None}, {"force": True}])
def test_aggregated_build_is_a_conflict_before_any_write(
    server: Server, given: dict[str, Any]
) -> None:
    serve(server, info("all/1", *refers("team/app/7", "lib/2"), files("x")))
    error = server.fails(BuildPromoteOperation, promotion("all/1", **given))
    assert error.kind == "conflict"
    assert "team/app/7, lib/2" in error.message
    assert "aggregated" in error.message
    assert server.asked == ["GET /api/build/all/1"]


def test_references_are_ignored_on_demand(server: Server) -> None:
    serve(server, info("all/1", *refers("lib/2"), files("x")))
    plan, values = server.run(BuildPromoteOperation, promotion("all/1", aggregated="ignore"))
    assert (plan.changed, values["aggregated"]) == (True, [])
    assert posts(server) == ["all/1"]


def test_referenced_builds_are_promoted_first(server: Server) -> None:
    serve(
        server,
        info("all/1", *refers("team/app/7", "lib/2")),
        info("team/app/7", *refers("lib/2"), files("a")),
        info("lib/2", files("l")),
    )
    plan, values = server.run(BuildPromoteOperation, promotion("all/1", aggregated="follow"))
    assert posts(server) == ["lib/2", "team/app/7", "all/1"]
    assert values["aggregated"] == [
        {"build_name": "lib", "build_number": "2", "changed": True},
        {"build_name": "team/app", "build_number": "7", "changed": True},
    ]
    assert [message["message"] for message in values["messages"]] == [
        "lib/2",
        "team/app/7",
        "all/1",
    ]
    assert set(plan.after["aggregated"]) == {"lib/2", "team/app/7"}
    assert values["promotion"]["status"] == "done"
    server.stub.seen.clear()
    plan, values = server.run(BuildPromoteOperation, promotion("all/1", aggregated="follow"))
    assert not plan.changed
    assert {build["changed"] for build in values["aggregated"]} == {False}
    assert posts(server) == []


def test_ignored_references_need_no_name(server: Server) -> None:
    serve(server, info("all/1", *refers("lib")))
    given = promotion("all/1", aggregated="ignore", status=None)
    plan, _values = server.run(BuildPromoteOperation, given)
    assert not plan.changed


def test_aggregated_build_without_status_has_no_promotion_of_its_own(server: Server) -> None:
    serve(server, info("all/1", *refers("app/7")), info("app/7", files("a")))
    in_target = {"repo": "rel", "path": ".", "name": "a", "actual_sha1": digest("a")}
    server.on[AQL] = [Reply(body={"results": found}) for found in ([], [], [in_target], [])]
    given = promotion("all/1", aggregated="follow", status=None)
    plan, _values = server.run(BuildPromoteOperation, given)
    assert (plan.changed, posts(server)) == (True, ["app/7"])
    plan, _values = server.run(BuildPromoteOperation, given)
    assert not plan.changed


def test_interrupted_promotion_of_many_builds_is_continued(server: Server) -> None:
    serve(server, info("all/1", *refers("app/7", "lib/2")), info("app/7"), info("lib/2"))
    promoted = server.on["POST /api/build/promote/lib/2"]
    server.on["POST /api/build/promote/lib/2"] = Reply(403, "no")
    given = promotion("all/1", aggregated="follow")
    error = server.fails(BuildPromoteOperation, given)
    assert error.result["changed"] is True
    assert error.result["aggregated"] == [
        {"build_name": "app", "build_number": "7", "changed": True},
        {"build_name": "lib", "build_number": "2", "changed": False},
    ]
    server.on["POST /api/build/promote/lib/2"] = promoted
    server.stub.seen.clear()
    server.run(BuildPromoteOperation, given)
    assert posts(server) == ["lib/2", "all/1"]


def test_check_mode_names_every_build(server: Server) -> None:
    serve(server, info("all/1", *refers("app/7")), info("app/7"))
    given = promotion("all/1", aggregated="follow")
    _plan, values = server.run(BuildPromoteOperation, given, check=True)
    assert values["aggregated"] == [{"build_name": "app", "build_number": "7", "changed": True}]
    assert posts(server) == []


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([info("b/1", *refers("a/1"))], "refers to itself: a/1 -> b/1 -> a/1"),
        ([info("b/1", *refers("b/1"))], "refers to itself: a/1 -> b/1 -> b/1"),
    ],
)
def test_loop_is_a_conflict(server: Server, others: list[dict[str, Any]], said: str) -> None:
    serve(server, info("a/1", *refers("b/1")), *others)
    error = server.fails(BuildPromoteOperation, promotion("a/1", aggregated="follow"))
    assert (error.kind, said in error.message) == ("conflict", True)
    assert posts(server) == []


@pytest.mark.parametrize("shortcut", [[], ["n/6"]])
@pytest.mark.parametrize("depth", [10, 11])
def test_ten_references_in_a_row_are_the_limit(
    server: Server, depth: int, shortcut: list[str]
) -> None:
    chain = [info(f"n/{n}", *refers(f"n/{n + 1}")) for n in range(1, depth)]
    first = info("n/0", *refers(*shortcut, "n/1"))
    serve(server, first, *chain, info(f"n/{depth}"))
    given = promotion("n/0", aggregated="follow")
    if depth == 10:
        _plan, values = server.run(BuildPromoteOperation, given, check=True)
        assert len(values["aggregated"]) == 10
    else:
        assert server.fails(BuildPromoteOperation, given).kind == "conflict"


@pytest.mark.parametrize("label", ["", "app", "app/", "/7", None])
@pytest.mark.parametrize("mode", ["fail", "follow"])
def test_reference_without_name_or_number_is_a_conflict(
    server: Server, label: str | None, mode: str
) -> None:
    serve(server, info("all/1", {"type": "Build", "id": label}))
    error = server.fails(BuildPromoteOperation, promotion("all/1", aggregated=mode))
    assert error.kind == "conflict"
    assert "does not name a build" in error.message


def test_missing_referenced_build_is_not_found(server: Server) -> None:
    serve(server, info("all/1", *refers("gone/3")))
    server.on["GET /api/build/gone/3"] = Reply(404, {"errors": [{"message": "No build was found"}]})
    error = server.fails(BuildPromoteOperation, promotion("all/1", aggregated="follow"))
    assert error.kind == "not_found"
    assert "the build 'all' #1 refers to the build 'gone' #3" in error.message


def test_references_stay_in_the_project_of_their_build(server: Server) -> None:
    modules = [*refers("app/7"), *refers("lib/2", project="other")]
    server.on["GET /api/projects"] = Reply(body="[]")
    serve(server, info("all/1", *modules), info("app/7"), query="?project=dev")
    serve(server, info("lib/2"), query="?project=other")
    given = promotion("all/1", aggregated="follow", project="dev")
    server.run(BuildPromoteOperation, given)
    assert posts(server) == ["app/7?project=dev", "lib/2?project=other", "all/1?project=dev"]


# --- download


def rows(*names: str) -> Reply:
    found = [
        {"repo": "rel", "path": ".", "name": name, "actual_sha1": digest(name), "size": len(name)}
        for name in names
    ]
    return Reply(body={"results": found})


def fetch(build: str, folder: Path, **options: Any) -> dict[str, Any]:
    name, _slash, number = build.rpartition("/")
    given = {"build_name": name, "build_number": number, "dest": f"{folder}/", "parallel": 1}
    return {**given, **options}


def test_download_of_an_aggregated_build_is_a_conflict(server: Server, tmp_path: Path) -> None:
    serve(server, info("all/1", *refers("app/7"), files("x")))
    error = server.fails(Download, fetch("all/1", tmp_path))
    assert (error.kind, "app/7" in error.message) == ("conflict", True)
    assert not list(tmp_path.iterdir())


def test_files_of_referenced_builds_are_downloaded(server: Server, tmp_path: Path) -> None:
    serve(server, info("all/1", *refers("app/7", "lib/2")))
    serve(server, info("app/7", files("a", "same")), info("lib/2", files("l", "same")))
    # the files with the properties of each build
    server.on[AQL] = [rows(), rows("a", "same"), rows("l", "same")] * 2
    for name in ("a", "l", "same"):
        server.on[f"GET /rel/{name}"] = Reply(body=name)
    given = fetch("all/1", tmp_path, aggregated="follow")
    _plan, values = server.run(Download, given)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "l", "same"]
    assert values["aggregated"] == [
        {"build_name": "app", "build_number": "7", "changed": True},
        {"build_name": "lib", "build_number": "2", "changed": True},
    ]
    (tmp_path / "l").unlink()
    plan, values = server.run(Download, given)
    assert plan.changed
    assert [build["changed"] for build in values["aggregated"]] == [False, True]


def test_own_files_only_are_downloaded_on_demand(server: Server, tmp_path: Path) -> None:
    serve(server, info("all/1", *refers("app/7"), files("x")))
    server.on[AQL], server.on["GET /rel/x"] = rows("x"), Reply(body="x")
    _plan, values = server.run(Download, fetch("all/1", tmp_path, aggregated="ignore"))
    assert ([path.name for path in tmp_path.iterdir()], values["aggregated"]) == (["x"], [])


def test_aggregated_needs_a_build(server: Server, tmp_path: Path) -> None:
    given = {"repo": "rel", "path": "a", "dest": f"{tmp_path}/", "aggregated": "follow"}
    error = server.fails(Download, given)
    assert (error.kind, "aggregated requires build_name" in error.message) == ("invalid", True)


# --- trace and release bundles


def test_trace_follows_references(server: Server) -> None:
    serve(server, info("all/1", *refers("app/7", "gone/1")), info("app/7", url="https://ci/7"))
    found = trace.origin(server.task(), "build:all/1")
    assert found.build is not None
    assert found.build["name"] == "all"
    assert [build["name"] for build in found.aggregated] == ["app"]
    assert found.aggregated[0]["properties"] == {}
    (said,) = server.warnings
    assert "gone" in said


def test_trace_of_a_number_with_a_slash(server: Server) -> None:
    """The vendor's clients write such a slash in the same notation."""
    server.on["GET /api/build/team/app/1.0/7"] = Reply(body={"buildInfo": {"number": "1.0/7"}})
    found = trace.origin(server.task(), r"build:team/app/1.0\/7")
    assert found.build is not None
    assert (found.build["name"], found.build["number"]) == ("team/app", "1.0/7")
    assert server.stub.seen[-1].target.endswith("/api/build/team%2Fapp/1.0%2F7")
    with pytest.raises(ToolchainError, match=r"write a slash in the build number as \\/") as caught:
        trace.origin(server.task(), "build:team/gone/7")
    assert caught.value.kind == "not_found"


@pytest.mark.parametrize(
    ("record", "wanted"),
    [
        ({"vcsRevision": "abc", "vcsUrl": "https://git/x"}, {"abc": ""}),
        ({"vcs": [{"revision": "abc", "message": "m"}], "vcsRevision": "abc"}, {"abc": "m"}),
        ({"vcs": [{"url": "https://git/x", "revision": ""}], "vcsRevision": ""}, {}),
    ],
)
def test_revisions_of_old_and_new_records(record: dict[str, Any], wanted: dict[str, str]) -> None:
    assert trace.revisions(record) == wanted


def test_trace_of_a_loop_is_a_conflict(server: Server) -> None:
    serve(server, info("all/1", *refers("all/1")))
    with pytest.raises(ToolchainError) as caught:
        trace.origin(server.task(), "build:all/1")
    assert caught.value.kind == "conflict"


def test_bundle_of_an_aggregated_build_is_compared_in_part(server: Server) -> None:
    serve(server, info("all/1", *refers("app/7")))
    base = "GET /lifecycle/api/v2/release_bundle"
    server.on[f"{base}/existence/b/1"] = Reply(body={"exists": True})
    server.on[f"{base}/statuses/b/1"] = Reply(body={"status": "COMPLETED"})
    artifacts = [{"path": "a", "checksum": "0" * 64}]
    server.on[f"{base}/records/b/1"] = Reply(body={"artifacts": artifacts})
    sources = {"builds": [{"build_name": "all", "build_number": "1"}]}
    given = {"name": "b", "version": "1", "sources": sources}
    plan, _values = server.run(ReleaseBundleOperation, given)
    assert not plan.changed
    (said,) = server.warnings
    assert "app/7" in said
