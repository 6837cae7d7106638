# SPDX-License-Identifier: GPL-3.0-or-later
"""Record the files and marks that this version leaves, for the upgrade test: run it once for each
release.

python -m tools.record_state tests/upgrade/1.0.0
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import requests

from sandbox.client import Sandbox
from tests.helpers import connections, playbook
from tools import tree

_SERVICES = ("ci", "tracker", "wiki")
_LOGIN = ("reporter", "reporter-password")
_KEPT = ("report.json", "history.json")


def record(target: Path, folder: Path, sandbox: Sandbox) -> None:
    """Run the playbooks in `folder`, and copy their results to `target`."""
    logins = {one: connections.connection(one, sandbox.urls[one]) for one in _SERVICES}
    defaults = connections.module_defaults(sandbox.urls)
    exporting = {
        "export_folder": "exported",
        "export_connections": logins,
        "export_wiki_trees": [{"space": "REL"}],
        "export_jobs": ["delivery"],
    }
    drifting = {
        "desired_state_folder": "exported",
        "enforce_connections": logins,
        "drift_report": "report",
    }
    drift = {"import_playbook": f"{playbook.NAMESPACE}.drift", "vars": drifting}
    by_hand = {"project": "REL", "name": "2.0.0", "description": "by hand"}
    (folder / "tree").mkdir()
    (folder / "tree/index.md").write_text("# Recorded\n\nText.\n", encoding="utf-8")
    (folder / "tree/below.md").write_text("# Below recorded\n\nMore.\n", encoding="utf-8")
    pages = {"src": "tree/", "space": "REL", "parent_id": "1002"}
    _run(folder, {"import_playbook": f"{playbook.NAMESPACE}.export", "vars": exporting}, drift)
    _run(folder, _play("tracker_version", by_hand, defaults))
    _run(folder, drift)
    run = _run(folder, _play("wiki_tree", pages, defaults))
    for part in ("exported", "report", "tree"):
        shutil.copytree(folder / part, target / part)
    for file in (target / "report").iterdir():
        if file.name not in _KEPT:
            file.unlink()
    report = (target / "report/report.json").read_text("utf-8")
    for service, url in sandbox.urls.items():
        report = report.replace(url, f"URL_OF_{service}")
    (target / "report/report.json").write_text(report, encoding="utf-8")
    written = run.event("By hand").result["pages"]
    texts = [_page(sandbox.urls["wiki"], page["id"]) for page in written]
    (target / "pages.json").write_text(json.dumps(texts, indent=2) + "\n", encoding="utf-8")


def _play(module: str, options: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    return playbook.play([playbook.task(module, options, "By hand")], module_defaults=defaults)


def _run(folder: Path, *plays: dict[str, Any]) -> playbook.Run:
    run = playbook.run(folder, plays)
    if run.code:
        raise SystemExit(run.output)
    return run


def _page(wiki: str, page_id: str) -> dict[str, Any]:
    """Return what identifies a page of a tree on the server."""
    address = f"{wiki}/rest/api/content/{page_id}"
    expand = {"expand": "body.storage,ancestors"}
    page = requests.get(address, params=expand, auth=_LOGIN, timeout=10).json()
    marks = requests.get(f"{address}/property", auth=_LOGIN, timeout=10).json()
    return {
        "title": page["title"],
        "body": page["body"]["storage"]["value"],
        "parent": page["ancestors"][-1]["title"],
        "properties": {one["key"]: one["value"] for one in marks["results"]},
    }


def main() -> None:
    """Record into the folder of the command line, which must not exist."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path)
    target = parser.parse_args().target
    if target.exists():
        parser.error(f"{target} is there already: the state of a version never changes")
    tree.make_importable()
    with tempfile.TemporaryDirectory() as name, Sandbox.start(flavour="real") as sandbox:
        record(target, Path(name), sandbox)


if __name__ == "__main__":
    main()
