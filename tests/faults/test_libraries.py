# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that without `requests`, every module and lookup fails cleanly and names the library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import connections, forked, playbook
from tests.helpers.cases import CASES, MODULES, first_arguments
from tests.helpers.sentences import assert_one_sentence

URLS = dict.fromkeys(connections.LOGINS, "http://127.0.0.1:1")
#: A module of each service: in Ansible, all modules share the same entry point.
SOME = {CASES[name]["service"]: name for name in MODULES}.values()
RUNS = [*((module, "in process") for module in SOME), (MODULES[0], "separate")]
RUN_MODULES = """
import json, sys
from tools import tree
tree.make_importable()
from tests.helpers import in_process
for module, arguments in json.load(sys.stdin):
    print(json.dumps(in_process.run(module, arguments)))
"""


@pytest.fixture(scope="module")
def hiding(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a value of `PYTHONPATH` with which `import requests` fails."""
    folder = tmp_path_factory.mktemp("hiding")
    (folder / "requests.py").write_text(
        "raise ImportError(\"No module named 'requests'\")\n", encoding="utf-8"
    )
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))


@pytest.fixture(scope="module")
def without_requests(hiding: str, tmp_path_factory: pytest.TempPathFactory) -> playbook.Run:
    """Run a module of each service, one also in a separate process, without `requests`."""
    folder = tmp_path_factory.mktemp("libraries")
    tasks = [
        playbook.task(
            module,
            first_arguments(module),
            f"{module} {way}",
            vars={"toolchain_in_process": in_process},
        )
        for module, way in RUNS
        for in_process in [way == "in process"]
    ]
    lookup = {
        "name": "lookup",
        "ansible.builtin.debug": {
            "msg": "{{ query('delivery.toolchain.jql_search', 'project = REL',"
            " url='http://127.0.0.1:1') }}"
        },
        "ignore_errors": True,
    }
    play = playbook.play([*tasks, lookup], module_defaults=connections.module_defaults(URLS))
    return playbook.run(folder, [play], variables={"PYTHONPATH": hiding})


def _assert_named(result: dict[str, Any], label: str) -> None:
    assert result["error"]["kind"] == "invalid", label
    assert "(requests)" in result["msg"], label
    assert_one_sentence(result, label)


def test_every_module_names_the_missing_library(hiding: str, tmp_path: Path) -> None:
    tasks = [
        (
            module,
            {
                **connections.connection(CASES[module]["service"], "http://127.0.0.1:1"),
                **forked.rendered(first_arguments(module)),
            },
        )
        for module in MODULES
    ]
    done = subprocess.run(
        [sys.executable, "-c", RUN_MODULES],
        cwd=Path(__file__).parents[2],
        env={**playbook.environment(tmp_path), "PYTHONPATH": hiding},
        input=json.dumps(tasks),
        check=True,
        capture_output=True,
        text=True,
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    for (module, _arguments), result in zip(tasks, results, strict=True):
        assert result["failed"], module
        _assert_named(result, module)


def test_ansible_reports_the_missing_library(without_requests: playbook.Run) -> None:
    events = [event for event in without_requests.events if event.task != "lookup"]
    assert len(events) == len(RUNS), without_requests.output
    for event in events:
        assert event.status == "failed", event.task
        _assert_named(event.result, event.task)


def test_lookup_names_the_missing_library(without_requests: playbook.Run) -> None:
    event = without_requests.event("lookup")
    assert event.status == "failed"
    assert "(requests)" in event.result["msg"]
    assert "Traceback" not in event.result["msg"]


def test_library_is_available_to_other_tests(tmp_path: Path) -> None:
    """Verify that the library is present without the hiding; otherwise the tests above prove
    nothing.
    """
    play = playbook.play(
        [playbook.task("analysis_role", {"name": "x"}, "role")],
        module_defaults=connections.module_defaults(URLS, analysis={"retries": 0}),
    )
    event = playbook.run(tmp_path, [play]).event("role")
    assert event.result["error"]["kind"] == "network"
