# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.configuration import (
    analysis_info,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.issues import (
    analysis_report_info,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.resources import (
    analysis_server_import,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.helpers.options import build
from tests.unit.analysis.server import Stub, lines, refusal, sent, task_for
from tests.unit.stub import Reply, Seen

# Collected data


def gathered(stub: Stub, *names: str, **options: Any) -> tuple[Mapping[str, Any], list[str]]:
    """Return the return values of the module, and its warnings."""
    given = build(analysis_info.AnalysisInfoOptions, gather=list(names), **options)
    task, warnings = task_for(stub, read_only=True)
    return analysis_info.AnalysisInfoOperation(task, given).plan().result, warnings


#: Members by which the records of an action are known.
MEMBERS = {"name": "n", "code": "c", "feature": "f", "majorVersion": "1"}


def one_record(seen: Seen) -> Reply:
    return lines({"action": seen.form["action"], **MEMBERS})


def test_every_topic_is_read_once_by_its_action() -> None:
    with Stub(response=one_record, answers=False) as stub:
        result, warnings = gathered(stub, *analysis_info.TOPICS, "roles", project="p", limit=5)
        forms = {form.pop("action"): form for form in sent(stub)}
    assert len(forms) == len(stub.seen) == len(analysis_info.TOPICS) == 15
    assert set(result) == set(analysis_info.TOPICS)
    assert result["license"] == [{"action": "license_count", **MEMBERS}]
    assert result["project_configuration"] == {"action": "project_configuration", **MEMBERS}
    assert forms["groups"] == {"limit": "5", "list_users": "true"}
    assert forms["modules"] == {"project": "p"}
    assert (forms["projects"], warnings) == ({}, [])


def test_options_are_sent_with_the_topics_that_have_them() -> None:
    options = {"project": "p", "build": "b", "feature": "f", "search": "s", "limit": None}
    names = ("license", "roles", "role_assignments", "users", "project_configuration", "builds")
    with Stub(response=one_record) as stub:
        gathered(stub, *names, **options)
        forms = {form.pop("action"): form for form in sent(stub)}
    # Without a limit in the request, a server shows 1,000 users.
    assert int(forms["users"].pop("limit")) > 1000
    assert forms == {
        "license_count": {"feature": "f"},
        "roles": {"search": "s"},
        "role_assignments": {"search": "s"},
        "users": {"search": "s"},
        "project_configuration": {"project": "p", "build": "b"},
        "builds": {"project": "p"},
    }


def test_version_is_complete() -> None:
    version = lines({"majorVersion": "24", "minorVersion": "2.1"})
    with Stub(version, answers=False) as stub:
        result, _warnings = gathered(stub, "version")
    assert result["version"] == {"majorVersion": "24", "minorVersion": "2.1", "full": "24.2.1"}


def test_list_as_long_as_its_limit_gives_a_warning() -> None:
    with Stub(lines({"name": "a"}, {"name": "b"})) as stub:
        _result, warnings = gathered(stub, "users", limit=2)
    assert warnings == [
        "reading users: the list may be incomplete, because its length equals limit (2): increase limit"
    ]


@pytest.mark.parametrize(
    ("names", "options", "words"),
    [
        (["version", "builds"], {}, "builds requires project"),
        (["views"], {"project": ["a", "b"]}, "views requires project"),
        (["version"], {"project": []}, "a name or a list of names"),
        (["views"], {"project": {"name": "a"}}, "a name or a list of names"),
        (["views"], {"project": ["a", None]}, "a name or a list of names"),
        (["users"], {"limit": 0}, "limit is 0"),
    ],
)
def test_invalid_options_are_rejected_before_any_request(
    names: list[str], options: dict[str, Any], words: str
) -> None:
    with Stub() as stub, pytest.raises(ToolchainError, match=words) as caught:
        gathered(stub, *names, **options)
    assert caught.value.kind == "invalid"


@pytest.mark.parametrize("body", ["", '{"majorVersion": "1"}\n{"majorVersion": "2"}\n'])
def test_topic_with_a_single_record_rejects_others(body: str) -> None:
    stub = Stub(Reply(body=body), answers=False)
    with stub, pytest.raises(ToolchainError, match="instead of one") as caught:
        gathered(stub, "version")
    assert caught.value.kind == "protocol"


#: Topics whose members are not documented.
UNKNOWN = {"task_status", "import_status", "project_configuration"}


@pytest.mark.parametrize("name", sorted({*analysis_info.TOPICS} - UNKNOWN))
@pytest.mark.parametrize("body", ["", "\n", "{}", '{"ok": true}', "[]", "<html>It works</html>"])
def test_response_of_another_program_is_no_list(name: str, body: str) -> None:
    stub = Stub(response=lambda seen: Reply(body=body), answers=False)
    with stub, pytest.raises(ToolchainError) as caught:
        gathered(stub, name, project="p")
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_empty_response_of_another_program_is_no_list(name: str) -> None:
    stub = Stub(response=lambda seen: Reply(), answers=False)
    with stub, pytest.raises(ToolchainError, match="no responses of a code analysis") as caught:
        gathered(stub, name, project="p")
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize("kind", ["report", "metrics", "churns"])
def test_empty_response_of_another_program_is_no_report(kind: str) -> None:
    stub = Stub(response=lambda seen: Reply(), answers=False)
    options = {"component": "c"} if kind == "churns" else {"project": "p"}
    with stub, pytest.raises(ToolchainError, match="no responses of a code analysis") as caught:
        reported(stub, kind, **options)
    assert caught.value.kind == "protocol"


def test_empty_lists_are_verified_once() -> None:
    replies = [Reply(), lines({"majorVersion": "24"}), Reply(), Reply()]
    with Stub(*replies, answers=False) as stub:
        result, _warnings = gathered(stub, "roles", "users", "groups")
    assert (result["roles"], result["users"], result["groups"]) == ([], [], [])


@pytest.mark.parametrize("body", ["", '{"ok": true}'])
def test_response_of_another_program_is_not_exported(body: str) -> None:
    stub = Stub(response=lambda seen: Reply(body=body), answers=False)
    with stub, pytest.raises(ToolchainError) as caught:
        gathered(stub, export=True)
    assert caught.value.kind == "protocol"


# The export


CONFIGURED: dict[str, list[dict[str, Any]]] = {
    "projects": [{"id": "p_1", "name": "p"}, {"id": "q", "name": "q"}],
    "users": [{"name": "alice"}, {"name": "root", "readonly": True}],
    "groups": [{"name": "developers", "users": ["alice"]}],
    "roles": [
        {"name": "admin", "readonly": True, "permissions": [], "statusPermissions": []},
        {
            "name": "dev",
            "readonly": False,
            "permissions": [{"name": "Create project", "enabled": True}],
            "statusPermissions": [{"from": "Any", "to": "Fix"}],
        },
    ],
    "role_assignments": [
        {
            "name": "dev",
            "assignments": [
                {"name": "alice", "projectId": None, "group": False},
                {"name": "developers", "projectId": "p_1", "group": True},
                {"name": "alice", "projectId": "q", "group": False},
            ],
        }
    ],
    "modules": [{"name": "core", "paths": ["**/core/*"], "allowAll": True}],
    "views": [{"name": "new", "query": "state:New", "tags": ["gate"]}],
    "defect_types": [{"code": "X.Y", "name": "x", "enabled": False, "severity": 1}],
}


def configured(seen: Seen) -> Reply:
    return lines(*CONFIGURED[seen.form["action"]])


def test_export_has_the_lists_of_analysis_config() -> None:
    with Stub(response=configured) as stub:
        result, warnings = gathered(stub, export=True, project="p")
        actions = [form["action"] for form in sent(stub)]
    config = result["config"]
    assert sorted(actions) == sorted(CONFIGURED)
    assert config["projects"] == [{"name": "p"}]
    assert config["users"] == [{"name": "alice"}]
    assert config["groups"] == [{"name": "developers", "users": ["alice"]}]
    assert [role["name"] for role in config["roles"]] == ["dev"]
    assert [assignment.get("project") for assignment in config["role_assignments"]] == [None, "p"]
    assert [module["project"] for module in config["modules"]] == ["p"]
    assert config["views"][0]["query"] == "state:New"
    assert config["defect_types"] == [{"project": "p", "code": "X.Y", "enabled": False}]
    assert result["omitted"] == ["users: password"]
    assert (warnings, "password" in json.dumps(config)) == ([], False)


def test_export_contains_empty_fields() -> None:
    """Verify this because later additions to these fields would otherwise never be drift."""
    omitting: dict[str, list[dict[str, Any]]] = {
        **CONFIGURED,
        "groups": [*CONFIGURED["groups"], {"name": "nobody"}],
        "roles": [CONFIGURED["roles"][1], {"name": "bare"}],
        "modules": [*CONFIGURED["modules"], {"name": "all"}],
        "views": [*CONFIGURED["views"], {"name": "any"}],
    }
    with Stub(response=lambda seen: lines(*omitting[seen.form["action"]])) as stub:
        config = gathered(stub, export=True, project="p")[0]["config"]
    assert config["groups"][1] == {"name": "nobody", "users": []}
    bare = {"permissions": {"create_project": False}, "allowed_status_transitions": []}
    assert config["roles"][1] == {"name": "bare", **bare}
    assert config["modules"][1] == {"project": "p", "name": "all", "paths": []}
    assert config["views"][1] == {"project": "p", "name": "any", "query": "", "tags": []}


def test_fields_never_shown_are_not_exported() -> None:
    hiding = {
        **CONFIGURED,
        **{kind: [{"name": "x"}] for kind in ("groups", "roles", "modules", "views")},
    }
    with Stub(response=lambda seen: lines(*hiding[seen.form["action"]])) as stub:
        config = gathered(stub, export=True, project="p")[0]["config"]
    assert (config["groups"], config["roles"]) == ([{"name": "x"}], [{"name": "x"}])
    assert config["modules"] == [{"project": "p", "name": "x"}]
    assert config["views"] == [{"project": "p", "name": "x", "tags": []}]


def test_export_without_project_contains_all_projects() -> None:
    with Stub(response=configured) as stub:
        result, _warnings = gathered(stub, export=True)
    assert [project["name"] for project in result["config"]["projects"]] == ["p", "q"]
    assert [view["project"] for view in result["config"]["views"]] == ["p", "q"]
    assert len(result["config"]["role_assignments"]) == 3


def test_missing_project_cannot_be_exported() -> None:
    with Stub(response=configured) as stub, pytest.raises(ToolchainError, match="x, y") as caught:
        gathered(stub, export=True, project=["x", "p", "y"])
    assert caught.value.kind == "not_found"


# Reports


def reported(stub: Stub, kind: str, **options: Any) -> tuple[Any, list[str]]:
    given = build(analysis_report_info.AnalysisReportInfoOptions, kind=kind, **options)
    task, warnings = task_for(stub, read_only=True)
    operation = analysis_report_info.AnalysisReportInfoOperation(task, given)
    return operation.plan().result["report"], warnings


COUNTS = {"rows": [{"id": 1, "name": "C"}], "columns": [], "data": [[]], "warnings": ["hm"]}


def test_report_over_several_lines_is_parsed() -> None:
    with Stub(Reply(body=json.dumps(COUNTS, indent=4))) as stub:
        found, warnings = reported(
            stub, "report", project="p", build="b", x="State", y="Owner", query="code:X"
        )
    assert (found, warnings) == (COUNTS, ["creating the report report on 'p': hm"])
    assert sent(stub) == [
        {
            "action": "report",
            "project": "p",
            "build": "b",
            "x": "State",
            "y": "Owner",
            "filterQuery": "code:X",
        }
    ]


def test_unsupported_filter_is_not_dropped() -> None:
    reply = refusal(400, "Unknown parameter: filterQuery")
    with Stub(reply) as stub, pytest.raises(ToolchainError, match="filterQuery") as caught:
        reported(stub, "report", project="p", query="code:X")
    assert (caught.value.kind, len(stub.seen)) == ("rejected", 1)


def test_metrics_are_a_list() -> None:
    metric = {"tag": "LOC", "entity": "main", "metricValue": 7}
    with Stub(lines(metric, metric)) as stub:
        assert reported(stub, "metrics", project="p", query="file:a.c") == ([metric, metric], [])
    assert sent(stub) == [{"action": "metrics", "project": "p", "query": "file:a.c"}]


def test_possibly_truncated_metrics_give_a_warning() -> None:
    with Stub(lines(*[{"tag": "LOC", "metricValue": 7}] * 1000)) as stub:
        found, warnings = reported(stub, "metrics", project="p")
    assert (len(found), len(warnings)) == (1000, 1)
    assert "1000 records and may be incomplete" in warnings[0]
    with Stub(lines(*[{"tag": "LOC", "metricValue": 7}] * 2)) as stub:
        assert "2 records and may be" in reported(stub, "metrics", project="p", limit=2)[1][0]


def test_reports_send_the_documented_parameters() -> None:
    """The names of the reference page of a server: tests/strangers/analysis_reference.yml."""
    given = {
        "report": {"view": "v", "x_drilldown": 1, "y_drilldown": 2, "group_issues": True},
        "metrics": {"view": "v", "limit": 5, "aggregate": True, "exclude_system_files": False},
        "churns": {"view": "v", "view_creator": "bob", "latest_builds": 3},
    }
    sent_names = {
        "report": {"view": "v", "xDrilldown": "1", "yDrilldown": "2", "group_issues": "true"},
        "metrics": {
            "view": "v",
            "limit": "5",
            "aggregate": "true",
            "exclude_system_files": "false",
        },
        "churns": {"view": "v", "viewCreator": "bob", "latestBuilds": "3"},
    }
    for kind, options in given.items():
        with Stub(lines({"tag": "LOC", "data": []})) as stub:
            reported(stub, kind, project="p", **options)
        (form,) = sent(stub)
        assert {name: form[name] for name in form if name not in ("action", "project")} == (
            sent_names[kind]
        )


@pytest.mark.parametrize("kind", ["report", "metrics", "churns"])
@pytest.mark.parametrize(
    "body",
    [
        '{"timestamp": 1, "status": 500, "error": "Internal Server Error", "path": "/review/api"}',
        '{"error": "Out of memory"}',
        '{"error": {"code": 500, "message": "Out of memory"}}',
        '{"fault": "Out of memory"}',
    ],
)
def test_error_object_of_another_shape_is_no_report(kind: str, body: str) -> None:
    with Stub(Reply(body=body)) as stub, pytest.raises(ToolchainError) as caught:
        reported(stub, kind, project="p")
    assert caught.value.kind in ("protocol", "rejected", "server")


def test_churns_need_a_project_only_on_real_servers() -> None:
    churns: dict[str, Any] = {"rows": [], "columns": [], "data": []}
    with Stub(refusal(400, "Unknown parameter: project"), lines(churns)) as stub:
        assert reported(stub, "churns", project="p", component="c")[0] == churns
    assert [form.get("project") for form in sent(stub)] == ["p", None]
    assert [form["component"] for form in sent(stub)] == ["c", "c"]


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("report", {}, "report requires project"),
        ("metrics", {}, "metrics requires project"),
        ("metrics", {"project": "p", "build": "b"}, "build cannot be combined with"),
        ("churns", {"query": "x"}, "query cannot be combined with"),
        ("report", {"project": "p", "component": "c"}, "component cannot be combined with"),
    ],
)
def test_report_accepts_only_its_own_options(
    kind: str, options: dict[str, Any], words: str
) -> None:
    with Stub() as stub, pytest.raises(ToolchainError, match=words) as caught:
        reported(stub, kind, **options)
    assert caught.value.kind == "invalid"


# The import of settings


def warned(
    stub: Stub, **options: Any
) -> tuple[analysis_server_import.AnalysisServerImportOperation, list[str]]:
    """Return an import, and the list of its warnings."""
    params = {
        "source_url": "https://old.example.com:8080",
        "source_username": "admin",
        "source_password": "old-secret",
        "wait_timeout": 60.0,
        "poll_interval": 0.01,
        **options,
    }
    task, warnings = task_for(stub)
    given = build(analysis_server_import.AnalysisServerImportOptions, **params)
    return analysis_server_import.AnalysisServerImportOperation(task, given), warnings


def importing(stub: Stub, **options: Any) -> analysis_server_import.AnalysisServerImportOperation:
    return warned(stub, **options)[0]


RUNNING = {"name": "settings", "status": "Running", "progress": 40}
OVER = {**RUNNING, "status": "Completed", "progress": 100}


def test_settings_are_imported_once_and_awaited() -> None:
    with Stub(lines(), Reply(), lines(RUNNING), lines(OVER)) as stub:
        operation = importing(stub)
        planned = operation.plan()
        assert stub.seen == []
        assert planned.changed
        assert operation.apply(planned) == {"status": [OVER]}
    forms = sent(stub)
    assert [form["action"] for form in forms].count("import_server_configuration") == 1
    assert forms[1] == {
        "action": "import_server_configuration",
        "sourceURL": "https://old.example.com:8080",
        "sourceAdmin": "admin",
        "sourcePassword": "old-secret",
    }


def test_settings_are_not_awaited_without_wait() -> None:
    with Stub(lines(), Reply()) as stub:
        operation = importing(stub, wait=False, source_password=None)
        assert operation.apply(operation.plan()) == {"status": []}
    assert "sourcePassword" not in sent(stub)[-1]


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        ((), "succeeded, because the server reports no import"),
        (({**RUNNING, "status": "?"},), "succeeded, because the server reports an unknown status"),
        ((OVER,), None),
    ],
)
def test_import_with_unknown_result_gives_a_warning(
    shown: tuple[Any, ...], words: str | None
) -> None:
    with Stub(lines(), Reply(), response=lambda seen: lines(*shown)) as stub:
        operation, warnings = warned(stub, wait_timeout=1)
        assert operation.apply(operation.plan()) == {"status": list(shown)}
    assert len(warnings) == int(words is not None)
    if words is not None:
        assert "https://old.example.com:8080" in warnings[0]
        assert words in warnings[0]


def test_unawaited_import_gives_no_warning() -> None:
    with Stub(lines(), Reply()) as stub:
        operation, warnings = warned(stub, wait=False)
        operation.apply(operation.plan())
    assert warnings == []


def test_failed_import_has_the_error_of_the_server() -> None:
    failed = {**RUNNING, "status": "Failed", "message": "Login to the source failed"}
    with Stub(lines(), Reply(), lines(failed)) as stub:
        operation = importing(stub)
        with pytest.raises(ToolchainError, match="Login to the source failed") as caught:
            operation.apply(operation.plan())
    assert caught.value.kind == "failed"
    assert "old-secret" not in str(caught.value)


@pytest.mark.parametrize("begun", [True, False])
def test_lost_response_to_an_import_is_verified(begun: bool) -> None:
    shown = [lines(OVER), lines(OVER)] if begun else [lines()]
    with Stub(lines(), Reply(cut=True), *shown) as stub:
        operation = importing(stub)
        if begun:
            assert operation.apply(operation.plan()) == {"status": [OVER]}
        else:
            with pytest.raises(ToolchainError, match="is not known"):
                operation.apply(operation.plan())
        actions = [form["action"] for form in sent(stub)]
    assert actions.count("import_server_configuration") == 1


def test_user_info_of_the_source_url_is_not_shown() -> None:
    with Stub() as stub:
        planned = importing(stub, source_url="https://me:pass-word@old.example.com").plan()
    assert planned.after == {"imported_from": "https://old.example.com"}
