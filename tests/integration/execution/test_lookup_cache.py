# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that responses to lookups are cached during a play."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]

JQL = "project = REL ORDER BY key"


def _ask(name: str, options: str = "", **keywords: Any) -> dict[str, Any]:
    text = f"query('delivery.toolchain.jql_search', {JQL!r}{options}) | map(attribute='key')"
    return {
        "name": name,
        "ansible.builtin.debug": {"msg": f"{{{{ {text} | list }}}}"},
        **keywords,
    }


def _run(sandbox: Sandbox, folder: Path, *plays: dict[str, Any]) -> playbook.Run:
    login = connections.connection("tracker", sandbox.urls["tracker"])
    variables = {f"toolchain_tracker_{name}": value for name, value in login.items()}
    named = [{**play, "vars": {**variables, **play.get("vars", {})}} for play in plays]
    run = playbook.run(folder, named, controls={"localhost": sandbox.control})
    assert run.code == 0, run.output
    return run


def test_query_is_sent_once_per_play(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    again = [_ask("again"), _ask("in a loop", loop=[1, 2, 3])]
    other = _ask("other options", ", fields=['summary']")
    run = _run(
        sandbox,
        tmp_path,
        playbook.play([_ask("first"), *again, other, _ask("anew", ", cache=false")], name="One"),
        playbook.play([_ask("in the next play")], name="Two"),
    )
    counts = {event.task: len(event.requests) for event in run.events}
    assert counts.pop("again") == 0
    assert counts.pop("in a loop") == 0
    assert all(count > 0 for count in counts.values()), counts
    assert run.event("again").result["msg"] == run.event("first").result["msg"]
    assert len(run.event("first").result["msg"]) > 0


def test_query_with_another_login_is_sent_again(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    asking = _ask("another login", ", username='reporter', password='reporter-password'")
    run = _run(sandbox, tmp_path, playbook.play([_ask("first"), asking]))
    assert len(run.event("another login").requests) > 0


def test_write_clears_the_cache(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    version = {"project": "REL", "name": "9.9", "state": "present"}
    tasks = [
        _ask("first"),
        playbook.task("tracker_project_info", {}, "a reading"),
        _ask("kept"),
        playbook.task("tracker_version", version, "a write"),
        _ask("anew"),
    ]
    run = _run(sandbox, tmp_path, playbook.play(tasks))
    assert len(run.event("a write").writes) == 1, run.output
    assert run.event("kept").requests == []
    assert len(run.event("anew").requests) > 0


def test_parallel_hosts_send_one_query(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    hosts = [f"host{number}" for number in range(5)]
    (tmp_path / "inventory").write_text(
        "".join(f"{host} ansible_connection=local\n" for host in hosts), encoding="utf-8"
    )
    login = connections.connection("tracker", sandbox.urls["tracker"])
    variables = {f"toolchain_tracker_{name}": value for name, value in login.items()}
    play = playbook.play([_ask("all at once")], vars=variables)
    run = playbook.run(tmp_path, [{**play, "hosts": "all"}], arguments=["-i", "inventory"])
    assert run.code == 0, run.output
    assert len(run.events) == len(hosts)
    for_all = len(sandbox.requests("tracker"))
    playbook.run(tmp_path, [play])
    assert len(sandbox.requests("tracker")) - for_all == for_all > 0
