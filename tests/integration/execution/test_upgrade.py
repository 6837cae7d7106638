# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that this version goes on with the state that earlier versions wrote.

`tests/upgrade/VERSION` has an exported folder, a report with its history, and pages of a tree, as
that version left them. `python -m tools.record state` adds the folder of a release.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]

STATES = sorted((Path(__file__).resolve().parents[2] / "upgrade").iterdir())
SERVICES = ("ci", "tracker", "wiki")
CLASS = b' class="java.util.Arrays$ArrayList"'


@pytest.fixture(params=STATES, ids=lambda state: state.name)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Copy what a version left into the folder of the playbook."""
    shutil.copytree(request.param, tmp_path, dirs_exist_ok=True)
    return tmp_path


def _logins(sandbox: Sandbox) -> dict[str, Any]:
    return {name: connections.connection(name, sandbox.urls[name]) for name in SERVICES}


def _run(folder: Path, name: str, **variables: Any) -> playbook.Run:
    play = {"import_playbook": f"delivery.toolchain.{name}", "vars": variables}
    run = playbook.run(folder, [play])
    assert run.code == 0, run.output
    return run


def test_export_of_the_earlier_release_is_continued(fresh: Fresh, state: Path) -> None:
    exporting = {
        "export_folder": "exported",
        "export_connections": _logins(fresh("real")),
        "export_wiki_trees": [{"space": "REL"}],
        "export_jobs": ["delivery"],
    }
    jobs = {file: file.read_bytes() for file in (state / "exported/ci").rglob("*.xml")}
    _run(state, "export", **exporting)
    # the sandbox of that version did not name the class of choices
    assert {file: file.read_bytes().replace(CLASS, b"") for file in jobs} == jobs
    assert len(jobs) > 2


def test_report_and_history_of_the_earlier_release_are_read(fresh: Fresh, state: Path) -> None:
    sandbox = fresh("real")
    report = state / "report/report.json"
    text = report.read_text("utf-8")
    for service, url in sandbox.urls.items():
        text = text.replace(f"URL_OF_{service}", url)
    report.write_text(text, encoding="utf-8")
    before = json.loads((state / "report/history.json").read_text("utf-8"))
    run = _run(
        state,
        "drift",
        desired_state_folder="exported",
        enforce_connections=_logins(sandbox),
        drift_report="report",
    )
    assert "unreadable" not in run.output
    assert "cannot be read" not in run.output
    assert len(json.loads((state / "report/history.json").read_text("utf-8"))) == len(before) + 1
    mended = json.loads(report.read_text("utf-8"))["mended"]
    assert "version REL/2.0.0: differs in description" in [one["text"] for one in mended]


def test_pages_of_the_earlier_release_are_recognized(fresh: Fresh, state: Path) -> None:
    sandbox = fresh("real")
    address = f"{sandbox.urls['wiki']}/rest/api/content"
    ids = {"Handbook": "1002"}
    for page in json.loads((state / "pages.json").read_text("utf-8")):
        content = {
            "type": "page",
            "title": page["title"],
            "space": {"key": "REL"},
            "ancestors": [{"id": ids[page["parent"]]}],
            "body": {"storage": {"value": page["body"], "representation": "storage"}},
        }
        ids[page["title"]] = _post(address, content)["id"]
        for key, value in page["properties"].items():
            _post(f"{address}/{ids[page['title']]}/property", {"key": key, "value": value})
    # that release kept the heading that is the title of its page
    tree = {"src": "tree/", "space": "REL", "parent_id": "1002", "title_heading": "keep"}
    defaults = connections.module_defaults(sandbox.urls)
    task = playbook.task("wiki_tree", tree, "tree")
    run = playbook.run(state, [playbook.play([task], module_defaults=defaults)])
    assert run.event("tree").result["changed"] is False, run.output


def _post(address: str, content: dict[str, Any]) -> dict[str, Any]:
    login = ("reporter", "reporter-password")
    response = requests.post(address, json=content, auth=login, timeout=10)
    assert response.status_code == 200, response.text
    made: dict[str, Any] = response.json()
    return made
