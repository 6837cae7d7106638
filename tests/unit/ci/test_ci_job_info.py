# SPDX-License-Identifier: GPL-3.0-or-later
"""Test reading jobs, builds, values and configurations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs import ci_job_info
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from tests.helpers.options import build as options_of
from tests.unit.ci.server import Played, build, definition
from tests.unit.stub import Reply, Seen, Stub

JOB = {"name": "job", "color": "blue", "builds": [{"number": 7}], "property": []}
PATH = "org.jenkinsci.plugins.workflow.multibranch"
CONFIG = """<?xml version='1.1' encoding='UTF-8'?>
<project>
  <apiToken>{AQAAABAAAAAgc2VjcmV0c2VjcmV0c2VjcmV0}</apiToken>
</project>"""


class Served:
    """Respond by the end of a path; `xpaths` are the expressions that match."""

    def __init__(self, **xpaths: Reply) -> None:
        self.xpaths = xpaths
        self.job: dict[str, Any] = JOB

    def __call__(self, seen: Seen) -> Reply:
        query = {name: values[0] for name, values in parse_qs(urlsplit(seen.target).query).items()}
        if "/job/gone/" in seen.path:
            return Reply(404)
        if seen.path.endswith("/config.xml"):
            return Reply(body=CONFIG)
        if seen.path.endswith("/api/xml"):
            return self.xpaths.get(query["xpath"], Reply(404))
        if "/7/" in seen.path or "/lastBuild/" in seen.path:
            whole = build(7, values={"A": "1", "KEY": ...})
            names = query.get("tree", "*")
            return Reply(body=whole if names == "*" or "actions[par" in names else {"number": 7})
        if query.get("tree", "").startswith("allBuilds"):
            return Reply(body={"allBuilds": [{"number": 7}, {"number": 6}]})
        return Reply(body=self.job)


def read(played: Played) -> dict[str, Any]:
    """Run the module with the options of the task."""
    given = {name: value for name, value in played.options.items() if value is not None}
    named = {} if "job" in played.options else {"job": "folder/job"}
    options = options_of(ci_job_info.CiJobInfoOptions, **named, **given)
    return played.run(lambda task: ci_job_info.CiJobInfoOperation(task, options))


def play(
    served: Callable[[Seen], Reply] | None = None, **options: Any
) -> tuple[dict[str, Any], Played]:
    with Stub(response=served or Served()) as stub:
        played = Played(stub, options, read_only=True)
        return read(played), played


def failed(
    served: Callable[[Seen], Reply] | None = None, **options: Any
) -> tuple[ToolchainError, Played]:
    with Stub(response=served or Served()) as stub:
        played = Played(stub, options, read_only=True)
        with pytest.raises(ToolchainError) as caught:
            read(played)
        return caught.value, played


def targets(played: Played) -> list[str]:
    return [seen.target.removeprefix("/base/job/folder/job/job") for seen in played.stub.seen]


def test_job_is_read_with_its_builds() -> None:
    served = Served()
    served.job = {
        **JOB,
        "property": [{"parameterDefinitions": [definition("A", "Boolean", True)]}],
    }
    values, played = play(served)
    assert values["changed"] is False
    assert values["job"]["color"] == "blue"
    assert values["builds"] == [{"number": 7}]
    assert values["parameters"] == {"A": "true"}
    assert targets(played)[0] == "/api/json"
    assert targets(played)[1].startswith("/api/json?tree=builds%5B")
    assert len(played.stub.seen) <= 2


def test_all_builds_are_requested_by_name() -> None:
    values, played = play(all_builds=True)
    assert [each["number"] for each in values["builds"]] == [7, 6]
    values, played = play(all_builds=True, tree="allBuilds[number]")
    assert [each["number"] for each in values["builds"]] == [7, 6]
    assert len(played.stub.seen) == 1


def test_tree_and_depth_are_sent_unchanged() -> None:
    _values, played = play(tree="builds[number]{0,5}")
    assert targets(played) == ["/api/json?tree=builds%5Bnumber%5D%7B0%2C5%7D"]
    _values, played = play(depth=2)
    assert targets(played)[0] == "/api/json?depth=2"


class Folders:
    """Jobs by path: `all`, of the server, and in the folders."""

    JOBS: ClassVar[dict[str, list[dict[str, Any]]]] = {
        "": [
            {"name": "a", "url": "http://ci/job/a/", "color": "blue", "_class": "hudson.Job"},
            {"name": "b c", "jobs": [{}]},
            {"name": "many", "_class": f"{PATH}.WorkflowMultiBranchProject", "jobs": [{}]},
        ],
        "/job/b%20c": [{"name": "d", "jobs": []}, {"name": "e"}],
        "/job/b%20c/job/d": [],
    }

    def __call__(self, seen: Seen) -> Reply:
        found = self.JOBS.get(seen.path.removeprefix("/base").removesuffix("/api/json"))
        return Reply(404) if found is None else Reply(body={"jobs": found})


def test_all_jobs_are_listed_without_a_job() -> None:
    values, played = play(Folders(), job=None)
    assert [(one["name"], one["folder"]) for one in values["jobs"]] == [
        ("a", False),
        ("b c", True),
        ("b c/d", True),
        ("b c/e", False),
        ("many", True),
    ]
    assert values["jobs"][0] == {
        "name": "a",
        "folder": False,
        "url": "http://ci/job/a/",
        "color": "blue",
        "_class": "hudson.Job",
    }
    assert (values["job"], values["builds"], values["parameters"]) == (None, None, {})
    assert len(played.stub.seen) == 3


@pytest.mark.parametrize("listed", [{}, {"jobs": None}, {"jobs": [None]}, {"jobs": [{"url": "u"}]}])
def test_response_without_jobs_is_an_error(listed: dict[str, Any]) -> None:
    error, _played = failed(lambda _seen: Reply(body=listed), job=None)
    assert error.kind == "protocol"


def test_jobs_that_are_too_deep_are_an_error() -> None:
    """They are not left out: the list would look complete."""
    error, played = failed(
        lambda _seen: Reply(body={"jobs": [{"name": "a", "jobs": []}]}), job=None
    )
    assert (error.kind, len(played.stub.seen)) == ("protocol", 50)
    assert "more than 50 levels deep" in error.message


def test_folder_that_is_gone_is_an_error() -> None:
    class Gone(Folders):
        JOBS: ClassVar = {"": [{"name": "b", "jobs": [{}]}]}

    error, _played = failed(Gone(), job=None)
    assert error.kind == "not_found"


def test_folder_has_no_builds() -> None:
    served = Served()
    served.job = {"name": "folder", "jobs": [{"name": "job"}]}
    values, played = play(served)
    assert (values["builds"], values["parameters"], len(played.stub.seen)) == ([], {}, 1)


def test_computed_folder_is_read_without_its_jobs() -> None:
    shown = {"_class": "jenkins.branch.OrganizationFolder", "buildable": False}
    served = Served()
    served.job = shown
    values, played = play(served, tree="buildable")
    assert (values["job"], values["builds"]) == (shown, [])
    assert len(targets(played)) == 1


def test_single_build_is_read_with_its_parameters() -> None:
    values, played = play(build="lastBuild")
    assert values["build"]["number"] == 7
    assert values["parameters"] == {"A": "1", "KEY": "***"}
    assert all(values[name] is None for name in ("job", "builds", "config_xml", "value"))
    assert targets(played) == ["/lastBuild/api/json"]
    values, played = play(build="7", tree="result")
    assert values["build"] == {"number": 7}
    assert values["parameters"]["A"] == "1"
    assert len(played.stub.seen) <= 2


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("//p[name='A']/value", "//p[name='A']/value"),
        ("//p[name='A']/value/text()", "//p[name='A']/value"),
        ("string(//p[name='A']/value)", "//p[name='A']/value"),
    ],
)
def test_value_is_the_text_of_the_element(asked: str, sent: str) -> None:
    found = Reply(body="<value>1 &amp; 2</value>")
    values, played = play(Served(**{sent: found}), build="7", xpath=asked)
    assert values["value"] == "1 & 2"
    assert len(played.stub.seen) <= 2


def test_relative_expression_falls_back_to_the_root() -> None:
    found = Reply(body="<value>1</value>")
    values, _ignored = play(Served(**{"/*/action/value": found}), build="7", xpath="action/value")
    assert values["value"] == "1"


def test_text_result_is_returned() -> None:
    served = Served(**{"count(//a)": Reply(body="2")})
    values, _ignored = play(served, build="7", xpath="count(//a)")
    assert values["value"] == "2"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(404), "not_found"),
        (Reply(403, headers={"X-Error": "primitive XPath result sets forbidden"}), "rejected"),
        (Reply(500, headers={"X-Error": "XPath //a matched 2 nodes. Create"}), "rejected"),
        (Reply(500, "Oops"), "server"),
        (Reply(403, headers={"X-Required-Permission": "x.Read"}), "permission"),
        (Reply(body="<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"), "protocol"),
        (Reply(body="<a>"), "protocol"),
    ],
)
def test_missing_value_is_an_error(reply: Reply, kind: str) -> None:
    error, _ignored = failed(Served(**{"//a": reply}), build="7", xpath="//a")
    assert error.kind == kind


def test_missing_job_or_build_is_not_found() -> None:
    assert failed(job="gone")[0].kind == "not_found"
    assert "the job 'gone' does not exist" in failed(job="gone", build="1")[0].message


@pytest.mark.parametrize(
    "options",
    [
        {"xpath": "//a"},
        {"tree": "a", "depth": 1},
        {"build": "../x"},
        {"expected_config": "<a>"},
        {"expected_config": "<!DOCTYPE a><a/>"},
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any]) -> None:
    error, played = failed(**options)
    assert (error.kind, played.stub.seen) == ("invalid", [])


def test_configuration_is_returned_unchanged_with_hidden_secrets() -> None:
    values, played = play(config=True)
    assert values["config_xml"] == CONFIG
    assert played.hidden == ["{AQAAABAAAAAgc2VjcmV0c2VjcmV0c2VjcmV0}"]
    assert "config_drift" not in values


def test_passwords_shown_by_server_are_masked() -> None:
    entry = {"_class": "hudson.model.PasswordParameterValue", "name": "KEY", "value": "geheim"}
    default = definition("KEY", "Password", "geheim")

    class Shows(Served):
        def __call__(self, seen: Seen) -> Reply:
            shown = {"number": 7, "actions": [{"parameters": [entry]}]}
            if "/7/" in seen.path:
                return Reply(body=shown)
            return Reply(
                body={"property": [{"parameterDefinitions": [default]}], "builds": [shown]}
            )

    for options in ({"build": "7"}, {}, {"tree": "builds[actions[*]],property[*]"}):
        values, _ignored = play(Shows(), **options)
        assert "geheim" not in str(values)
        assert values["parameters"] == {"KEY": "***"}
    of_build = ci_job_info.BuildParametersOptions(job="j", build="7")
    of_job = ci_job_info.BuildListOptions(job="j", fields=["actions[*]"])
    questions: list[Callable[[Task], Any]] = [
        lambda task: ci_job_info.build_parameters(task, of_build),
        lambda task: ci_job_info.build_list(task, of_job),
    ]
    for question in questions:
        with Stub(response=Shows()) as stub:
            found = question(Played(stub, read_only=True).task())
        assert "geheim" not in str(found)
        assert "***" in str(found)


def test_builds_named_in_tree_are_not_read_again() -> None:
    class All(Served):
        def __call__(self, seen: Seen) -> Reply:
            return Reply(body={"allBuilds": [{"number": 7}]})

    values, played = play(All(), tree="allBuilds[number]")
    assert values["builds"] == [{"number": 7}]
    assert len(played.stub.seen) == 1


def test_drift_is_returned_and_changes_nothing() -> None:
    values, _ignored = play(expected_config="<project><apiToken>x</apiToken></project>")
    assert (values["changed"], values["config_drift"]) == (False, False)
    assert values["config_xml"] is None
    values, _ignored = play(expected_config="<project><x>1</x></project>")
    assert (values["changed"], values["config_drift"]) == (False, True)
    assert values["diff"] == {
        "before": "<project>\n  <apiToken>***</apiToken>\n</project>\n",
        "after": "<project>\n  <x>1</x>\n</project>\n",
    }


def test_expected_secrets_are_hidden_before_any_response() -> None:
    refused = Stub(response=lambda seen: Reply(500, "no <apiToken>expected-secret</apiToken>"))
    with refused as stub:
        played = Played(stub, read_only=True)
        expected = "<project><apiToken>expected-secret</apiToken></project>"
        given = options_of(ci_job_info.CiJobInfoOptions, job="j", expected_config=expected)
        with pytest.raises(ToolchainError):
            ci_job_info.CiJobInfoOperation(played.task(), given).plan()
    assert "expected-secret" in played.hidden


def listed(served: Served, **options: Any) -> tuple[list[dict[str, Any]], Stub]:
    with Stub(response=served) as stub:
        given = {"job": "folder/job", "fields": ["number", "result"], **options}
        listing = options_of(ci_job_info.BuildListOptions, **given)
        return ci_job_info.build_list(Played(stub, read_only=True).task(), listing), stub


def test_list_of_builds_has_the_requested_length() -> None:
    found, stub = listed(Served())
    assert found == [{"number": 7}]
    assert stub.seen[0].target.endswith("?tree=builds%5Bnumber%2Cresult%5D")
    found, stub = listed(Served(), limit=1, all_builds=True)
    assert found == [{"number": 7}]
    assert stub.seen[0].target.endswith("?tree=allBuilds%5Bnumber%2Cresult%5D%7B0%2C1%7D")
    assert len(listed(Served(), limit=101)[0]) == 2
    with pytest.raises(ToolchainError):
        listed(Served(), limit=-1)


def test_parameters_of_a_build_are_a_dictionary() -> None:
    with Stub(response=Served()) as stub:
        options = ci_job_info.BuildParametersOptions(job="folder/job", build="lastBuild")
        found = ci_job_info.build_parameters(Played(stub, read_only=True).task(), options)
    assert found == {"A": "1", "KEY": "***"}


@pytest.mark.parametrize(("shown", "all_builds"), [("builds", True), ("allBuilds", False)])
def test_server_may_offer_only_one_list_of_builds(shown: str, all_builds: bool) -> None:
    def response(_seen: Seen) -> Reply:
        return Reply(body={"name": "job", shown: [{"number": 7}, {"number": 6}]})

    listing = ci_job_info.BuildListOptions(job="j", fields=["number"], all_builds=all_builds)
    with Stub(response=response) as stub:
        info = Played(stub, {"all_builds": all_builds}, read_only=True)
        assert read(info)["builds"] == [{"number": 7}, {"number": 6}]
        found = ci_job_info.build_list(info.task(), listing)
    assert found == [{"number": 7}, {"number": 6}]


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ({}, "does not contain the builds"),
        ({"builds": [{"number": n} for n in range(100)]}, "older builds may exist"),
        ({"builds": "none"}, "is not a list"),
    ],
)
def test_unsupported_all_builds_is_an_error(response: dict[str, Any], words: str) -> None:
    """Verify this for a server that ignores unknown names in `tree` and returns 200."""

    def known(seen: Seen) -> Reply:
        return Reply(body={} if "allBuilds" in seen.target else response)

    listing = ci_job_info.BuildListOptions(job="j", fields=["number"], all_builds=True)
    with Stub(response=known) as stub:
        for asked in (
            lambda: read(Played(stub, {"all_builds": True}, read_only=True)),
            lambda: ci_job_info.build_list(Played(stub).task(), listing),
        ):
            with pytest.raises(ToolchainError, match=words) as caught:
                asked()
            assert caught.value.kind == "protocol"
        response = {"builds": [{"number": 2}, {"number": 1}]}
        assert ci_job_info.build_list(Played(stub).task(), listing) == response["builds"]


@pytest.mark.parametrize("body", [{"_class": "x"}, {"actions": [{"parameters": [{}, {}]}]}])
def test_hidden_parameters_are_not_found(body: dict[str, Any]) -> None:
    options = ci_job_info.BuildParametersOptions(job="j", build="7")
    unshown = Stub(response=lambda seen: Reply(body=body))
    with (
        unshown as stub,
        pytest.raises(ToolchainError, match="does not contain the build parameters"),
    ):
        ci_job_info.build_parameters(Played(stub).task(), options)
    newest = Reply(body={"lastBuild": {"number": 9}})
    gone = Stub(response=lambda seen: Reply(404) if "/7/" in seen.target else newest)
    with gone as stub, pytest.raises(ToolchainError, match="its newest build is 9") as caught:
        ci_job_info.build_parameters(Played(stub).task(), options)
    assert caught.value.kind == "not_found"
