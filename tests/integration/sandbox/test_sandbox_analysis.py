# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the sandbox's code analysis server with plain HTTP requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests

from sandbox.client import Sandbox

LTOKEN = "0123456789abcdef" * 4
READER = ("reader", "fedcba9876543210" * 4)
PROJECT = {"project": "toolchain"}
OUTSIDER = ("outsider", "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbccccccccccccccccdddddddddddddddd")


class Api:
    """Call the actions of the server at its single API address."""

    def __init__(self, sandbox: Sandbox, user: str = "analyst", ltoken: str = LTOKEN) -> None:
        self.address = f"{sandbox.urls['analysis']}/review/api"
        self.login = {"user": user, "ltoken": ltoken}

    def post(self, action: str, **parameters: str) -> requests.Response:
        form = {**self.login, "action": action, **parameters}
        return requests.post(self.address, data=form, allow_redirects=False, timeout=10)

    def read(self, action: str, **parameters: str) -> list[dict[str, Any]]:
        response = self.post(action, **parameters)
        assert response.status_code == 200, response.text
        return [json.loads(line) for line in response.text.splitlines()]

    def change(self, action: str, **parameters: str) -> None:
        response = self.post(action, **parameters)
        assert (response.status_code, response.content) == (200, b""), response.text

    def refused(self, action: str, **parameters: str) -> tuple[int, str]:
        """Verify that the error object agrees with the HTTP status. Return status and message."""
        response = self.post(action, **parameters)
        found = response.json()
        assert set(found) == {"status", "message"}
        assert found["status"] == response.status_code
        return found["status"], found["message"]


#: Flavour of the fixture `sandbox`.
FLAVOUR = "real"


@pytest.fixture
def api(sandbox: Sandbox) -> Api:
    return Api(sandbox)


@pytest.fixture(params=["real", "written"])
def either(request: pytest.FixtureRequest, sandbox: Sandbox) -> Api:
    """Start the server in both flavours."""
    sandbox.settings("analysis", flavour=request.param)
    return Api(sandbox)


def _enabled(role: dict[str, Any]) -> set[str]:
    return {entry["name"] for entry in role["permissions"] if entry["enabled"]}


def test_roles_are_created_updated_and_deleted(either: Api) -> None:
    transitions = "Analyze,Fix;Any,Ignore"
    either.change(
        "create_role",
        name="Release",
        create_project="true",
        allowed_status_transitions=transitions,
    )
    [role] = either.read("roles", search="+Release")
    assert _enabled(role) == {"Create project"}
    assert len(role["permissions"]) == 14
    assert role["readonly"] is False
    assert role["statusPermissions"] == [
        {"from": "Analyze", "to": "Fix"},
        {"from": "Any", "to": "Ignore"},
    ]
    # the update changes only the given fields
    either.change("update_role_permissions", name="Release", manage_roles="true")
    [role] = either.read("roles", search="+Release")
    assert _enabled(role) == {"Create project", "Manage roles"}
    assert len(role["statusPermissions"]) == 2
    either.change(
        "update_role_permissions",
        name="Release",
        create_project="false",
        allowed_status_transitions="",
    )
    [role] = either.read("roles", search="+Release")
    assert (_enabled(role), role["statusPermissions"]) == ({"Manage roles"}, [])
    either.change("delete_role", name="Release")
    assert either.read("roles", search="+Release") == []


def test_roles_are_searched(api: Api) -> None:
    def names(search: str) -> list[str]:
        return [role["name"] for role in api.read("roles", search=search)]

    assert names("developer") == ["Developer", "Developer guest"]
    assert names("+Developer") == ["Developer"]
    assert names("+Developers") == []
    assert len(api.read("roles")) == 4


@pytest.mark.parametrize(
    ("action", "form", "status", "message"),
    [
        ("create_role", {"name": "Developer"}, 400, "Role Developer already exists"),
        ("delete_role", {"name": "Nobody"}, 404, None),
        ("delete_role", {"name": "Projects root"}, 403, None),
        ("update_role_permissions", {"name": "Projects root"}, 403, None),
        ("create_role", {"name": "X", "create_project": "yes"}, 400, None),
        ("create_role", {"name": "X", "allowed_status_transitions": "Fix"}, 400, None),
        ("create_role", {}, 400, "Missing required parameter: name"),
        ("no_such_action", {}, 400, None),
        ("modules", {"project": "nowhere"}, 404, None),
        ("users", {"limit": "many"}, 400, None),
        ("create_view", {**PROJECT, "name": "mine"}, 400, "Missing required parameter: query"),
        ("update_view", {**PROJECT, "name": "*default*", "tags": "a"}, 403, None),
        (
            "update_build",
            {"name": "build_1", "new_name": "first"},
            400,
            "Missing required parameter: project",
        ),
        ("report", {**PROJECT, "build": "build_9"}, 404, None),
        ("report", {**PROJECT, "x": "Colour"}, 400, None),
        ("fchurns", {"component": "/src/ui"}, 400, None),
        ("update_status", {**PROJECT, "ids": "101,102", "status": "Nonsense"}, 400, None),
        ("update_status", {**PROJECT, "ids": "101,9"}, 404, None),
        ("search", {**PROJECT, "query": "build:a build:b"}, 400, None),
    ],
)
def test_invalid_request_is_rejected(
    api: Api, action: str, form: dict[str, str], status: int, message: str | None
) -> None:
    rejected = api.refused(action, **form)
    assert rejected == (status, rejected[1] if message is None else message)


@pytest.mark.parametrize(
    ("action", "parameters"),
    [
        ("create_role", {"name": "R", "manage_users": "true"}),
        ("groups", {"list_users": "true"}),
        ("update_group", {"name": "developers", "remove_all": "true"}),
        ("create_module", {"project": "toolchain", "name": "m", "paths": "a", "tags": "x"}),
    ],
)
def test_undocumented_parameters_exist_only_on_real_servers(
    sandbox: Sandbox, api: Api, action: str, parameters: dict[str, str]
) -> None:
    assert api.post(action, **parameters).status_code == 200
    sandbox.settings("analysis", flavour="written")
    assert api.refused(action, **parameters)[1].startswith("Unknown parameter: ")


def test_logins_are_checked(sandbox: Sandbox) -> None:
    assert Api(sandbox, ltoken="wrong").refused("version")[0] == 401
    assert Api(sandbox, user="nobody").refused("version")[0] == 401
    assert Api(sandbox, *OUTSIDER).refused("version")[0] == 403
    reader = Api(sandbox, *READER)
    assert reader.read("projects")
    assert reader.refused("delete_role", name="Developer")[0] == 403
    sandbox.settings("analysis", access_control=False)
    assert Api(sandbox, user="anyone", ltoken="").read("version")


def test_get_returns_the_reference_page(api: Api) -> None:
    response = requests.get(api.address, timeout=10)
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/html")


def test_modules_are_created_updated_renamed_and_deleted(either: Api) -> None:
    def module(name: str) -> dict[str, Any] | None:
        found = [
            record
            for record in either.read("modules", project="toolchain")
            if record["name"] == name
        ]
        return found[0] if found else None

    either.change(
        "create_module", project="toolchain", name="docs", allow_all="true", paths="**/docs/*,*.md"
    )
    assert module("docs") == {"name": "docs", "paths": ["**/docs/*", "*.md"], "allowAll": True}
    duplicate = {"project": "toolchain", "name": "docs", "paths": "x"}
    assert either.refused("create_module", **duplicate)[0] == 400
    either.change("update_module", project="toolchain", name="docs", new_name="guides")
    assert module("docs") is None
    assert module("guides") == {"name": "guides", "paths": ["**/docs/*", "*.md"], "allowAll": True}
    clash = {"project": "toolchain", "name": "guides", "new_name": "core"}
    assert either.refused("update_module", **clash)[0] == 400
    either.change("update_module", project="toolchain", name="guides", paths="", allow_all="false")
    assert module("guides") == {"name": "guides", "paths": [], "allowAll": False}
    either.change("delete_module", project="toolchain", name="guides")
    assert module("guides") is None
    assert either.refused("delete_module", project="toolchain", name="guides")[0] == 404


def test_older_servers_omit_fields_of_modules(sandbox: Sandbox, api: Api) -> None:
    tagged = api.read("modules", project="toolchain")[1]
    assert (tagged["name"], tagged["allowAll"], tagged["tags"]) == ("ui, web", False, ["front"])
    sandbox.settings("analysis", modules_show_allow_all=False)
    assert set(api.read("modules", project="toolchain")[0]) == {"name", "paths"}


def test_real_servers_require_paths_and_decode_escapes(sandbox: Sandbox, api: Api) -> None:
    form = {"project": "toolchain", "name": "m"}
    assert api.refused("create_module", **form)[0] == 400
    api.change("create_module", **form, paths=r"a\,b,c\\d")
    assert api.read("modules", project="toolchain")[1]["paths"] == ["a,b", r"c\d"]
    sandbox.settings("analysis", flavour="written")
    api.change("create_module", project="toolchain", name="n")
    api.change("update_module", project="toolchain", name="n", paths=r"a\,b")
    assert api.read("modules", project="toolchain")[2]["paths"] == ["a\\", "b"]


def test_responses_are_lines(sandbox: Sandbox, api: Api) -> None:
    plain = api.post("projects").text
    assert plain.endswith("\n")
    sandbox.settings("analysis", line_end="\r\n", blank_lines=True, trailing_newline=False)
    varied = api.post("projects").text
    assert varied.split("\r\n\r\n") == plain.splitlines()
    sandbox.settings("analysis", error_status_200=True)
    wrong = api.post("delete_role", name="Nobody")
    assert (wrong.status_code, wrong.json()["status"]) == (200, 404)
    assert api.post("roles", search="+Nobody").content == b""


def test_builds_and_projects_are_listed(api: Api) -> None:
    builds = api.read("builds", project="toolchain")
    assert [build["name"] for build in builds] == ["build_10", "build_2", "build_1"]
    assert builds[2] == {"id": 1, "name": "build_1", "date": 1767225600000, "keepit": True}
    projects = {project["name"]: project for project in api.read("projects")}
    assert projects["legacy"]["id"] == "legacy_2019"
    assert "tags" not in projects["legacy"]
    assert api.read("version") == [{"majorVersion": "24", "minorVersion": "2"}]
    views = api.read("views", project="toolchain")
    assert [view["name"] for view in views] == ["*default*", "critical", "new issues"]
    assert len(api.read("defect_types", project="toolchain")) == 3


def test_users_and_groups_are_managed(api: Api) -> None:
    api.change("create_user", name="dave", password="secret")
    assert api.refused("create_user", name="dave")[0] == 400
    api.change("create_group", name="ops", users=r"dave,Carol\, QA")
    [group] = api.read("groups", search="op*", list_users="true")
    assert group["users"] == ["dave", "Carol, QA"]
    assert "users" not in api.read("groups", search="ops")[0]
    api.change("update_group", name="ops", users="alice")
    assert api.read("groups", search="ops", list_users="true")[0]["users"] == ["alice"]
    api.change("update_group", name="ops", users="")
    assert api.read("groups", search="ops", list_users="true")[0]["users"] == ["alice"]
    api.change("update_group", name="ops", remove_all="true")
    assert api.read("groups", search="ops", list_users="true")[0]["users"] == []
    assert api.refused("update_group", name="everyone", users="alice")[0] == 403
    assert api.refused("update_group", name="ops", users="nobody")[0] == 404
    assert [user["name"] for user in api.read("users", limit="2")] == ["Carol, QA", "alice"]
    assert api.read("users", search="ali*")[0]["groups"] == [
        {"name": "developers", "readonly": False}
    ]
    api.change("delete_user", name="alice")
    assert api.read("groups", search="developers", list_users="true")[0]["users"] == ["bob"]
    api.change("delete_group", name="ops")
    assert api.read("groups", search="ops") == []


def test_documented_flavour_always_lists_members(sandbox: Sandbox, api: Api) -> None:
    sandbox.settings("analysis", flavour="written")
    assert api.read("groups", search="developers")[0]["users"] == ["alice", "bob"]
    api.change("update_group", name="developers", users="")
    assert api.read("groups", search="developers")[0]["users"] == []


def test_role_assignments_use_the_project_id(sandbox: Sandbox, api: Api) -> None:
    form = {"name": "Developer", "account": "bob"}
    assert api.refused("update_role_assignment", **form, project="legacy")[0] == 404
    api.change("update_role_assignment", **form, project="legacy_2019")
    [role] = api.read("role_assignments", search="+Developer")
    expected = {"name": "bob", "projectId": "legacy_2019", "group": False}
    assert expected in role["assignments"]
    assert api.refused("update_role_assignment", **form, project="legacy_2019")[0] == 400
    sandbox.settings("analysis", flavour="written")
    api.change("update_role_assignment", **form, project="legacy", remove="true")
    assert expected not in api.read("role_assignments", search="+Developer")[0]["assignments"]
    assert api.refused("update_role_assignment", name="Developer", account="zoe")[0] == 404


@pytest.mark.parametrize(
    ("form", "found"),
    [
        ({}, [101, 102, 103]),
        ({"query": "build:build_1"}, [101, 102]),
        ({"query": "build:any"}, [101, 102, 103]),
        ({"query": "build:+build_1"}, [101]),
        ({"query": "build:+'build_10' state:New"}, [102]),
        ({"query": "state:New,Fixed"}, [102, 103]),
        ({"query": "file:größe"}, [103]),
        ({"query": "severity:1 owner:alice"}, [102]),
        ({"view": "new issues"}, [102]),
        ({"query": "grouping:off null"}, [102]),
    ],
)
def test_issues_are_searched(api: Api, form: dict[str, str], found: list[int]) -> None:
    assert [issue["id"] for issue in api.read("search", **PROJECT, **form)] == found


def test_search_returns_a_summary_and_links(api: Api) -> None:
    records = api.read("search", project="toolchain", query="nope:1", limit="2", summary="true")
    summary = records[-1]["summary"]
    assert (len(records), summary["total"], summary["limit"]) == (3, 3, 2)
    assert summary["warnings"] == ["Unknown keyword: nope"]
    text = api.post("search", project="toolchain").text
    assert r"problemid\u003d101" in text
    assert records[0]["url"].endswith("problemid=101")


def test_reads_are_not_logged_as_writes(sandbox: Sandbox, api: Api) -> None:
    mark = sandbox.mark()
    api.read("roles")
    api.read("search", project="toolchain")
    api.change("delete_role", name="Developer guest")
    logged = sandbox.requests("analysis", since=mark)
    assert [entry["write"] for entry in logged] == [False, False, True]
    assert all(LTOKEN not in json.dumps(entry) for entry in logged)


def test_folded_issues_are_one_record_unless_grouping_is_off(sandbox: Sandbox, api: Api) -> None:
    shown = {"status": "Fix", "severity": "Error", "severityCode": 2, "state": "New", "code": "X"}
    issues = [{"id": each, "title": "t", "owner": "bob", "group": 1, **shown} for each in (1, 2, 3)]
    sandbox.seed({"analysis": {"projects": [{"name": "grouped", "issues": issues}]}})
    [record] = api.read("search", project="grouped")
    assert (record["id"], record["issueIds"]) == (1, [1, 2, 3])
    apart = api.read("search", project="grouped", query="grouping:off state:New")
    assert [each["issueIds"] for each in apart] == [[1], [2], [3]]
    sandbox.settings("analysis", flavour="written")
    assert len(api.read("search", project="grouped")) == 3


def test_build_search_may_be_exact(sandbox: Sandbox, api: Api) -> None:
    sandbox.settings("analysis", build_search="exact")
    assert len(api.read("search", project="toolchain", query="build:build_1")) == 1
    assert api.read("search", project="toolchain", query="build:build_9") == []


def test_search_has_a_separate_limit(sandbox: Sandbox, api: Api) -> None:
    sandbox.settings("analysis", search_limit=2)
    records = api.read("search", project="toolchain", summary="true")
    assert (len(records), records[-1]["summary"]["total"]) == (3, 3)
    assert len(api.read("search", project="toolchain", limit="3")) == 3
    sandbox.settings("analysis", search_summary=False)
    assert len(api.read("search", project="toolchain", summary="true")) == 2
    assert len(api.read("search", project="toolchain", query="severity:1-3")) == 2


def test_status_of_issues_is_set_with_history(sandbox: Sandbox, api: Api) -> None:
    form = {"project": "toolchain", "ids": "101,102"}
    api.change("update_status", **form, status="fix", comment="look", owner="bob")
    api.change("update_status", **form, status="Ignore")
    [details] = api.read("issue_details", project="toolchain", id="102")
    assert (details["id"], details["status"], details["owner"]) == ("102", "Ignore", "bob")
    first, second = details["history"]
    assert first["date"] < second["date"]
    assert [first["comment"], second["comment"]] == ["look", ""]
    assert (first["status"], first["userid"]) == ("Fix", "analyst")
    assert [
        issue["status"] for issue in api.read("search", project="toolchain", query="owner:bob")
    ] == ["Ignore", "Ignore", "Fix"]
    assert api.read("issue_details", project="toolchain", id="9") == []
    sandbox.settings("analysis", flavour="written")
    assert api.refused("issue_details", project="toolchain", id="9")[0] == 404
    assert Api(sandbox, *READER).refused("update_status", **form, status="Fix")[0] == 403


def test_reports_are_counted(sandbox: Sandbox, api: Api) -> None:
    form = {"project": "toolchain", "x": "State", "y": "Severity"}
    response = api.post("report", **form, build="build_10", filterQuery="code:ABV.GENERAL")
    assert response.text.startswith("{\n")
    assert response.json() == {
        "rows": [{"id": -1, "name": "Critical"}],
        "columns": [{"id": -1, "name": "Existing"}],
        "data": [[1]],
        "warnings": [],
    }
    [churns] = [api.post("fchurns", project="toolchain", component="/src/ui").json()]
    assert (len(churns["columns"]), churns["data"]) == (3, [[0, 11, 0]])
    metrics = api.read("metrics", project="toolchain", query="file:core")
    assert [metric["metricValue"] for metric in metrics] == [120, 7]
    [lines, _complexity] = api.read("metrics", project="toolchain", aggregate="true")
    assert lines == {"tag": "LOC_FILE", "sum": 200, "min": 80, "max": 120, "entries": 2}
    sandbox.settings("analysis", flavour="written")
    assert api.refused("report", **form, filterQuery="x")[0] == 400
    [whole] = api.read("report", **form)
    assert whole["data"] == [[1, 0, 1], [0, 1, 0]]
    assert api.read("fchurns", component="/src/ui")[0]["rows"] == [{"id": -1, "name": "/src/ui"}]


def test_server_and_projects_are_described(api: Api) -> None:
    assert [record["count"] for record in api.read("license_count", feature="kwadmin10")] == [5]
    assert len(api.read("license_count")) == 2
    assert api.read("task_status")[0]["status"] == "Completed"
    assert api.read("taxonomies", project="toolchain") == [
        {"name": "C and C++", "is_custom": False}
    ]
    [configuration] = api.read("project_configuration", project="toolchain", build="build_1")
    assert (configuration["build"], configuration["numberOfFiles"]) == ("build_1", "3")
    assert all(isinstance(value, str) for value in configuration.values())
    [newest] = api.read("project_configuration", project="toolchain")
    assert newest["build"] == "build_10"


def test_views_are_created_updated_and_deleted(sandbox: Sandbox, api: Api) -> None:
    form = {"project": "toolchain", "name": "mine"}

    def view() -> dict[str, Any]:
        [found] = [
            record for record in api.read("views", project="toolchain") if record["name"] == "mine"
        ]
        return found

    api.change("create_view", **form, query="state:New", tags="a,b", is_public="true")
    assert (view()["query"], view()["tags"], view()["is_public"]) == ("state:New", ["a", "b"], True)
    assert api.refused("create_view", **form, query="x")[0] == 400
    api.change("update_view", **form, query="state:Fixed", tags="")
    assert "tags" not in view()
    assert view()["query"] == "state:Fixed"
    api.change("update_view", **form, new_name="yours")
    assert api.refused("delete_view", **form)[0] == 404
    sandbox.settings("analysis", flavour="written")
    form["name"] = "yours"
    assert api.refused("update_view", **form, query="x")[1] == "Unknown parameter: query"
    assert api.refused("create_view", **form, query="x", tags="a")[1] == "Unknown parameter: tags"
    api.change("update_view", **form, tags="a")
    api.change("delete_view", **form)
    assert len(api.read("views", project="toolchain")) == 3


def test_builds_are_renamed_and_deleted(sandbox: Sandbox, api: Api) -> None:
    form = {"name": "build_1", "new_name": "first", "keepit": "false"}
    api.change("update_build", project="toolchain", **form)
    api.change("delete_build", project="toolchain", name="build_2")
    builds = {build["name"]: build for build in api.read("builds", project="toolchain")}
    assert set(builds) == {"build_10", "first"}
    assert builds["first"]["keepit"] is False
    clash = {"name": "first", "new_name": "build_10"}
    assert api.refused("update_build", project="toolchain", **clash)[0] == 400
    assert api.refused("delete_build", project="toolchain", name="build_2")[0] == 404
    sandbox.settings("analysis", flavour="written")
    assert api.refused("update_build", project="toolchain", **clash)[0] == 400
    api.change("update_build", name="first", new_name="build_1")
    assert {record["name"] for record in api.read("builds", project="toolchain")} == {
        "build_1",
        "build_10",
    }


def test_defect_types_are_enabled_and_disabled(either: Api) -> None:
    form = {"project": "toolchain", "code": "ABV.GENERAL"}
    either.change("update_defect_type", **form, enabled="false")
    [switched] = [
        record
        for record in either.read("defect_types", project="toolchain")
        if record["code"] == "ABV.GENERAL"
    ]
    assert switched["enabled"] is False
    unknown = {**form, "code": "NONE", "enabled": "true"}
    assert either.refused("update_defect_type", **unknown)[0] == 404


def test_renamed_project_keeps_its_id_and_deletion_removes_its_content(either: Api) -> None:
    either.change("update_project", name="toolchain", new_name="tools")
    projects = {record["name"]: record["id"] for record in either.read("projects")}
    assert projects == {"legacy": "legacy_2019", "tools": "toolchain"}
    assert len(either.read("builds", project="tools")) == 3
    assert either.refused("update_project", name="tools", new_name="legacy")[0] == 400
    either.change("delete_project", name="tools")
    assert either.refused("builds", project="tools")[0] == 404
    [role] = either.read("role_assignments", search="+Developer")[:1]
    assert role["assignments"] == []


def test_imports_run_in_the_background(sandbox: Sandbox, either: Api) -> None:
    sandbox.settings("analysis", import_ms=60_000)
    source = {
        "sourceURL": "https://old-analysis.example.com:8080/",
        "sourceAdmin": "admin",
        "sourcePassword": "source-password-1234567890",
    }
    either.change("import_project", project="imported", **source)
    either.change("import_project", project="imported", **{**source, "sourcePassword": "x"})
    either.change("import_project", project="nowhere", **source)
    either.change("import_server_configuration", **{**source, "sourceURL": "https://x"})
    running = either.read("import_status")
    assert [record["status"] for record in running] == ["Running"] * 4
    assert all(record["progress"] < 100 for record in running)
    assert either.refused("builds", project="imported")[0] == 404
    sandbox.settings("analysis", import_ms=0)
    assert [record["status"] for record in either.read("import_status")] == [
        "Completed",
        "Failed",
        "Failed",
        "Failed",
    ]
    assert [record["name"] for record in either.read("builds", project="imported")] == ["nightly"]
    assert either.refused("import_project", project="imported", **source)[0] == 400
    assert either.refused("import_project", project="firmware")[0] == 400
