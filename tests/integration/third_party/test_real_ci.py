# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the modules of the CI server with a real server: Hudson, its predecessor.

Needs Java and Maven (unpacked on Debian). `tests/helpers/hudson.py` lists the differences between
Hudson and a current server.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_node import (
    NodeStore,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    resolve,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from sandbox.client import Sandbox
from tests.helpers import hudson, installed, playbook

pytestmark = pytest.mark.skipif(
    installed.java_files("hudson") is None,
    reason="no Java and Maven on this machine: no real CI server was asked",
)

RAW = yaml.safe_load((installed.STRANGERS / "ci_requests.yml").read_text(encoding="utf-8"))
SECRET = "build-parameter-secret"
GIVEN = {"VERSION": "1.10", "TARGET": "staging", "PUBLISH": True, "PASSWORD": SECRET}
# Hudson returns neither the values nor the type of password parameters
READ = {**GIVEN, "PASSWORD": None}
ODD = "an odd name + ü"
PARAMETERS = """
<hudson.model.StringParameterDefinition>
  <name>VERSION</name><description/><defaultValue>1.0</defaultValue>
</hudson.model.StringParameterDefinition>
<hudson.model.ChoiceParameterDefinition>
  <name>TARGET</name>
  <choices class="java.util.Arrays$ArrayList">
    <a class="string-array"><string>test</string><string>staging</string></a>
  </choices>
</hudson.model.ChoiceParameterDefinition>
<hudson.model.BooleanParameterDefinition>
  <name>PUBLISH</name><defaultValue>false</defaultValue>
</hudson.model.BooleanParameterDefinition>
<hudson.model.PasswordParameterDefinition>
  <name>PASSWORD</name><defaultValue>none</defaultValue>
</hudson.model.PasswordParameterDefinition>
"""


ARCHIVED = """
<publishers>
  <hudson.tasks.ArtifactArchiver>
    <artifacts>out/**</artifacts><latestOnly>false</latestOnly>
  </hudson.tasks.ArtifactArchiver>
  <hudson.tasks.Fingerprinter>
    <targets/><recordBuildArtifacts>true</recordBuildArtifacts>
  </hudson.tasks.Fingerprinter>
</publishers>
"""
MAKE = "mkdir -p 'out/deep er'; echo one &gt; out/one.txt; echo two &gt; 'out/deep er/two+ü.txt'"


def _job(command: str, parameters: str = "", disabled: str = "false", more: str = "") -> str:
    """Return the configuration of a job that runs a command."""
    kind = "hudson.model.ParametersDefinitionProperty"
    definitions = f"<parameterDefinitions>{parameters}</parameterDefinitions>"
    properties = f"<{kind}>{definitions}</{kind}>" if parameters else ""
    step = f"<hudson.tasks.Shell><command>{command}</command></hudson.tasks.Shell>"
    return (
        f"<project><properties>{properties}</properties><disabled>{disabled}</disabled>"
        f"<builders>{step}</builders>{more}</project>"
    )


JOBS = {
    "app": _job("echo $VERSION goes to $TARGET", PARAMETERS),
    "plain": _job("echo plain"),
    "bad": _job("echo broken; exit 3"),
    "slow": _job("echo started; exec sleep 600"),
    "off": _job("true", disabled="true"),
    ODD: _job("echo odd"),
    "files": _job(MAKE, more=ARCHIVED),
}
# Tasks in order of execution. The tests find the event of a task by its name.
TASKS: list[tuple[str, str, dict[str, Any]]] = [
    ("build", "ci_job_build", {"job": "app", "parameters": GIVEN}),
    ("other", "ci_job_build", {"job": "app", "parameters": {"VERSION": "2"}, "console_lines": 1}),
    (
        "built already",
        "ci_job_build",
        {"job": "app", "parameters": GIVEN, "trigger": "unless_successful"},
    ),
    ("no choice", "ci_job_build", {"job": "app", "parameters": {"TARGET": "nowhere"}}),
    ("no parameter", "ci_job_build", {"job": "app", "parameters": {"TYPO": "1"}}),
    ("none needed", "ci_job_build", {"job": "plain"}),
    ("bad", "ci_job_build", {"job": "bad"}),
    ("bad accepted", "ci_job_build", {"job": "bad", "accept": ["FAILURE"]}),
    ("disabled", "ci_job_build", {"job": "off"}),
    ("missing", "ci_job_build", {"job": "missing"}),
    ("odd", "ci_job_build", {"job": ODD}),
    ("many", "ci_job_build", {"builds": [{"job": "plain"}, {"job": "bad"}, {"job": ODD}]}),
    ("started", "ci_job_build", {"job": "slow", "wait": False}),
    ("joined", "ci_job_build", {"job": "slow", "wait": False, "trigger": "unless_successful"}),
    (
        "late",
        "ci_job_build",
        # long enough for its first line on a busy machine
        {"job": "slow", "wait_timeout": 5, "trigger": "unless_successful"},
    ),
    ("term", "ci_build_stop", {"job": "slow", "build": "lastBuild", "method": "term"}),
    ("kill", "ci_build_stop", {"job": "slow", "build": "1", "method": "kill"}),
    ("stop", "ci_build_stop", {"job": "slow", "build": "lastBuild"}),
    ("stop again", "ci_build_stop", {"job": "slow", "build": "1"}),
    ("stop missing", "ci_build_stop", {"job": "slow", "build": "77"}),
    (
        "stop too late",
        "ci_job_build",
        {"job": "slow", "wait_timeout": 5, "stop_on_timeout": True},
    ),
    ("info", "ci_job_info", {"job": "app", "config": True}),
    ("info tree", "ci_job_info", {"job": "app", "tree": "name,builds[number,result]"}),
    ("info build", "ci_job_info", {"job": "app", "build": "1"}),
    ("info permalink", "ci_job_info", {"job": "bad", "build": "lastFailedBuild"}),
    ("info no permalink", "ci_job_info", {"job": "bad", "build": "lastSuccessfulBuild"}),
    ("info off", "ci_job_info", {"job": "off"}),
    ("info odd", "ci_job_info", {"job": [ODD]}),
    ("info missing", "ci_job_info", {"job": "missing"}),
    ("same", "ci_job_info", {"job": "plain", "expected_config": JOBS["plain"]}),
    ("drift", "ci_job_info", {"job": "plain", "expected_config": JOBS["bad"]}),
    *(
        (f"xpath {number}", "ci_job_info", {"job": "app", "build": "1", "xpath": expression})
        for number, expression in enumerate(
            (
                "//action/parameter[name='VERSION']/value",
                "action/parameter[name='VERSION']/value",
                "//action/parameter[name='VERSION']/value/text()",
                "string(//action/parameter[name='PUBLISH']/value)",
                "//nothing",
                "//parameter",
            )
        )
    ),
    ("no plugins", "ci_plugin_info", {}),
    ("no console", "ci_script", {"script": "println 1"}),
]


FETCHED: list[tuple[str, str, dict[str, Any]]] = [
    ("make files", "ci_job_build", {"job": "files"}),
    ("fetch", "ci_artifact", {"job": "files", "dest": "got", "console": "log.txt"}),
    ("fetch again", "ci_artifact", {"job": "files", "dest": "got", "console": "log.txt"}),
    ("fetch one", "ci_artifact", {"job": "files", "dest": "one", "patterns": ["**/two*"]}),
    ("fetch nothing", "ci_artifact", {"job": "plain", "dest": "nothing"}),
]
MADE = "made by a module"
KEPT: list[tuple[str, str, dict[str, Any]]] = [
    ("created in check mode", "ci_job", {"job": MADE, "config": JOBS["app"]}),
    ("created", "ci_job", {"job": MADE, "config": JOBS["app"]}),
    ("kept created", "ci_job", {"job": MADE, "config": JOBS["app"]}),
    ("changed", "ci_job", {"job": MADE, "config": JOBS["plain"]}),
    ("kept changed", "ci_job", {"job": MADE, "config": JOBS["plain"]}),
    ("built", "ci_job_build", {"job": MADE}),
    ("switched off", "ci_job", {"job": MADE, "enabled": False}),
    ("kept switched off", "ci_job", {"job": MADE, "enabled": False}),
    ("copied", "ci_job", {"job": "a copy", "copy_from": "plain"}),
    ("kept copied", "ci_job", {"job": "a copy", "copy_from": "plain"}),
    ("copy built", "ci_job_build", {"job": "a copy"}),
    ("broken", "ci_job", {"job": "broken", "config": "<nothing-that-it-knows/>"}),
    ("not forced", "ci_job", {"job": MADE, "state": "absent"}),
    ("deleted", "ci_job", {"job": MADE, "state": "absent", "force": True}),
    ("kept deleted", "ci_job", {"job": MADE, "state": "absent"}),
    ("deleted odd", "ci_job", {"job": ODD, "state": "absent", "force": True}),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the working directory of the playbook."""
    return tmp_path_factory.mktemp("play")


@pytest.fixture(scope="module")
def run(folder: Path, ci_server: hudson.Hudson) -> playbook.Run:
    """Run all tasks in order, with a server that has the jobs."""
    for name, configuration in JOBS.items():
        ci_server.create(name, configuration)
    login = {"url": ci_server.url, "username": hudson.USER, "password": hudson.PASSWORD}
    tasks = [
        playbook.task(module, options, name, check_mode=name.endswith("in check mode"))
        for name, module, options in (*TASKS, *FETCHED, *KEPT)
    ]
    wrong = playbook.task(
        "ci_job_build", {"job": "plain", "password": "wrong", **_without(login)}, "wrong login"
    )
    play = playbook.play(
        [*tasks, wrong, _lookup(login)],
        module_defaults={"group/delivery.toolchain.ci": login},
    )
    return playbook.run(folder, [play])


def _without(login: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in login.items() if name != "password"}


def _lookup(login: dict[str, str]) -> dict[str, Any]:
    given = ", ".join(f"{name}='{value}'" for name, value in login.items())
    call = f"query('delivery.toolchain.ci_builds', 'app', fields=['number', 'result'], {given})"
    return {"name": "lookup", "ansible.builtin.debug": {"msg": f"{{{{ {call} }}}}"}}


def _failure(run: playbook.Run, task: str) -> tuple[str, bool]:
    """Return the error kind of a failed task, and its value of `changed`."""
    event = run.event(task)
    assert event.status == "failed", event.result
    return event.result["error"]["kind"], event.result["changed"]


def test_build_is_followed_to_its_end(run: playbook.Run) -> None:
    result = run.event("build").result
    assert result["build"]["result"] == "SUCCESS", result
    assert result["build"]["number"] == 1
    assert result["build"]["parameters"] == READ
    assert result["changed"] is True
    assert result["http"]["writes"] == 1
    assert result["console"][-1] == "Finished: SUCCESS"
    assert "1.10 goes to staging" in result["console"]
    assert run.event("other").result["console"] == ["Finished: SUCCESS"]
    assert run.event("none needed").result["build"]["result"] == "SUCCESS"


def test_successful_build_is_not_repeated(run: playbook.Run) -> None:
    result = run.event("built already").result
    assert (result["changed"], result["build"]["number"]) == (False, 1)
    assert result["http"]["writes"] == 0


def test_invalid_parameter_is_rejected_before_the_build(run: playbook.Run) -> None:
    for task in ("no choice", "no parameter"):
        assert _failure(run, task) == ("rejected", False)
        assert run.event(task).result["http"]["writes"] == 0
    had = "VERSION, TARGET, PUBLISH, PASSWORD"
    assert run.event("no parameter").result["msg"].endswith(f"it has {had}")


def test_unsuccessful_result_fails_unless_accepted(run: playbook.Run) -> None:
    assert _failure(run, "bad") == ("failed", True)
    assert "broken" in run.event("bad").result["console"]
    assert run.event("bad accepted").result["build"]["result"] == "FAILURE"


def test_unbuildable_job_is_an_error(run: playbook.Run) -> None:
    assert _failure(run, "disabled") == ("conflict", False)
    assert _failure(run, "missing") == ("not_found", False)
    assert run.event("info off").result["job"]["buildable"] is False


def test_many_builds_are_followed_together(run: playbook.Run) -> None:
    result = run.event("many").result
    assert [build["build"]["result"] for build in result["builds"]] == [
        "SUCCESS",
        "FAILURE",
        "SUCCESS",
    ]
    assert result["http"]["writes"] == 3


def test_name_may_contain_special_characters(run: playbook.Run) -> None:
    assert run.event("odd").result["build"]["result"] == "SUCCESS"
    assert run.event("info odd").result["job"]["name"] == ODD


def test_running_build_is_joined(run: playbook.Run) -> None:
    result = run.event("started").result
    assert (result["joined"], result["changed"]) == (False, True)
    result = run.event("joined").result
    assert (result["joined"], result["changed"]) == (True, False)
    assert _failure(run, "late") == ("timeout", False)
    assert run.event("late").result["build"]["number"] == 1
    assert "started" in run.event("late").result["console"]


def test_build_that_is_not_a_pipeline_supports_only_stop(run: playbook.Run) -> None:
    """Verify stopping a build that is not a pipeline. `term` and `kill` redirect to a missing page
    [ci-10].
    """
    for method in ("term", "kill"):
        assert _failure(run, method) == ("rejected", False)
    result = run.event("stop").result
    assert (result["changed"], result["build"]["result"]) == (True, "ABORTED")


def test_completed_build_is_not_stopped(run: playbook.Run) -> None:
    result = run.event("stop again").result
    assert (result["changed"], result["http"]["writes"]) == (False, 0)
    assert _failure(run, "stop missing") == ("not_found", False)


def test_timed_out_build_is_stopped(run: playbook.Run) -> None:
    assert _failure(run, "stop too late") == ("timeout", True)
    assert run.event("stop too late").result["build"]["result"] == "ABORTED"


def test_job_is_read(run: playbook.Run) -> None:
    result = run.event("info").result
    assert result["job"]["name"] == "app"
    assert result["parameters"]["TARGET"] == "test"
    assert [build["number"] for build in result["builds"]] == [2, 1]
    assert "<name>VERSION</name>" in result["config_xml"]
    assert run.event("info tree").result["builds"] == [
        {"number": 2, "result": "SUCCESS"},
        {"number": 1, "result": "SUCCESS"},
    ]
    assert _failure(run, "info missing") == ("not_found", False)


def test_build_is_read(run: playbook.Run) -> None:
    assert run.event("info build").result["parameters"] == READ
    assert run.event("info permalink").result["build"]["result"] == "FAILURE"
    assert _failure(run, "info no permalink") == ("not_found", False)


def test_configurations_are_compared(run: playbook.Run) -> None:
    assert run.event("same").result["config_drift"] is False
    assert run.event("drift").result["config_drift"] is True


@pytest.mark.parametrize(("number", "value"), [(0, "1.10"), (1, "1.10"), (2, "1.10"), (3, "true")])
def test_xpath_selects_a_value(run: playbook.Run, number: int, value: str) -> None:
    assert run.event(f"xpath {number}").result["value"] == value


@pytest.mark.parametrize(("number", "kind"), [(4, "not_found"), (5, "rejected")])
def test_xpath_without_a_single_value_fails(run: playbook.Run, number: int, kind: str) -> None:
    assert _failure(run, f"xpath {number}") == (kind, False)


def test_missing_interfaces_are_reported(run: playbook.Run) -> None:
    assert _failure(run, "no plugins") == ("not_found", False)
    assert _failure(run, "no console")[0] == "protocol"


def test_rejected_login_starts_nothing(run: playbook.Run) -> None:
    """Verify the error kind: Hudson lets unknown users read, so a rejected login is
    `permission`.
    """
    assert _failure(run, "wrong login") == ("permission", False)


def test_lookup_reads_builds(run: playbook.Run) -> None:
    assert run.event("lookup").result["msg"] == run.event("info tree").result["builds"]


def test_job_equals_its_configuration(run: playbook.Run) -> None:
    for task in ("created", "changed", "switched off", "deleted"):
        assert run.event(task).result["changed"] is True, run.event(task).result
        assert run.event(task).result["http"]["writes"] == 1
        again = run.event(f"kept {task}").result
        assert (again["changed"], again["http"]["writes"]) == (False, 0), again
    checked = run.event("created in check mode").result
    assert (checked["changed"], checked["http"]["writes"]) == (True, 0)
    assert run.event("built").result["console"][-2] == "plain"
    assert run.event("deleted odd").result["changed"] is True


def test_copied_job_is_buildable(run: playbook.Run) -> None:
    """Verify a build of a copied job. Hudson requires a saved description first [ci-21]."""
    result = run.event("copied").result
    assert (result["changed"], result["http"]["writes"]) == (True, 3), result
    assert run.event("kept copied").result["changed"] is False
    assert run.event("copy built").result["console"][-2] == "plain"


def test_invalid_job_is_rejected(run: playbook.Run) -> None:
    assert _failure(run, "broken") == ("server", False)
    assert _failure(run, "not forced") == ("invalid", False)


def test_artifacts_are_fetched(run: playbook.Run, folder: Path) -> None:
    result = run.event("fetch").result
    assert result["changed"] is True, result
    fetched = {each["path"]: folder / each["dest"] for each in result["files"]}
    assert {name: file.read_text(encoding="utf-8") for name, file in fetched.items()} == {
        "out/one.txt": "one\n",
        "out/deep er/two+ü.txt": "two\n",
    }
    log = (folder / "log.txt").read_text(encoding="utf-8")
    assert log.endswith("Finished: SUCCESS\n")
    again = run.event("fetch again").result
    assert (again["changed"], again["downloaded_bytes"]) == (False, 0), again
    one = run.event("fetch one").result["files"]
    assert [each["path"] for each in one] == ["out/deep er/two+ü.txt"]
    assert _failure(run, "fetch nothing") == ("not_found", False)


Ask = Callable[[str, str, str], requests.Response]


def _wait(ask: Ask, build: str) -> None:
    """Poll a build until it has finished."""
    for _look in range(10_000):
        response = ask("GET", build, "")
        if response.status_code == 200 and response.json()["result"] is not None:
            return
    raise AssertionError(f"{build} does not end")


def _answers(ask: Ask) -> list[tuple[int, str]]:
    """Return status and `Location`, without the URL of the server, for all raw requests."""
    found = []
    for request in RAW["requests"]:
        method, _blank, path = request["ask"].partition(" ")
        response = ask(method, path, RAW["bodies"].get(request.get("send"), ""))
        found.append((response.status_code, urlsplit(response.headers.get("Location", "")).path))
        if "until" in request:
            _wait(ask, request["until"])
    return found


def test_sandbox_responds_like_hudson(
    fresh: Callable[[str], Sandbox], ci_server: hudson.Hudson
) -> None:
    """Verify the same responses, except those listed with a reason."""
    sandbox = fresh("real")
    with requests.Session() as session:
        session.trust_env, session.auth = False, ("builder", "builder-api-token-1234567890")

        def ask(method: str, path: str, content: str) -> requests.Response:
            kind = {"Content-Type": "application/xml"} if content else {}
            url, body = f"{sandbox.urls['ci']}/{path}", content.encode()
            return session.request(method, url, data=body, headers=kind, allow_redirects=False)

        played = [(status, path.removeprefix("/ci")) for status, path in _answers(ask)]
    real = _answers(ci_server)
    for each, wanted, found in zip(RAW["requests"], real, played, strict=True):
        assert (found == wanted) is ("differs" not in each), (each["ask"], wanted, found)


def test_nodes_have_the_system_that_a_monitor_measured(ci_server: hudson.Hudson) -> None:
    given: dict[str, Any] = {"url": ci_server.url, "username": hudson.USER}
    given |= {"password": hudson.PASSWORD, "timeout": 30.0, "retries": 0, "retry_max_wait": 0.0}
    connection = resolve(SERVICES["ci"], given.get, environ={})
    store = NodeStore(Task(connection, lambda text: None, read_only=True))
    for _attempt in range(150):  # the monitor measures after the first request
        (node,) = store.all()
        if node.system:
            break
        time.sleep(0.2)
    assert re.fullmatch(r"Linux \(\w+\)", node.system)
    assert (node.name, node.offline, node.executors) == ("master", False, 4)


def test_no_secret_is_shown(run: playbook.Run) -> None:
    assert run.shows([SECRET, hudson.PASSWORD]) == []
