# SPDX-License-Identifier: GPL-3.0-or-later
"""Test connections from variables: a single play, with production and staging in group_vars."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]

#: By group of a host: the flavour of its sandbox. Every group has a separate server.
GROUPS = {"staging": "real", "production": "written"}
DIALECTS = {"real": "jfrog", "written": "generic"}
QUERY = {"pattern": "generic-snapshot-local:agent/**"}
#: A server that neither the variables nor the environment contain.
STRANGER = {**QUERY, "url": "http://127.0.0.1:10"}
REMOTE = {
    "url": "http://127.0.0.1:10",
    "token": "of-the-task",
    "key": "npm-remote",
    "rclass": "remote",
    "package_type": "npm",
}
LOOKUP = (
    "{{ query('delivery.toolchain.artifact_query', 'generic-snapshot-local:agent/**') | length }}"
)
ENVIRONMENT = {
    "TOOLCHAIN_REPO_URL": "http://127.0.0.1:9/nowhere",
    "TOOLCHAIN_REPO_TOKEN": "token-of-the-environment",
    "TOOLCHAIN_REPO_RETRIES": "0",
}


def _inventory(folder: Path, sandboxes: dict[str, Sandbox]) -> None:
    """Write an inventory with a host per group. The connection is in group_vars, with a template
    for the secret.
    """
    hosts: dict[str, Any] = {group: {"hosts": {f"{group}-host": {}}} for group in GROUPS}
    whole = {"vars": {"ansible_connection": "local"}, "children": hosts}
    (folder / "inventory.json").write_text(json.dumps({"all": whole}), encoding="utf-8")
    (folder / "group_vars").mkdir()
    for group, sandbox in sandboxes.items():
        variables = {
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
            "vault_repo_token": connections.LOGINS["repo"]["token"],
            "toolchain_repo_url": "{{ repo_server }}/",
            "repo_server": sandbox.urls["repo"],
            "toolchain_repo_token": "{{ vault_repo_token }}",
            "toolchain_repo_dialect": DIALECTS[GROUPS[group]],
            "toolchain_repo_ca_path": "",
        }
        (folder / "group_vars" / f"{group}.json").write_text(json.dumps(variables))


@pytest.fixture(scope="module")
def ran(fresh: Fresh, tmp_path_factory: pytest.TempPathFactory) -> playbook.Run:
    """Run all kinds of queries. The environment contains another server and another login."""
    folder = tmp_path_factory.mktemp("variables")
    sandboxes = {group: fresh(flavour) for group, flavour in GROUPS.items()}
    _inventory(folder, sandboxes)
    separate = {"vars": {"toolchain_in_process": False}}
    emptied = {"vars": {"toolchain_repo_url": "", "toolchain_repo_token": None}}
    tasks: list[dict[str, Any]] = [
        playbook.task("artifact_info", QUERY, "module"),
        playbook.task("artifact_info", QUERY, "separate", **separate),
        playbook.task("artifact_info", {**QUERY, "token": "of-the-task"}, "task"),
        playbook.task("artifact_info", QUERY, "empty", **emptied),
        playbook.task("artifact_info", STRANGER, "stranger"),
        playbook.task("artifact_info", STRANGER, "separate stranger", **separate),
        playbook.task("artifact_info", STRANGER, "empty stranger", **emptied),
        playbook.task("repo_repository", REMOTE, "remote"),
        {"name": "lookup", "ansible.builtin.debug": {"msg": LOOKUP}, "ignore_errors": True},
        {
            "name": "stranger lookup",
            "ansible.builtin.debug": {"msg": LOOKUP.replace("')", "', url='http://127.0.0.1:10')")},
            "ignore_errors": True,
        },
        {
            "name": "empty lookup",
            "ansible.builtin.debug": {"msg": LOOKUP},
            "ignore_errors": True,
            **emptied,
        },
    ]
    return playbook.run(
        folder,
        [playbook.play(tasks, hosts="all")],
        controls={f"{group}-host": sandbox.control for group, sandbox in sandboxes.items()},
        arguments=["-i", "inventory.json", "--forks", "1", "-vvv"],
        variables=ENVIRONMENT,
    )


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("task", ["module", "separate", "lookup"])
def test_each_group_uses_its_own_server(ran: playbook.Run, group: str, task: str) -> None:
    event = ran.event(task, f"{group}-host")
    assert event.status == "ok", ran.output[-3000:]
    assert [request["status"] for request in event.requests] == [200]


@pytest.mark.parametrize("group", GROUPS)
def test_login_of_the_task_precedes_the_variables(ran: playbook.Run, group: str) -> None:
    event = ran.event("task", f"{group}-host")
    assert event.result["error"]["kind"] == "auth", event.result
    assert [request["status"] for request in event.requests] == [401]


@pytest.mark.parametrize("group", GROUPS)
def test_empty_variable_falls_back_to_the_environment(ran: playbook.Run, group: str) -> None:
    event = ran.event("empty", f"{group}-host")
    assert event.result["error"]["kind"] == "network", event.result
    assert event.result["error"]["url"].startswith(ENVIRONMENT["TOOLCHAIN_REPO_URL"])
    assert "127.0.0.1:9" in ran.event("empty lookup", f"{group}-host").result["msg"]
    assert event.requests == []


@pytest.mark.parametrize("group", GROUPS)
def test_credentials_are_not_sent_to_another_server(ran: playbook.Run, group: str) -> None:
    tasks = {
        "stranger": "credentials in variables",
        "separate stranger": "credentials in variables",
        "stranger lookup": "credentials in variables",
        "empty stranger": "credentials in the environment",
        "remote": "remote_url is missing",
    }
    for task, words in tasks.items():
        event = ran.event(task, f"{group}-host")
        assert words in event.result["msg"]
        assert event.requests == []
        if "lookup" not in task:
            assert event.result["error"]["kind"] == "invalid", event.result


def test_lookup_without_url_explains_that_module_defaults_do_not_apply(tmp_path: Path) -> None:
    """Verify the error message if neither a variable nor the environment contains a URL."""
    lookup = {"name": "lookup", "ansible.builtin.debug": {"msg": LOOKUP}, "ignore_errors": True}
    defaults = {"group/delivery.toolchain.repo": {"url": "http://127.0.0.1:9"}}
    event = playbook.run(tmp_path, [playbook.play([lookup], module_defaults=defaults)]).event(
        "lookup"
    )
    assert "toolchain_repo_url or TOOLCHAIN_REPO_URL" in event.result["msg"]
    assert "lookups do not use module_defaults" in event.result["msg"]


@pytest.mark.parametrize("group", GROUPS)
def test_both_modes_resolve_the_same_options(ran: playbook.Run, group: str) -> None:
    one, other = (ran.event(task, f"{group}-host").result for task in ("module", "separate"))
    assert one["invocation"] == other["invocation"]
    assert one["invocation"]["module_args"]["url"]


def test_variables_do_not_change_the_mode(ran: playbook.Run) -> None:
    assert ran.output.count("EXEC /bin/sh") > 0
    before_separate = ran.output.split("TASK [separate]")[0]
    assert "EXEC /bin/sh" not in before_separate


def test_no_secret_is_shown(ran: playbook.Run) -> None:
    shown = [connections.LOGINS["repo"]["token"], ENVIRONMENT["TOOLCHAIN_REPO_TOKEN"]]
    assert ran.shows([*shown, "of-the-task"]) == []
