# SPDX-License-Identifier: GPL-3.0-or-later
"""Test `ci_node` against the nodes of the sandbox's CI server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_node import (
    CiNodeOperation,
    CiNodeOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from sandbox.client import Sandbox
from tests.helpers.ci import Ci

NODES: list[dict[str, Any]] = [
    {"name": "up", "label": "linux docker"},
    {"name": "down", "offline_by": "admin", "reason": "New disk : slow"},
    {"name": "lost", "connected": False},
    {"name": "busy", "busy_seconds": 60},
]
CONFIG = """<slave><name>up</name><description>Whole</description><remoteFS>/x</remoteFS>
<numExecutors>2</numExecutors><mode>NORMAL</mode>
<retentionStrategy class="hudson.slaves.RetentionStrategy$Always"/>
<launcher class="hudson.plugins.sshslaves.SSHLauncher"><host>up.example</host></launcher>
<label>linux</label><nodeProperties/></slave>"""


@pytest.fixture
def ci(fresh: Callable[[str], Sandbox]) -> Ci:
    sandbox = fresh("real")
    sandbox.seed({"ci": {"nodes": NODES}})
    return Ci(sandbox, CiNodeOperation, CiNodeOptions)


def test_many_unchanged_nodes_need_one_list(ci: Ci) -> None:
    entries = [{"name": node["name"], "executors": 1} for node in NODES]
    before = ci.sandbox.mark()
    ci.run(entries=entries)
    assert len(ci.sandbox.requests("ci", since=before)) <= 1 + len(NODES)


def test_node_is_created_updated_and_deleted(ci: Ci) -> None:
    ci.fails("invalid", "remote_root", name="new", executors=2)
    given: dict[str, Any] = {"remote_root": "/srv ", "labels": ["b", "a"], "description": " x"}
    assert ci.lives(name="new", **given)["node"]["labels"] == [
        "a",
        "b",
    ]
    assert ci.lives(name="new", labels=["c"], mode="exclusive")["node"]["labels"] == ["c"]
    assert ci.lives(name="new", labels=[], executors=3)["node"]["executors"] == 3
    assert ci.lives(name="new", state="absent")["changed"]


def test_offline_is_the_state_set_by_a_user(ci: Ci) -> None:
    assert not ci.run(name="lost", offline=False)["changed"]
    assert ci.run(name="lost", offline=False)["node"]["offline"]
    found = ci.lives(name="lost", offline=True, offline_reason="Gone : for good")
    assert found["node"]["offline_reason"] == "Gone : for good"
    assert ci.lives(name="down", offline=True, offline_reason="Slow")["changed"]
    assert not ci.run(name="down", offline=True)["changed"]
    assert ci.lives(name="down", offline=False)["node"]["offline_reason"] == ""


@pytest.mark.parametrize("version", ["2.479.3", "2.516.1"])
def test_saved_node_stays_offline(ci: Ci, version: str) -> None:
    """In some releases each save brings the node online [ci-41]."""
    ci.sandbox.settings("ci", version=version)
    done = ci.lives(name="down", description="x")
    assert done["node"]["offline_reason"] == "New disk : slow"
    assert ci.lives(name="down", executors=2, offline=True)["node"]["temporarily_offline"]
    assert ci.lives(name="up", executors=2)["node"]["temporarily_offline"] is False
    toggles = [write for write in ci.writes() if "toggleOffline" in write]
    assert len(toggles) == (0 if version == "2.479.3" else 2)


@pytest.mark.parametrize("name", ["built-in", "(built-in)", "master"])
@pytest.mark.parametrize("version", ["2.289.1", "2.479.3"])
def test_built_in_node_is_taken_offline(ci: Ci, name: str, version: str) -> None:
    ci.sandbox.settings("ci", version=version)
    assert ci.lives(name=name, offline=True, offline_reason="Pause")["changed"]
    assert ci.lives(name=name, offline=False)["changed"]
    ci.fails("invalid", "built-in", name=name, state="absent")
    ci.fails("invalid", "ci_configuration", name=name, executors=2)


def test_busy_node_is_deleted_once_idle(ci: Ci) -> None:
    with pytest.raises(ToolchainError) as caught:
        ci.run(name="busy", state="absent", wait_timeout=0.1)
    assert (caught.value.kind, "busy" in caught.value.message) == ("timeout", True)
    assert ci.run(name="busy", state="absent", force=True)["changed"]
    ci.sandbox.seed({"ci": {"nodes": [{"name": "soon", "busy_seconds": 1}]}})
    assert ci.run(name="soon", state="absent", wait_timeout=20)["changed"]


def test_complete_configuration_is_compared(ci: Ci) -> None:
    assert ci.lives(name="up", config=CONFIG, offline=True, offline_reason="x")["changed"]
    assert "up.example" in ci.text("computer/up/config.xml")
    assert ci.lives(name="new", config=CONFIG.replace(">up<", "><"))["changed"]
    ci.fails("invalid", "'up'", name="other", config=CONFIG)
    ci.fails("invalid", "config", name="up", config="<slave")
    ci.fails("invalid", "labels", name="up", config=CONFIG, labels=["a"])


def test_configuration_is_read_from_a_file(ci: Ci, tmp_path: Path) -> None:
    file = tmp_path / "up.xml"
    file.write_text(CONFIG, "utf-8")
    assert ci.lives(name="up", src=str(file), offline=False)["changed"]
    assert not ci.run(name="up", config=CONFIG)["changed"]
    ci.fails("invalid", "labels", "src", name="up", src=str(file), labels=["a"])
    ci.fails("invalid", "config and src", name="up", src=str(file), config=CONFIG)
    ci.fails("invalid", "src", name="up", src=str(tmp_path / "none.xml"))
    entries = [{"name": "new", "src": str(file)}]
    ci.fails("invalid", r"entries[0]: src has the name 'up'", entries=entries)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"name": "a/b"}, "name"),
        ({"name": "up", "executors": 0}, "executors"),
        ({"name": "up", "labels": ["a b"]}, "labels"),
        ({"name": "up", "offline_reason": "x"}, "offline_reason"),
        ({"name": "up", "offline": False, "offline_reason": "x"}, "offline_reason"),
        ({"name": "up", "state": "absent", "offline": True}, "offline"),
        ({"name": "up", "state": "absent", "wait_timeout": -1}, "wait_timeout"),
    ],
)
def test_invalid_options_are_rejected(ci: Ci, given: dict[str, Any], word: str) -> None:
    ci.fails("invalid", word, **given)


def test_many_nodes_are_managed_in_one_task(ci: Ci) -> None:
    entries: list[dict[str, Any]] = [
        {"name": "up", "description": "x", "mode": "normal", "labels": ["linux"]},
        {"name": "lost", "offline": True, "offline_reason": "Gone"},
        {"name": "busy", "state": "absent", "force": True, "wait_timeout": 1},
        {"name": "new", "remote_root": "/srv", "executors": 2},
        {"name": "whole", "config": CONFIG.replace(">up<", "><")},
    ]
    done = ci.lives(entries=entries)
    assert [result["action"] for result in done["results"]] == [
        *("updated", "updated", "deleted", "created", "created")
    ]
