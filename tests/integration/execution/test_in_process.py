# SPDX-License-Identifier: GPL-3.0-or-later
"""Test when a module runs in the worker, and that its result is the same as in a separate process.

A worker keeps its session to the server, so the items of a loop use a single TCP connection.
Modules in separate processes open a connection for every item. The sandbox log shows the
connections.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, playbook
from tests.unit.stub import Reply, Seen, Stub

Fresh = Callable[[str], Sandbox]

LOOP = ["Developer", "Project admin"]
IN_WORKER: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "switched on": {"vars": {"toolchain_in_process": True}},
    "delegated to localhost": {"delegate_to": "localhost"},
    "become off": {"become": False},
    "same interpreter": {"vars": {"ansible_python_interpreter": "{{ same_interpreter }}"}},
    "no interpreter": {"vars": {"ansible_python_interpreter": "{{ omit }}"}},
    "switch without a value": {"vars": {"toolchain_in_process": None}},
    "empty switch": {"vars": {"toolchain_in_process": ""}},
    "omitted switch": {"vars": {"toolchain_in_process": "{{ nothing | default(omit) }}"}},
    "omitted options": {
        "vars": {
            "toolchain_analysis_ca_path": "{{ nothing | default(omit) }}",
            "toolchain_analysis_timeout": "{{ omit }}",
        }
    },
}
#: tests/unit/test_ansible_internals.py has further reasons.
IN_PROCESSES: dict[str, dict[str, Any]] = {
    "switched off": {"vars": {"toolchain_in_process": False}},
    "become": {"become": True},
    "async": {"async": 30, "poll": 1},
    "other interpreter": {"vars": {"ansible_python_interpreter": "{{ other_interpreter }}"}},
    "variables of Python": {"environment": {"PYTHONPATH": "/nowhere"}},
}
# Simulation of sudo: drop all arguments before the shell, and start the shell.
BECOME_PROGRAM = '#!/bin/sh\nwhile [ "$1" != /bin/sh ]; do shift; done\nexec "$@"\n'


def _script(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def _link(folder: Path) -> str:
    """Return another path to the interpreter of the tests, through a link to its environment."""
    program = Path(sys.executable)
    folder.symlink_to(program.parent.parent, target_is_directory=True)
    return str(folder / program.parent.name / program.name)


def _ports(event: playbook.Event) -> list[int]:
    return [request["connection"] for request in event.requests]


@pytest.fixture(scope="module")
def ways(fresh: Fresh, tmp_path_factory: pytest.TempPathFactory) -> playbook.Run:
    """Run the same loop in every mode, with a separate task for every mode."""
    folder = tmp_path_factory.mktemp("ways")
    sandbox = fresh("real")
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        "ansible_become_exe": _script(folder / "become", BECOME_PROGRAM),
        "same_interpreter": _link(folder / "python-of-the-tests"),
        "other_interpreter": _script(folder / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n'),
    }
    (folder / "inventory.json").write_text(json.dumps({"all": {"hosts": {"localhost": host}}}))
    tasks = [
        playbook.task("analysis_role", {"name": "{{ item }}"}, name, loop=LOOP, **keywords)
        for name, keywords in {**IN_WORKER, **IN_PROCESSES}.items()
    ]
    play = playbook.play(tasks, module_defaults=connections.module_defaults(sandbox.urls))
    return playbook.run(
        folder,
        [play],
        controls={"localhost": sandbox.control},
        arguments=["-i", "inventory.json", "-v"],
    )


@pytest.mark.parametrize("way", IN_WORKER)
def test_local_connection_runs_in_the_worker(ways: playbook.Run, way: str) -> None:
    ports = _ports(ways.event(way))
    assert len(ports) == len(LOOP), ways.output
    assert len(set(ports)) == 1


@pytest.mark.parametrize("way", IN_PROCESSES)
def test_other_connections_run_in_separate_processes(ways: playbook.Run, way: str) -> None:
    ports = _ports(ways.event(way))
    assert len(ports) == len(LOOP), ways.output
    assert len(set(ports)) == len(LOOP)


def test_separate_process_is_reported_once_per_task(ways: playbook.Run) -> None:
    reported = [line for line in ways.output.splitlines() if "in a separate process" in line]
    assert len(reported) == 2, reported
    assert "ansible_python_interpreter is " in reported[0]
    assert "environment sets PYTHONPATH" in reported[1]


@pytest.mark.parametrize("way", [*IN_WORKER, *IN_PROCESSES])
def test_result_does_not_depend_on_the_mode(ways: playbook.Run, way: str) -> None:
    expected = [_plain(item) for item in ways.event("as it comes").items]
    assert [item["changed"] for item in expected] == [False] * len(LOOP)
    assert [_plain(item) for item in ways.event(way).items] == expected


def _plain(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without the private keys of Ansible and the keys of asynchronous jobs."""
    notes = ("ansible_job_id", "finished", "started", "results_file", "stdout", "stderr")
    left_out = (*notes, "stdout_lines", "stderr_lines", "ansible_facts")
    kept = {
        name: value
        for name, value in result.items()
        if not name.startswith("_ansible") and name not in left_out
    }
    copy: dict[str, Any] = json.loads(json.dumps(kept))
    copy["http"].pop("seconds")
    return copy


def test_environment_of_the_task_is_applied_and_restored(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    variables = {
        "TOOLCHAIN_ANALYSIS_URL": sandbox.urls["analysis"],
        "TOOLCHAIN_ANALYSIS_USERNAME": "analyst",
        "TOOLCHAIN_ANALYSIS_LTOKEN": connections.LTOKEN,
    }
    wrong = {**variables, "TOOLCHAIN_ANALYSIS_LTOKEN": "not-the-token"}
    environments = {"whole": variables, "none": {}, "wrong": wrong}
    role = {"name": "Developer"}
    tasks = [
        playbook.task("analysis_role", role, "before"),
        playbook.task("analysis_role", role, "with", environment=variables),
        playbook.task("analysis_role", role, "after"),
        playbook.task(
            "analysis_role",
            role,
            "item by item",
            loop=["whole", "none", "whole", "wrong"],
            environment="{{ environments[item] }}",
        ),
        playbook.task(
            "analysis_role",
            role,
            "in a process",
            environment=variables,
            vars={"toolchain_in_process": False},
        ),
    ]
    play = playbook.play(tasks, vars={"environments": environments})
    ran = playbook.run(tmp_path, [play], controls={"localhost": sandbox.control})
    for name in ("before", "after"):
        assert ran.event(name).result["error"]["kind"] == "invalid", ran.output
        assert "TOOLCHAIN_ANALYSIS_URL" in ran.event(name).result["msg"]
    assert ran.event("with").status == "ok", ran.output
    assert _plain(ran.event("with").result) == _plain(ran.event("in a process").result)
    items = ran.event("item by item").items
    assert [item.get("failed", False) for item in items] == [False, True, False, True]
    assert [item["error"]["kind"] for item in items if item.get("failed")] == ["invalid", "auth"]
    assert ran.shows([connections.LTOKEN]) == []


def test_different_logins_never_share_a_session(fresh: Fresh, tmp_path: Path) -> None:
    """Verify separate sessions with cookies.

    The CI server identifies a user by the session, even if a later request names another user.
    """
    sandbox = fresh("real")
    logins = [
        {"username": "builder", "password": "builder-password"},
        {"username": "operator", "password": "operator-password"},
        {"username": "builder", "password": "not-the-password"},
    ]
    arguments = {
        "script": "println jenkins.model.Jenkins.instance.pluginManager.plugins",
        "url": sandbox.urls["ci"],
        "username": "{{ logins[item].username }}",
        "password": "{{ logins[item].password }}",
    }
    tasks = [playbook.task("ci_script", arguments, "in turn", loop=[0, 1, 2, 0, 1, 2])]
    ran = playbook.run(
        tmp_path,
        [playbook.play(tasks, vars={"logins": logins})],
        controls={"localhost": sandbox.control},
        arguments=["-vvv"],
    )
    event = ran.event("in turn")
    kinds = [item.get("error", {}).get("kind") for item in event.items]
    assert kinds == [None, "permission", "auth"] * 2, ran.output
    assert len(set(_ports(event))) == len(logins)
    assert ran.shows([login["password"] for login in logins]) == []


PROBE = "analysis_probe"
PROBE_MODULE = """#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = '''
module: analysis_probe
short_description: Misbehaves as it is told
description: For a test.
author: a test (@test)
options:
  how: {description: What to do., type: str, required: true}
  secret: {description: A secret., type: str}
'''

import os
import sys

from ansible.module_utils import basic
from ansible.module_utils.common import warnings


def main() -> None:
    options = {"how": {"type": "str", "required": True}, "secret": {"type": "str", "no_log": True}}
    module = basic.AnsibleModule(argument_spec=options, supports_check_mode=True)
    how = module.params["how"]
    if how == "raise":
        raise ValueError("thrown by the module")
    if how == "return":
        return
    if how == "exit":
        sys.exit(3)
    if how == "exit with words":
        sys.exit("words of the module")
    if how == "print":
        print("not JSON at all")
        sys.exit(0)
    if how == "litter":
        module.warn("a warning")
        module.deprecate("a deprecation", version="9.0.0", collection_name="delivery.toolchain")
        os.environ["LITTER"] = "1"
        os.chdir("/")
        module.exit_json(changed=True)
    module.exit_json(
        changed=False,
        pid=os.getpid(),
        folder=os.getcwd(),
        litter=os.environ.get("LITTER"),
        secret_given=module.params["secret"] is not None,
    )


if __name__ == "__main__":
    main()
"""
MISDEEDS = ["raise", "return", "exit", "exit with words", "print", "litter"]


def _copy(folder: Path) -> Path:
    """Return a copy of the collection in a folder of collections."""
    source = playbook.collections_path() / "ansible_collections/delivery/toolchain"
    copy = folder / "collections/ansible_collections/delivery/toolchain"
    for part in ("plugins", "meta"):
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source / part, copy / part, ignore=unwanted)
    return copy


@pytest.fixture(scope="module")
def misbehaving(tmp_path_factory: pytest.TempPathFactory) -> playbook.Run:
    """Run a module that misbehaves, in a copy of the collection, in both modes."""
    folder = tmp_path_factory.mktemp("misbehaving")
    copy = _copy(folder)
    (copy / "plugins" / "modules" / f"{PROBE}.py").write_text(PROBE_MODULE, encoding="utf-8")
    action = (copy / "plugins" / "action" / "analysis_role.py").read_text(encoding="utf-8")
    (copy / "plugins" / "action" / f"{PROBE}.py").write_text(
        action.replace("analysis_role", PROBE), encoding="utf-8"
    )
    loops = {
        "in process": [how for misdeed in MISDEEDS for how in (misdeed, "report")],
        # of which each is alone in its process
        "separate": [*MISDEEDS, "report"],
    }
    tasks = [
        playbook.task(
            PROBE,
            {"how": "{{ item }}", "secret": "{{ 'hush-hush' if item == 'litter' else omit }}"},
            way,
            loop=loop,
            vars={"toolchain_in_process": way == "in process"},
        )
        for way, loop in loops.items()
    ]
    return playbook.run(folder, [playbook.play(tasks)], collections=folder / "collections")


def test_unknown_core_runs_separately_with_one_warning(fresh: Fresh, tmp_path: Path) -> None:
    """Verify the ordinary mode and a single warning if a private part of Ansible is missing."""
    sandbox = fresh("real")
    copy = _copy(tmp_path)
    internals = copy / "plugins" / "plugin_utils" / "_lib" / "ansible_internals.py"
    text = internals.read_text(encoding="utf-8")
    assert "_global_warnings" in text
    internals.write_text(text.replace("_global_warnings", "_that_is_gone"), encoding="utf-8")
    tasks = [
        playbook.task("analysis_role", {"name": "{{ item }}"}, name, loop=loop)
        for name, loop in (("first", LOOP), ("second", LOOP[:1]))
    ]
    play = playbook.play(tasks, module_defaults=connections.module_defaults(sandbox.urls))
    ran = playbook.run(
        tmp_path,
        [play],
        controls={"localhost": sandbox.control},
        collections=tmp_path / "collections",
    )
    for name, count in (("first", len(LOOP)), ("second", 1)):
        assert ran.event(name).status == "ok", ran.output
        assert len(set(_ports(ran.event(name)))) == count
    assert ran.output.count("_that_is_gone") == 1, ran.output
    assert "Traceback" not in ran.output


@pytest.mark.parametrize(("older", "named"), [("True", True), ("False", False)])
def test_too_old_python_is_reported(tmp_path: Path, older: str, named: bool) -> None:
    """Verify the message for a module that fails in its Python interpreter.

    If the interpreter is outdated, a single sentence replaces the traceback.
    """
    thrown = "Traceback (most recent call last):\\nSyntaxError: oh\\n"
    responses = f'case "$1" in -c) echo {older};; *) printf "{thrown}" >&2; exit 1;; esac'
    python = _script(tmp_path / "python", f"#!/bin/sh\n{responses}\n")
    task = playbook.task("analysis_role", {"name": "x", "url": "http://127.0.0.1:9"}, "role")
    play = playbook.play([task], vars={"ansible_python_interpreter": python})
    run = playbook.run(tmp_path, [play])
    event = run.event("role")
    message = f"require Python 3.10 or newer, but {python} is older"
    assert event.status == "failed"
    assert (message in event.result["msg"]) is named, event.result
    assert ("SyntaxError" not in run.output + run.recorded) is named, run.output


def _pairs(run: playbook.Run) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return the result of each misdeed in the worker, and that of the item after it."""
    items = run.event("in process").items
    return dict(zip(MISDEEDS, zip(items[::2], items[1::2], strict=True), strict=True))


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_misbehaving_module_does_not_end_the_worker(
    misbehaving: playbook.Run, misdeed: str
) -> None:
    pairs = _pairs(misbehaving)
    item, report = pairs[misdeed]
    assert item.get("failed", False) is (misdeed != "litter"), item
    first = pairs[MISDEEDS[0]][1]
    assert report["pid"] == first["pid"] != os.getpid()


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_misbehaving_module_does_not_affect_the_next_item(
    misbehaving: playbook.Run, misdeed: str
) -> None:
    _item, report = _pairs(misbehaving)[misdeed]
    assert report["litter"] is None
    assert report["secret_given"] is False
    assert "warnings" not in report
    assert "deprecations" not in report
    assert _without_pid(report) == _without_pid(misbehaving.event("separate").items[-1])


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_misbehaviour_is_reported_equally_in_both_modes(
    misbehaving: playbook.Run, misdeed: str
) -> None:
    item, _report = _pairs(misbehaving)[misdeed]
    other = misbehaving.event("separate").items[MISDEEDS.index(misdeed)]
    assert _without_pid(item) == _without_pid(other)


def _without_pid(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without the process id and the tracebacks, which name files of
    the process.
    """
    left_out = ("pid", "exception", "module_stderr")
    return {
        name: value
        for name, value in result.items()
        if not name.startswith("_ansible") and name not in left_out
    }


def test_module_defaults_do_not_reach_another_module(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    whole = connections.connection("analysis", sandbox.urls["analysis"])
    tasks = [
        playbook.task("analysis_role", {"name": "Developer"}, "role"),
        playbook.task("analysis_module", {"project": "toolchain", "name": "core"}, "module"),
    ]
    play = playbook.play(tasks, module_defaults={"delivery.toolchain.analysis_module": whole})
    ran = playbook.run(tmp_path, [play], controls={"localhost": sandbox.control})
    assert ran.event("role").result["error"]["kind"] == "invalid"
    assert ran.event("role").requests == []
    assert ran.event("module").status == "ok", ran.output


def test_relative_paths_start_in_the_folder_of_the_playbook(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "notes.txt").write_text("notes", encoding="utf-8")
    options = {"repo": "generic-staging-local", "path": "notes/", "src": "notes.txt"}
    tasks = [
        playbook.task("artifact_deploy", options, "in the worker"),
        playbook.task(
            "artifact_deploy", options, "in a process", vars={"toolchain_in_process": False}
        ),
    ]
    whole = connections.connection("repo", sandbox.urls["repo"], dialect="jfrog")
    play = playbook.play(tasks, module_defaults={"group/delivery.toolchain.repo": whole})
    (tmp_path / "below" / "play.json").write_text(json.dumps([play]), encoding="utf-8")
    ran = playbook.run(tmp_path, [{"import_playbook": "below/play.json"}])
    results = [ran.event(name).result for name in ("in the worker", "in a process")]
    assert [result["changed"] for result in results] == [True, False], ran.output


ROWS = [{"path": "agent/1.0.0/agent.txt"}]
SHOWN = "agent/1.0.0/agent.txt"


@pytest.fixture(scope="module")
def queried(fresh: Fresh, tmp_path_factory: pytest.TempPathFactory) -> playbook.Run:
    """Run a query. Its result has the key that Ansible uses for the items of a loop."""
    sandbox = fresh("real")
    options = {"pattern": "generic-snapshot-local:agent/**"}
    tasks: list[dict[str, Any]] = []
    for way in (True, False):
        ways = {"toolchain_in_process": way}
        kept = {"register": "found", "vars": ways}
        tasks += [
            playbook.task("artifact_info", options, f"query {way}", **kept),
            {
                "name": f"use {way}",
                "ansible.builtin.assert": {"that": f"found.results == {ROWS!r}"},
            },
            playbook.task(
                "artifact_info",
                {"pattern": "{{ item }}"},
                f"loop {way}",
                loop=[options["pattern"]],
                **kept,
            ),
            {
                "name": f"use loop {way}",
                "ansible.builtin.assert": {
                    "that": f"found.results | map(attribute='results') == [{ROWS!r}]"
                },
            },
            playbook.task("artifact_info", options, f"hidden {way}", no_log=True, **kept),
            {
                "name": f"use hidden {way}",
                "no_log": True,
                "ansible.builtin.assert": {"that": f"found.results == {ROWS!r}"},
            },
        ]
    whole = connections.connection("repo", sandbox.urls["repo"], dialect="jfrog")
    play = playbook.play(tasks, module_defaults={"group/delivery.toolchain.repo": whole})
    return playbook.run(
        tmp_path_factory.mktemp("queried"), [play], controls={"localhost": sandbox.control}
    )


@pytest.mark.parametrize("way", [True, False])
def test_results_are_found_by_module_name(queried: playbook.Run, way: bool) -> None:
    for name in (f"use {way}", f"use loop {way}", f"use hidden {way}"):
        assert queried.event(name).status == "ok", queried.output
    assert queried.event(f"query {way}").result["results"] == ROWS
    assert [item["results"] for item in queried.event(f"loop {way}").items] == [ROWS]
    assert "ansible_module_results" not in queried.output


@pytest.mark.parametrize("way", [True, False])
def test_no_log_hides_results(queried: playbook.Run, way: bool) -> None:
    assert SHOWN in json.dumps(queried.event(f"query {way}").result)
    assert SHOWN not in json.dumps(queried.event(f"hidden {way}").result)


def test_large_result_is_masked_equally_in_both_modes(tmp_path: Path) -> None:
    token = "tracker-token-1234567890"
    issues = [
        {"id": str(number), "key": f"REL-{number}", "fields": {"summary": f"Summary {number}"}}
        for number in range(300)
    ]
    reported = [*issues, {"id": "300", "key": "REL-300", "fields": {"summary": f"Leaked: {token}"}}]
    pages = {"/base/clean": issues, "/base/leaked": reported}

    def response(seen: Seen) -> Reply:
        page = pages[seen.path.removesuffix("/rest/api/2/search")]
        return Reply(body={"startAt": 0, "total": len(page), "issues": page})

    with Stub(response=response) as stub:
        tasks = [
            playbook.task(
                "jql_search",
                {"jql": "project = REL", "url": f"{stub.url}/{name}", "token": token},
                f"{name} {way}",
                vars={"toolchain_in_process": way},
            )
            for name, way in (("clean", True), ("leaked", True), ("leaked", False))
        ]
        ran = playbook.run(tmp_path, [playbook.play(tasks)])
    here, there = (_plain(ran.event(f"leaked {way}").result) for way in (True, False))
    assert here == there
    assert list(here) == list(there)
    assert ran.event("clean True").result["issues"] == issues
    # masked by the module, or by the controller since ansible-core 2.22
    masked = ("Leaked: ********", "Leaked: $REDACTED$")
    assert ran.event("leaked True").result["issues"][-1]["fields"]["summary"] in masked
    assert not ran.shows([token])
