# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the inventory plugin `ci_nodes` with `ansible-inventory`, on the release of ansible-core that
runs the tests, and the playbook of the guide that patches agents.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.client import Sandbox
from tests.helpers import playbook
from tools.tree import ROOT

GUIDE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
NODES: list[dict[str, Any]] = [
    {"name": "linux-1", "label": "linux docker", "host": "10.0.0.5", "port": 2222},
    {"name": "linux-2", "label": "linux", "host": "linux-2.example.org"},
    {"name": "win-1", "label": "win", "system": "Windows Server 2022 (amd64)"},
    {"name": "an odd name", "label": "a-b", "connected": False},
    {"name": "down", "label": "linux", "offline_by": "ann", "reason": "kernel"},
]
ADDRESSES = {"ansible_host", "ansible_port"}
SECRET = "builder-password"


def _plain(value: dict[str, Any]) -> Any:
    """Return a text of the server, which newer releases show as one that is no template."""
    return value.get("__ansible_unsafe", value)


class Inventory:
    """Runs `ansible-inventory` and `ansible-playbook` with files of the plugin."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox, self.folder = sandbox, folder
        self.login = {
            "TOOLCHAIN_CI_URL": sandbox.urls["ci"],
            "TOOLCHAIN_CI_USERNAME": "builder",
            "TOOLCHAIN_CI_PASSWORD": SECRET,
            "TOOLCHAIN_CI_VALIDATE_CERTS": "",
        }

    def file(self, name: str = "nodes", **options: Any) -> Path:
        path = self.folder / f"{name}.ci_nodes.yml"
        content = {"plugin": "delivery.toolchain.ci_nodes", **options}
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        return path

    def run(
        self, program: str, *arguments: str | Path, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {**playbook.environment(self.folder), **self.login, **variables}
        return subprocess.run(
            [Path(sys.executable).parent / program, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )

    def listed(self, path: Path, **variables: str) -> Mapping[str, Any]:
        done = self.run("ansible-inventory", "-i", path, "--list", **variables)
        assert done.returncode == 0, done.stderr
        shown: dict[str, Any] = json.loads(done.stdout, object_hook=_plain)
        return shown

    def requests(self) -> int:
        return len(self.sandbox.requests("ci"))


@pytest.fixture
def inventory(fresh: Callable[[str], Sandbox], tmp_path: Path) -> Inventory:
    sandbox = fresh("real")
    sandbox.seed({"ci": {"nodes": NODES}})
    return Inventory(sandbox, tmp_path)


def test_nodes_are_hosts_in_groups_with_addresses(inventory: Inventory) -> None:
    path = inventory.file(
        strict=True,
        compose={"ansible_user": "'jenkins'"},
        groups={"free": "ci_node_idle and not ci_node_offline"},
        keyed_groups=[{"key": "ci_node_executors | string", "prefix": "executors"}],
    )
    shown = inventory.listed(path)
    groups = {name: sorted(group.get("hosts", ())) for name, group in shown.items()}
    every = sorted(["(built-in)", *(node["name"] for node in NODES)])
    assert groups["label_linux"] == ["down", "linux-1", "linux-2"]
    assert groups["label_docker"] == ["linux-1"]
    assert groups["label_a_b"] == groups["offline"][:1] == ["an odd name"]
    assert groups["online"] == groups["free"] == ["(built-in)", "linux-1", "linux-2", "win-1"]
    assert groups["os_windows"] == ["win-1"]
    assert groups["os_linux"] == ["(built-in)", "down", "linux-1", "linux-2"]
    assert groups["executors_1"] == every
    variables = shown["_meta"]["hostvars"]
    one = variables["linux-1"]
    assert (one["ansible_host"], one["ansible_port"]) == ("10.0.0.5", 2222)
    assert (one["ansible_user"], one["ci_node_labels"]) == ("jenkins", ["docker", "linux"])
    assert not ADDRESSES & variables["win-1"].keys()
    assert variables["down"]["ci_node_offline_reason"] == "kernel"
    # the list, and the configuration of every node but the built-in one
    assert inventory.requests() <= 1 + len(NODES)
    assert not inventory.sandbox.requests("ci", writes=True)


def test_account_that_reads_no_configuration_gets_no_addresses(inventory: Inventory) -> None:
    path = inventory.file(username="viewer", password="{{ 'viewer-' ~ 'password' }}")
    done = inventory.run("ansible-inventory", "-i", path, "--list")
    assert done.stderr.count("the addresses of the nodes are unknown") == 1
    variables = json.loads(done.stdout)["_meta"]["hostvars"]
    assert len(variables) == 1 + len(NODES)
    assert not any(ADDRESSES & of_host.keys() for of_host in variables.values())
    assert inventory.requests() <= 2


def test_cache_belongs_to_one_server_and_account(inventory: Inventory) -> None:
    options: dict[str, Any] = {"cache": True, "cache_plugin": "ansible.builtin.jsonfile"}
    options["cache_connection"] = str(inventory.folder / "cache")
    path = inventory.file(**options)
    first = inventory.listed(path)
    sent = inventory.requests()
    assert inventory.listed(path) == first
    assert inventory.requests() == sent
    inventory.listed(path, TOOLCHAIN_CI_USERNAME="viewer", TOOLCHAIN_CI_PASSWORD="viewer-password")
    assert inventory.requests() > sent
    written = [file.read_text() for file in (inventory.folder / "cache").iterdir()]
    assert written
    assert not [text for text in written if SECRET in text]


def test_wrong_file_is_named_with_what_to_write(inventory: Inventory) -> None:
    wrong: dict[str, tuple[dict[str, Any], str]] = {
        "misspelt": ({"usrname": "x"}, "usrname is not an option of the inventory: did you mean"),
        "empty": ({"url": ""}, "url is empty"),
        "number": ({"validate_certs": 1.5}, "validate_certs is the number 1.5: expected true or"),
        "login": ({"username": "builder", "password": "wrong-pass-word"}, "returned 401"),
        "template": ({"strict": True, "compose": {"a": "nothing_here"}}, "nothing_here"),
    }
    arguments: list[str | Path] = ["-vvv"]
    for name, (options, _words) in wrong.items():
        arguments += ["-i", inventory.file(name, **options)]
    other = inventory.folder / "nodes.yml"
    inventory.file("right").rename(other)
    done = inventory.run("ansible-inventory", *arguments, "-i", other, "--list")
    printed = " ".join(done.stderr.split())
    for name, (_options, words) in wrong.items():
        assert words in printed, name
    assert "wrong-pass-word" not in done.stdout + done.stderr


def test_guide_patches_idle_agents_one_at_a_time(inventory: Inventory) -> None:
    (text,) = re.findall(r"```yaml\n(# patch\.yml.*?)```", GUIDE, re.DOTALL)
    (inventory.folder / "patch.yml").write_text(text, encoding="utf-8")
    (inventory.folder / "patches.yml").write_text(
        "- {name: Patch, ansible.builtin.debug: {msg: patched}}\n", encoding="utf-8"
    )
    done = inventory.run(
        *("ansible-playbook", "-i", inventory.file(), "patch.yml"),
        *("-e", "label=linux ansible_connection=local"),
    )
    assert done.returncode == 0, done.stdout
    writes = [request["path"] for request in inventory.sandbox.requests("ci", writes=True)]
    toggled = [path.split("/")[-2] for path in writes if path.endswith("/toggleOffline")]
    assert toggled == ["linux-1", "linux-1", "linux-2", "linux-2"]
