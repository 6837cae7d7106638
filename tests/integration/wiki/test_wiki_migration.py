# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the examples of the guide for migration from publishers of Markdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import requests
import yaml

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

#: Flavour of the fixture `sandbox`.
FLAVOUR = "real"
GUIDE = (Path(__file__).resolve().parents[3] / "docs/migration.md").read_text("utf-8")


def blocks(heading: str, language: str) -> list[str]:
    """Return the code blocks below a heading."""
    part = GUIDE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", part, re.DOTALL | re.MULTILINE)


def run_twice(folder: Path, sandbox: Sandbox, task: dict[str, Any]) -> list[bool]:
    """Run a task twice; return `changed` of each run."""
    defaults = connections.module_defaults(sandbox.urls)
    tasks = [{**task, "name": name} for name in ("First", "Again")]
    run = playbook.run(folder, [playbook.play(tasks, module_defaults=defaults)])
    assert run.code == 0, run.output
    return [run.event(record["name"]).result["changed"] for record in tasks]


def page(sandbox: Sandbox, title: str) -> dict[str, Any]:
    query = {"spaceKey": "REL", "title": title}
    query["expand"] = "body.storage,metadata.labels,children.attachment,ancestors"
    address = f"{sandbox.urls['wiki']}/rest/api/content"
    login = ("reporter", "reporter-password")
    found = requests.get(address, params=query, auth=login, timeout=10).json()["results"]
    assert len(found) == 1
    return dict(found[0])


def labels(shown: dict[str, Any]) -> set[str]:
    return {result["name"] for result in shown["metadata"]["labels"]["results"]}


def test_file_of_mark_converts_as_the_guide_shows(sandbox: Sandbox, tmp_path: Path) -> None:
    before, after = blocks("From `mark`", "markdown")
    (task,) = yaml.safe_load(blocks("From `mark`", "yaml")[0])
    headers = dict(re.findall(r"<!-- (\w+): (.+) -->", before))
    assert before.partition("\n\n")[2] == after.partition("---\n")[2].partition("---\n")[2]
    (tmp_path / "deployment.md").write_text(after, encoding="utf-8")
    (tmp_path / headers["Attachment"]).write_bytes(b"png")
    assert run_twice(tmp_path, sandbox, task) == [True, False]
    shown = page(sandbox, headers["Title"])
    assert shown["ancestors"][-1]["title"] == headers["Parent"]
    assert labels(shown) == {headers["Label"]}
    attached = shown["children"]["attachment"]["results"]
    assert [one["title"] for one in attached] == [headers["Attachment"]]
    assert "Drawn in May." in shown["body"]["storage"]["value"]
    assert task["delivery.toolchain.wiki_tree"]["space"] == headers["Space"]


def test_folder_of_md2conf_converts_as_the_guide_shows(sandbox: Sandbox, tmp_path: Path) -> None:
    before, after = blocks("From `md2conf`", "markdown")
    (task,) = yaml.safe_load(blocks("From `md2conf`", "yaml")[0])
    assert before.partition("\n")[2].replace("tags:", "labels:") == after
    guide = tmp_path / "docs/guide"
    guide.mkdir(parents=True)
    (guide / "index.md").write_text(after, encoding="utf-8")
    (guide / "first.md").write_text("# First step\n\nGo.", encoding="utf-8")
    assert run_twice(tmp_path, sandbox, task) == [True, False]
    shown = page(sandbox, "User guide")
    assert labels(shown) == {"guide", "release"}
    body = shown["body"]["storage"]["value"]
    assert 'ac:name="expand"' in body
    assert 'ri:content-title="First step"' in body
    assert page(sandbox, "First step")["ancestors"][-1]["title"] == "User guide"
