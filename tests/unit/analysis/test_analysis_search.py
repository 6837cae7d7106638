# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import threading
import tracemalloc
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.client import (
    AnalysisClient,
    Call,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.issues import (
    issue_search,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.issues.analysis_issue_info import (
    AnalysisIssueInfoOperation,
    AnalysisIssueInfoOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.issues.issue_search import (
    IssueSearch,
    SearchRequest,
    SearchResult,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from tests.helpers.options import build
from tests.unit.analysis.server import Stub, lines, refusal, sent, task_for
from tests.unit.stub import Reply, connection_to

MANY = 20_000
PAGE = "<!DOCTYPE html><html><head><title>Web API Reference</title></head><p>x</p></html>"


def issue(number: int, **members: Any) -> dict[str, Any]:
    return {
        "id": number,
        "status": "Analyze",
        "severity": "Critical",
        "severityCode": 1,
        "state": "New",
        "code": "ABV.GENERAL",
        "message": "Array may overflow",
        "file": "/src/a.c",
        "url": f"https://analysis.example.com/x?id={number}",
        "issueIds": [number],
        **members,
    }


ONE = json.dumps(issue(1)) + "\n"


def summary(total: int, **members: Any) -> dict[str, Any]:
    return {"summary": {"total": total, "limit": 1000, "warnings": [], **members}}


def searched(stub: Stub, **asked: Any) -> tuple[SearchResult, list[str]]:
    task, warnings = task_for(stub)
    found = IssueSearch(task, AnalysisClient(task)).read(SearchRequest("p", **asked))
    return found, warnings


def info(stub: Stub, **options: Any) -> tuple[Mapping[str, Any], list[str]]:
    """Return the return values of the module, and its warnings."""
    given = build(AnalysisIssueInfoOptions, project="p", **options)
    task, warnings = task_for(stub, read_only=True)
    return AnalysisIssueInfoOperation(task, given).plan().result, warnings


def gate(*replies: Reply, thresholds: list[dict[str, Any]], **options: Any) -> ToolchainError:
    filled = [{"max": 0, **threshold} for threshold in thresholds]
    with Stub(*replies) as stub, pytest.raises(ToolchainError) as caught:
        info(stub, thresholds=filled, **options)
    return caught.value


# Complete and truncated lists


def test_summary_is_separated_from_the_issues() -> None:
    reply = lines(issue(1), issue(2), summary(2))
    with Stub(reply) as stub:
        found, _warnings = searched(stub, query="state:New", view="mine", limit=5)
    assert [each["id"] for each in found.issues] == [1, 2]
    assert (found.total, found.complete) == (2, True)
    assert sent(stub) == [
        {
            "action": "search",
            "project": "p",
            "query": "state:New",
            "view": "mine",
            "limit": "5",
            "summary": "true",
        }
    ]


def test_omitted_issues_are_requested_again() -> None:
    # The server's own limit is not published: the summary shows that the list was truncated.
    with Stub(lines(issue(1), summary(3)), lines(*map(issue, (1, 2, 3)), summary(3))) as stub:
        found, _warnings = searched(stub)
    assert [each["id"] for each in found.issues] == [1, 2, 3]
    assert found.complete
    assert [form.get("limit") for form in sent(stub)] == [None, "4"]


def test_list_shorter_than_its_limit_is_complete_without_total() -> None:
    with Stub(lines(issue(1)), lines(issue(1), issue(2))) as stub:
        found, _warnings = searched(stub)
    assert (len(found.issues), found.total, found.complete) == (2, None, True)
    assert int(sent(stub)[1]["limit"]) > 100_000


@pytest.mark.parametrize(
    ("reply", "limit", "complete"),
    [
        ([issue(1)], 1, False),
        ([issue(1)], 2, True),
        ([issue(1), summary(2)], 1, False),
        ([issue(1), summary(1)], 1, True),
        ([issue(1), {"summary": {"item_count": "7"}}], 5, False),
        ([issue(1), {"summary": {}}], 5, True),
        ([], 1, True),
    ],
)
def test_list_as_long_as_its_limit_may_be_truncated(
    reply: list[dict[str, Any]], limit: int, complete: bool
) -> None:
    with Stub(lines(*reply)) as stub:
        assert searched(stub, limit=limit)[0].complete is complete


def test_truncated_list_gives_a_warning() -> None:
    with Stub(lines(issue(1), summary(9))) as stub:
        result, warnings = info(stub, limit=1)
    assert result["complete"] is False
    assert warnings == [
        "searching for issues of the project 'p': the list may be incomplete: 1 of 9 issues"
    ]


def test_query_warnings_of_the_server_are_returned() -> None:
    with Stub(lines(issue(1), summary(1, warnings=["Unknown keyword: colour"]))) as stub:
        result, warnings = info(stub, query="colour:red")
    assert result["summary"]["warnings"] == ["Unknown keyword: colour"]
    (warning,) = warnings
    assert warning.endswith("with the query 'colour:red': Unknown keyword: colour")


def test_warnings_may_be_a_string() -> None:
    with Stub(lines(issue(1), summary(1, warnings="Unknown keyword: x"))) as stub:
        found, _warnings = searched(stub)
    assert found.warnings == ["Unknown keyword: x"]


@pytest.mark.parametrize(
    ("total", "limit", "complete"),
    [(3, 3, True), (4, 9, True), (4, 3, False), (5, 9, False)],
)
def test_total_may_count_folded_issues(total: int, limit: int, complete: bool) -> None:
    records = lines(issue(1, issueIds=[1, 2]), issue(3), issue(4), summary(total))
    with Stub(records) as stub:
        found, _warnings = searched(stub, limit=limit)
    assert found.complete is complete


def test_summary_is_not_requested_if_disabled() -> None:
    with Stub(lines(issue(1))) as stub:
        result, _warnings = info(stub, summary=False, limit=5)
    assert (result["summary"], result["complete"]) == (None, True)
    assert "summary" not in sent(stub)[0]


def test_issue_with_a_member_summary_is_an_issue() -> None:
    with Stub(lines(issue(1, summary={"total": 5}), summary(1))) as stub:
        assert len(searched(stub)[0].issues) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"limit": 0}, "limit is 0"),
        ({"query": "build:a build:b"}, "2 builds; use only one"),
        ({"query": "build:a", "build": "b"}, "2 builds; use only one"),
        ({"id": 1, "limit": 2}, "limit cannot be combined with id"),
        ({"id": 1, "build": "b"}, "build cannot be combined with id"),
        ({"thresholds": [{"max": -1}]}, "max is -1: set it to 0 or more"),
        ({"max_offenders": 0}, "max_offenders is 0"),
    ],
)
def test_invalid_options_are_rejected_before_any_request(
    options: dict[str, Any], words: str
) -> None:
    with Stub() as stub, pytest.raises(ToolchainError, match=words) as caught:
        info(stub, **options)
    assert caught.value.kind == "invalid"


# Builds


BUILDS = lines({"id": 1, "name": "build_1"}, {"id": 2, "name": "my build"})


@pytest.mark.parametrize(
    "options",
    [{"build": "build_9"}, {"query": "state:New build:9x"}, {"query": "build:+'build'"}],
)
def test_missing_build_is_not_an_empty_list(options: dict[str, Any]) -> None:
    with Stub(lines(summary(0)), BUILDS) as stub, pytest.raises(ToolchainError) as caught:
        info(stub, **options)
    assert caught.value.kind == "not_found"
    assert "does not exist" in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"build": "my build"}, {"query": "build:ild_1"}, {"query": "build:any"}]
)
def test_build_without_matching_issues_is_an_empty_list(options: dict[str, Any]) -> None:
    with Stub(lines(summary(0)), BUILDS) as stub:
        assert info(stub, **options)[0]["issues"] == []


def test_build_with_issues_is_not_checked() -> None:
    with Stub(lines(issue(1), summary(1))) as stub:
        info(stub, build="my build", query="state:New")
    assert sent(stub)[0]["query"] == "build:+'my build' state:New"


# Responses


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (refusal(400, "Unknown parameter: view"), "rejected", "Unknown parameter"),
        (refusal(400, "Project p does not exist", answered=200), "not_found", "does not exist"),
        (refusal(401, "Please run kwauth"), "auth", "check username and ltoken"),
        (Reply(body=ONE + '{"status": 500, "message": "lost it"}'), "server", "lost it"),
        (Reply(body=PAGE), "protocol", "HTML"),
        (Reply(404, PAGE), "not_found", "this is not a code analysis server"),
        (Reply(body=ONE + '{"id": 2, "sta'), "protocol", "truncated"),
        (Reply(body=f"{ONE}nonsense\n{ONE}"), "protocol", "not JSON"),
        (Reply(body=ONE + ONE, truncate=300), "network", "was lost"),
        (Reply(503), "server", "503"),
    ],
)
def test_malformed_response_is_an_error(reply: Reply, kind: str, words: str) -> None:
    with Stub(reply) as stub, pytest.raises(ToolchainError, match=words) as caught:
        searched(stub, limit=10)
    assert caught.value.kind == kind
    assert "<" not in str(caught.value)


def test_blank_lines_and_crlf_are_accepted() -> None:
    body = "\r\n".join(["", json.dumps(issue(1)), "", json.dumps(summary(1)), ""])
    with Stub(Reply(body=body)) as stub:
        found, _warnings = searched(stub)
    assert ([each["id"] for each in found.issues], found.total) == ([1], 1)


def test_truncated_list_is_requested_again() -> None:
    whole = lines(issue(1), issue(2), summary(2))
    half = Reply(body=whole.body, truncate=len(whole.payload) - 10)
    with Stub(half, whole) as stub:
        task, _warnings = task_for(stub)
        task.connection.settings["retries"] = 1  # type: ignore[index]
        found = IssueSearch(task, AnalysisClient(task)).read(SearchRequest("p"))
    assert [each["id"] for each in found.issues] == [1, 2]


def test_repeatedly_truncated_list_is_an_error() -> None:
    half = Reply(body=json.dumps(issue(1)), truncate=20)
    with Stub(half, half, half) as stub:
        task, _warnings = task_for(stub)
        task.connection.settings["retries"] = 2  # type: ignore[index]
        with pytest.raises(ToolchainError) as caught:
            IssueSearch(task, AnalysisClient(task)).read(SearchRequest("p"))
    assert caught.value.kind == "network"
    assert (len(stub.seen), task.accounting.retries) == (3, 2)


def test_error_for_a_long_query_is_short() -> None:
    query = "code:" + ",".join(["ABV.GENERAL"] * 999)
    with Stub(refusal(400, "no " * 999)) as stub, pytest.raises(ToolchainError) as caught:
        searched(stub, query=query)
    assert "code:ABV.GENERAL" in str(caught.value)
    assert "no no" in str(caught.value)
    assert len(str(caught.value)) < 1300


def test_write_cannot_be_streamed() -> None:
    with Stub() as stub:
        task, _warnings = task_for(stub)
        with pytest.raises(AssertionError, match="not a read"):
            AnalysisClient(task).stream("deleting", Call("delete_role"), list)


class _Lines(BaseHTTPRequestHandler):
    """Respond with many issues, as separate lines."""

    def do_POST(self) -> None:
        # an unread request body would turn the end of the connection into a reset
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        part = ONE.encode() * 1000
        for _number in range(MANY // 1000):
            self.wfile.write(part)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is inherited
        """Print nothing to the terminal."""


def test_many_issues_are_read_line_by_line() -> None:
    # Only stored issues take memory: here none, of a response of 5 MB.
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Lines)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        connection = connection_to(url, "analysis", settings={"timeout": 120})
        warnings: list[str] = []
        client = AnalysisClient(Task(connection, warnings.append, True))
        tracemalloc.start()
        seen = client.stream("searching", Call("search"), lambda found: sum(1 for _one in found))
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        server.shutdown()
        server.server_close()
        thread.join()
    assert seen == MANY
    assert peak < 2 * 1024 * 1024


# A single issue


def test_single_issue_is_read_with_its_history() -> None:
    record = {"id": "7", "status": "Fix", "history": [{"date": 1, "comment": "x"}]}
    with Stub(lines(record)) as stub:
        result, _warnings = info(stub, id=7)
    assert result == {"issues": [{**record, "id": 7}], "summary": None, "complete": True}
    assert sent(stub) == [{"action": "issue_details", "project": "p", "id": "7"}]


@pytest.mark.parametrize("reply", [Reply(), refusal(404, "Issue 7 does not exist")])
def test_missing_issue_is_not_found(reply: Reply) -> None:
    with Stub(reply) as stub, pytest.raises(ToolchainError, match="no issue 7") as caught:
        info(stub, id=7)
    assert caught.value.kind == "not_found"


def test_missing_project_is_named() -> None:
    reply = refusal(404, "Project p does not exist")
    with Stub(reply) as stub, pytest.raises(ToolchainError, match="Project p does not exist"):
        info(stub, id=7)


# The gate


TYPES = lines({"code": "ABV.GENERAL"}, {"code": "RNPD.CALL"})
MIXED = (
    issue(1),
    issue(2, state="Existing"),
    issue(3, severity="Review", severityCode=4, code="MISRA.CAST.INT"),
    issue(4, severity="Review", severityCode=4, code="MISRA.ETYPE", status="Ignore"),
)


@pytest.mark.parametrize(
    ("threshold", "count"),
    [
        ({}, 4),
        ({"severity": ["Critical"]}, 2),
        ({"severity": ["critical"], "state": ["NEW"]}, 1),
        ({"severity": ["1", "4"]}, 4),
        ({"severity": ["Review"], "status": ["Analyze"]}, 1),
        ({"code": ["MISRA.*", "ABV.GENERAL"]}, 4),
        ({"code": ["misra.cast.*"]}, 1),
        ({"state": ["Fixed"]}, 0),
    ],
)
def test_threshold_counts_its_criteria(threshold: dict[str, Any], count: int) -> None:
    at_most = {"max": count, **threshold}
    with Stub(lines(*MIXED, summary(4))) as stub:
        result, warnings = info(stub, thresholds=[at_most])
    assert result["thresholds"] == [{**at_most, "count": count, "exceeded": False}]
    assert (len(result["issues"]), result["offenders"], warnings) == (4, [], [])
    if count:
        error = gate(lines(*MIXED, summary(4)), thresholds=[{**at_most, "max": count - 1}])
        assert error.kind == "failed"
        assert error.result["thresholds"][0]["exceeded"] is True
        assert len(error.result["offenders"]) == count


def test_failed_gate_names_the_first_issues_with_links() -> None:
    many = [issue(number) for number in range(1, 31)]
    error = gate(
        lines(*many, summary(30)),
        TYPES,
        thresholds=[{"severity": ["Critical"], "state": ["New"]}, {"code": ["RNPD.*"], "max": 3}],
        build="build_1",
    )
    assert str(error) == (
        "the quality gate of the project 'p': 30 issues with severity Critical and state New"
        " (max 0); the first: #1 ABV.GENERAL /src/a.c https://analysis.example.com/x?id=1;"
        " #2 ABV.GENERAL /src/a.c https://analysis.example.com/x?id=2;"
        " #3 ABV.GENERAL /src/a.c https://analysis.example.com/x?id=3"
    )
    assert [threshold["exceeded"] for threshold in error.result["thresholds"]] == [True, False]
    assert [threshold["count"] for threshold in error.result["thresholds"]] == [30, 0]
    assert [offender["id"] for offender in error.result["offenders"]] == list(range(1, 21))
    assert error.result["offenders"][0]["url"] == "https://analysis.example.com/x?id=1"
    assert error.result["complete"] is True


def test_error_of_a_gate_is_short() -> None:
    long = issue(1, file="/long" * 500)
    assert len(str(gate(lines(long, summary(1)), thresholds=[{}]))) <= 900


def test_severity_with_slash_fails_the_gate() -> None:
    own = issue(1, severity="Minor / Style", severityCode=5)
    error = gate(lines(own, summary(1)), thresholds=[{"severity": ["minor*"]}])
    assert error.result["thresholds"][0]["count"] == 1


def test_truncated_list_fails_the_gate() -> None:
    error = gate(lines(issue(1), summary(9)), thresholds=[{"state": ["Fixed"]}], limit=1)
    assert error.kind == "failed"
    assert "cannot pass" in str(error)
    assert "1 of 9 issues" in str(error)
    assert error.result["complete"] is False
    assert error.result["thresholds"][0]["count"] == 0


def test_missing_build_fails_the_gate() -> None:
    error = gate(lines(summary(0)), BUILDS, thresholds=[{}], build="build_9")
    assert error.kind == "not_found"


def test_folded_issues_are_counted_individually() -> None:
    folded = lines(issue(1, issueIds=[1, 2, 3]), summary(1))
    one_by_one = lines(issue(1), issue(2), issue(3, state="Existing"), summary(3))
    with Stub(folded, one_by_one) as stub:
        result, _warnings = info(stub, query="state:New", thresholds=[{"max": 3}])
    assert result["thresholds"][0]["count"] == 3
    assert [form["query"] for form in sent(stub)] == ["state:New", "grouping:off state:New"]


@pytest.mark.parametrize("query", [None, "grouping:on"])
def test_record_of_several_issues_counts_each_issue(query: str | None) -> None:
    folded = lines(issue(1, issueIds=[1, 2, 3]), summary(1))
    replies = [folded] * (2 if query is None else 1)
    error = gate(*replies, thresholds=[{"max": 2}], query=query)
    assert error.result["thresholds"][0]["count"] == 3


def test_renamed_severity_counts_by_its_number() -> None:
    error = gate(
        lines(issue(1, severity="Blocker"), summary(1)), thresholds=[{"severity": ["Critical"]}]
    )
    assert error.result["thresholds"][0]["count"] == 1


@pytest.mark.parametrize("hidden", [(), ("severity", "severityCode", "state")])
def test_issue_with_hidden_criteria_counts(hidden: tuple[str, ...]) -> None:
    bare = {"id": 1, "code": "X", **dict.fromkeys(hidden)}
    error = gate(lines(bare, summary(1)), thresholds=[{"severity": ["1"], "state": ["New"]}])
    assert [offender["id"] for offender in error.result["offenders"]] == [1]


SLIPS = {
    "severity": ["Critical", "Critcal"],
    "state": ["Novel"],
    "status": ["Analyse", "Fix in*"],
}


@pytest.mark.parametrize("name", SLIPS)
def test_unknown_criterion_is_rejected(name: str) -> None:
    error = gate(lines(*MIXED, summary(4)), thresholds=[{"max": 99}, {name: SLIPS[name]}])
    wrong = next(word for word in SLIPS[name] if word.startswith(("Critc", "Nov", "Analyse")))
    assert error.kind == "invalid"
    place = f"thresholds[1].{name}[{SLIPS[name].index(wrong)}] is '{wrong}'"
    assert str(error).startswith(place)
    assert ("'New', 'Existing', 'Fixed'" in str(error)) == (name == "state")


def test_message_about_an_unknown_criterion_has_the_labels_of_the_project() -> None:
    renamed = issue(9, severity="Blocker", severityCode=1)
    error = gate(lines(renamed, summary(1)), thresholds=[{"severity": ["Bloker"]}])
    assert "use one of 'Blocker', 'Critical', 'Error'" in str(error)


@pytest.mark.parametrize("number", range(5, 11))
def test_severities_above_review_are_documented(number: int) -> None:
    found = issue(1, severity="Advisory", severityCode=number)
    for word in (str(number), f"severity {number}"):
        error = gate(lines(found, summary(1)), thresholds=[{"severity": [word]}])
        assert error.kind == "failed"
        with Stub(lines(summary(0))) as stub:
            result, _warnings = info(stub, thresholds=[{"severity": [word]}], query="state:New")
        assert result["thresholds"][0]["count"] == 0


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        ({"id": "a-1", "status": 500, "message": "Out of memory", "timestamp": 1}, "server"),
        ({"id": 7, "status": 404, "error": "Project not found"}, "not_found"),
        ({"error": "Project x does not exist"}, "not_found"),
        ({"error": {"code": 403, "message": "no"}}, "permission"),
        ({"id": 7, "fault": "Out of memory"}, "protocol"),
        ({"id": "a-1", "code": 500}, "protocol"),
    ],
)
def test_error_object_is_no_issue(record: dict[str, Any], kind: str) -> None:
    with Stub(lines(issue(1), record)) as stub, pytest.raises(ToolchainError) as caught:
        info(stub)
    assert caught.value.kind == kind
    assert kind != "protocol" or "Out of memory" in str(caught.value) or "a-1" in str(caught.value)


@pytest.mark.parametrize("narrow", [{"query": "state:New"}, {"view": "v"}, {"build": "build_1"}])
def test_criterion_known_to_the_project_is_accepted(narrow: dict[str, str]) -> None:
    renamed = issue(9, severity="Blocker", severityCode=1, status="Parked", state="Reborn")
    thresholds = [{"severity": ["blocker"], "status": ["Park*"], "state": ["Reborn"], "max": 9}]
    with Stub(lines(issue(1), summary(1)), lines(issue(1), renamed, summary(2))) as stub:
        result, warnings = info(stub, thresholds=thresholds, **narrow)
    assert (result["thresholds"][0]["count"], warnings) == (0, [])
    assert [form.get("query") for form in sent(stub)][1] is None
    with Stub(lines(issue(1), renamed, summary(2))) as stub:
        result, _warnings = info(stub, thresholds=thresholds)
    assert result["thresholds"][0]["count"] == 1


def test_documented_criteria_need_no_lookup() -> None:
    thresholds = [{"severity": ["1", "error", "Rev*"], "status": ["Not a Problem"], "max": 9}]
    with Stub(lines(summary(0))) as stub:
        assert info(stub, thresholds=thresholds, query="state:New")[1] == []


def test_unknown_defect_code_gives_a_warning() -> None:
    thresholds = [{"code": ["ABV.*", "RNPD.*", "RNDP.*"], "max": 9}]
    with Stub(lines(*MIXED, summary(4)), TYPES) as stub:
        _result, warnings = info(stub, thresholds=thresholds, query=None)
    (warning,) = warnings
    assert warning.startswith(
        "thresholds[0].code[2] is 'RNDP.*', but no defect type of the project 'p'"
    )
    assert [form["action"] for form in sent(stub)] == ["search", "defect_types"]


@pytest.mark.parametrize("body", ["", "\n", PAGE, "{}", '{"ok": true}', '{"summary": "x"}', "[]"])
@pytest.mark.parametrize("options", [{}, {"summary": False}, {"query": "state:New"}])
@pytest.mark.parametrize("build", [None, "b"])
def test_gate_needs_a_response_of_the_service(
    body: str, options: dict[str, Any], build: str | None
) -> None:
    stub = Stub(response=lambda seen: Reply(body=body), answers=False)
    with stub, pytest.raises(ToolchainError) as caught:
        info(stub, thresholds=[{"max": 9}], build=build, **options)
    assert caught.value.kind == "protocol"
    stub = Stub(response=lambda seen: Reply(body=body), answers=False)
    with stub, pytest.raises(ToolchainError) as caught:
        info(stub, build=build, **options)
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize("reply", [lines(), lines(issue(1))])
@pytest.mark.parametrize("options", [{}, {"limit": 5}, {"summary": False}])
def test_gate_needs_a_summary(reply: Reply, options: dict[str, Any]) -> None:
    with Stub(response=lambda seen: reply) as stub, pytest.raises(ToolchainError) as caught:
        info(stub, thresholds=[{"max": 9}], **options)
    assert (caught.value.kind, "no summary" in str(caught.value)) == ("protocol", True)
    assert all(form["summary"] == "true" for form in sent(stub))


@pytest.mark.parametrize(
    ("counts", "limit"),
    [
        ({"item_count": 3}, None),
        ({"item_count": 3, "limit": 3}, None),
        ({"total": 3, "limit": 3}, None),
        ({"total": 3}, 3),
        ({"total": 2, "limit": 3}, None),
        ({"total": 2, "item_count": 9}, None),
        ({}, None),
    ],
)
def test_count_that_is_no_total_passes_no_gate(counts: dict[str, int], limit: int | None) -> None:
    reply = lines(*map(issue, (1, 2, 3)), {"summary": counts})
    with Stub(response=lambda seen: reply) as stub, pytest.raises(ToolchainError) as caught:
        info(stub, thresholds=[{"max": 9}], limit=limit)
    assert (caught.value.kind, "cannot pass" in str(caught.value)) == ("failed", True)
    assert caught.value.result["complete"] is False


def test_total_below_the_limit_passes_the_gate() -> None:
    first = lines(issue(1), summary(1, limit=1))
    whole = lines(issue(1), issue(2), summary(2, limit=1_000_000))
    with Stub(first, whole) as stub:
        result, warnings = info(stub, thresholds=[{"max": 9}], summary=False)
    assert (result["thresholds"][0]["count"], result["complete"], warnings) == (2, True, [])
    assert result["summary"] is None


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("build:release", r"set build to 'release', or write build:\+release"),
        ("state:New build:'my build'", r"or write build:\+'my build'"),
        ("build:last", "may match other builds"),
        ("build:12", "may match other builds"),
        ("severity: 1,2", "'severity:' without a value"),
        ("severity:", "without a value"),
        ("severity:1, 2", "without a value"),
        ("severity:,", "without a value"),
        ("status:'' state:New", "without a value"),
        ("build:+", "without a value"),
        ("severity : 1", "':' without a value"),
        ("severity :1", "':1' without a keyword"),
        ("status:Not a Problem", "quote a value with blanks, as in status:'Not a Problem'"),
        ("state:New status:Fix in Next Release", "as in status:'Fix in Next Release'"),
        ("build:+my build", r"as in build:\+'my build'"),
        ("state:New owner:o'neil", "without its pair"),
    ],
)
def test_inexact_query_of_a_gate_is_rejected_before_any_request(query: str, words: str) -> None:
    with Stub() as stub, pytest.raises(ToolchainError, match=words) as caught:
        info(stub, query=query, thresholds=[{"max": 9}])
    assert caught.value.kind == "invalid"


@pytest.mark.parametrize(
    "query",
    [
        "build:+'my build' state:New",
        "build:+build_1",
        "overflow state:New 'two words'",
        "status:'Not a Problem',Fix severity:1-3 file:*/src/*",
        'grouping:off owner:"a b" code:A,B',
    ],
)
def test_exact_query_of_a_gate_is_accepted(query: str) -> None:
    with Stub(lines(issue(1), summary(1))) as stub:
        info(stub, query=query, thresholds=[{"max": 9}])
    assert sent(stub)[0]["query"] == query


def test_other_searches_reject_only_empty_values() -> None:
    with Stub(lines(issue(1), summary(1))) as stub:
        info(stub, query="build:rel state:New overflow")
    with Stub() as stub, pytest.raises(ToolchainError, match="without a value"):
        info(stub, query="severity: 1")


def test_issue_of_another_program_is_no_issue() -> None:
    for body in ('{"ok": true}', '{"id": 8}', "[]", PAGE):
        with Stub(Reply(body=body)) as stub, pytest.raises(ToolchainError) as caught:
            info(stub, id=7)
        assert caught.value.kind == "protocol"
    stub = Stub(response=lambda seen: Reply(), answers=False)
    with stub, pytest.raises(ToolchainError) as caught:
        info(stub, id=7)
    assert caught.value.kind == "protocol"


# The lookup


def test_lookup_returns_issues_and_warns_of_a_truncated_list() -> None:
    with Stub(lines(issue(1), summary(3))) as stub:
        task, warnings = task_for(stub)
        options = issue_search.SearchOptions("p", query="state:New", limit=1)
        assert issue_search.issues(task, options) == [issue(1)]
    assert len(warnings) == 1
    assert "1 of 3 issues" in warnings[0]
