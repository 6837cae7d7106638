# SPDX-License-Identifier: GPL-3.0-or-later
"""Test which account a name stands for: several of a name, hidden addresses, missing members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing import (
    tracker_issue,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing.issue_options import (
    IssueRemovals,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.projects import (
    tracker_component,
    tracker_project_role,
)
from tests.unit.stub import Reply, Seen, Stub
from tests.unit.tracker.running import Run

Person = dict[str, Any]
Options = tracker_issue.TrackerIssueOptions


def person(number: str, name: str | None = None, mail: str | None = None) -> Person:
    return {"accountId": number, "displayName": name, "emailAddress": mail}


ANN = person("a1", "Ann Example", "ann@example.com")
OTHER_ANN = person("a2", "Ann Example", "other@example.com")
HIDDEN = person("h1", "Hanna Hidden")
NAMELESS: Person = {"accountId": "n1", "displayName": None, "emailAddress": None, "key": None}
FIELDS = [
    {"id": "assignee", "name": "Assignee", "schema": {"type": "user", "system": "assignee"}},
    {"id": "customfield_1", "name": "Tester", "schema": {"type": "user"}},
    {"id": "customfield_2", "name": "Helpers", "schema": {"type": "array", "items": "user"}},
]


class Site:
    """A tracker with people and an issue; `changes` are the bodies of its writes."""

    def __init__(self, people: Sequence[Person], kind: str = "Cloud", **fields: Any) -> None:
        self.people, self.kind, self.fields = people, kind, fields
        self.watchers: Sequence[Person] = ()
        self.watch_count: int | None = None
        self.changes: list[tuple[str, bytes]] = []
        self.more: dict[str, Any] = {}

    def __call__(self, seen: Seen) -> Reply:
        route = seen.path.partition("/rest/api/")[2][2:]
        query = {name: value[0] for name, value in parse_qs(urlsplit(seen.target).query).items()}
        if seen.method != "GET":
            self.changes.append((f"{seen.method} {route} {query.get('accountId', '')}", seen.body))
            return Reply(204)
        if route == "user":
            wanted = query.get("accountId") or query["username"]
            member = "accountId" if self.kind == "Cloud" else "name"
            found = [one for one in self.people if one.get(member) == wanted]
            return Reply(body=found[0]) if found else Reply(404, {"errorMessages": ["No user"]})
        if route == "user/search":
            start, size = int(query.get("startAt", 0)), int(query["maxResults"])
            return Reply(body=self.people[start : start + size])  # type: ignore[arg-type]
        count = len(self.watchers) if self.watch_count is None else self.watch_count
        answers: dict[str, Any] = {
            "serverInfo": {"deploymentType": self.kind},
            "myself": {"accountId": "me", "name": "me"},
            "field": FIELDS,
            "issue/APP-1": {"id": "1", "key": "APP-1", "fields": self.fields},
            "issue/APP-1/watchers": {"watchCount": count, "watchers": self.watchers},
            **self.more,
        }
        return Reply(body=answers[route])

    def run(self, options: Any, make: Any = tracker_issue.TrackerIssueOperation) -> dict[str, Any]:
        """Run a task, and return its return values and `warnings`."""
        with Stub(response=self) as stub:
            task = Run(stub, make, options)
            return {**task(check=True), "warnings": task.warnings}


def changes(result: dict[str, Any]) -> list[tuple[Any, Any]]:
    (issue,) = result["issues"]
    return [(change["before"], change["after"]) for change in issue["changes"]]


@pytest.mark.parametrize("name", ["a1", "ann@example.com", "ANN example "])
@pytest.mark.parametrize("option", ["assignee", "fields", "watchers"])
def test_account_is_found_by_id_address_and_name(option: str, name: str) -> None:
    values: dict[str, Any] = {
        "assignee": name,
        "fields": {"Tester": name},
        "watchers": [name.strip()],
    }
    result = Site([ANN, HIDDEN, NAMELESS]).run(Options(issue="APP-1", **{option: values[option]}))
    ((before, after),) = changes(result)
    assert before is None
    assert after == (name.strip() if option == "watchers" else "a1")
    assert not result["warnings"]


@pytest.mark.parametrize("kind", ["Cloud", "Server"])
@pytest.mark.parametrize("name", ["none", "None", "null"])
def test_missing_member_is_no_name(kind: str, name: str) -> None:
    people = [{**NAMELESS, "name": "nobody"}]
    for options in (Options(issue="APP-1", assignee=name), Options(issue="APP-1", watchers=[name])):
        with pytest.raises(ToolchainError, match="there is no such account") as caught:
            Site(people, kind).run(options)
        assert caught.value.kind == "not_found"


@pytest.mark.parametrize("kind", ["Cloud", "Server"])
def test_account_without_an_id_is_no_account(kind: str) -> None:
    people: list[Person] = [{"displayName": "Ann", "key": "ann", "emailAddress": "a@example.com"}]
    for name in ("Ann", "ann", "a@example.com"):
        with pytest.raises(ToolchainError, match="there is no such account"):
            Site(people, kind).run(Options(issue="APP-1", watchers=[name]))


def test_watchers_without_a_name_are_not_removed() -> None:
    site = Site([])
    site.watchers = [NAMELESS, HIDDEN]
    remove = IssueRemovals(watchers=["None", "none"])
    assert site.run(Options(issue="APP-1", remove=remove))["changed"] is False


@pytest.mark.parametrize(
    "options",
    [
        Options(issue="APP-1", assignee="Ann Example"),
        Options(issue="APP-1", fields={"Helpers": ["Ann Example"]}),
        Options(issue="APP-1", watchers=["Ann Example"]),
        Options(issue="APP-1", remove=IssueRemovals(watchers=["Ann Example"])),
    ],
)
def test_several_accounts_of_a_name_are_invalid(options: Options) -> None:
    site = Site([ANN, OTHER_ANN])
    site.watchers = [ANN]
    with pytest.raises(ToolchainError, match=r"Ann Example \(a1\), Ann Example \(a2\)") as caught:
        site.run(options)
    assert caught.value.kind == "invalid"


def test_other_account_of_a_name_may_be_on_a_later_page() -> None:
    others = [person(f"x{number}", f"Ann Example{number}") for number in range(120)]
    options = Options(issue="APP-1", assignee="Ann Example")
    with pytest.raises(ToolchainError, match=r"\(a1\), Ann Example \(a2\)"):
        Site([ANN, *others, OTHER_ANN]).run(options)
    assert changes(Site([*others, ANN]).run(options)) == [(None, "a1")]


def test_too_many_accounts_are_invalid() -> None:
    others = [person(f"x{number}", f"Ann{number}") for number in range(1000)]
    with pytest.raises(ToolchainError, match="use the accountId instead"):
        Site(others).run(Options(issue="APP-1", assignee="Ann"))


def test_hidden_address_is_accepted_for_a_single_account() -> None:
    options = Options(issue="APP-1", assignee="hanna@example.com", watchers=["hanna@example.com"])
    site = Site([HIDDEN], assignee={"accountId": "h1"})
    site.watchers = [HIDDEN]
    result = site.run(options)
    assert result["changed"] is False
    (warning,) = result["warnings"]
    assert "Hanna Hidden (h1)" in warning
    site.watchers = [HIDDEN, ANN]
    gone = Options(issue="APP-1", remove=IssueRemovals(watchers=["hanna@example.com"]))
    assert changes(site.run(gone)) == [("hanna@example.com", None)]


@pytest.mark.parametrize("second", [person("h2", "Hans Hidden"), ANN])
def test_hidden_address_is_invalid_for_several_accounts(second: Person) -> None:
    with pytest.raises(ToolchainError, match=r"Hanna Hidden \(h1\)") as caught:
        Site([HIDDEN, second]).run(Options(issue="APP-1", assignee="hanna@example.com"))
    assert caught.value.kind == "invalid"


@pytest.mark.parametrize("name", ["ann@example.co", "Hanna"])
def test_shown_address_and_part_of_a_name_are_no_match(name: str) -> None:
    people = [ANN] if "@" in name else [HIDDEN]
    with pytest.raises(ToolchainError, match="no such account"):
        Site(people).run(Options(issue="APP-1", assignee=name))


@pytest.mark.parametrize("kind", ["Cloud", "Server"])
@pytest.mark.parametrize("option", ["assignee", "fields"])
def test_empty_name_takes_the_assignee_off(kind: str, option: str) -> None:
    values: dict[str, Any] = {"assignee": "", "fields": {"Assignee": ""}}
    options = Options(issue="APP-1", **{option: values[option]})
    people = [ANN]
    current = {"accountId": "a1", "name": "ann"}
    assert changes(Site(people, kind, assignee=current).run(options)) == [("ann", None)]
    assert Site(people, kind, assignee=None).run(options)["changed"] is False


@pytest.mark.parametrize("watchers", [[], [ANN]])
def test_account_is_not_both_added_and_removed(watchers: list[Person]) -> None:
    site = Site([ANN])
    site.watchers = watchers
    remove = IssueRemovals(watchers=["Ann Example"])
    with pytest.raises(ToolchainError, match="is the account 'a1' in watchers") as caught:
        site.run(Options(issue="APP-1", watchers=["a1"], remove=remove))
    assert caught.value.kind == "invalid"
    result = site.run(Options(issue="APP-1", watchers=["a1", "Ann Example"]))
    assert len(changes(result)) == 1 - len(watchers)


def test_unseen_watcher_cannot_be_removed() -> None:
    site = Site([ANN])
    site.watchers, site.watch_count = [HIDDEN], 3
    options = Options(issue="APP-1", remove=IssueRemovals(watchers=["a1"]))
    with pytest.raises(ToolchainError, match="2 watchers that this account cannot see") as caught:
        site.run(options)
    assert caught.value.kind == "permission"


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("user", b""),
        ("user", b"[]"),
        ("user", b"<html>Sign in</html>"),
        ("user/search", b""),
        ("user/search", b"{}"),
        ("user/search", b"<html>Sign in</html>"),
    ],
)
def test_search_needs_an_answer_of_the_tracker(route: str, body: bytes) -> None:
    def response(seen: Seen) -> Reply:
        return Reply(body=body) if seen.path.endswith(f"/{route}") else site(seen)

    site = Site([])
    with Stub(response=response) as stub, pytest.raises(ToolchainError) as caught:
        Run(stub, tracker_issue.TrackerIssueOperation, Options(issue="APP-1", assignee="Ann"))()
    assert caught.value.kind == "protocol"


def test_lead_of_a_component_is_compared_by_account() -> None:
    lead = {"id": "5", "name": "client", "lead": HIDDEN, "assigneeType": "PROJECT_DEFAULT"}

    def run(name: str, people: Sequence[Person]) -> dict[str, Any]:
        site = Site(people)
        site.more = {"project/APP/components": [lead]}
        options = tracker_component.TrackerComponentOptions(project="APP", name="client", lead=name)
        return site.run(options, tracker_component.TrackerComponentOperation)

    assert run("hanna@example.com", [HIDDEN])["changed"] is False
    assert run("Hanna Hidden", [])["changed"] is False  # disabled: no search finds it
    assert run("ann@example.com", [ANN])["component"]["lead"] == "a1"
    with pytest.raises(ToolchainError, match="no such account"):
        run("None", [])
    with pytest.raises(ToolchainError, match="several accounts"):
        run("Ann Example", [ANN, OTHER_ANN])


def test_group_without_a_name_is_not_the_group_none() -> None:
    site = Site([])
    role = {"id": 10002, "name": "Administrators", "actors": []}
    actor = {"type": "atlassian-group-role-actor", "actorGroup": {"name": "None"}}
    site.more = {
        "project/APP/role": {"Administrators": "https://tracker.example.com/role/10002"},
        "project/APP/role/10002": {**role, "actors": [actor]},
        "myself": {"accountId": "me", "groups": {"items": [{"name": None}]}},
    }
    options = tracker_project_role.TrackerProjectRoleOptions(
        project="APP", role="Administrators", groups=[]
    )
    make = tracker_project_role.TrackerProjectRoleOperation
    assert site.run(options, make)["changed"] is True
    site.more["myself"] = {"accountId": None}  # cannot show whether the account stays
    with pytest.raises(ToolchainError) as caught:
        site.run(options, make)
    assert caught.value.kind == "protocol"
    site.more["project/APP/role/10002"] = {**role, "actors": [{**actor, "actorGroup": {}}]}
    with pytest.raises(ToolchainError) as caught:
        site.run(options, make)
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize("record", [{"id": "1", "name": None}, {"id": None, "name": "x"}, {}, 5])
def test_component_without_a_name_is_no_component(record: Any) -> None:
    site = Site([])
    site.more = {"project/APP/components": [record]}
    options = tracker_component.TrackerComponentOptions(
        project="APP", name="None", state="absent", force=True
    )
    with pytest.raises(ToolchainError) as caught:
        site.run(options, tracker_component.TrackerComponentOperation)
    assert caught.value.kind == "protocol"
