# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the role `ci_baseline`: it reports all differences. They fail a run, but not check mode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]
SCRIPT = {
    "name": "system message",
    "script": "Jenkins.get().setSystemMessage(args.message)",
    "has_dry_run": True,
    "arguments": {"message": "Delivery"},
}
LOCK = "git:5.2.2\ncredentials:1.0\nworkflow-aggregator:latest\ngone:1.0\n"
PLUGINS_AND_JAVA = [
    "plugin gone: missing",
    "plugin credentials: is 1371.vfee6b_095f0a_3, but should be 1.0",
    "plugin ant: not wanted, it is not in the lock file",
    "java 11: release 2.479.3 requires Java 17 or 21",
]


def test_unknown_release_requires_java_versions(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    sandbox.settings("ci", java="17", version="2.479.3.1")
    role = {"ansible.builtin.import_role": {"name": "delivery.toolchain.ci_baseline"}}
    defaults = connections.module_defaults(sandbox.urls)
    for variables, code in (({}, 2), ({"ci_baseline_java_versions": ["17"]}, 0)):
        play = playbook.play([{**role, "vars": variables}], module_defaults=defaults)
        run = playbook.run(tmp_path, [play])
        assert run.code == code, run.output
        assert ("2.479.3.1' is not a release" in run.output) is (code != 0)


@pytest.mark.parametrize("check", [False, True])
def test_all_drift_is_reported_at_once(fresh: Fresh, tmp_path: Path, check: bool) -> None:
    sandbox = fresh("real")
    sandbox.settings("ci", java="11")
    (tmp_path / "plugins.txt").write_text(LOCK, encoding="utf-8")
    role = {
        "name": "Baseline",
        "ansible.builtin.import_role": {"name": "delivery.toolchain.ci_baseline"},
        "vars": {"ci_baseline_lock_file": "plugins.txt", "ci_baseline_scripts": [SCRIPT]},
    }
    play = playbook.play([role], module_defaults=connections.module_defaults(sandbox.urls))
    controls = {"localhost": sandbox.control}
    arguments = ["--check"] if check else []
    run = playbook.run(tmp_path, [play], controls=controls, arguments=arguments)
    assert (run.code == 0) is check, run.output
    named = run.event("delivery.toolchain.ci_baseline : Show differences from the baseline")
    reported = named.result["msg"]
    assert reported == PLUGINS_AND_JAVA + ["script system message: would change something"] * check
    assert all(text in run.output for text in reported)
    assert named.result["changed"] is check
    writes = [write["path"] for event in run.events for write in event.writes]
    assert writes == ([] if check else ["/scriptText"])


def test_plugins_are_installed_and_restart_awaits_builds(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    sandbox.settings("ci", install_seconds=0.05)
    running = [{"job": "slow", "running": True, "age_seconds": 57, "seconds": 60}]
    sandbox.seed({"ci": {"builds": running}})
    role = {
        "name": "Baseline",
        "ansible.builtin.import_role": {"name": "delivery.toolchain.ci_baseline"},
        "vars": {
            "ci_baseline_install_plugins": True,
            "ci_baseline_check_java": False,
            "ci_baseline_plugins": [{"name": "git", "version": "5.6.0"}, {"name": "timestamper"}],
        },
    }
    defaults = connections.module_defaults(sandbox.urls)
    play = playbook.play([role], module_defaults=defaults)
    controls = {"localhost": sandbox.control}
    paths = []
    for number, arguments in enumerate((["--check"], [], [])):
        folder = tmp_path / str(number)
        folder.mkdir()
        run = playbook.run(folder, [play], controls=controls, arguments=arguments)
        assert run.code == 0, run.output
        paths.append([write["path"] for event in run.events for write in event.writes])
    assert paths == [[], ["/pluginManager/installPlugins", "/safeRestart"], []]
    login = ("builder", "builder-api-token-1234567890")
    build = requests.get(f"{sandbox.urls['ci']}/job/slow/1/api/json", auth=login, timeout=10)
    assert build.json()["result"] == "SUCCESS"
