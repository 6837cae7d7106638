# SPDX-License-Identifier: GPL-3.0-or-later
"""Test writes to the sandbox's issue tracker: third-party clients, and plain requests for
special cases.
"""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
import requests
from atlassian import Jira
from jira import JIRA, JIRAError

from sandbox.client import Sandbox

LOGIN = ("reporter", "reporter-password")
API = "/rest/api/2"
XSRF = {"X-Atlassian-Token": "no-check"}
POINTS, AREA, TEAMS = "customfield_10100", "customfield_10101", "customfield_10102"
FIELDS = {
    POINTS: {"name": "Story Points", "type": "number"},
    AREA: {"name": "Area", "type": "option", "options": ["Client", "Server"]},
    TEAMS: {"name": "Area", "type": "array", "items": "string"},
}


@pytest.fixture
def client(sandbox: Sandbox) -> Any:
    return JIRA(sandbox.urls["tracker"], basic_auth=LOGIN, max_retries=0)


def ask(
    sandbox: Sandbox, method: str, path: str, members: Any = None, **query: Any
) -> requests.Response:
    address = sandbox.urls["tracker"] + (path if path.startswith("/rest") else API + path)
    return requests.request(
        method, address, json=members, params=query, headers=XSRF, auth=LOGIN, timeout=10
    )


def refused(response: requests.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    found: dict[str, Any] = response.json()
    return found


def version_id(sandbox: Sandbox, name: str) -> str:
    versions = ask(sandbox, "GET", "/project/REL/versions").json()
    return str(next(version["id"] for version in versions if version["name"] == name))


def fix_versions(sandbox: Sandbox, key: str) -> list[str]:
    fields = ask(sandbox, "GET", f"/issue/{key}", fields="fixVersions").json()["fields"]
    return [version["name"] for version in fields["fixVersions"]]


# -- versions, by third-party clients ------------------------------------------------------------


def test_jira_creates_updates_orders_and_deletes_versions(client: Any, sandbox: Sandbox) -> None:
    made = client.create_version("3.0.0", "REL", description="next", startDate="2026-05-01")
    assert (made.released, made.archived, made.description) == (False, False, "next")
    assert made.userStartDate == "01/May/26"
    assert not hasattr(made, "releaseDate")

    made.update(name="3.0.1", released=True)
    assert (made.name, made.released) == ("3.0.1", True)
    assert not hasattr(made, "releaseDate")

    client.move_version(made.id, position="First")
    names = [version.name for version in client.project_versions("REL")]
    assert names == ["3.0.1", "1.0.0", "1.1.0", "2.0.0"]
    assert client.get_project_version_by_name("REL", "3.0.1").id == made.id

    second = client.get_project_version_by_name("REL", "2.0.0")
    assert client.version_count_unresolved_issues(second.id) == 4
    assert client.version_count_related_issues(second.id)["issuesFixedCount"] == 4
    second.delete(moveFixIssuesTo=made.id)
    assert fix_versions(sandbox, "REL-19") == ["3.0.1"]
    log = client.issue("REL-19", expand="changelog").changelog.histories[-1].items
    assert [(one.field, one.fromString, one.toString) for one in log] == [
        ("Fix Version", "2.0.0", None),
        ("Fix Version", None, "3.0.1"),
    ]
    with pytest.raises(JIRAError, match=r"The value '2\.0\.0' does not exist"):
        client.search_issues("fixVersion = 2.0.0")


def test_jira_edits_and_deletes_its_comment_and_watches(client: Any) -> None:
    made = client.add_comment("REL-1", "first")
    made.update(body="second")
    assert client.comment("REL-1", made.id).body == "second"
    made.delete()
    assert made.id not in [comment.id for comment in client.comments("REL-1")]
    client.add_watcher("REL-1", "alice")
    client.add_watcher("REL-1", "alice")
    assert [watcher.name for watcher in client.watchers("REL-1").watchers] == ["alice"]
    client.remove_watcher("REL-1", "alice")
    assert client.watchers("REL-1").watchCount == 0
    found = client.search_issues('project = REL AND statusCategory in (done, "In Progress")')
    assert {one.fields.status.statusCategory.key for one in found} == {"done", "indeterminate"}


def test_jira_adds_changes_and_deletes_remote_links(client: Any) -> None:
    linked = {"url": "https://ci.example.com/1", "title": "Build 1"}
    made = client.add_remote_link("REL-1", linked, globalId="build", relationship="built by")
    again = client.add_remote_link("REL-1", {**linked, "title": "Build one"}, globalId="build")
    assert again.id == made.id
    plain = client.add_simple_link("REL-1", {**linked, "summary": "first"})
    found = {link.id: link for link in client.remote_links("REL-1")}
    assert (found[made.id].object.title, found[made.id].globalId) == ("Build one", "build")
    assert not hasattr(found[made.id], "relationship")
    assert not hasattr(found[plain.id], "globalId")
    found[plain.id].update({**linked, "title": "Build 2"}, globalId="other")
    assert client.remote_link("REL-1", plain.id).object.title == "Build 2"
    assert not hasattr(client.remote_link("REL-1", plain.id).object, "summary")
    found[made.id].delete()
    assert [link.id for link in client.remote_links("REL-1")] == [plain.id]
    with pytest.raises(JIRAError, match="title"):
        client.add_simple_link("REL-1", {"url": "https://ci.example.com/1"})


def test_jira_creates_updates_counts_and_deletes_components(client: Any) -> None:
    made = client.create_component(
        "installer", "REL", "first", leadUserName="alice", assigneeType="COMPONENT_LEAD"
    )
    assert (made.name, made.lead.name, made.assigneeType) == (
        "installer",
        "alice",
        "COMPONENT_LEAD",
    )
    made.update(name="setup", description="then")
    assert (made.name, made.description) == ("setup", "then")
    names = {component.name: component for component in client.project_components("REL")}
    assert set(names) == {"client", "documentation", "server", "setup"}
    count = client.component_count_related_issues(names["server"].id)
    names["server"].delete(moveIssuesTo=made.id)
    assert client.component_count_related_issues(made.id) == count
    client.delete_component(made.id)
    with pytest.raises(JIRAError) as caught:
        client.component(made.id)
    assert caught.value.status_code == 404


def test_atlassian_handles_components(sandbox: Sandbox) -> None:
    client: Any = Jira(sandbox.urls["tracker"], username=LOGIN[0], password=LOGIN[1], cloud=False)
    made = client.create_component({"name": "installer", "project": "REL"})
    client.update_component_lead(made["id"], "boris")
    assert client.component(made["id"])["lead"]["name"] == "boris"
    client.delete_component(made["id"])
    names = [component["name"] for component in client.get_project_components("REL")]
    assert names == ["client", "documentation", "server"]


def test_jira_sets_the_actors_of_a_role(client: Any) -> None:
    number = client.project_roles("REL")["Developers"]["id"]
    role = client.project_role("REL", number)
    assert [actor.name for actor in role.actors] == ["alice", "developers"]
    role.update(users=["boris"], groups=["developers"])
    assert [actor.name for actor in role.actors] == ["boris", "developers"]
    role.add_user(users=["chloé"])
    actors = client.project_role("REL", number).actors
    assert [actor.name for actor in actors] == ["boris", "chloé", "developers"]


def test_atlassian_adds_and_removes_the_actors_of_a_role(sandbox: Sandbox) -> None:
    client: Any = Jira(sandbox.urls["tracker"], username=LOGIN[0], password=LOGIN[1], cloud=False)
    number = client.get_project_roles("REL")["Users"].rpartition("/")[2]
    client.add_user_into_project_role("REL", number, "alice")
    client.add_group_into_project_role("REL", number, "developers")
    client.delete_project_actors("REL", number, "alice", "user")
    actors = client.get_project_actors_for_role_project("REL", number)
    assert [actor["name"] for actor in actors] == ["developers"]


def test_atlassian_handles_versions(sandbox: Sandbox) -> None:
    client: Any = Jira(sandbox.urls["tracker"], username=LOGIN[0], password=LOGIN[1], cloud=False)
    project = client.project("REL")["id"]
    client.add_version("REL", project, "4.0.0")
    paged = client.get_project_versions_paginated("REL", start=3, limit=5)
    assert [value["name"] for value in paged["values"]] == ["4.0.0"]
    number = version_id(sandbox, "4.0.0")
    client.update_version(number, is_released=True, release_date="2026-06-01")
    shown = client.get_version(number)
    assert (shown["released"], shown["releaseDate"]) == (True, "2026-06-01")
    client.delete_version(number)
    assert len(client.get_project_versions("REL")) == 3


# -- special cases of versions -------------------------------------------------------------------


def test_release_moves_unresolved_issues(sandbox: Sandbox) -> None:
    number, target = (version_id(sandbox, name) for name in ("2.0.0", "1.1.0"))
    address = f"{sandbox.urls['tracker']}{API}/version/{target}"
    unknown = {"released": True, "moveUnfixedIssuesTo": address + "9"}
    refused(ask(sandbox, "PUT", f"/version/{number}", unknown), 404)
    assert ask(sandbox, "GET", f"/version/{number}").json()["released"] is False

    members = {"released": True, "moveUnfixedIssuesTo": address}
    released = ask(sandbox, "PUT", f"/version/{number}", members).json()
    assert (released["released"], "releaseDate" in released) == (True, False)
    assert fix_versions(sandbox, "REL-19") == ["1.1.0"]
    counts = ask(sandbox, "GET", f"/version/{number}/unresolvedIssueCount").json()
    assert counts["issuesUnresolvedCount"] == 0

    sandbox.settings("tracker", unrecognized=["moveUnfixedIssuesTo"])
    words = refused(ask(sandbox, "PUT", f"/version/{number}", members), 400)["errorMessages"][0]
    assert words.startswith('Unrecognized field "moveUnfixedIssuesTo"')


@pytest.mark.parametrize(
    ("members", "field", "words"),
    [
        ({"name": " "}, "name", "^You must specify a valid version name$"),
        ({"name": " 2.0.0 "}, "name", "already exists in this project"),
        ({"name": "1.1.0".upper()}, "name", "already exists"),
        ({"name": "x" * 256}, "name", "255"),
        (
            {"name": "n", "startDate": "2026-02-01", "releaseDate": "2026-01-01"},
            "startDate",
            "before the release date",
        ),
        ({"name": "n", "releaseDate": "31.12.26"}, "releaseDate", "31.12.26"),
        (
            {"name": "n", "releaseDate": "2026-01-01", "userReleaseDate": "01/Jan/26"},
            None,
            "Only one of 'releaseDate' and 'userReleaseDate' can be specified when creating",
        ),
        ({"name": "n", "project": None}, None, "^Project must be specified to create a version.$"),
    ],
)
def test_invalid_version_is_rejected(
    sandbox: Sandbox, members: dict[str, Any], field: str | None, words: str
) -> None:
    given = {name: value for name, value in {"project": "REL", **members}.items() if value}
    response = refused(ask(sandbox, "POST", "/version", given), 400)
    (text,) = [response["errors"][field]] if field else response["errorMessages"]
    assert re.search(words, text)


def test_missing_version_is_not_found(sandbox: Sandbox) -> None:
    response = refused(ask(sandbox, "GET", "/version/x9"), 404)
    assert response["errorMessages"] == ["Could not find version for id 'x9'"]


def test_deleted_version_moves_its_issues_to_the_targets(sandbox: Sandbox) -> None:
    number = version_id(sandbox, "1.0.0")
    other = ask(sandbox, "POST", "/version", {"project": "OPS", "name": "1.0.0"}).json()["id"]
    path = f"/version/{number}/removeAndSwap"
    for target, words in (
        (int(number), "You cannot move the issues to the version being deleted."),
        (4711, "The fix version with id 4711 does not exist."),
        (int(other), f"The fix version with id {other} does not exist."),
        (number, "Can not deserialize 'moveFixIssuesTo': a number is expected"),
    ):
        response = refused(ask(sandbox, "POST", path, {"moveFixIssuesTo": target}), 400)
        assert response["errorMessages"] == [words]
    assert fix_versions(sandbox, "REL-1") == ["1.0.0"]
    target = version_id(sandbox, "1.1.0")
    swap = {"moveFixIssuesTo": int(target)}
    assert ask(sandbox, "POST", path, swap).status_code == 204
    assert fix_versions(sandbox, "REL-1") == ["1.1.0"]
    assert ask(sandbox, "DELETE", f"/version/{target}").status_code == 204
    assert fix_versions(sandbox, "REL-1") == []


def test_dates_of_versions_are_checked(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", version_post_ignores_states=True)
    members = {"project": "REL", "name": " 5 ", "released": True, "releaseDate": "2020-05-31"}
    made = ask(sandbox, "POST", "/version", members)
    assert made.status_code == 201
    shown = made.json()
    assert (shown["name"], shown["released"], shown["overdue"]) == ("5", False, True)
    assert (type(shown["id"]), type(shown["projectId"])) == (str, int)
    path = f"/version/{shown['id']}"
    back = refused(ask(sandbox, "PUT", path, shown), 400)
    assert "Only one of" in back["errorMessages"][0]
    changed = ask(sandbox, "PUT", path, {"userReleaseDate": "01/Jun/26", "archived": True}).json()
    assert (changed["releaseDate"], changed["archived"]) == ("2026-06-01", True)
    cleared = ask(sandbox, "PUT", path, {"releaseDate": ""}).json()
    assert {"releaseDate", "userReleaseDate", "overdue"} & set(cleared) == set()


def test_versions_are_merged_without_remove_and_swap(sandbox: Sandbox) -> None:
    number, target = (version_id(sandbox, name) for name in ("1.0.0", "1.1.0"))
    sandbox.settings("tracker", remove_and_swap=False)
    assert ask(sandbox, "POST", f"/version/{number}/removeAndSwap", {}).status_code == 404
    assert ask(sandbox, "PUT", f"/version/{number}/mergeto/{target}").status_code == 204
    assert fix_versions(sandbox, "REL-1") == ["1.1.0"]


# -- issues, by a third-party client -------------------------------------------------------------


def test_jira_assigns_and_reads_its_permissions(client: Any) -> None:
    for given, found in (("boris", "boris"), (-1, "reporter"), (None, None)):
        assert client.assign_issue("REL-19", given)
        assert getattr(client.issue("REL-19").fields.assignee, "name", None) == found
    reported = client.my_permissions(projectKey="REL")["permissions"]
    assert reported["ASSIGN_ISSUES"]["havePermission"] is True
    assert {transition["name"] for transition in client.transitions("REL-19")} == {"Start", "Close"}
    assert client.issue_link_types()[0].name == "Blocks"
    assert client.search_assignable_users_for_issues("boris", issueKey="REL-19")[0].name == "boris"


def test_jira_reads_renames_and_archives_versions(client: Any) -> None:
    assert [project_version.name for project_version in client.project_versions("REL")] == [
        "1.0.0",
        "1.1.0",
        "2.0.0",
    ]
    client.rename_version("REL", "1.1.0", "1.1.1")
    version = client.get_project_version_by_name("REL", "1.1.1")
    version.update(archived=True)
    assert client.version(version.id).archived is True
    assert client.version_count_unresolved_issues(version.id) > 0
    assert client.version_count_related_issues(version.id)["issuesAffectedCount"] == 0


def test_jira_creates_and_edits_an_issue(client: Any, sandbox: Sandbox) -> None:
    sandbox.seed({"tracker": {"fields": FIELDS}})
    fields = {
        "project": "REL",
        "summary": " Announce it ",
        "issuetype": {"name": "Task"},
        "labels": ["b", "a"],
        "fixVersions": [{"name": "2.0.0"}],
        "components": [{"name": "client"}],
        POINTS: 5,
    }
    made = client.create_issue(fields=fields)
    assert (made.key, made.fields.summary, made.fields.labels) == (
        "REL-26",
        "Announce it",
        ["a", "b"],
    )
    assert (made.fields.status.name, made.fields.reporter.name) == ("Open", "reporter")
    assert repr(made.raw["fields"][POINTS]) == "5.0"

    made.update(
        fields={"priority": {"name": "High"}, "description": "one\r\ntwo"},
        update={"labels": [{"add": "c"}, {"add": "a"}, {"remove": "z"}]},
    )
    assert (made.fields.labels, made.fields.priority.name) == (["a", "b", "c"], "High")
    assert made.fields.description == "one\r\ntwo"
    client.assign_issue(made, "alice")
    assert client.issue(made.key).fields.assignee.name == "alice"
    client.assign_issue(made, None)
    assert client.issue(made.key).fields.assignee is None
    histories = client.issue(made.key, expand="changelog").changelog.histories
    assert [[item.field for item in entry.items] for entry in histories] == [
        ["description", "labels", "priority"],
        ["assignee"],
        ["assignee"],
    ]
    made.delete()
    again = client.create_issue(fields=fields)
    assert again.key == "REL-27"


def test_jira_reads_editable_fields(client: Any, sandbox: Sandbox) -> None:
    sandbox.seed({"tracker": {"fields": FIELDS}})
    types = client.project_issue_types("REL")
    assert {type_.name for type_ in types} == {"Task", "Bug", "Story"}
    fields = {field.fieldId: field for field in client.project_issue_fields("REL", types[0].id)}
    assert fields["summary"].required is True
    assert [value.value for value in fields[AREA].allowedValues] == ["Client", "Server"]
    assert "status" not in fields
    meta = client.editmeta("REL-1")["fields"]
    assert meta["labels"]["operations"] == ["add", "set", "remove"]
    assert meta["priority"]["schema"] == {"type": "priority", "system": "priority"}
    assert {field["name"] for field in client.fields() if field["custom"]} == {
        "Story Points",
        "Area",
    }
    with pytest.raises(JIRAError, match="Issue Does Not Exist"):
        client._get_json("issue/createmeta")
    sandbox.settings("tracker", version="8.3.0")
    old = JIRA(sandbox.urls["tracker"], basic_auth=LOGIN, max_retries=0)
    found = old.createmeta("REL", issuetypeNames="Bug", expand="projects.issuetypes.fields")
    (bug,) = found["projects"][0]["issuetypes"]
    assert (bug["name"], bug["fields"]["summary"]["required"]) == ("Bug", True)
    assert ask(sandbox, "GET", "/issue/createmeta/REL/issuetypes").status_code == 404
    assert old.createmeta("NOPE")["projects"] == []


def test_jira_transitions_comments_links_and_uploads(client: Any, sandbox: Sandbox) -> None:
    offered = client.transitions("REL-19", expand="transitions.fields")
    assert [one["name"] for one in offered] == ["Start", "Close"]
    assert offered[1]["fields"]["resolution"]["required"] is True
    with pytest.raises(JIRAError, match="Resolution is required"):
        client.transition_issue("REL-19", "Close")
    client.transition_issue("REL-19", "Close", fields={"resolution": {"name": "Fixed"}})
    closed = client.issue("REL-19").fields
    assert (closed.status.name, closed.resolution.name) == ("Done", "Fixed")
    client.transition_issue("REL-19", "41")
    assert client.issue("REL-19").fields.resolution is None

    comment = client.add_comment("REL-19", "built\n- a ")
    assert client.comment("REL-19", comment.id).body == "built\n- a "
    assert [one.author.name for one in client.comments("REL-19")] == ["reporter"]
    assert client.issue("REL-19").fields.comment.total == 1
    comment.delete()
    assert client.comments("REL-19") == []

    assert [type_.outward for type_ in client.issue_link_types()] == [
        *("blocks", "duplicates", "relates to")
    ]
    for _twice in range(2):
        client.create_issue_link("Blocks", "REL-19", "REL-20", comment={"body": "see"})
    (on_source,) = client.issue("REL-19").fields.issuelinks
    (on_target,) = client.issue("REL-20").fields.issuelinks
    assert (on_source.outwardIssue.key, hasattr(on_source, "inwardIssue")) == ("REL-20", False)
    assert on_target.inwardIssue.key == "REL-19"
    assert len(client.comments("REL-19")) == 2
    client.delete_issue_link(on_source.id)
    assert client.issue("REL-20").fields.issuelinks == []

    for _twice in range(2):
        client.add_attachment("REL-20", io.BytesIO(b"one\r\n--two"), filename="größe (1).txt")
    first, second = client.issue("REL-20").fields.attachment
    assert (first.filename, first.get()) == ("größe (1).txt", b"one\r\n--two")
    assert first.id != second.id
    assert client.attachment_meta() == {"enabled": True, "uploadLimit": 10485760}
    second.delete()
    assert len(client.issue("REL-20").fields.attachment) == 1


def test_jira_finds_people(client: Any) -> None:
    assert [user.name for user in client.search_users("ali")] == ["alice"]
    found = client.search_assignable_users_for_issues(".", project="REL")
    assert {"alice", "developer"} <= {one.name for one in found}
    assert "reader" not in {one.name for one in found}
    assert client.my_permissions("REL")["permissions"]["CREATE_ISSUES"]["havePermission"] is True
    assert [priority.name for priority in client.priorities()] == ["Medium", "High"]


def test_jira_creates_many_issues(client: Any) -> None:
    good = {"project": "OPS", "issuetype": {"name": "Bug"}, "summary": "one"}
    made = client.create_issues([good, {**good, "summary": ""}])
    assert [one["status"] for one in made] == ["Success", "Error"]
    assert made[1]["error"] is not None


# -- special cases of issues ---------------------------------------------------------------------


def edit(sandbox: Sandbox, **members: Any) -> requests.Response:
    return ask(sandbox, "PUT", "/issue/REL-19", members)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"summary": "a\nb"}, "contains newline"),
        ({"summary": "x" * 256}, "less than 255"),
        ({"summary": None}, "must specify a summary"),
        ({"labels": ["a b"]}, "The label 'a b' contains spaces which is invalid."),
        ({"description": "x" * 32768}, "32,767"),
        ({"fixVersions": [{"name": "9"}]}, "Version name '9' is not valid"),
        ({"components": [{"id": "9"}]}, "Component id '9' is not valid"),
        ({"priority": {"name": "Odd"}}, "Priority name 'Odd' is not valid"),
        ({"assignee": {"name": "nobody"}}, "User 'nobody' does not exist."),
        ({"assignee": {"name": "reader"}}, "User 'reader' cannot be assigned issues."),
        ({POINTS: "5"}, "Operation value must be a number"),
        ({AREA: {"value": "Moon"}}, "Option value 'Moon' is not valid"),
        ({"status": {"name": "Done"}}, "Field 'status' cannot be set. It is not on the"),
        ({"customfield_9": 1}, "Field 'customfield_9' cannot be set. It is not on the"),
    ],
)
def test_invalid_field_rejects_the_complete_edit(
    sandbox: Sandbox, fields: dict[str, Any], words: str
) -> None:
    sandbox.seed({"tracker": {"fields": FIELDS}})
    response = refused(edit(sandbox, fields={"duedate": "2026-06-01", **fields}), 400)
    ((field, text),) = response["errors"].items()
    assert field in fields
    assert words in text
    assert ask(sandbox, "GET", "/issue/REL-19").json()["fields"]["duedate"] is None


def test_fields_and_verbs_are_applied(sandbox: Sandbox) -> None:
    both = edit(sandbox, fields={"labels": []}, update={"labels": [{"add": "x"}]})
    assert "both" in refused(both, 400)["errors"]["labels"]
    bad = edit(sandbox, update={"summary": [{"add": "x"}]})
    assert "operation 'add'" in refused(bad, 400)["errors"]["summary"]
    sandbox.seed({"tracker": {"fields": FIELDS}})
    steps = {
        "comment": [{"add": {"body": "by the way"}}],
        "issuelinks": [{"add": {"type": {"name": "Blocks"}, "outwardIssue": {"key": "REL-1"}}}],
        "fixVersions": [{"add": {"name": "1.1.0"}}, {"remove": {"name": "2.0.0"}}],
    }
    response = edit(sandbox, fields={AREA: {"id": "1010101"}, TEAMS: ["x"]}, update=steps)
    assert (response.status_code, response.content) == (204, b"")
    fields = ask(sandbox, "GET", "/issue/REL-19").json()["fields"]
    assert (fields[AREA]["value"], fields[TEAMS]) == ("Server", ["x"])
    assert [version["name"] for version in fields["fixVersions"]] == ["1.1.0"]
    assert fields["issuelinks"][0]["outwardIssue"]["key"] == "REL-1"
    assert fields["comment"]["comments"][0]["body"] == "by the way"


def test_screens_and_closed_statuses_limit_edits(sandbox: Sandbox) -> None:
    screens = {"create": ["summary", "labels"], "edit": ["summary"]}
    project = {"key": "REL", "name": "Releases", "screens": screens, "required": ["labels"]}
    sandbox.seed({"tracker": {"projects": [project]}})
    fields: dict[str, Any] = {"project": {"key": "REL"}, "issuetype": {"name": "Task"}}
    response = refused(
        ask(sandbox, "POST", "/issue", {"fields": {**fields, "duedate": "2026-01-01"}}), 400
    )
    nowhere = "It is not on the appropriate screen, or unknown."
    assert response["errors"] == {
        "duedate": f"Field 'duedate' cannot be set. {nowhere}",
        "labels": "Labels is required.",
        "summary": "You must specify a summary of the issue.",
    }
    assert "cannot be set" in refused(edit(sandbox, fields={"labels": []}), 400)["errors"]["labels"]
    closed = {"Open": {"category": "new", "editable": False}}
    sandbox.seed({"tracker": {"statuses": closed}})
    assert ask(sandbox, "GET", "/issue/REL-19/editmeta").json() == {"fields": {}}
    assert "summary" in refused(edit(sandbox, fields={"summary": "x"}), 400)["errors"]


def test_new_issue_is_indexed_later(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", index_lag_searches=2)
    fields = {"project": {"key": "REL"}, "issuetype": {"name": "Task"}, "summary": "x"}
    made = ask(sandbox, "POST", "/issue", {"fields": {**fields, "labels": ["fresh"]}})
    assert (made.status_code, set(made.json())) == (201, {"id", "key", "self"})
    assert ask(sandbox, "GET", f"/issue/{made.json()['key']}").status_code == 200
    found = [ask(sandbox, "GET", "/search", jql="labels = fresh").json()["total"] for _n in "123"]
    assert found == [0, 0, 1]
    sandbox.settings("tracker", index_lag_searches=0, index_lag_ms=3_600_000)
    ask(sandbox, "POST", "/issue", {"fields": {**fields, "labels": ["fresh"]}})
    found = [ask(sandbox, "GET", "/search", jql="labels = fresh").json()["total"] for _n in "12"]
    assert found == [1, 1]


def move(sandbox: Sandbox, key: str, number: str, **members: Any) -> requests.Response:
    return ask(
        sandbox, "POST", f"/issue/{key}/transitions", {"transition": {"id": number}, **members}
    )


def test_invalid_transitions_are_rejected(sandbox: Sandbox) -> None:
    words = refused(move(sandbox, "REL-19", "41"), 400)["errorMessages"][0]
    assert "workflow operation (Reopen) that is not valid for the current state" in words
    assert (
        ask(sandbox, "GET", "/issue/REL-19/transitions", transitionId=41).json()["transitions"]
        == []
    )
    assert (
        "Missing 'transition'"
        in refused(ask(sandbox, "POST", "/issue/REL-19/transitions", {}), 400)["errorMessages"][0]
    )
    fixed = {"resolution": {"name": "Fixed"}}
    response = refused(move(sandbox, "REL-19", "11", fields=fixed), 400)
    assert "not on the appropriate screen" in response["errors"]["resolution"]
    sandbox.settings("tracker", transition_fields_ignored=True)
    spoken = {"comment": [{"add": {"body": "started"}}]}
    assert move(sandbox, "REL-19", "11", fields=fixed, update=spoken).status_code == 204
    # without a screen the server silently drops the comment
    assert ask(sandbox, "GET", "/issue/REL-19/comment").json()["total"] == 0
    assert move(sandbox, "REL-19", "31", fields=fixed, update=spoken).status_code == 204
    assert ask(sandbox, "GET", "/issue/REL-19/comment").json()["total"] == 1


def test_validators_and_post_functions_run(sandbox: Sandbox) -> None:
    step = {
        "id": 7,
        "name": "Hand over",
        "to": "In Progress",
        "then": "Done",
        "validator": {POINTS: "Story Points are wanted."},
        "screen": [POINTS],
    }
    workflow = {"initial": "Open", "transitions": [step]}
    sandbox.seed({"tracker": {"fields": FIELDS, "workflows": {"REL": workflow}}})
    (offered,) = ask(
        sandbox, "GET", "/issue/REL-19/transitions", expand="transitions.fields"
    ).json()["transitions"]
    assert (offered["isGlobal"], offered["fields"][POINTS]["required"]) == (True, False)
    assert refused(move(sandbox, "REL-19", "7"), 400)["errors"] == {
        POINTS: "Story Points are wanted."
    }
    assert move(sandbox, "REL-19", "7", fields={POINTS: 3}).status_code == 204
    status = ask(sandbox, "GET", "/issue/REL-19").json()["fields"]["status"]["name"]
    assert (offered["to"]["name"], status) == ("In Progress", "Done")


def test_invalid_links_comments_and_files_are_rejected(sandbox: Sandbox) -> None:
    link = {
        "type": {"name": "Odd"},
        "inwardIssue": {"key": "REL-1"},
        "outwardIssue": {"key": "REL-2"},
    }
    assert (
        "No issue link type with name 'Odd' found." in ask(sandbox, "POST", "/issueLink", link).text
    )
    link["type"] = {"name": "Blocks"}
    refused(ask(sandbox, "POST", "/issueLink", {**link, "outwardIssue": {"key": "NO-1"}}), 404)
    made = ask(sandbox, "POST", "/issueLink", link)
    assert (made.status_code, made.content) == (201, b"")
    sandbox.settings("tracker", linking=False, upload_limit=3)
    refused(ask(sandbox, "GET", "/issueLinkType"), 404)
    empty = refused(ask(sandbox, "POST", "/issue/REL-1/comment", {"body": " "}), 400)
    assert empty["errors"]["comment"] == "Comment body can not be empty!"

    address = f"{sandbox.urls['tracker']}{API}/issue/REL-1/attachments"

    def upload(content: bytes, **headers: str) -> requests.Response:
        files = {"file": ("../a.txt", content)}
        return requests.post(address, files=files, headers=headers, auth=LOGIN, timeout=10)

    assert (upload(b"x").status_code, upload(b"x").text) == (403, "XSRF check failed")
    refused(upload(b"long", **XSRF), 413)
    (stored,) = upload(b"", **XSRF).json()
    assert (stored["filename"], stored["size"]) == ("a.txt", 0)
    sandbox.settings("tracker", empty_uploads=False)
    refused(upload(b"", **XSRF), 400)


def test_attachment_is_found_without_its_name(sandbox: Sandbox) -> None:
    address = sandbox.urls["tracker"] + "/secure/attachment/503/"
    assert requests.get(address, auth=LOGIN, timeout=10).content == b"a;b\n1;2\n"


# -- the cloud -----------------------------------------------------------------------------------


def test_cloud_texts_are_documents_in_version_3(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", deployment="Cloud", cloud_comment_page=2)
    path = "/rest/api/3/issue/REL-19/comment"
    refused_text = refused(ask(sandbox, "POST", path, {"body": "text"}), 400)
    assert refused_text["errors"]["comment"] == "Comment body is not valid!"
    text = "- a \nhttps://example.com/x"
    ask(sandbox, "POST", "/issue/REL-19/comment", {"body": text})
    (first,) = ask(sandbox, "GET", "/issue/REL-19/comment").json()["comments"]
    smart = "[https://example.com/x|https://example.com/x|smart-link]"
    assert (first["body"], first["author"]["accountId"]) == (f"* a\n{smart}", "account-reporter")
    document = ask(sandbox, "GET", path).json()["comments"][0]["body"]
    assert document["type"] == "doc"
    for _number in range(2):
        assert ask(sandbox, "POST", path, {"body": document}).status_code == 201
    embedded = ask(sandbox, "GET", "/issue/REL-19").json()["fields"]["comment"]
    assert (len(embedded["comments"]), embedded["total"]) == (2, 3)
    rest = ask(sandbox, "GET", path, startAt=2).json()
    assert (len(rest["comments"]), rest["total"]) == (1, 3)


def test_cloud_people_have_account_ids(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", deployment="Cloud")
    message = "'accountId' must be the only user identifying query parameter in GDPR strict mode."
    by_name = edit(sandbox, fields={"assignee": {"name": "alice"}})
    assert refused(by_name, 400)["errors"]["assignee"] == message
    assert refused(ask(sandbox, "GET", "/user/search", username="a"), 400)["errorMessages"] == [
        message
    ]
    (boris,) = ask(sandbox, "GET", "/user/search", query="Beispiel").json()
    assert edit(sandbox, fields={"assignee": {"accountId": boris["accountId"]}}).status_code == 204
    client: Any = JIRA(sandbox.urls["tracker"], basic_auth=LOGIN, max_retries=0)
    assert client.issue("REL-19").fields.assignee.accountId == "account-boris"
    log = ask(sandbox, "GET", "/issue/REL-19/changelog").json()
    assert log["values"][0]["items"][0]["to"] == "boris"
    types = ask(sandbox, "GET", "/issue/createmeta/REL/issuetypes").json()
    assert {"issueTypes", "total"} <= set(types)
    released = ask(sandbox, "GET", "/project/REL/version", status="released", query="1.")
    assert [value["name"] for value in released.json()["values"]] == ["1.0.0"]


def test_documented_flavour_has_no_writes(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", flavour="written")
    for method, path in (
        ("POST", "/issue"),
        ("POST", "/version"),
        ("GET", "/issue/REL-1/transitions"),
        ("GET", "/project/REL/versions"),
    ):
        assert ask(sandbox, method, path, {} if method == "POST" else None).status_code == 404
