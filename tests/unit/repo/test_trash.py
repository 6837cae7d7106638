# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that the trash is emptied and cleaned if it contains items."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.cleanup.artifact_trash import (
    ArtifactTrashOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.cleanup.artifact_trash_info import (
    ArtifactTrashInfoOperation,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply

TRASH = "GET /api/storage/auto-trashcan"
REPOSITORIES = "GET /api/repositories"
EMPTY = "POST /api/trash/empty"
QUERY = "POST /api/search/aql"
ITEM = "GET /api/storage/auto-trashcan/r/a/1.txt"
CLEAN = "DELETE /api/trash/clean/r/a/1.txt"
NOT_THERE = Reply(400, {"errors": [{"status": 400, "message": "Could not locate artifact 'r:a'"}]})


def params(state: str, **given: Any) -> dict[str, Any]:
    return {"state": state, **given}


def trash(*keys: str) -> Reply:
    return Reply(body={"children": [{"uri": f"/{key}", "folder": True} for key in keys]})


ONE = params("clean", repo="r", path="a/1.txt")


def test_trash_is_listed(server: Server) -> None:
    server.on[TRASH] = trash("s", "r")
    plan, values = server.run(ArtifactTrashInfoOperation, {})
    assert values == {"children": ["r", "s"]}
    assert not plan.changed


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        (ArtifactTrashInfoOperation, {}),
        (ArtifactTrashOperation, params("empty")),
        (ArtifactTrashOperation, params("builds_clean")),
    ],
    ids=["info", "empty", "builds_clean"],
)
def test_empty_trash_may_be_a_404(server: Server, operation: Any, given: dict[str, Any]) -> None:
    """Verify that the 404 is accepted only if a repository manager responds."""
    assert server.fails(operation, given).kind == "not_found"
    server.on[REPOSITORIES] = Reply(body="[]")
    plan, values = server.run(operation, given)
    assert not plan.changed
    assert values["children"] == []


def test_trash_is_emptied(server: Server) -> None:
    server.on[TRASH] = [trash("r"), trash()]
    server.on[EMPTY] = Reply(202, '"Successfully deleted all trashcan items"')
    plan, values = server.run(ArtifactTrashOperation, params("empty"))
    assert (plan.before, plan.after) == ({"children": ["r"]}, {"children": []})
    assert values == {"children": []}
    assert server.asked == [TRASH, EMPTY, TRASH]


def test_remaining_items_are_returned(server: Server) -> None:
    server.on[TRASH] = [trash("r", "s"), trash("s")]
    server.on[EMPTY] = Reply(202)
    _plan, values = server.run(ArtifactTrashOperation, params("empty"))
    assert values == {"children": ["s"]}
    assert server.warnings == ["emptying the trash: it still contains items from s"]


@pytest.mark.parametrize(
    "body", [*({"children": odd} for odd in (5, {"uri": "/r"}, "r")), {"error": "no"}]
)
def test_malformed_listing_is_a_protocol_error(server: Server, body: dict[str, Any]) -> None:
    server.on[TRASH] = Reply(body=body)
    assert server.fails(ArtifactTrashOperation, params("empty")).kind == "protocol"


@pytest.mark.parametrize("left", [(), ("r",)])
def test_lost_response_to_emptying_is_verified(server: Server, left: tuple[str, ...]) -> None:
    server.on[TRASH] = [trash("r"), trash(*left)]
    server.on[EMPTY] = Reply(cut=True)
    if left:
        error = server.fails(ArtifactTrashOperation, params("empty"))
        assert (error.outcome_unknown, error.verified_undone) == (True, True)
    else:
        server.run(ArtifactTrashOperation, params("empty"))
    looks = [TRASH] if left else [TRASH, TRASH]
    assert server.asked == [TRASH, EMPTY, *looks]


def test_lost_response_to_emptying_stays_unknown_if_the_content_is_new(server: Server) -> None:
    server.on[TRASH] = [trash("r"), trash("s")]
    server.on[EMPTY] = Reply(cut=True)
    error = server.fails(ArtifactTrashOperation, params("empty"))
    assert (error.outcome_unknown, error.verified_undone) == (True, False)


def test_item_is_cleaned(server: Server) -> None:
    server.on[TRASH] = [trash("r", "s"), trash("s")]
    server.on[ITEM] = Reply(body={})
    server.on[CLEAN] = Reply(204)
    plan, values = server.run(ArtifactTrashOperation, ONE)
    assert (plan.before, plan.after) == ({"r/a/1.txt": "in the trash"}, {})
    assert values == {"changed": True, "children": ["s"]}
    assert server.asked == [TRASH, ITEM, CLEAN, TRASH]


@pytest.mark.parametrize("dialect", ["generic", "jfrog"])
def test_unlisted_repository_has_no_trash(server: Server, dialect: str) -> None:
    server.dialect = dialect
    server.on[TRASH] = trash("s")
    server.on[REPOSITORIES] = Reply(body=json.dumps([{"key": "r"}]))
    plan, values = server.run(ArtifactTrashOperation, ONE)
    assert not plan.changed
    assert values["children"] == ["s"]
    assert server.asked == [TRASH, REPOSITORIES]


@pytest.mark.parametrize("listing", [trash("s"), Reply(404)])
def test_unknown_repository_is_not_a_repository_without_trash(
    server: Server, listing: Reply
) -> None:
    server.on |= {TRASH: listing, REPOSITORIES: Reply(body=json.dumps([{"key": "s"}]))}
    error = server.fails(ArtifactTrashOperation, ONE)
    assert (error.kind, "'r'" in error.message) == ("not_found", True)
    assert server.asked == [TRASH, REPOSITORIES]


def test_pattern_is_rejected_as_an_item(server: Server) -> None:
    error = server.fails(ArtifactTrashOperation, params("clean", repo="r", path="a/*.txt"))
    assert (error.kind, server.asked) == ("invalid", [])


def test_missing_item_is_unchanged(server: Server) -> None:
    server.on[TRASH] = trash("r")
    plan, _values = server.run(ArtifactTrashOperation, ONE)
    assert not plan.changed
    assert server.asked == [TRASH, ITEM]


@pytest.mark.parametrize("response", [NOT_THERE, Reply(404)])
def test_item_is_cleaned_if_only_keys_are_shown(server: Server, response: Reply) -> None:
    server.dialect = "generic"
    server.on[TRASH] = trash("r")
    server.on[CLEAN] = response
    plan, _values = server.run(ArtifactTrashOperation, ONE, check=True)
    assert plan.changed
    _plan, values = server.run(ArtifactTrashOperation, ONE)
    assert values["changed"] is False


def test_remaining_item_is_an_error(server: Server) -> None:
    server.on[TRASH] = trash("r")
    server.on[ITEM] = Reply(body={})
    server.on[CLEAN] = Reply(204)
    error = server.fails(ArtifactTrashOperation, ONE)
    assert error.kind == "failed"
    assert error.message.endswith("the item is still in the trash")
    server.on[ITEM] = [Reply(body={}), Reply(403)]
    _plan, values = server.run(ArtifactTrashOperation, ONE)
    assert values == {"changed": True, "children": ["r"]}


def test_other_400_is_an_error(server: Server) -> None:
    server.on[TRASH] = trash("r")
    server.on[ITEM] = Reply(body={})
    server.on[CLEAN] = Reply(400, "available only in Artifactory Pro")
    assert server.fails(ArtifactTrashOperation, ONE).kind == "rejected"


@pytest.mark.parametrize("gone", [True, False])
def test_lost_response_to_cleaning_is_verified(server: Server, gone: bool) -> None:
    server.on[TRASH] = trash("r")
    server.on[ITEM] = [Reply(body={}), Reply(404 if gone else 200)]
    server.on[CLEAN] = Reply(cut=True)
    if gone:
        assert server.run(ArtifactTrashOperation, ONE)[1]["changed"] is True
    else:
        assert server.fails(ArtifactTrashOperation, ONE).outcome_unknown
    assert server.asked.count(CLEAN) == 1


@pytest.mark.parametrize("dialect", ["generic", "jfrog"])
def test_sealed_plan_contains_the_items_of_the_server(server: Server, dialect: str) -> None:
    rows = [{"repo": "auto-trashcan", "path": "r/a", "name": "1.txt", "size": 1}]
    server.dialect = dialect
    server.on |= {TRASH: trash("r", "s"), QUERY: Reply(body={"results": rows, "range": {}})}
    operation = server.operation(ArtifactTrashOperation, params("empty"))
    plan = operation.plan()
    parts = operation.parts(plan)
    is_shown = dialect == "jfrog"
    names = ["r/a/1.txt", "r/a/1.txt"] if is_shown else ["r", "s"]
    assert [(part.group, part.name) for part in parts] == list(zip("rs", names, strict=True))
    assert (parts[0].before == "in the trash") is not is_shown
    plan = operation.leave_out(plan, [0])
    assert (plan.before, plan.after) == ({"children": ["r", "s"]}, {"children": ["r"]})


def test_incomplete_listing_is_rejected_for_a_plan(server: Server) -> None:
    trimmed = {"notification": "AQL query reached the search hard limit, results are trimmed."}
    server.on |= {TRASH: trash("r"), QUERY: Reply(body={"results": [], "range": trimmed})}
    operation = server.operation(ArtifactTrashOperation, params("empty"))
    plan = operation.plan()
    with pytest.raises(ToolchainError, match="the server truncated the result") as caught:
        operation.parts(plan)
    assert caught.value.kind == "protocol"


def test_failure_reports_whether_items_were_deleted(server: Server) -> None:
    server.dialect = "generic"
    server.on |= {TRASH: [trash("r", "s"), trash("s")], "DELETE /api/trash/clean/r": Reply(204)}
    server.on["DELETE /api/trash/clean/s"] = Reply(403)
    operation = server.operation(ArtifactTrashOperation, params("empty"))
    plan = operation.plan()
    with pytest.raises(ToolchainError) as caught:
        operation.apply(operation.leave_out(plan, []))
    assert caught.value.kind == "permission"
    assert caught.value.result["changed"] is True
    assert EMPTY not in server.asked


@pytest.mark.parametrize(
    ("dialect", "key"), [("generic", "acme-build-info"), ("jfrog", "artifactory-build-info")]
)
def test_build_records_in_trash_are_cleaned(server: Server, dialect: str, key: str) -> None:
    server.dialect = dialect
    server.on[TRASH] = [trash(key), trash()]
    server.on[f"DELETE /api/trash/clean/{key}"] = Reply(204)
    _plan, values = server.run(ArtifactTrashOperation, params("builds_clean"))
    assert values == {"changed": True, "children": []}


def test_cleaning_a_whole_repository_needs_force(server: Server) -> None:
    for path in ("", "/"):
        error = server.fails(ArtifactTrashOperation, params("clean", repo="r", path=path))
        assert error.kind == "invalid"
        assert "force" in error.message
    assert server.asked == []
    server.on[TRASH] = [trash("r"), trash()]
    server.on["DELETE /api/trash/clean/r"] = Reply(204)
    _plan, values = server.run(ArtifactTrashOperation, params("clean", repo="r", force=True))
    assert values["changed"] is True


def test_repository_may_be_listed_again_after_cleaning(server: Server) -> None:
    """Another client may have deleted further items meanwhile."""
    server.on[TRASH] = trash("r")
    server.on["DELETE /api/trash/clean/r"] = Reply(204)
    _plan, values = server.run(ArtifactTrashOperation, params("clean", repo="r", force=True))
    assert values == {"changed": True, "children": ["r"]}


@pytest.mark.parametrize(
    "given",
    [
        params("empty", repo="r"),
        params("builds_clean", path="a"),
        params("clean", repo="r/s", path="a"),
        params("clean", repo="r", path="../a"),
    ],
)
def test_contradictory_options_are_rejected_before_any_request(
    server: Server, given: dict[str, Any]
) -> None:
    assert server.fails(ArtifactTrashOperation, given).kind == "invalid"
    assert server.asked == []
