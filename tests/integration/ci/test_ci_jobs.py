# SPDX-License-Identifier: GPL-3.0-or-later
"""Test jobs and folders of the sandbox's CI server: create, compare, copy, enable,
disable, delete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils.ci.builds.ci_job_build import (
    CiJobBuildOperation,
    CiJobBuildOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.ci.jobs.ci_job import (
    CiJobOperation,
    CiJobOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.errors import ToolchainError
from sandbox.client import Sandbox
from tests.helpers.options import build as options_of
from tests.unit.ci.tasks import Run
from tests.unit.stub import Reply, Stub

TOKEN = "builder-api-token-1234567890"
CONFIG = """<?xml version="1.0"?>
<project>
  <builders><hudson.tasks.Shell><command>make</command></hudson.tasks.Shell></builders>
  <properties><hudson.model.ParametersDefinitionProperty><parameterDefinitions>
    <hudson.model.PasswordParameterDefinition>
      <name>KEY</name><defaultValue>hush-hush</defaultValue>
    </hudson.model.PasswordParameterDefinition>
  </parameterDefinitions></hudson.model.ParametersDefinitionProperty></properties>
  <description>Zoë &amp; Joe</description>
</project>"""


class Ci:
    """Run `ci_job` tasks against a sandbox. `posts` returns the paths of the write requests."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.warnings: list[str] = []

    def run(self, *, check: bool = False, **options: Any) -> dict[str, Any]:
        played = Run(self.sandbox.urls["ci"], check, token=TOKEN)
        chosen = options_of(CiJobOptions, **options)
        found = played.play(lambda task: CiJobOperation(task, chosen))
        self.warnings = played.warnings
        return found

    def fails(self, **options: Any) -> ToolchainError:
        """Verify that check mode and run mode raise the same kind of error. Return the error."""
        kinds = []
        for check in (True, False):
            with pytest.raises(ToolchainError) as caught:
                self.run(check=check, **options)
            kinds.append(caught.value.kind)
        assert kinds[0] == kinds[1]
        return caught.value

    def posts(self) -> list[str]:
        return [each["path"] for each in self.sandbox.requests("ci", writes=True)]


@pytest.fixture
def ci(fresh: Callable[[str], Sandbox]) -> Ci:
    return Ci(fresh("real"))


def test_a_job_is_made_once_and_compared_by_what_it_means(ci: Ci) -> None:
    assert ci.run(check=True, job="delivery/x", config=CONFIG)["changed"]
    assert ci.posts() == []
    made = ci.run(job="delivery/x", config=CONFIG)
    assert made["changed"]
    assert made["job"]["name"] == "delivery/x"
    assert made["job"]["url"].endswith("/ci/job/delivery/job/x/")
    assert "<description>Zoë &amp; Joe</description>" in made["diff"][1]
    assert "hush" not in made["diff"][1]
    again = ci.run(job="delivery/x", config=CONFIG)
    assert not again["changed"]
    assert again["diff"][0] == again["diff"][1]
    assert "parameterDefinitions/hudson.model.PasswordParameterDefinition" in ci.warnings[0]
    assert ci.posts() == ["/job/delivery/createItem"]


def test_an_update_names_what_differs(ci: Ci) -> None:
    ci.run(job="x", config=CONFIG)
    other = CONFIG.replace("<command>make<", "<command>make all<").replace(
        "<description>", "<quietPeriod>5</quietPeriod><description>"
    )
    found = ci.run(job="x", config=other)
    assert sorted(found["differences"]) == ["builders/hudson.tasks.Shell/command", "quietPeriod"]
    assert not ci.run(job="x", config=other)["changed"]
    back = ci.run(job="x", config=CONFIG)
    assert "quietPeriod" in back["differences"]
    assert "<quietPeriod>5</quietPeriod>" in back["diff"][0]
    assert "quietPeriod" not in back["diff"][1]


def test_what_the_server_drops_is_named(ci: Ci) -> None:
    text = CONFIG.replace(
        "<builders>", "<unheardOf>x</unheardOf><builders><hudson.plugins.timestamper.Step/>"
    )
    for changed in (True, False):
        with pytest.raises(ToolchainError, match="unheardOf") as caught:
            ci.run(job="x", config=text)
        assert caught.value.kind == "rejected"
        assert "builders/hudson.plugins.timestamper.Step" in caught.value.message
        assert caught.value.result["changed"] is changed


def test_a_file_holds_the_configuration(ci: Ci, tmp_path: Any) -> None:
    path = tmp_path / "x.xml"
    path.write_text(CONFIG, encoding="utf-8")
    assert ci.run(job="x", src=str(path))["changed"]
    assert ci.fails(job="x", src=f"{path}.not").kind == "invalid"


def test_a_copy_can_be_built_at_once(ci: Ci) -> None:
    made = ci.run(job="delivery/copied", copy_from="no-parameters")
    assert made["changed"]
    assert "Takes no parameters" in made["diff"][1]
    assert not ci.run(job="delivery/copied", copy_from="no-parameters")["changed"]
    options = options_of(CiJobBuildOptions, job="delivery/copied", poll_interval=0.1)
    built = Run(ci.sandbox.urls["ci"], token=TOKEN).play(
        lambda task: CiJobBuildOperation(task, options)
    )
    assert built["build"]["result"] == "SUCCESS"


def test_a_copy_is_released_from_a_server_of_long_ago(ci: Ci) -> None:
    ci.sandbox.settings("ci", copy_released_by="submitDescription")
    ci.run(job="copied", copy_from="no-parameters")
    assert ci.posts()[-2:] == ["/job/copied/config.xml", "/job/copied/submitDescription"]
    assert ci.warnings == []
    again = ci.run(job="copied", copy_from="no-parameters")
    assert not again["changed"]


def test_a_copy_that_stays_held_back_is_warned_of(ci: Ci) -> None:
    ci.sandbox.settings("ci", copy_released_by="nothing")
    assert ci.run(job="copied", copy_from="no-parameters")["changed"]
    assert "holds copied back from being built" in ci.warnings[0]


def test_an_interrupted_copy_is_finished(ci: Ci) -> None:
    lost = {"service": "ci", "path": "/config.xml$", "method": "POST", "status": 503}
    ci.sandbox.fault(**lost, headers={"Retry-After": "1000"})
    with pytest.raises(ToolchainError):
        ci.run(job="copied", copy_from="no-parameters")
    found = ci.run(job="copied", copy_from="no-parameters")
    assert found["changed"]
    assert "never saved" in found["differences"][0]
    assert not ci.run(job="copied", copy_from="no-parameters")["changed"]


def test_a_copied_folder_brings_jobs_that_can_be_built(ci: Ci) -> None:
    ci.run(job="other", copy_from="delivery", folder=True)
    assert "/job/other/job/service/job/main/config.xml" in ci.posts()
    assert "/job/other/job/service/job/feature%252Fx/config.xml" in ci.posts()


def test_a_job_may_be_named_as_a_login_page(ci: Ci) -> None:
    """Verify that a job name like a login page is no failed login.

    The server redirects to the job, or to the folder of a deleted job.
    """
    assert ci.run(job="login", folder=True)["changed"]
    assert ci.run(job="login/sign-in", config=CONFIG)["changed"]
    assert ci.run(job="login/sign-in", enabled=False)["changed"]
    assert ci.run(job="login/sign-in", enabled=True)["changed"]
    assert ci.run(job="login/login", copy_from="login/sign-in")["changed"]
    assert ci.run(job="login/sign-in", state="absent")["changed"]


@pytest.mark.parametrize("location", ["/login", "/login?from=%2Fjob%2Flogin%2F", "/ci/login/"])
def test_the_way_to_a_login_page_is_no_yes(ci: Ci, location: str) -> None:
    ci.run(job="login", config=CONFIG)
    ci.sandbox.fault(
        service="ci", path="disable", method="POST", status=302, headers={"Location": location}
    )
    with pytest.raises(ToolchainError) as caught:
        ci.run(job="login", enabled=False)
    assert caught.value.kind == "auth"


def test_a_copy_may_begin_disabled(ci: Ci) -> None:
    ci.run(job="copied", copy_from="no-parameters", enabled=False)
    assert not ci.run(job="copied", enabled=False)["changed"]
    found = ci.run(job="copied", enabled=True)
    assert (found["changed"], found["differences"]) == (True, ["disabled"])
    assert ci.posts()[-1] == "/job/copied/enable"
    assert not ci.run(job="copied", enabled=True)["changed"]


def test_a_job_is_made_disabled_in_one_request(ci: Ci) -> None:
    ci.run(job="x", config=CONFIG, enabled=False)
    assert not ci.run(job="x", enabled=False)["changed"]
    assert ci.run(job="x", config=CONFIG)["differences"] == ["disabled"]
    assert ci.posts() == ["/createItem", "/job/x/config.xml"]


def test_computed_folders_are_disabled(ci: Ci) -> None:
    """A multibranch project in a disabled organization folder is enabled itself."""
    kinds = {"org": "organization", "org/repo": "multibranch", "org/repo/main": "pipeline"}
    ci.sandbox.seed({"ci": {"jobs": {name: {"kind": kind} for name, kind in kinds.items()}}})
    assert ci.run(check=True, job="org", enabled=False)["changed"]
    assert ci.run(job="org", enabled=False)["diff"] == (
        {"job": "org", "enabled": True},
        {"job": "org", "enabled": False},
    )
    assert not ci.run(job="org", enabled=False)["changed"]
    assert not ci.run(job="org/repo", enabled=True)["changed"]
    assert ci.run(job="org/repo", enabled=False)["changed"]
    assert ci.run(job="org", enabled=True)["changed"]
    assert not ci.run(job="org/repo", enabled=False)["changed"]
    assert len(ci.posts()) == 3
    assert ci.fails(job="delivery", enabled=False).kind == "invalid"


def test_folders(ci: Ci) -> None:
    assert ci.run(job="tools", folder=True)["changed"]
    assert not ci.run(job="tools", folder=True)["changed"]
    assert ci.run(job="tools/x", config=CONFIG)["changed"]
    assert ci.fails(job="no-parameters", folder=True).kind == "conflict"
    assert ci.fails(job="tools", config=CONFIG).kind == "conflict"
    assert ci.fails(job="tools", folder=True, config=CONFIG).kind == "invalid"
    assert ci.fails(job="tools", enabled=False).kind == "invalid"
    refused = ci.fails(job="tools", folder=True, state="absent")
    assert refused.kind == "invalid"
    assert "it has jobs" in refused.message
    gone = ci.run(job="tools", folder=True, state="absent", force=True)
    assert gone["changed"]
    assert not ci.run(job="tools", folder=True, state="absent")["changed"]


def test_a_server_of_the_written_interface_makes_no_jobs(ci: Ci) -> None:
    ci.sandbox.settings("ci", flavour="written")
    error = ci.fails(job="new", folder=True)
    assert error.kind == "not_found"
    assert "this server does not show what is at its top (api/json)" in error.message


def test_a_job_with_builds_is_deleted_by_force_alone(ci: Ci) -> None:
    assert "it has builds" in ci.fails(job="long-history", state="absent").message
    found = ci.run(job="long-history", state="absent", force=True)
    assert found["changed"]
    assert "<name>VERSION</name>" in found["diff"][0]
    assert not ci.run(job="long-history", state="absent")["changed"]


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"job": "nowhere/x", "config": CONFIG}, "not_found"),
        ({"job": "no-parameters/x", "config": CONFIG}, "conflict"),
        ({"job": "x"}, "not_found"),
        ({"job": "x", "enabled": True}, "not_found"),
        ({"job": "x", "copy_from": "nothing"}, "not_found"),
        ({"job": ["a*b"], "config": CONFIG}, "invalid"),
        ({"job": ["delivery", "x "], "config": CONFIG}, "invalid"),
        ({"job": "x.", "folder": True}, "invalid"),
        ({"job": "x", "config": "<project>"}, "invalid"),
        ({"job": "x", "config": "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"}, "invalid"),
        ({"job": "x", "config": "<project><token>********</token></project>"}, "invalid"),
        ({"job": "x", "config": CONFIG, "force": True}, "invalid"),
        ({"job": "x", "config": CONFIG, "state": "absent"}, "invalid"),
        ({"job": "x", "folder": True, "enabled": False}, "invalid"),
        ({"job": "nightly-*", "state": "absent"}, "invalid"),
    ],
)
def test_slips(ci: Ci, options: dict[str, Any], kind: str) -> None:
    error = ci.fails(**options)
    assert error.kind == kind, error.message
    assert ci.posts() == []


def test_who_makes_the_same_job_at_the_same_time_is_no_failure(ci: Ci) -> None:
    first = Run(ci.sandbox.urls["ci"], token=TOKEN)
    operation = CiJobOperation(first.task, options_of(CiJobOptions, job="x", config=CONFIG))
    plan = operation.plan()
    ci.run(job="x", config=CONFIG)
    assert operation.apply(plan) == {"changed": False}
    other = CiJobOperation(first.task, options_of(CiJobOptions, job="y", config=CONFIG))
    plan = other.plan()
    ci.run(job="y", config=CONFIG.replace("make", "other"))
    with pytest.raises(ToolchainError, match="already exists") as caught:
        other.apply(plan)
    assert caught.value.kind == "conflict"


@pytest.mark.parametrize("options", [{"state": "absent"}, {"config": CONFIG}, {"folder": True}])
def test_the_404_of_another_server_tells_nothing_of_jobs(options: dict[str, Any]) -> None:
    chosen = options_of(CiJobOptions, job="x", **options)
    with Stub(answer=lambda seen: Reply(404)) as stub, pytest.raises(ToolchainError) as caught:
        Run(stub.url).play(lambda task: CiJobOperation(task, chosen))
    assert caught.value.kind == "not_found"
    assert "check url" in caught.value.message
