# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that without `requests`, every module and lookup fails cleanly and names the library."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helpers import connections, playbook
from tests.helpers.cases import CASES, MODULES, first_arguments
from tests.helpers.sentences import assert_one_sentence

URLS = dict.fromkeys(connections.LOGINS, "http://127.0.0.1:1")
WAYS = {"in process": True, "separate": False}


@pytest.fixture(scope="module")
def without_requests(tmp_path_factory: pytest.TempPathFactory) -> playbook.Run:
    """Run all modules in both modes, with an `import requests` that fails."""
    folder = tmp_path_factory.mktemp("libraries")
    hiding = folder / "hiding"
    hiding.mkdir()
    (hiding / "requests.py").write_text(
        "raise ImportError(\"No module named 'requests'\")\n", encoding="utf-8"
    )
    # All modules share the same entry point: one module per service is enough for the slow mode.
    separate = {CASES[name]["service"]: name for name in MODULES}
    tasks = [
        playbook.task(
            module,
            first_arguments(module),
            f"{module} {way}",
            vars={"toolchain_in_process": in_process},
        )
        for way, in_process in WAYS.items()
        for module in (MODULES if in_process else separate.values())
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
    path = os.pathsep.join(filter(None, [str(hiding), os.environ.get("PYTHONPATH")]))
    return playbook.run(folder, [play], variables={"PYTHONPATH": path})


def test_missing_library_is_named(without_requests: playbook.Run) -> None:
    events = [event for event in without_requests.events if event.task != "lookup"]
    assert len(events) == len(MODULES) + len(connections.LOGINS), without_requests.output
    for event in events:
        assert event.status == "failed", event.task
        assert event.result["error"]["kind"] == "invalid", event.task
        assert "(requests)" in event.result["msg"], event.task
        assert_one_sentence(event.result, event.task)


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
