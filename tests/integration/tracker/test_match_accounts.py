# SPDX-License-Identifier: GPL-3.0-or-later
"""Run `match_accounts` from a server to a cloud, and `drift` with the accounts that it finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]

#: Two accounts share the address of Dora. Boris hides his, and Chloé has another one.
PEOPLE = {
    "alice": {"displayName": "Alice Example", "shares_email": True},
    "boris": {"displayName": "Boris Beispiel"},
    "developer": {"displayName": "Dora", "shares_email": True},
    "dora": {"displayName": "D", "emailAddress": "developer@example.com", "shares_email": True},
    "chloé": {"displayName": "Chloé Exemple", "emailAddress": "c@example.com"},
}
FOLDER = {
    "tracker.yml": "project_roles:\n"
    "  - {project: REL, role: Developers, users: [alice, boris, developer, chloé, nobody]}\n",
    "wiki.yml": "pages:\n  - {space: REL, title: Team, body: \"<p><ri:user ri:userkey='key-reporter'"
    ' /></p>", restrictions: {update: {users: [alice, reporter]}}}\n',
}
CLOUD: dict[str, dict[str, Any]] = {
    "tracker": {"deployment": "Cloud"},
    "wiki": {"deployment": "Cloud", "version_2": True, "known_users": ["alice", "reporter"]},
}


@pytest.fixture(scope="module")
def cloud() -> Iterator[Sandbox]:
    people = {**PEOPLE, "reporter": {"displayName": "Reporter", "shares_email": True}}
    with Sandbox.start({"tracker": {"users": people}}, "real", settings=CLOUD) as sandbox:
        yield sandbox


def _connections(sandbox: Sandbox, **options: Any) -> dict[str, Any]:
    return {
        service: connections.connection(service, sandbox.urls[service], **options)
        for service in ("tracker", "wiki")
    }


def _run(folder: Path, name: str, code: int = 0, **variables: Any) -> playbook.Run:
    play = {"import_playbook": f"delivery.toolchain.{name}", "vars": variables}
    run = playbook.run(folder, [play], arguments=["-vv"])
    assert run.code == code, run.output
    return run


@pytest.mark.parametrize("ending", ["csv", "yml"])
def test_accounts_are_matched_by_address(
    fresh: Fresh, cloud: Sandbox, tmp_path: Path, ending: str
) -> None:
    old = fresh("real")
    for name, text in FOLDER.items():
        (tmp_path / "desired").mkdir(exist_ok=True)
        (tmp_path / "desired" / name).write_text(text, "utf-8")
    file = tmp_path / f"accounts.{ending}"
    variables: dict[str, Any] = {
        "desired_state_folder": "desired",
        "match_accounts_from": _connections(old),
        "match_accounts_to": _connections(cloud),
        "match_accounts_file": file.name,
    }
    mark = cloud.mark()
    run = _run(tmp_path, "match_accounts", **variables)
    assert run.event("Write the accounts").result["lines"] == [
        "4 accounts found, 4 not found.",
        (
            "tracker,boris: hidden: for boris@example.com the new tracker finds account-boris"
            " (Boris Beispiel), but hides the address: check it, and write the line"
        ),
        "tracker,chloé: missing: the new tracker has no user with chloé@example.com",
        (
            "tracker,developer: ambiguous: developer@example.com is the address of"
            " account-developer (Dora), account-dora (D): write the line of the right one"
        ),
        "tracker,nobody: missing: the old tracker has no user nobody",
    ]
    assert old.requests(writes=True) == cloud.requests(writes=True, since=mark) == []
    text = file.read_text("utf-8")
    assert text.count("account-alice") == 2
    again = _run(tmp_path, "match_accounts", **variables)
    assert again.event("Write the accounts").result["changed"] is False
    assert file.read_text("utf-8") == text
    _run(
        tmp_path,
        "drift",
        desired_state_folder="desired",
        desired_state_accounts=file.name,
        enforce_connections={
            **_connections(cloud),
            "wiki": connections.connection("wiki", cloud.urls["wiki"], dialect="cloud_v2"),
        },
        drift_report="report",
        code=2,
    )
    report = json.loads((tmp_path / "report/report.json").read_text("utf-8"))
    (page,) = [one for one in report["findings"] if one["kind"] == "page"]
    assert page["text"] == "page REL/Team: missing"
    assert 'ri:account-id="account-reporter"' in json.dumps(page["after"]).replace("\\", "")
