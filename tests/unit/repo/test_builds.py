# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the promotion of builds: signs of completion, requests, and the meaning of messages."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds import records
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds.build_promote import (
    BuildPromoteOperation,
    BuildPromoteOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds.records import (
    promotions,
)
from tests.helpers.options import build
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply

RECORD = "GET /api/build/app/7"
PROMOTE = "POST /api/build/promote/app/7"
LOCAL = Reply(body={"key": "rel", "rclass": "local"})
ERROR = {"level": "ERROR"}
VIRTUAL = Reply(body={"key": "v", "rclass": "virtual", "defaultDeploymentRepo": "rel"})


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_REWRITE", 0)


def options(**given: Any) -> dict[str, Any]:
    return {"build_name": "app", "build_number": "7", **given}


def status(name: str, repository: str | None = "rel", second: int = 1) -> dict[str, Any]:
    found = {"status": name, "timestamp": f"2026-01-01T00:00:{second:02}.000+0000", "user": "u"}
    return {**found, "repository": repository} if repository else found


def record(*statuses: dict[str, Any], **fields: Any) -> Reply:
    info = {"name": "app", "number": "7", **fields}
    return Reply(body={"buildInfo": {**info, "statuses": list(statuses)} if statuses else info})


def shown(*statuses: dict[str, Any]) -> Reply:
    """Return a record of a server that identifies itself."""
    return replace(record(*statuses), headers={"X-JFrog-Version": "Artifactory/7.77.5"})


def said(*messages: tuple[str, str], code: int = 200) -> Reply:
    listed = [{"level": level, "message": message} for level, message in messages]
    return Reply(code, {"messages": listed})


# --- when a promotion is complete


def test_newest_promotion_counts_regardless_of_order(server: Server) -> None:
    server.on[RECORD] = record(status("released", second=9), status("staged", "old", second=2))
    plan, values = server.run(BuildPromoteOperation, options(status="released", target_repo="rel"))
    assert not plan.changed
    assert values["promotion"]["timestamp"] == "2026-01-01T00:00:09.000+0000"
    assert server.asked == [RECORD]


@pytest.mark.parametrize("recorded", ["rel", "v"])
def test_virtual_target_matches_in_both_spellings(server: Server, recorded: str) -> None:
    server.on[RECORD] = record(status("released", recorded))
    server.on["GET /api/repositories/v"] = VIRTUAL
    plan, _ignored = server.run(BuildPromoteOperation, options(status="released", target_repo="v"))
    assert not plan.changed


@pytest.mark.parametrize(
    "given", [{"status": "released"}, {"target_repo": "rel"}, {"status": "released", "gate": True}]
)
def test_partial_promotion_is_compared_by_its_given_options(
    server: Server, given: dict[str, Any]
) -> None:
    server.on[RECORD] = record(status("released"))
    plan, _ignored = server.run(BuildPromoteOperation, options(**given))
    assert not plan.changed


@pytest.mark.parametrize(
    ("given", "current"),
    [
        ({"status": "Released", "target_repo": "rel"}, [status("released")]),
        ({"status": "released", "target_repo": "rel"}, [status("released", "other")]),
        ({"status": "released", "target_repo": "rel"}, [status("released", None)]),
        ({"status": "a"}, []),
        ({"status": "released", "force": True}, [status("released")]),
    ],
)
def test_different_promotion_is_sent(
    server: Server, given: dict[str, Any], current: list[dict[str, Any]]
) -> None:
    server.on["GET /api/repositories/rel"] = LOCAL
    wanted = status(given["status"], given.get("target_repo"), second=50)
    server.on[RECORD] = [record(*current), record(*current, wanted)]
    server.on[PROMOTE] = said(("INFO", "done"))
    plan, values = server.run(BuildPromoteOperation, options(**given))
    assert plan.changed
    assert values["messages"] == [{"level": "INFO", "message": "done"}]
    assert values["promotion"]["timestamp"] == "2026-01-01T00:00:50.000+0000"
    assert server.asked.count(PROMOTE) == 1


STAGES = [options(status=name, target_repo="rel") for name in "ab"]


@pytest.mark.parametrize("target", ["rel", "v", None])
def test_build_with_later_promotion_is_unchanged(server: Server, target: str | None) -> None:
    server.on[RECORD] = record(status("a", second=1), status("b", second=2))
    server.on["GET /api/repositories/v"] = VIRTUAL
    later = {**STAGES[1], "target_repo": target}
    plan, values = server.run(BuildPromoteOperation, {**STAGES[0], "followed_by": [later]})
    assert not plan.changed
    assert (values["promotion"]["status"], values["promoted"]) == ("b", True)


@pytest.mark.parametrize(
    "later",
    [
        {**STAGES[1], "build_number": "8"},
        {**STAGES[1], "status": "c"},
        {**STAGES[1], "target_repo": "other"},
        {**STAGES[1], "status": None},
    ],
)
def test_unrelated_promotion_is_not_a_later_one(server: Server, later: dict[str, Any]) -> None:
    for key in ("rel", "other"):
        server.on[f"GET /api/repositories/{key}"] = Reply(body={"key": key, "rclass": "local"})
    server.on[RECORD] = record(status("b"))
    given = {**STAGES[0], "followed_by": [later]}
    plan, _ignored = server.run(BuildPromoteOperation, given, check=True)
    assert plan.changed


def test_promotion_found_in_history_is_unchanged(server: Server) -> None:
    server.on[RECORD] = record(status("a", "stage", second=1), status("b", second=2))
    server.on["GET /api/repositories/other"] = Reply(body={"key": "other", "rclass": "local"})
    plan, values = server.run(BuildPromoteOperation, options(status="a", target_repo="stage"))
    assert not plan.changed
    assert (values["promotion"]["status"], values["promoted"]) == ("b", True)
    for given in ({"target_repo": "other"}, {"target_repo": "stage", "force": True}):
        plan, _ignored = server.run(BuildPromoteOperation, options(status="a", **given), check=True)
        assert plan.changed


# --- builds that were withdrawn

WITHDRAWN = [status("released", second=1), status("withdrawn", "snap", second=2)]
RELEASE = options(status="released", target_repo="rel")


@pytest.mark.parametrize("mode", ["fail", "check"])
@pytest.mark.parametrize("given", [{}, {"force": True}, {"target_repo": "v"}, {"status": None}])
def test_withdrawn_build_is_a_conflict(server: Server, mode: str, given: dict[str, Any]) -> None:
    server.on[RECORD] = record(*WITHDRAWN)
    server.on["GET /api/repositories/v"] = VIRTUAL
    server.on["GET /api/repositories/rel"] = LOCAL
    error = server.fails(BuildPromoteOperation, {**RELEASE, **given, "withdrawn": mode})
    assert error.kind == "conflict"
    for part in ("'app' #7", "'withdrawn'", "2026-01-01", "release_again: true"):
        assert part in error.message
    assert PROMOTE not in server.asked


@pytest.mark.parametrize(
    ("statuses", "later"),
    [
        ([], []),
        ([status("staged", "stage")], []),
        ([status("released")], []),
        ([status("released"), status("live", "snap", second=2)], ["live"]),
        ([*WITHDRAWN, status("released", second=3)], []),
        # the first stage of a build that is released again
        ([*WITHDRAWN, status("live", second=3)], ["live"]),
    ],
)
def test_build_in_a_stage_of_its_release_is_not_withdrawn(
    server: Server, statuses: list[dict[str, Any]], later: list[str]
) -> None:
    server.on[RECORD] = record(*statuses)
    server.on["GET /api/repositories/rel"] = LOCAL
    stages = [options(status=name, target_repo="snap") for name in later]
    given = {**RELEASE, "followed_by": stages, "withdrawn": "check"}
    plan, _values = server.run(BuildPromoteOperation, given)
    assert not plan.changed
    assert PROMOTE not in server.asked


def test_build_back_in_an_earlier_stage_is_withdrawn(server: Server) -> None:
    """The status of an earlier entry is no later stage of the wanted one."""
    staged = status("staged", "stage")
    server.on[RECORD] = record(staged, status("released", second=2), {**staged, **_at(3)})
    assert server.fails(BuildPromoteOperation, {**RELEASE, "withdrawn": "fail"}).kind == "conflict"


def _at(second: int) -> dict[str, Any]:
    return {"timestamp": status("x", second=second)["timestamp"]}


def test_withdrawn_build_is_promoted_again_on_purpose(server: Server) -> None:
    again = record(*WITHDRAWN, status("released", second=3))
    server.on.update({RECORD: [record(*WITHDRAWN), again], PROMOTE: Reply(body={})})
    server.on["GET /api/repositories/rel"] = LOCAL
    given = {**RELEASE, "withdrawn": "promote"}
    plan, values = server.run(BuildPromoteOperation, given)
    assert (plan.changed, values["promotion"]["status"]) == (True, "released")
    plan, _values = server.run(BuildPromoteOperation, given)
    assert not plan.changed
    assert server.asked.count(PROMOTE) == 1


def test_missing_build_passes_the_check_only(server: Server) -> None:
    given = {**RELEASE, "withdrawn": "check"}
    plan, values = server.run(BuildPromoteOperation, given)
    assert (plan.changed, values["promotion"]["status"]) == (False, None)
    assert server.fails(BuildPromoteOperation, {**given, "withdrawn": "fail"}).kind == "not_found"


def test_withdrawn_build_of_an_aggregated_build_is_a_conflict(server: Server) -> None:
    module = {"type": "build", "id": "lib/3"}
    server.on[RECORD] = record(modules=[module])
    server.on["GET /api/build/lib/3"] = record(*WITHDRAWN)
    given = {**RELEASE, "aggregated": "follow", "withdrawn": "check"}
    error = server.fails(BuildPromoteOperation, given)
    assert (error.kind, "'lib' #3" in error.message) == ("conflict", True)


# --- content of the target

MODULES = [
    {"artifacts": [{"sha1": "AA", "path": "app/a.jar"}, {"sha1": "bb", "name": "b.jar"}]},
    {
        "artifacts": [
            {"sha1": "cc", "name": "c.jar", "originalDeploymentRepo": "other"},
            {"md5": "1"},
        ]
    },
]
AQL = "POST /api/search/aql"


def held(*digests: str) -> Reply:
    rows = [{"repo": "rel", "path": ".", "name": "x", "actual_sha1": digest} for digest in digests]
    return Reply(body={"results": rows})


def promoted(**fields: Any) -> Reply:
    return record(status("released"), modules=MODULES, **fields)


def test_target_with_every_artifact_is_unchanged(server: Server) -> None:
    server.on[RECORD], server.on[AQL] = promoted(), held("aa", "bb", "cc")
    plan, values = server.run(BuildPromoteOperation, options(status="released", target_repo="rel"))
    assert not plan.changed
    assert (values["promoted"], values["missing_files"]) == (True, [])
    assert server.asked == [RECORD, AQL]
    assert '"repo": "rel"' in server.stub.seen[1].body.decode()


@pytest.mark.parametrize("check", [True, False])
def test_missing_files_in_target_are_promoted_again(server: Server, check: bool) -> None:
    server.on["GET /api/repositories/rel"] = LOCAL
    again = record(status("released"), status("released", second=2), modules=MODULES)
    server.on[RECORD] = [promoted(), again]
    server.on[AQL] = [held("bb", "cc"), held("aa", "bb", "cc")]
    server.on[PROMOTE] = said()
    given = options(status="released", target_repo="rel")
    plan, values = server.run(BuildPromoteOperation, given, check=check)
    assert plan.changed
    assert values["missing_files"] == ["app/a.jar"]
    assert plan.before["missing_files"] == ["app/a.jar"]
    assert plan.after["missing_files"] == []
    assert server.asked.count(PROMOTE) == int(not check)


def test_repeated_promotion_without_the_files_is_an_error(server: Server) -> None:
    server.on[RECORD] = [
        promoted(),
        record(status("released"), status("released", second=2), modules=MODULES),
    ]
    server.on[AQL], server.on[PROMOTE] = held("bb", "cc"), said()
    error = server.fails(BuildPromoteOperation, options(status="released", target_repo="rel"))
    assert error.kind == "failed"
    assert "still does not contain the content of app/a.jar" in error.message


def test_missing_files_of_a_moved_build_are_a_conflict(server: Server) -> None:
    server.on[RECORD], server.on[AQL] = promoted(), held("aa")
    given = options(status="released", target_repo="rel", copy=False)
    error = server.fails(BuildPromoteOperation, given)
    assert (error.kind, PROMOTE in server.asked) == ("conflict", False)
    assert "b.jar, c.jar" in error.message


def test_only_artifacts_of_source_repository_count(server: Server) -> None:
    server.on[RECORD], server.on[AQL] = promoted(), held("aa", "bb")
    given = options(status="released", target_repo="rel", source_repo="stage")
    plan, _ignored = server.run(BuildPromoteOperation, given)
    assert not plan.changed


@pytest.mark.parametrize("query", [Reply(400, "no such field"), held()])
@pytest.mark.parametrize("listing", [Reply(403), Reply(404)])
def test_unlistable_target_is_not_promoted_again(
    server: Server, query: Reply, listing: Reply
) -> None:
    server.on[RECORD], server.on[AQL] = promoted(), query
    server.on["GET /api/storage/rel?list"] = listing
    plan, _ignored = server.run(
        BuildPromoteOperation, options(status="released", target_repo="rel")
    )
    assert not plan.changed
    assert ["cannot be compared" in text for text in server.warnings] == [True]


def test_empty_target_is_promoted_again(server: Server) -> None:
    server.on[RECORD], server.on[AQL] = promoted(), held()
    server.on["GET /api/storage/rel?list"] = Reply(body={"files": []})
    plan, values = server.run(
        BuildPromoteOperation, options(status="released", target_repo="rel"), check=True
    )
    assert plan.changed
    assert values["missing_files"] == ["app/a.jar", "b.jar", "c.jar"]


def test_target_is_listed_if_server_has_no_queries(server: Server) -> None:
    server.dialect = "generic"
    server.on[RECORD] = promoted()
    files = [{"uri": f"/x/{digest}", "size": 1, "sha1": digest} for digest in ("aa", "bb", "cc")]
    server.on["GET /api/storage/rel?list&deep=1"] = Reply(body={"files": files})
    plan, _ignored = server.run(
        BuildPromoteOperation, options(status="released", target_repo="rel")
    )
    assert not plan.changed
    assert len(server.asked) <= 2


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ([STAGES[0]], r"followed_by\[0\] promotes the build 'app' #7 to the status 'a' again"),
        ([STAGES[1], {**STAGES[0], "target_repo": None}], r"followed_by\[1\] promotes"),
        ([STAGES[1], STAGES[1]], r"followed_by\[1\] promotes .* 'b' again"),
    ],
)
def test_ambiguous_later_promotions_are_rejected(
    server: Server, later: list[dict[str, Any]], said: str
) -> None:
    with pytest.raises(ToolchainError, match=said) as caught:
        server.operation(BuildPromoteOperation, {**STAGES[0], "followed_by": later})
    assert (caught.value.kind, server.asked) == ("invalid", [])


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2026-01-01T02:00:00.000+0200", "2026-01-01T00:30:00Z"),
        ("2026-01-01T00:00:00.678901233Z", "2026-01-01T00:00:00.679Z"),
        ("2026-01-01T00:00:00.678", "2026-01-01T00:00:01,1"),
        ("2026-01-01 01:30:00 +01:00", "2026-01-01T01:00:00+00"),
        (1767225600000, 1767225600001),
        ("1767225600000", "2026-01-01T00:00:00.001+0000"),
    ],
)
def test_times_are_parsed_in_many_formats(older: Any, newer: Any) -> None:
    entries = [{"status": "b", "timestamp": newer}, {"status": "a", "timestamp": older}]
    assert [promotion.status for promotion in promotions({"statuses": entries})] == ["a", "b"]


@pytest.mark.parametrize("time", [None, "", "yesterday", "2026-13-01T00:00:00Z", 10**30])
def test_promotion_without_time_keeps_its_position(time: Any) -> None:
    early, late = (f"2026-01-0{day}T00:00:00.000+0000" for day in (1, 2))
    entries = [
        {"status": "c", "timestamp": late},
        {"status": "d", "timestamp": time},
        {"status": "a", "timestamp": early},
        {"status": "b"},
        "no promotion",
    ]
    found = [promotion.status for promotion in promotions({"statuses": entries})]
    assert found == ["a", "b", "c", "d"]
    assert promotions({"statuses": None}) == []


def test_promotion_without_status_is_recognized_by_file_locations(server: Server) -> None:
    artifacts = [{"artifacts": [{"sha1": "1"}, {"sha1": "2"}]}]
    rows = [{"repo": "rel", "actual_sha1": "1"}, {"repo": "stage", "actual_sha1": "2"}]
    there = [*rows, {"repo": "rel", "actual_sha1": "2"}]
    server.on["GET /api/repositories/rel"] = LOCAL
    server.on[RECORD] = record(modules=artifacts)
    server.on["POST /api/search/aql"] = [Reply(body={"results": found}) for found in (rows, there)]
    plan, _ignored = server.run(BuildPromoteOperation, options(target_repo="rel"), check=True)
    assert plan.changed
    before = len(server.asked)
    plan, values = server.run(BuildPromoteOperation, options(target_repo="rel"), check=True)
    assert not plan.changed
    assert values["promotion"]["repository"] == "rel"
    # the record, the target, and a search that also shows that no file is missing
    assert len(server.asked) - before == 3
    plan, _ignored = server.run(
        BuildPromoteOperation, options(target_repo="rel", copy=False), check=True
    )
    assert plan.changed


@pytest.mark.parametrize("modules", [None, [], [{"id": "m", "dependencies": [{"sha1": "1"}]}]])
def test_promotion_of_a_build_without_files_changes_nothing(server: Server, modules: Any) -> None:
    server.on["GET /api/repositories/rel"] = LOCAL
    server.on[RECORD] = record(modules=modules)
    server.on["POST /api/search/aql"] = Reply(body={"results": []})
    plan, values = server.run(BuildPromoteOperation, options(target_repo="rel"))
    assert (plan.changed, values["promoted"]) == (False, True)
    assert not any(asked.startswith(PROMOTE) for asked in server.asked)
    [warning] = server.warnings
    assert "the build 'app' #7 has no files" in warning


def test_build_without_files_is_not_promoted_to_an_unknown_repository(server: Server) -> None:
    server.on["GET /api/repositories/nowhere"] = Reply(404)
    server.on["GET /api/repositories"] = Reply(body=json.dumps([{"key": "rel", "type": "LOCAL"}]))
    server.on[RECORD] = record(modules=[])
    server.on["POST /api/search/aql"] = Reply(body={"results": []})
    server.on[PROMOTE] = Reply(404, "Cannot find target repository by the key 'nowhere'.")
    for check in (True, False):
        with pytest.raises(ToolchainError) as caught:
            server.run(BuildPromoteOperation, options(target_repo="nowhere"), check=check)
        assert caught.value.kind == "not_found"


def test_files_without_digest_are_not_taken_for_no_files(server: Server) -> None:
    server.on["GET /api/repositories/rel"] = LOCAL
    server.on[RECORD] = record(modules=[{"artifacts": [{"name": "a"}]}])
    server.on["POST /api/search/aql"] = Reply(body={"results": []})
    plan, _values = server.run(BuildPromoteOperation, options(target_repo="rel"), check=True)
    assert plan.changed


def test_promotion_of_nothing_is_rejected(server: Server) -> None:
    error = server.fails(BuildPromoteOperation, options(target_repo="rel", artifacts=False))
    assert error.kind == "invalid"
    assert "artifacts, dependencies" in error.message
    assert server.asked == []


def test_incomplete_record_is_read_again(server: Server) -> None:
    server.on[RECORD] = [Reply(404), record(status("released"))]
    plan, _ignored = server.run(BuildPromoteOperation, options(status="released"))
    assert not plan.changed
    server.on[RECORD] = Reply(404, {"errors": [{"message": "No build was found"}]})
    error = server.fails(BuildPromoteOperation, options(status="released"))
    assert error.kind == "not_found"
    assert "No build was found" in error.message


def test_names_are_url_encoded(server: Server) -> None:
    server.on["GET /api/build/team/app/1.0+5"] = Reply(400, "")
    error = server.fails(
        BuildPromoteOperation, options(build_name="team/app", build_number="1.0+5", status="x")
    )
    assert server.stub.seen[0].target == "/base/api/build/team%2Fapp/1.0%2B5"
    assert "encoded slash" in error.message


@pytest.mark.parametrize("option", ["build_name", "build_number"])
def test_name_invalid_in_a_path_is_rejected(server: Server, option: str) -> None:
    error = server.fails(BuildPromoteOperation, {**options(status="x"), option: ".."})
    assert (error.kind, error.message) == (
        "invalid",
        f"{option} is '..', which is not a name: set it to a name or id",
    )
    assert server.asked == []


# --- requests


def test_promotion_request_body(server: Server) -> None:
    server.on["GET /api/repositories/v"] = VIRTUAL
    server.on[RECORD] = [record(), record(status("released"))]
    server.on[PROMOTE] = said()
    given = options(
        status="released",
        target_repo="v",
        ci_user="me",
        scopes=["compile"],
        properties={"a": "x", "b": ["y ", True], "c": None},
        copy=False,
        dependencies=True,
    )
    server.run(BuildPromoteOperation, given)
    assert server.bodies(PROMOTE) == [
        {
            "status": "released",
            "targetRepo": "v",
            "ciUser": "me",
            "scopes": ["compile"],
            "properties": {"a": ["x"], "b": ["y ", "true"]},
            "copy": False,
            "artifacts": True,
            "dependencies": True,
            "failFast": True,
        }
    ]


def test_generic_dialect_sends_only_documented_fields(server: Server) -> None:
    server.dialect = "generic"
    server.on[RECORD] = record()
    server.on[PROMOTE] = Reply(200)
    plan, values = server.run(BuildPromoteOperation, options(status="released"))
    assert plan.changed
    assert values["messages"] == []
    assert values["promotion"]["status"] == "released"
    known = {"status": "released", "copy": True, "artifacts": True, "dependencies": False}
    server.run(BuildPromoteOperation, options(status="released", fail_fast=False, comment="c"))
    assert server.bodies(PROMOTE) == [known, {**known, "failFast": False, "comment": "c"}]


# --- meaning of responses


@pytest.mark.parametrize("code", [200, 400])
def test_error_message_in_a_200_is_an_error(server: Server, code: int) -> None:
    server.on[RECORD] = record()
    server.on[PROMOTE] = said(("WARNING", "slow"), ("ERROR", "no room for a.jar"), code=code)
    error = server.fails(BuildPromoteOperation, options(status="released"))
    assert (error.kind, error.status) == ("rejected", code)
    assert "no room for a.jar" in error.message
    assert [message["level"] for message in error.result["messages"]] == ["WARNING", "ERROR"]


def test_errors_member_in_a_200_is_an_error(server: Server) -> None:
    server.on[RECORD] = record()
    for body in ({"errors": [{"status": 400, "message": "no room"}]}, {"messages": [ERROR]}):
        server.on[PROMOTE] = Reply(200, body)
        error = server.fails(BuildPromoteOperation, options(status="released"))
        assert (error.kind, error.status) == ("rejected", 200)
        assert error.message.endswith(("no room", "an error without a message"))
        assert error.result["messages"][0]["level"] == "ERROR"


@pytest.mark.parametrize(
    ("body", "messages"),
    [("null", []), ("{}", []), ("", []), ('"fine"', ["fine"]), ("fine\n", ["fine"])],
)
def test_messages_of_unusual_shape_are_returned(
    server: Server, body: str, messages: list[str]
) -> None:
    server.on[RECORD] = [record(), record(status("released", None))]
    server.on[PROMOTE] = Reply(200, body)
    _ignored, values = server.run(BuildPromoteOperation, options(status="released"))
    assert [message["message"] for message in values["messages"]] == messages


def test_truncated_response_is_a_protocol_error(server: Server) -> None:
    server.dialect = "generic"
    server.on[RECORD] = record()
    server.on[PROMOTE] = Reply(200, '{"messages": [{"level": "ERR')
    assert server.fails(BuildPromoteOperation, options(status="released")).kind == "protocol"


@pytest.mark.parametrize("hidden", [Reply(404), Reply(body="[]")])
def test_unlistable_target_repository_is_left_to_the_server(server: Server, hidden: Reply) -> None:
    server.on["GET /api/repositories"] = hidden
    server.on[RECORD] = [record(), record(status("released"))]
    server.on[PROMOTE] = said()
    plan, values = server.run(BuildPromoteOperation, options(status="released", target_repo="rel"))
    assert plan.changed
    assert values["promotion"]["repository"] == "rel"
    assert server.warnings[0].startswith("cannot read the repository 'rel'")


@pytest.mark.parametrize(("dialect", "asked"), [("jfrog", [True]), ("generic", [])])
def test_missing_target_repository_fails_in_check_mode(
    server: Server, dialect: str, asked: list[bool]
) -> None:
    server.dialect = dialect
    server.on["GET /api/repositories"] = Reply(body="[]")
    server.on[RECORD] = shown()
    server.on[PROMOTE] = Reply(404, "Cannot find target repository by the key 'rel'.")
    with pytest.raises(ToolchainError) as caught:
        server.run(BuildPromoteOperation, options(status="x", target_repo="rel"), check=True)
    assert caught.value.kind == "not_found"
    assert [body["dryRun"] for body in server.bodies(PROMOTE)] == asked


def test_rejection_of_unusual_shape_is_an_error(server: Server) -> None:
    server.on[RECORD] = record()
    server.on[PROMOTE] = Reply(400, {"errors": [{"message": "aborting promotion."}]})
    error = server.fails(BuildPromoteOperation, options(status="released"))
    assert error.kind == "rejected"
    assert "aborting promotion." in error.message


@pytest.mark.parametrize(
    "reply",
    [
        Reply(
            400, {"errors": [{"message": "Unable to find artifacts of build 'app' #7: aborting"}]}
        ),
        said(("ERROR", "Unable to find artifacts of build 'app' #7: aborting"), code=400),
    ],
)
def test_rejection_for_missing_files_says_what_to_do(server: Server, reply: Reply) -> None:
    server.on[RECORD], server.on[PROMOTE] = record(), reply
    error = server.fails(BuildPromoteOperation, options(status="released", source_repo="stage"))
    assert "Unable to find artifacts of build 'app' #7" in error.message
    assert "no items of 'stage' with these digests" in error.message
    assert "run build_publish" in error.message


@pytest.mark.parametrize(("code", "changed"), [(200, True), (400, False)])
def test_rejected_promotion_leaves_changed_false(server: Server, code: int, changed: bool) -> None:
    server.on[RECORD] = record()
    server.on[PROMOTE] = said(("ERROR", "no room for a.jar"), code=code)
    task = server.task()
    operation = BuildPromoteOperation(task, build(BuildPromoteOptions, **options(status="x")))
    with pytest.raises(ToolchainError) as caught:
        operation.apply(operation.plan())
    assert task.failure(caught.value)["changed"] is changed


def test_warning_of_server_is_shown(server: Server) -> None:
    server.on[RECORD] = [record(), record(status("released", None))]
    server.on[PROMOTE] = said(("WARNING", "b.jar was skipped"))
    server.run(BuildPromoteOperation, options(status="released"))
    assert server.warnings == ["promoting the build 'app' #7: b.jar was skipped"]


def test_promotion_without_effect_is_an_error(server: Server) -> None:
    server.on[RECORD] = record(status("staged"))
    server.on[PROMOTE] = said()
    error = server.fails(BuildPromoteOperation, options(status="released"))
    assert error.kind == "failed"
    assert "'staged'" in error.message


def test_promotion_missing_in_record_is_an_error(server: Server) -> None:
    server.on[RECORD] = record()
    server.on[PROMOTE] = said()
    error = server.fails(BuildPromoteOperation, options(status="released"))
    assert error.kind == "failed"
    assert error.message.endswith("the newest promotion in the record is missing")


@pytest.mark.parametrize("page", ["<html><body>Welcome</body></html>", "\n<p>Please sign in</p>"])
@pytest.mark.parametrize("gate", [True, False])
def test_html_page_is_an_error_and_no_change(server: Server, gate: bool, page: str) -> None:
    server.on[RECORD] = record()
    server.on[PROMOTE] = Reply(200, page)
    task, given = server.task(), options(status="released", gate=gate)
    operation = BuildPromoteOperation(task, build(BuildPromoteOptions, **given))
    with pytest.raises(ToolchainError) as caught:
        operation.apply(operation.plan())
    assert caught.value.kind == "protocol"
    assert task.failure(caught.value)["changed"] is False


@pytest.mark.parametrize("odd", [5, {"status": "released"}, [None, "released"]])
def test_record_of_unusual_shape_has_no_promotion(server: Server, odd: Any) -> None:
    server.on[RECORD] = Reply(body={"buildInfo": {"statuses": odd, "modules": odd}})
    server.on["POST /api/search/aql"] = Reply(body={"results": []})
    plan, _values = server.run(BuildPromoteOperation, options(target_repo="rel"), check=True)
    assert plan.changed


def test_lost_response_is_verified_and_not_resent(server: Server) -> None:
    server.on[RECORD] = [record(), record(status("released", None))]
    server.on[PROMOTE] = Reply(cut=True)
    plan, values = server.run(BuildPromoteOperation, options(status="released"))
    assert plan.changed
    assert values["promotion"]["user"] == "u"
    assert server.asked.count(PROMOTE) == 1


@pytest.mark.parametrize(("moved", "said"), [([], "nothing was changed"), (["a"], "is not known")])
def test_interrupted_promotion_has_an_unknown_outcome(
    server: Server, moved: list[str], said: str
) -> None:
    server.on["GET /api/repositories/rel"] = LOCAL
    server.on[RECORD] = record()
    server.on[PROMOTE] = Reply(500)
    rows = [{"repo": "rel", "path": path} for path in moved]
    server.on["POST /api/search/aql"] = Reply(body={"results": rows})
    given = options(status="released", target_repo="rel", copy=False)
    assert said in str(server.fails(BuildPromoteOperation, given))
    assert server.asked.count(PROMOTE) == 1


def test_lost_response_without_effect_is_an_error(server: Server) -> None:
    server.on[RECORD] = record(status("released"))
    server.on[PROMOTE] = Reply(cut=True)
    error = server.fails(BuildPromoteOperation, options(status="released", force=True))
    assert error.outcome_unknown
    assert server.asked.count(PROMOTE) == 1


# --- rehearsal


@pytest.mark.parametrize("check", [True, False])
def test_failed_dry_run_prevents_the_promotion(server: Server, check: bool) -> None:
    server.on[RECORD] = record()
    server.on[PROMOTE] = said(("ERROR", "no permission"))
    given = options(status="released", gate=True)
    operation = server.operation(BuildPromoteOperation, given, check=check)
    with pytest.raises(ToolchainError, match=r"rehearsing.*no permission"):
        operation.plan()
    [body] = server.bodies(PROMOTE)
    assert body["dryRun"] is True


def test_successful_dry_run_is_followed_by_the_promotion(server: Server) -> None:
    server.on[RECORD] = [shown(), shown(status("released", None))]
    server.on[PROMOTE] = said(("INFO", "fine"))
    server.run(BuildPromoteOperation, options(status="released", gate=True))
    assert [body.get("dryRun") for body in server.bodies(PROMOTE)] == [True, None]


@pytest.mark.parametrize("check", [True, False])
def test_ignored_dry_run_is_an_error(server: Server, check: bool) -> None:
    server.dialect = "generic"
    server.on[RECORD] = [record(), record(status("released", None))]
    server.on[PROMOTE] = said()
    task, given = server.task(check=check), options(status="released", gate=True)
    operation = BuildPromoteOperation(task, build(BuildPromoteOptions, **given))
    with pytest.raises(ToolchainError, match="ignored the dry run") as caught:
        operation.plan()
    assert (caught.value.kind, task.failure(caught.value)["changed"]) == ("failed", True)
    assert server.asked.count(PROMOTE) == 1


VERSION = "GET /api/system/version"
GIVEN = options(status="released")


def test_check_mode_runs_the_dry_run_of_the_server(server: Server) -> None:
    server.on[RECORD] = shown()
    server.on[PROMOTE] = said(("ERROR", "no permission"))
    with pytest.raises(ToolchainError, match=r"rehearsing.*no permission") as caught:
        server.run(BuildPromoteOperation, GIVEN, check=True)
    assert caught.value.kind == "rejected"
    assert server.asked == [RECORD, PROMOTE]
    assert [body["dryRun"] for body in server.bodies(PROMOTE)] == [True]


def test_dry_run_in_check_mode_is_not_a_write(server: Server) -> None:
    server.on[RECORD] = shown()
    server.on[PROMOTE] = said(("INFO", "fine"))
    plan, values = server.run(BuildPromoteOperation, GIVEN, check=True)
    assert (plan.changed, values["messages"]) == (True, [])


@pytest.mark.parametrize(
    ("dialect", "told", "asked"),
    [
        # nothing shows that the server respects dryRun, whatever the options of the task are
        ("generic", record(), [RECORD]),
        ("generic", shown(), [RECORD]),
        ("jfrog", record(), [RECORD, VERSION]),
        ("auto", record(), [RECORD, VERSION]),
    ],
)
def test_check_mode_sends_no_dry_run_to_unsafe_servers(
    server: Server, dialect: str, told: Reply, asked: list[str]
) -> None:
    server.dialect, server.on[RECORD] = dialect, told
    plan, _values = server.run(BuildPromoteOperation, GIVEN, check=True)
    assert plan.changed
    assert server.asked == asked


@pytest.mark.parametrize("dialect", ["jfrog", "auto"])
def test_server_behind_proxy_is_asked_for_its_version(server: Server, dialect: str) -> None:
    server.dialect, server.on[RECORD] = dialect, record()
    server.on[VERSION] = Reply(body={"version": "7.77.5"})
    server.on[PROMOTE] = said(("INFO", "fine"))
    server.run(BuildPromoteOperation, GIVEN, check=True)
    assert server.asked == [RECORD, VERSION, PROMOTE]


@pytest.mark.parametrize(
    "given",
    [
        {"status": ""},
        {"status": "x", "build_name": " "},
        {"target_repo": "a/b"},
        {"target_repo": ""},
        {"status": "x", "properties": {"a": {"b": "c"}}},
    ],
)
def test_contradictory_options_are_rejected_before_any_request(
    server: Server, given: dict[str, Any]
) -> None:
    assert server.fails(BuildPromoteOperation, options(**given)).kind == "invalid"
    assert server.asked == []
