# SPDX-License-Identifier: GPL-3.0-or-later
"""Test jobs and folders of the sandbox's CI server: create, compare, copy, enable,
disable, delete.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    predictions,
    run_folder,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds.ci_build_delete import (
    CiBuildDeleteOperation,
    CiBuildDeleteOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds.ci_job_build import (
    CiJobBuildOperation,
    CiJobBuildOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs.ci_job import (
    CiJobOperation,
    CiJobOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs.ci_job_info import (
    CiJobInfoOperation,
    CiJobInfoOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from sandbox.ci.jobs import ciphers
from sandbox.client import Sandbox
from tests.helpers.options import build as options_of
from tests.unit.ci.tasks import Run
from tests.unit.stub import Reply, Stub

TOKEN = "builder-api-token-1234567890"
CONFIG = """<?xml version="1.0"?>
<project>
  <canRoam>true</canRoam>
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

    def build(self, **options: Any) -> dict[str, Any]:
        chosen = options_of(CiJobBuildOptions, **{"poll_interval": 0.05, **options})
        played = Run(self.sandbox.urls["ci"], token=TOKEN)
        return played.play(lambda task: CiJobBuildOperation(task, chosen))

    def fails_in_a_run(self, **options: Any) -> ToolchainError:
        with pytest.raises(ToolchainError) as caught:
            self.run(**options)
        return caught.value

    def fails(self, **options: Any) -> ToolchainError:
        """Verify that check mode and run mode raise the same kind of error. Return the error."""
        kinds = []
        for check in (True, False):
            with pytest.raises(ToolchainError) as caught:
                self.run(check=check, **options)
            kinds.append(caught.value.kind)
        assert kinds[0] == kinds[1]
        return caught.value

    def secrets(self, job: str) -> list[str | None]:
        """Return the secrets that the server has in the configuration of a job."""
        options = options_of(CiJobInfoOptions, job=job, config=True)
        shown = Run(self.sandbox.urls["ci"], token=TOKEN).play(
            lambda task: CiJobInfoOperation(task, options)
        )["config_xml"]
        return [ciphers.decrypt(found) for found in re.findall(r"\{AQAA[^}]*\}", shown)]

    def posts(self) -> list[str]:
        return [request["path"] for request in self.sandbox.requests("ci", writes=True)]


@pytest.fixture
def ci(fresh: Callable[[str], Sandbox]) -> Ci:
    return Ci(fresh("real"))


def test_job_is_created_once_and_compared_by_meaning(ci: Ci) -> None:
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
    assert "parameterDefinitions/hudson.model.PasswordParameterDefinition" in ci.warnings[-1]
    assert ci.posts() == ["/job/delivery/createItem"]


def test_update_names_the_differences(ci: Ci) -> None:
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


def test_dropped_element_is_reported(ci: Ci) -> None:
    text = CONFIG.replace(
        "<builders>", "<unheardOf>x</unheardOf><builders><hudson.plugins.timestamper.Step/>"
    )
    with pytest.raises(ToolchainError, match="unheardOf") as caught:
        ci.run(job="x", config=text)
    assert caught.value.kind == "rejected"
    assert "builders/hudson.plugins.timestamper.Step" in caught.value.message
    assert caught.value.result["changed"] is True
    # nothing changes on the server, so the task is unchanged
    assert not ci.run(job="x", config=text)["changed"]
    assert "did not take builders/hudson.plugins.timestamper.Step, unheardOf" in ci.warnings[-1]


def test_configuration_is_read_from_a_file(ci: Ci, tmp_path: Any) -> None:
    path = tmp_path / "x.xml"
    path.write_text(CONFIG, encoding="utf-8")
    assert ci.run(job="x", src=str(path))["changed"]
    assert ci.fails(job="x", src=f"{path}.not").kind == "invalid"


def test_copied_job_is_buildable_immediately(ci: Ci) -> None:
    made = ci.run(job="delivery/copied", copy_from="no-parameters")
    assert made["changed"]
    assert "Takes no parameters" in made["diff"][1]
    assert not ci.run(job="delivery/copied", copy_from="no-parameters")["changed"]
    options = options_of(CiJobBuildOptions, job="delivery/copied", poll_interval=0.1)
    built = Run(ci.sandbox.urls["ci"], token=TOKEN).play(
        lambda task: CiJobBuildOperation(task, options)
    )
    assert built["build"]["result"] == "SUCCESS"


def test_copied_job_is_released_on_old_servers(ci: Ci) -> None:
    ci.sandbox.settings("ci", copy_released_by="submitDescription")
    ci.run(job="copied", copy_from="no-parameters")
    assert ci.posts()[-2:] == ["/job/copied/config.xml", "/job/copied/submitDescription"]
    assert ci.warnings == []
    again = ci.run(job="copied", copy_from="no-parameters")
    assert not again["changed"]


def test_copied_job_held_by_the_server_gives_a_warning(ci: Ci) -> None:
    ci.sandbox.settings("ci", copy_released_by="nothing")
    assert ci.run(job="copied", copy_from="no-parameters")["changed"]
    assert "still does not allow builds of them: copied" in ci.warnings[-1]


def test_interrupted_copy_is_completed(ci: Ci) -> None:
    lost = {"service": "ci", "path": "/config.xml$", "method": "POST", "status": 503}
    ci.sandbox.fault(**lost, headers={"Retry-After": "1000"})
    with pytest.raises(ToolchainError):
        ci.run(job="copied", copy_from="no-parameters")
    found = ci.run(job="copied", copy_from="no-parameters")
    assert found["changed"]
    assert "never saved" in found["differences"][0]
    assert not ci.run(job="copied", copy_from="no-parameters")["changed"]


def test_jobs_of_a_copied_folder_are_buildable(ci: Ci) -> None:
    ci.run(job="other", copy_from="delivery", folder=True)
    assert "/job/other/job/service/job/main/config.xml" in ci.posts()
    assert "/job/other/job/service/job/feature%252Fx/config.xml" in ci.posts()


def test_job_named_like_a_login_page_is_managed(ci: Ci) -> None:
    """Verify that a job name like a login page is not a failed login.

    The server redirects to the job, or to the folder of a deleted job.
    """
    assert ci.run(job="login", folder=True)["changed"]
    assert ci.run(job="login/sign-in", config=CONFIG)["changed"]
    assert ci.run(job="login/sign-in", enabled=False)["changed"]
    assert ci.run(job="login/sign-in", enabled=True)["changed"]
    assert ci.run(job="login/login", copy_from="login/sign-in")["changed"]
    assert ci.run(job="login/sign-in", state="absent")["changed"]


@pytest.mark.parametrize("location", ["/login", "/login?from=%2Fjob%2Flogin%2F", "/ci/login/"])
def test_redirect_to_login_page_is_an_auth_error(ci: Ci, location: str) -> None:
    ci.run(job="login", config=CONFIG)
    ci.sandbox.fault(
        service="ci", path="disable", method="POST", status=302, headers={"Location": location}
    )
    with pytest.raises(ToolchainError) as caught:
        ci.run(job="login", enabled=False)
    assert caught.value.kind == "auth"


def test_copied_job_may_be_created_disabled(ci: Ci) -> None:
    ci.run(job="copied", copy_from="no-parameters", enabled=False)
    assert not ci.run(job="copied", enabled=False)["changed"]
    found = ci.run(job="copied", enabled=True)
    assert (found["changed"], found["differences"]) == (True, ["disabled"])
    assert ci.posts()[-1] == "/job/copied/enable"
    assert not ci.run(job="copied", enabled=True)["changed"]


def test_job_is_created_disabled_in_one_request(ci: Ci) -> None:
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


def test_folders_are_managed(ci: Ci) -> None:
    assert ci.run(job="tools", folder=True)["changed"]
    assert not ci.run(job="tools", folder=True)["changed"]
    assert ci.run(job="tools/x", config=CONFIG)["changed"]
    assert ci.fails(job="no-parameters", folder=True).kind == "conflict"
    assert ci.fails(job="tools", config=CONFIG).kind == "conflict"
    assert ci.fails(job="tools", folder=True, config=CONFIG).kind == "invalid"
    assert ci.fails(job="tools", enabled=False).kind == "invalid"
    refused = ci.fails(job="tools", folder=True, state="absent")
    assert refused.kind == "invalid"
    assert "it contains jobs" in refused.message
    gone = ci.run(job="tools", folder=True, state="absent", force=True)
    assert gone["changed"]
    assert not ci.run(job="tools", folder=True, state="absent")["changed"]


def test_documented_interface_cannot_create_jobs(ci: Ci) -> None:
    ci.sandbox.settings("ci", flavour="written")
    error = ci.fails(job="new", folder=True)
    assert error.kind == "not_found"
    assert "the server does not list its top-level jobs (api/json)" in error.message


def test_job_with_builds_is_deleted_only_with_force(ci: Ci) -> None:
    assert "it contains builds" in ci.fails(job="long-history", state="absent").message
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
def test_invalid_options_are_rejected(ci: Ci, options: dict[str, Any], kind: str) -> None:
    error = ci.fails(**options)
    assert error.kind == kind, error.message
    assert ci.posts() == []


def test_job_created_concurrently_is_accepted(ci: Ci) -> None:
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
def test_404_of_another_server_is_not_an_absent_job(options: dict[str, Any]) -> None:
    chosen = options_of(CiJobOptions, job="x", **options)
    with Stub(response=lambda seen: Reply(404)) as stub, pytest.raises(ToolchainError) as caught:
        Run(stub.url).play(lambda task: CiJobOperation(task, chosen))
    assert caught.value.kind == "not_found"
    assert "check url" in caught.value.message


def test_secret_is_kept_if_other_parts_change(ci: Ci) -> None:
    ci.run(job="delivery/x", config=CONFIG)
    changed = CONFIG.replace("hush-hush", "new-secret").replace("Joe", "Ann")
    ci.run(job="delivery/x", config=changed)
    assert ci.secrets("delivery/x") == ["hush-hush"]
    assert "secrets are not compared" in ci.warnings[-1]
    again = ci.run(job="delivery/x", config=changed)
    assert again["changed"] is False
    assert [path.rpartition("/")[2] for path in again["unknown"]] == ["defaultValue"]
    kept = ci.run(job="delivery/x", config=changed.replace("new-secret", "(kept by the server)"))
    assert (kept["changed"], kept.get("unknown")) == (False, None)


def test_secret_is_resent_on_request(ci: Ci) -> None:
    ci.run(job="delivery/x", config=CONFIG)
    given: dict[str, Any] = {
        "job": "delivery/x",
        "config": CONFIG.replace("hush-hush", "new-secret"),
        "update_secrets": "always",
    }
    planned = ci.run(check=True, **given)
    made = ci.run(**given)
    path = "PasswordParameterDefinition/defaultValue"
    assert (planned["changed"], planned["differences"]) == (True, made["differences"])
    assert [found.endswith(path) for found in made["differences"]] == [True]
    assert planned["diff"] == made["diff"]
    assert "***" in made["diff"][0]
    assert "(new secret)" in made["diff"][1]
    assert "new-secret" not in str(made["diff"])
    assert ci.secrets("delivery/x") == ["new-secret"]
    assert ci.warnings == []


def test_secret_of_a_new_element_is_sent(ci: Ci) -> None:
    ci.run(job="delivery/x", config="<project><description>x</description></project>")
    ci.run(job="delivery/x", config=CONFIG)
    assert ci.secrets("delivery/x") == ["hush-hush"]


def test_secret_is_never_moved_to_another_entry(ci: Ci) -> None:
    entry = CONFIG[
        CONFIG.index("<hudson.model.PasswordP") : CONFIG.index("</parameterDefinitions>")
    ]
    other = entry.replace("KEY", "OTHER").replace("hush-hush", "other-secret")
    ci.run(job="delivery/x", config=CONFIG)
    ci.run(job="delivery/x", config=CONFIG.replace(entry, other + entry.replace("hush", "new")))
    assert ci.secrets("delivery/x") == ["other-secret", "hush-hush"]


@pytest.mark.parametrize(
    "given", [{"state": "absent"}, {"copy_from": "no-parameters"}, {"enabled": True}]
)
def test_secrets_without_configuration_are_rejected(ci: Ci, given: dict[str, Any]) -> None:
    error = ci.fails(job="delivery/x", update_secrets="always", **given)
    assert (error.kind, ci.sandbox.requests("ci")) == ("invalid", [])
    assert "update_secrets" in error.message


#: Definitions as servers write them [ci-31]: the plugin names and random names are theirs.
DEFINITIONS = """
<hudson.model.StringParameterDefinition>
  <name>VERSION</name><defaultValue>1.0</defaultValue>
</hudson.model.StringParameterDefinition>
<hudson.model.TextParameterDefinition>
  <name>NOTES</name><description>Several lines</description>
  <defaultValue>first
second</defaultValue><trim>true</trim>
</hudson.model.TextParameterDefinition>
<hudson.model.BooleanParameterDefinition>
  <name>PUBLISH</name><defaultValue>true</defaultValue>
</hudson.model.BooleanParameterDefinition>
<hudson.model.ChoiceParameterDefinition>
  <name>TARGET</name>
  <choices class="java.util.Arrays$ArrayList">
    <a class="string-array"><string>test</string><string>staging</string></a>
  </choices>
</hudson.model.ChoiceParameterDefinition>
<hudson.model.RunParameterDefinition>
  <name>UPSTREAM</name><projectName>no-parameters</projectName><filter>SUCCESSFUL</filter>
</hudson.model.RunParameterDefinition>
<hudson.model.FileParameterDefinition><name>input.txt</name></hudson.model.FileParameterDefinition>
<com.cloudbees.plugins.credentials.CredentialsParameterDefinition plugin="credentials@1254.vb">
  <name>LOGIN</name><defaultValue>deploy</defaultValue>
  <credentialType>com.cloudbees.plugins.credentials.common.StandardCredentials</credentialType>
  <required>false</required>
</com.cloudbees.plugins.credentials.CredentialsParameterDefinition>
<com.wangyin.parameter.WHideParameterDefinition plugin="hidden-parameter@0.0.5">
  <name>HIDDEN</name><defaultValue>64</defaultValue>
</com.wangyin.parameter.WHideParameterDefinition>
<org.biouno.unochoice.ChoiceParameter plugin="uno-choice@2.8.3">
  <name>CLUSTER</name>
  <randomName>choice-parameter-1464647741325096</randomName>
  <script class="org.biouno.unochoice.model.GroovyScript">
    <secureScript plugin="script-security@1.71"><script>return ['a']</script></secureScript>
  </script>
  <choiceType>PT_SINGLE_SELECT</choiceType>
</org.biouno.unochoice.ChoiceParameter>
<com.cwctravel.hudson.plugins.extended__choice__parameter.ExtendedChoiceParameterDefinition>
  <name>HOSTS</name><multiSelectDelimiter>,</multiSelectDelimiter>
</com.cwctravel.hudson.plugins.extended__choice__parameter.ExtendedChoiceParameterDefinition>
"""
PLUGINS = ("hidden-parameter", "uno-choice", "extended-choice-parameter")


def _with(definitions: str) -> str:
    holder = "hudson.model.ParametersDefinitionProperty"
    return (
        f"<project><canRoam>true</canRoam><properties><{holder}><parameterDefinitions>{definitions}"
        f"</parameterDefinitions></{holder}></properties></project>"
    )


@pytest.fixture
def with_plugins(ci: Ci) -> Ci:
    plugins = [{"shortName": name, "longName": name, "version": "1.0"} for name in PLUGINS]
    ci.sandbox.seed({"ci": {"plugins": plugins}})
    return ci


def test_definitions_of_plugins_are_kept(with_plugins: Ci) -> None:
    config = _with(DEFINITIONS)
    assert with_plugins.run(job="delivery/x", config=config)["changed"]
    assert with_plugins.warnings == []
    for same in (
        config,
        config.replace('<choices class="java.util.Arrays$ArrayList">', "<choices>"),
        config.replace('<a class="string-array">', "").replace("</a>", ""),
        config.replace("1464647741325096", "2"),
        config.replace("__choice__", "_choice_"),
    ):
        assert with_plugins.run(job="delivery/x", config=same)["differences"] == []
    differs = with_plugins.run(
        check=True, job="delivery/x", config=config.replace("<string>test</string>", "")
    )
    path = "hudson.model.ChoiceParameterDefinition/choices"
    assert differs["differences"]
    assert all(path in found for found in differs["differences"])


def test_definition_of_a_missing_plugin_is_rejected(ci: Ci) -> None:
    error = ci.fails_in_a_run(job="delivery/x", config=_with(DEFINITIONS))
    assert error.kind == "rejected"
    assert "WHideParameterDefinition" in error.message


def test_plugin_parameters_are_sent_and_compared(with_plugins: Ci, tmp_path: Path) -> None:
    with_plugins.run(job="delivery/x", config=_with(DEFINITIONS))
    (tmp_path / "input.txt").write_text("x")
    given: dict[str, Any] = {
        "job": "delivery/x",
        "files": {"input.txt": str(tmp_path / "input.txt")},
        "parameters": {"NOTES": "a\nb", "TARGET": "staging", "UPSTREAM": "no-parameters#1"},
    }
    first = with_plugins.build(**given)
    assert first["build"]["parameters"] == {
        "VERSION": "1.0",
        "NOTES": "a\nb",
        "PUBLISH": True,
        "TARGET": "staging",
        "UPSTREAM": "no-parameters#1",
        "input.txt": None,
        "LOGIN": "deploy",
        "HIDDEN": "64",
        "CLUSTER": "",
        "HOSTS": "",
    }
    again = with_plugins.build(**given, trigger="unless_successful")
    assert again["build"]["number"] == 1
    other = {**given["parameters"], "UPSTREAM": "no-parameters#2"}
    second = with_plugins.build(**{**given, "parameters": other}, trigger="unless_successful")
    assert second["build"]["number"] == 2
    with pytest.raises(ToolchainError, match="'TARGET' must be one of 'test', 'staging'"):
        with_plugins.build(job="delivery/x", parameters={"TARGET": "production"})


# --- names that differ only in case [ci-5] --------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"state": "absent"},
        {"state": "absent", "force": True},
        {"config": CONFIG},
        {"config": CONFIG.replace("make", "other")},
        {"enabled": False},
        {"copy_from": "no-parameters"},
        {"folder": True},
    ],
)
def test_other_spelling_of_a_job_is_a_conflict(ci: Ci, options: dict[str, Any]) -> None:
    ci.run(job="delivery/CaseJob", config=CONFIG)
    before = len(ci.posts())
    error = ci.fails(job="delivery/CASEJOB", **options)
    assert error.kind == "conflict"
    assert "'delivery/CaseJob'" in error.message
    assert len(ci.posts()) == before
    assert not ci.run(job="delivery/CaseJob", config=CONFIG)["changed"]


def test_other_spelling_of_a_folder_or_source_is_a_conflict(ci: Ci) -> None:
    for options in (
        {"job": "Delivery/new", "config": CONFIG},
        {"job": "Delivery/new", "folder": True},
        {"job": "new", "copy_from": "No-Parameters"},
    ):
        error = ci.fails(**options)
        assert error.kind == "conflict", error.message
    assert ci.posts() == []


def test_builds_of_another_spelling_are_a_conflict(ci: Ci) -> None:
    with pytest.raises(ToolchainError, match="'no-parameters'") as caught:
        ci.build(job="No-Parameters")
    assert caught.value.kind == "conflict"
    chosen = options_of(CiBuildDeleteOptions, job="No-Parameters", builds=[1])
    with pytest.raises(ToolchainError, match="'no-parameters'") as caught:
        Run(ci.sandbox.urls["ci"], token=TOKEN).play(
            lambda task: CiBuildDeleteOperation(task, chosen)
        )
    assert caught.value.kind == "conflict"
    assert ci.posts() == []


def test_job_of_an_earlier_task_in_check_mode_has_one_spelling(
    ci: Ci, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    url = ci.sandbox.urls["ci"]
    task = replace(
        Run(url, read_only=True, token=TOKEN).task,
        predictions=predictions.Predictions(url, check_mode=True),
    )
    first = CiJobOperation(task, options_of(CiJobOptions, job="CaseJob", config=CONFIG))
    first.predict(first.plan())
    second = CiJobOperation(task, options_of(CiJobOptions, job="casejob", config=CONFIG))
    with pytest.raises(ToolchainError, match="'CaseJob'") as caught:
        second.plan()
    assert caught.value.kind == "conflict"
