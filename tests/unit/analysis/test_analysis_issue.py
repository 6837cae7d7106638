# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.issues import (
    issue_details,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.issues.analysis_issue import (
    AnalysisIssueOperation,
    AnalysisIssueOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Plan
from tests.helpers.options import build
from tests.unit.analysis.server import Stub, refusal, sent, task_for
from tests.unit.stub import Reply, Seen

Issues = dict[int, dict[str, Any]]


class Server:
    """A simulated server with issues: `folds` shows all of them as a single issue, `deaf` ignores
    writes.
    """

    def __init__(self, *ids: int, **options: Any) -> None:
        self.issues: Issues = {
            number: {"id": number, "code": "X.Y", "status": "Analyze", "owner": "unowned"}
            for number in ids
        }
        self.history: dict[int, list[dict[str, Any]]] = {number: [] for number in ids}
        self.warnings: list[str] = options.pop("warnings", [])
        self.folds: bool = options.pop("folds", False)
        self.deaf: bool = options.pop("deaf", False)
        self.shows_history: bool = options.pop("shows_history", True)
        self.lost: Reply | None = options.pop("lost", None)
        self.refused_after: int | None = options.pop("refused_after", None)
        assert not options
        self.writes = 0

    def __call__(self, seen: Seen) -> Reply:
        form = seen.form
        response: Reply = getattr(self, form["action"])(form)
        return response

    def search(self, form: Mapping[str, str]) -> Reply:
        wanted = re.fullmatch(r"""status:['"]?(.*?)['"]?""", form["query"])
        shown = [
            dict(issue)
            for issue in self.issues.values()
            if wanted is None or str(issue["status"]).casefold() == wanted[1].casefold()
        ]
        if self.folds and not form["query"].startswith("grouping:off"):
            shown = [{**shown[0], "issueIds": list(self.issues)}]
        summary = {"summary": {"total": len(shown), "warnings": self.warnings}}
        records = [*shown[: int(form["limit"])], summary]
        return Reply(body="".join(json.dumps(record) + "\n" for record in records))

    def issue_details(self, form: Mapping[str, str]) -> Reply:
        number = int(form["id"])
        if number not in self.issues:
            return Reply()
        record = {**self.issues[number], "id": str(number)}
        record.pop("bugTrackerId", None)  # only searches show it
        if self.shows_history:
            record["history"] = self.history[number]
        return Reply(body=json.dumps(record) + "\n")

    def update_status(self, form: Mapping[str, str]) -> Reply:
        self.writes += 1
        if self.refused_after is not None and self.writes > self.refused_after:
            return refusal(403, "You are not allowed to change the status")
        if self.lost is not None and self.lost.status == 500:
            return self.lost
        for number in map(int, form["ids"].split(",")):
            if not self.deaf:
                changed = {name: form[name] for name in ("status", "owner") if name in form}
                if "bug_tracker_id" in form:
                    changed["bugTrackerId"] = form["bug_tracker_id"]
                self.issues[number].update(changed)
            entry = {"date": 100 + len(self.history[number]), "comment": form.get("comment", "")}
            self.history[number].append(entry)
        return self.lost or Reply()


def plan(stub: Stub, **options: Any) -> tuple[AnalysisIssueOperation, Plan]:
    given = build(AnalysisIssueOptions, project="p", **options)
    operation = AnalysisIssueOperation(task_for(stub)[0], given)
    return operation, operation.plan()


def run(server: Server, **options: Any) -> tuple[Plan, Mapping[str, Any], list[dict[str, str]]]:
    """Plan and apply; return the plan, the return values, and the writes that were sent."""
    with Stub(response=server) as stub:
        operation, planned = plan(stub, **options)
        result = operation.apply(planned) if planned.changed else planned.result
        writes = [form for form in sent(stub) if form["action"] == "update_status"]
    return planned, result, writes


def failure(server: Server, **options: Any) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        run(server, **options)
    return caught.value


def test_only_different_issues_are_written_and_verified() -> None:
    server = Server(1, 2, 3)
    server.issues[2]["status"] = "fix"  # names of statuses are case-insensitive
    planned, result, writes = run(server, ids=[3, 1, 2, 3], status="Fix")
    assert writes == [{"action": "update_status", "project": "p", "ids": "3,1", "status": "Fix"}]
    assert planned.before == {"3": {"status": "Analyze"}, "1": {"status": "Analyze"}}
    assert planned.after == {"3": {"status": "Fix"}, "1": {"status": "Fix"}}
    expected = {"code": "X.Y", "status": "Fix", "owner": "unowned", "comment": ""}
    assert result["issues"] == [{"id": 3, **expected}, {"id": 1, **expected}]
    assert planned.result == result
    assert run(server, ids=[3, 1, 2], status="Fix")[0].changed is False


def test_issues_of_a_query_take_one_search() -> None:
    server = Server(1, 2)
    server.issues[1]["owner"] = "bob"
    with Stub(response=server) as stub:
        _operation, planned = plan(stub, query="state:New", owner="bob")
        assert [form["action"] for form in sent(stub)] == ["search"]
        assert sent(stub)[0]["limit"] == "501"
    assert planned.after == {"2": {"owner": "bob"}}


def test_issues_with_equal_changes_are_written_in_batches() -> None:
    server = Server(*range(1, 251))
    for number in range(1, 31):
        server.issues[number]["status"] = "Fix"
    _planned, result, writes = run(server, query="x", status="Fix", owner="bob")
    sizes = [(len(form["ids"].split(",")), "status" in form) for form in writes]
    assert sizes == [(30, False), (100, True), (100, True), (20, True)]
    assert all(form["owner"] == "bob" for form in writes)
    assert {issue["owner"] for issue in result["issues"]} == {"bob"}
    assert len(result["issues"]) == 250


# Comments


def test_comment_is_sent_with_another_change() -> None:
    server = Server(1)
    planned, result, writes = run(server, query="x", status="Fix", comment="look")
    assert writes[0]["comment"] == "look"
    assert planned.after == {"1": {"status": "Fix", "comment": "look"}}
    assert result["issues"][0]["comment"] == "look"
    assert run(server, query="x", status="Fix", comment="look")[2] == []


@pytest.mark.parametrize("how", [{"ids": [1, 2]}, {"query": "x"}])
def test_single_comment_is_written_unless_it_is_the_newest(how: dict[str, Any]) -> None:
    server = Server(1, 2)
    # The newest comment by its date, regardless of its position; changes without a comment do not
    # count.
    server.history[1] = [
        {"date": 20, "comment": "look\r\n"},
        {"date": 30, "comment": ""},
        {"date": 10, "comment": "old"},
    ]
    server.history[2] = [{"date": 10, "comment": "look"}, {"date": 20, "comment": "Look"}]
    planned, _result, writes = run(server, comment="look", **how)
    assert [form["ids"] for form in writes] == ["2"]
    assert (planned.before, planned.after) == (
        {"2": {"comment": "Look"}},
        {"2": {"comment": "look"}},
    )


def test_comment_is_always_written_without_history() -> None:
    server = Server(1, shows_history=False)
    for _time in range(2):
        planned, result, writes = run(server, ids=[1], comment="look")
        assert (planned.changed, len(writes)) == (True, 1)
        assert "comment" not in result["issues"][0]


# Errors before the first write


@pytest.mark.parametrize("place", [lambda old, new: [*old, new], lambda old, new: [new, *old]])
@pytest.mark.parametrize("dates", ["same", "numbers", "texts"])
def test_newest_comment_is_found_in_either_order(place: Any, dates: str) -> None:
    history: list[dict[str, Any]] = []
    for number in range(11):
        date = {"same": 5, "numbers": number, "texts": str(number)}[dates]
        history = place(history, {"date": date, "comment": f"c{number}"})
    if dates == "same" and history[0]["comment"] == "c10":
        # equal dates do not show the order: the changes come in the order of their creation
        history.reverse()
    assert issue_details.newest_comment({"history": history}) == "c10"


@pytest.mark.parametrize(
    ("record", "comment"),
    [
        ({}, None),
        ({"comment": None}, None),
        ({"comment": "x"}, "x"),
        ({"history": None, "comment": "x"}, ""),
        ({"history": []}, ""),
        ({"history": [{"comment": 7}, {"comment": None}]}, "7"),
    ],
)
def test_comment_is_found_in_any_format(record: dict[str, Any], comment: str | None) -> None:
    assert issue_details.newest_comment(record) == comment


def test_non_string_members_are_compared_as_strings() -> None:
    server = Server(1)
    server.issues[1].update(status=4, code=12, owner=None)
    planned, result, _writes = run(server, ids=[1], status="4", owner="bob")
    assert planned.before == {"1": {}}
    assert result["issues"] == [
        {"id": 1, "code": "12", "status": "4", "owner": "bob", "comment": ""}
    ]


def test_exceeding_max_issues_is_rejected() -> None:
    server = Server(1, 2, 3)
    error = failure(server, query="state:New", status="Fix", max_issues=2)
    assert (error.kind, server.writes) == ("invalid", 0)
    assert "3 issues match, but max_issues is 2" in str(error)
    assert failure(server, ids=[1, 2, 3], status="Fix", max_issues=2).kind == "invalid"
    assert run(server, query="x", status="Fix", max_issues=3)[0].changed


def test_query_with_server_warnings_is_rejected() -> None:
    # The query would match all issues.
    server = Server(1, warnings=["Unknown keyword: colour"])
    error = failure(server, query="colour:red", status="Fix")
    assert (error.kind, server.writes) == ("rejected", 0)
    assert "Unknown keyword: colour" in str(error)


def test_all_missing_issues_are_named() -> None:
    server = Server(1)
    error = failure(server, ids=[1, 8, 9], status="Fix")
    assert (error.kind, server.writes) == ("not_found", 0)
    assert "no issue 8, 9" in str(error)
    assert len(str(failure(server, ids=list(range(1000, 1500)), status="Fix"))) < 1000


def test_folded_issues_are_searched_individually() -> None:
    # A folded issue may have another status than the issue that is shown.
    server = Server(1, 2, 3, folds=True)
    server.issues[2]["status"] = "Fix"
    _planned, _result, writes = run(server, query="state:New", status="Fix")
    assert [form["ids"] for form in writes] == ["1,3"]
    error = failure(server, query="grouping:on", status="Ignore")
    assert (error.kind, "list their ids in ids" in str(error)) == ("invalid", True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ids": [1], "status": "Fix", "max_issues": 0}, "max_issues is 0"),
        ({"query": "build:a build:b", "status": "Fix"}, "2 builds; use only one"),
    ],
)
def test_invalid_options_are_rejected_before_any_request(
    options: dict[str, Any], words: str
) -> None:
    with Stub() as stub, pytest.raises(ToolchainError, match=words) as caught:
        plan(stub, **options)
    assert caught.value.kind == "invalid"


def test_empty_list_of_ids_is_unchanged() -> None:
    with Stub() as stub:
        assert plan(stub, ids=[], status="Fix")[1].result == {"issues": []}
        task, warnings = task_for(stub)
        AnalysisIssueOperation(task, build(AnalysisIssueOptions, project="p", ids=[], status="Fix"))
        assert warnings == ["ids is empty, so no issue is changed"]


@pytest.mark.parametrize(
    ("status", "others", "searches", "said"),
    [
        ("fix IN next Release", "Analyze", 0, None),
        ("analyze", "Waiting", 0, None),
        ("Waiting", "waiting", 1, None),
        (
            "Fixx",
            "Analyze",
            1,
            "'Fixx' may not exist: it is not documented, and no issue of the project 'p'",
        ),
        ("Fixx", "Analyze", 1, "did you mean 'Fix'?"),
        ("Waiting", "Analyze", 1, "documented statuses: Analyze, Ignore, "),
    ],
)
def test_unknown_status_gives_a_warning(
    status: str, others: str, searches: int, said: str | None
) -> None:
    server = Server(1, 2)
    server.issues[2]["status"] = others
    with Stub(response=server) as stub:
        task, warnings = task_for(stub)
        given = build(AnalysisIssueOptions, project="p", ids=[1], status=status)
        AnalysisIssueOperation(task, given).plan()
        assert [form["action"] for form in sent(stub)].count("search") == searches
    assert [str(said) in warning for warning in warnings] == ([] if said is None else [True])


def test_current_status_needs_no_search() -> None:
    server = Server(1)
    server.issues[1]["status"] = "Waiting"
    with Stub(response=server) as stub:
        assert not plan(stub, ids=[1], status="Waiting")[1].changed
        assert [form["action"] for form in sent(stub)] == ["issue_details"]


# Results of a write


def test_dropped_fields_are_reported() -> None:
    error = failure(Server(1, 2, deaf=True), ids=[1, 2], status="Fix", comment="look")
    assert error.kind == "rejected"
    assert "did not save status of 2 issues (1, 2)" in str(error)


def test_rejected_batch_keeps_earlier_batches() -> None:
    server = Server(*range(1, 121), refused_after=1)
    error = failure(server, query="x", status="Fix")
    assert (error.kind, server.writes) == ("permission", 2)
    assert len(error.result["issues"]) == 100
    assert "updating 20 issues (101, 102, " in str(error)


def test_lost_response_is_verified_and_not_resent() -> None:
    server = Server(1, 2, lost=Reply(cut=True))
    _planned, result, writes = run(server, ids=[1, 2], status="Fix", comment="look")
    assert len(writes) == 1
    assert [issue["status"] for issue in result["issues"]] == ["Fix", "Fix"]


@pytest.mark.parametrize("shows_history", [True, False])
def test_unverified_lost_write_is_an_error(shows_history: bool) -> None:
    server = Server(1, lost=Reply(cut=True), deaf=shows_history, shows_history=shows_history)
    error = failure(server, ids=[1], status="Fix", comment="look")
    assert (error.kind, error.outcome_unknown, server.writes) == ("network", True, 1)
    message = "nothing was changed" if shows_history else "whether it was done is not known"
    assert str(error).endswith(f"; {message}")


def test_rejected_write_is_reported() -> None:
    server = Server(1, lost=refusal(500, "lost the database"))
    assert failure(server, ids=[1], status="Fix").kind == "server"
    assert server.writes == 1


@pytest.mark.parametrize("selection", [{"ids": [1, 2]}, {"query": "x"}])
def test_id_of_the_bug_tracker_is_compared(selection: dict[str, Any]) -> None:
    server = Server(1, 2)
    server.issues[2]["bugTrackerId"] = "TOOL-7"
    planned, result, writes = run(server, bug_tracker_id="TOOL-7", **selection)
    assert planned.before == {"1": {}}
    assert writes == [
        {"action": "update_status", "project": "p", "ids": "1", "bug_tracker_id": "TOOL-7"}
    ]
    assert [issue["bug_tracker_id"] for issue in result["issues"]] == ["TOOL-7"]
    assert run(server, bug_tracker_id="TOOL-7", **selection)[0].changed is False
    server.deaf = True
    error = failure(server, bug_tracker_id="TOOL-8", **selection)
    assert (error.kind, "bug_tracker_id" in str(error)) == ("rejected", True)
