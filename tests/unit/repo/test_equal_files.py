# SPDX-License-Identifier: GPL-3.0-or-later
"""Test files of a build with the same content: each path is a file of its own [C2.6, C8.1]."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds import (
    build_publish,
    records,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds.build_promote import (
    BuildPromoteOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.transfer import (
    artifact_download,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

Download = artifact_download.ArtifactDownloadOperation
RECORD, AQL = "GET /api/build/app/7", "POST /api/search/aql"
PROMOTE = "POST /api/build/promote/app/7"
EMPTY = {
    name: hashlib.new(name, b"", usedforsecurity=False).hexdigest() for name in ("sha1", "sha256")
}
RELEASED = {"status": "released", "repository": "rel", "timestamp": "2026-01-01T00:00:00.000+0000"}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_REWRITE", 0)


def artifact(path: str, **further: Any) -> dict[str, Any]:
    return {"name": path.rpartition("/")[2], "path": path, **EMPTY, **further}


def record(*modules: Mapping[str, Any], promoted: bool = True) -> Reply:
    info = {"name": "app", "number": "7", "modules": list(modules)}
    return Reply(body={"buildInfo": {**info, "statuses": [RELEASED] if promoted else []}})


def of(*paths: str) -> dict[str, Any]:
    return {"id": "m", "artifacts": [artifact(path) for path in paths]}


def rows(*paths: str, repo: str = "rel", size: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "repo": repo,
            "path": path.rpartition("/")[0] or ".",
            "name": path.rpartition("/")[2],
            "actual_sha1": EMPTY["sha1"],
            "sha256": EMPTY["sha256"],
            "size": size,
        }
        for path in paths
    ]


def found(*lists: list[dict[str, Any]]) -> Reply:
    return Reply(body={"results": [row for some in lists for row in some]})


def promotion(**options: Any) -> dict[str, Any]:
    return {"build_name": "app", "build_number": "7", "target_repo": "rel", **options}


NAMELESS = [
    {"id": "a", "artifacts": [{"name": "LICENSE", "sha1": EMPTY["sha1"].upper()}]},
    {"id": "b", "artifacts": [{"name": "LICENSE", "sha1": EMPTY["sha1"]}]},
]


@pytest.mark.parametrize(
    ("modules", "there", "missing"),
    [
        ([of("a/empty.txt", "b/empty.txt")], ["a/empty.txt"], ["b/empty.txt"]),
        ([of("a/empty.txt"), of("b/empty.txt")], ["b/empty.txt"], ["a/empty.txt"]),
        ([of("a/empty.txt", "b/empty.txt")], ["a/empty.txt", "x/copy.txt"], []),
        ([of("a/empty.txt", "/a/empty.txt")], ["a/empty.txt"], []),
        ([of("a/x.txt", "b/y.txt")], ["elsewhere/y.txt"], ["a/x.txt"]),
        ([of("a/1", "b/2", "c/3")], ["c/3"], ["a/1", "b/2"]),
        (NAMELESS, ["a/LICENSE"], ["LICENSE"]),
        (NAMELESS, ["a/LICENSE", "b/LICENSE"], []),
        ([NAMELESS[0], NAMELESS[0]], ["a/LICENSE"], []),
    ],
)
def test_copies_in_the_target_are_counted(
    server: Server, modules: list[dict[str, Any]], there: list[str], missing: list[str]
) -> None:
    server.on["GET /api/repositories/rel"] = Reply(body={"key": "rel", "rclass": "local"})
    server.on[RECORD], server.on[AQL] = record(*modules), found(rows(*there))
    plan, values = server.run(BuildPromoteOperation, promotion(status="released"), check=True)
    assert (plan.changed, values["missing_files"]) == (bool(missing), missing)


TWICE = {"id": "a", "artifacts": [*NAMELESS[0]["artifacts"], *NAMELESS[1]["artifacts"]]}


@pytest.mark.parametrize(
    "case",
    [
        (["a/LICENSE", "b/LICENSE"], ["a/LICENSE"], ["LICENSE"]),
        (["a/LICENSE", "b/LICENSE"], [], ["LICENSE", "LICENSE"]),
        (["a/LICENSE", "b/LICENSE"], ["a/LICENSE", "b/LICENSE"], []),
        (["a/LICENSE"], ["a/LICENSE"], []),
        (["a/LICENSE"], [], ["LICENSE"]),
        (["a/LICENSE", "b/other"], ["a/LICENSE"], []),
        # a move has emptied the source
        ([], ["a/LICENSE"], []),
        ([], [], ["LICENSE"]),
    ],
)
@pytest.mark.parametrize("is_marked", [True, False])
@pytest.mark.parametrize("source_repo", [None, "dev"])
def test_copies_in_the_source_tell_whether_entries_without_a_path_are_two_files(
    server: Server,
    case: tuple[list[str], list[str], list[str]],
    is_marked: bool,
    source_repo: str | None,
) -> None:
    source, there, missing = case
    server.on["GET /api/repositories/rel"] = Reply(body={"key": "rel", "rclass": "local"})
    server.on["GET /api/storage/rel?list"] = Reply(body={"files": []})
    server.on[RECORD] = record(TWICE)

    def ask(seen: Seen) -> Reply:
        text = seen.body.decode()
        if '"repo": "rel"' in text:
            return found(rows(*there))
        if "@build.name" in text and not is_marked:
            return found()
        # another repository has a copy of its own
        others = [] if source_repo else rows("x/LICENSE", repo="other")
        return found(rows(*source, repo="dev"), others if source else [])

    server.on[AQL] = ask
    given = promotion(status="released", source_repo=source_repo)
    _plan, values = server.run(BuildPromoteOperation, given, check=True)
    assert values["missing_files"] == missing


def test_repeated_row_is_one_copy(server: Server) -> None:
    server.on[RECORD] = record(of("a/e", "b/e"))
    server.on[AQL] = found(rows("a/e"), rows("a/e"))
    _plan, values = server.run(BuildPromoteOperation, promotion(status="released"), check=True)
    assert values["missing_files"] == ["b/e"]


def test_listing_without_queries_is_counted_too(server: Server) -> None:
    server.dialect = "generic"
    server.on[RECORD] = record(of("a/e", "b/e"))
    files = [{"uri": "/a/e", "size": 0, "sha1": EMPTY["sha1"]}]
    server.on["GET /api/storage/rel?list&deep=1"] = Reply(body={"files": files})
    _plan, values = server.run(BuildPromoteOperation, promotion(status="released"), check=True)
    assert values["missing_files"] == ["b/e"]


@pytest.mark.parametrize("files", [[{"uri": "/a/e", "size": 0}], [{"uri": "/x", "size": 0}]])
def test_listing_without_digests_cannot_be_compared(server: Server, files: list[Any]) -> None:
    server.dialect = "generic"
    server.on[RECORD] = record(of("a/e"))
    server.on["GET /api/storage/rel?list&deep=1"] = Reply(body={"files": files})
    plan, _values = server.run(BuildPromoteOperation, promotion(status="released"))
    assert not plan.changed
    assert "cannot be compared with the build record" in server.warnings[-1]


def test_files_promoted_again_are_named_in_a_warning(server: Server) -> None:
    again = Reply(
        body={
            "buildInfo": {
                "name": "app",
                "number": "7",
                "modules": [of("a/e", "b/e")],
                "statuses": [RELEASED, {**RELEASED, "timestamp": "2026-01-02T00:00:00.000+0000"}],
            }
        }
    )
    server.on[RECORD] = [record(of("a/e", "b/e")), again]
    server.on[AQL] = [found(rows("a/e")), found(rows("a/e", "b/e"))]
    server.on[PROMOTE] = Reply(200, {"messages": []})
    plan, values = server.run(BuildPromoteOperation, promotion(status="released"))
    assert (plan.changed, values["missing_files"]) == (True, ["b/e"])
    (said,) = server.warnings
    assert "'rel' lacks b/e" in said
    assert "again" in said


@pytest.mark.parametrize(
    ("target", "elsewhere", "unchanged"),
    [
        (["a/e", "b/e"], ["a/e", "b/e"], True),
        (["a/e"], ["a/e", "b/e"], False),
        (["a/e"], [], False),
        (["x/e", "b/e"], ["a/e"], True),
    ],
)
def test_promotion_without_status_counts_copies(
    server: Server, target: list[str], elsewhere: list[str], unchanged: bool
) -> None:
    server.on["GET /api/repositories/rel"] = Reply(body={"key": "rel", "rclass": "local"})
    server.on[RECORD] = record(of("a/e", "b/e"), promoted=False)
    server.on[AQL] = found(rows(*target), rows(*elsewhere, repo="stage"))
    plan, _values = server.run(BuildPromoteOperation, promotion(), check=True)
    assert plan.changed is not unchanged


# --- download


def fetched(server: Server, folder: Path, **options: Any) -> list[str]:
    given = {"build_name": "app", "build_number": "7", "dest": f"{folder}/", "parallel": 1}
    server.run(Download, {**given, **options})
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("marked", "copies", "files"),
    [
        (["a/e", "b/e"], [], ["a/e", "b/e"]),
        (["a/e"], ["a/e", "b/e"], ["a/e", "b/e"]),
        ([], ["x/e", "a/e", "b/e"], ["a/e", "b/e"]),
        (["a/e"], ["x/f", "x/e"], ["a/e", "x/e"]),
    ],
)
def test_every_file_of_a_build_is_downloaded(
    server: Server, tmp_path: Path, marked: list[str], copies: list[str], files: list[str]
) -> None:
    server.on[RECORD] = record(of("a/e", "b/e"))
    server.on[AQL] = [found(rows(*marked)), found(rows(*copies))]
    for path in (*marked, *copies):
        server.on[f"GET /rel/{path}"] = Reply(body="")
    assert fetched(server, tmp_path) == files


def test_second_file_of_one_content_is_not_found(server: Server, tmp_path: Path) -> None:
    server.on[RECORD] = record(of("a/e", "b/e"))
    server.on[AQL] = [found(rows("a/e")), found(rows("a/e"), rows("a/e", repo="stage"))]
    given = {"build_name": "app", "build_number": "7", "dest": f"{tmp_path}/"}
    error = server.fails(Download, given)
    assert error.kind == "not_found"
    assert "1 of 2 artifacts" in error.message
    assert "b/e" in error.message
    assert not list(tmp_path.iterdir())


# --- publishing


def published(*paths: str | None, sha1: str = EMPTY["sha1"]) -> dict[str, Any]:
    files = [{"name": "e", "sha1": sha1, **({"path": path} if path else {})} for path in paths]
    module = {"id": "m", "artifacts": files}
    return {"build_name": "app", "build_number": "7", "modules": [module]}


@pytest.mark.parametrize(
    ("there", "wanted", "said"),
    [
        (["a/e", "b/e"], ["a/e", "b/e"], None),
        (["a/e"], ["a/e", "b/e"], "lacks: artifacts b/e of the module m"),
        (["a/e"], ["b/e"], "lacks: artifacts b/e of the module m"),
        (["a/e"], ["a/e", "/a/e"], None),
        (["a/e"], [None], None),
        ([None], ["a/e"], None),
        ([None], ["a/e", "b/e"], "lacks: artifacts b/e of the module m"),
        (["a/e", None], [None, "a/e"], None),
    ],
)
def test_published_files_are_compared_by_path(
    server: Server, there: list[str | None], wanted: list[str | None], said: str | None
) -> None:
    server.on[RECORD] = record(*published(*there)["modules"], promoted=False)
    if said is None:
        plan, _values = server.run(build_publish.BuildPublishOperation, published(*wanted))
        assert not plan.changed
    else:
        error = server.fails(build_publish.BuildPublishOperation, published(*wanted))
        assert error.kind == "conflict"
        assert said in error.message


def test_published_file_with_another_digest_differs(server: Server) -> None:
    server.on[RECORD] = record(*published("a/e")["modules"], promoted=False)
    error = server.fails(build_publish.BuildPublishOperation, published("a/e", sha1="0" * 40))
    assert error.kind == "conflict"
    assert "but differs: artifacts a/e of the module m. Publish a new build number" in error.message
    assert "lacks" not in error.message
