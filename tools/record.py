# SPDX-License-Identifier: GPL-3.0-or-later
"""Record the drift page or the state of this version, from the sandbox.

python -m tools.record pictures                     write light and dark into docs/pictures
python -m tools.record state tests/upgrade/1.0.0    once for each release, for the upgrade test
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
from tests.helpers import browser, connections, playbook
from tools import tree

PICTURES = tree.ROOT / "docs" / "pictures"
#: Unfold a difference of fields and a difference of lines.
_UNFOLD = """Promise.all(['group', 'job'].map((kind) => {
  const kinds = [...document.querySelectorAll('li .kind')];
  const details = kinds.find((each) => each.textContent === kind).closest('details');
  details.open = true;
  return new Promise((done) => details.addEventListener('toggle', done));
}))"""
Task = tuple[str, dict[str, Any]]
_VERSION = {"project": "REL", "name": "2.0.0"}
#: What people change by hand after the export, night by night.
_NIGHTS: tuple[tuple[Task, ...], ...] = (
    (
        ("analysis_group", {"name": "quality", "users": ["alice", "bob"]}),
        ("tracker_version", {**_VERSION, "release_date": "2026-05-31"}),
    ),
    (
        ("ci_job", {"job": "no-parameters", "enabled": False}),
        ("analysis_user", {"name": "bob", "state": "absent"}),
        ("tracker_version", {**_VERSION, "release_date": "none"}),
    ),
)


class Estate:
    """A sandbox with its exported state in a folder, and a report on its drift."""

    def __init__(
        self, folder: Path, sandbox: Sandbox, services: tuple[str, ...], **exporting: Any
    ) -> None:
        self.folder, self._urls = folder, sandbox.urls
        logins = {one: connections.connection(one, sandbox.urls[one]) for one in services}
        exporting |= {"export_folder": "exported", "export_connections": logins}
        drifting = {
            "desired_state_folder": "exported",
            "enforce_connections": logins,
            "drift_report": "report",
        }
        self._run({"import_playbook": f"{playbook.NAMESPACE}.export", "vars": exporting})
        self._drift = {"import_playbook": f"{playbook.NAMESPACE}.drift", "vars": drifting}
        self.report()

    def report(self) -> None:
        self._run(self._drift)

    def change(self, *tasks: Task) -> playbook.Run:
        """Change the servers by hand, and not in the exported state."""
        by_hand = [playbook.task(*each, "By hand", ignore_errors=False) for each in tasks]
        defaults = connections.module_defaults(self._urls)
        return self._run(playbook.play(by_hand, module_defaults=defaults))

    def reported(self, name: str, address: str) -> Path:
        """Return a file of the report, in which `address` replaces those of the sandbox."""
        file = self.folder / "report" / name
        text = file.read_text(encoding="utf-8")
        for service, url in self._urls.items():
            text = text.replace(url, address.format(service))
        file.write_text(text, encoding="utf-8")
        return file

    def _run(self, play: dict[str, Any]) -> playbook.Run:
        run = playbook.run(self.folder, [play])
        if run.code:
            raise SystemExit(run.output)
        return run


def pictures(folder: Path, sandbox: Sandbox) -> None:
    """Take the pictures of the page after several nights."""
    estate = Estate(folder, sandbox, ("analysis", "ci", "tracker"))
    for tasks in _NIGHTS:
        estate.change(*tasks)
        estate.report()
    report = estate.reported("report.html", "https://{}.example.com")
    text = report.read_text("utf-8").replace("playbook.json", f"{playbook.NAMESPACE}.drift")
    report.write_text(text, encoding="utf-8")
    with browser.browser() as page:
        for scheme in ("light", "dark"):
            page.open(report, width=1100, scheme=scheme)
            page.run(_UNFOLD)
            page.picture(PICTURES / f"drift-{scheme}.png")


def state(folder: Path, sandbox: Sandbox, target: Path) -> None:
    """Write an export, a report with its history, and pages of a tree to `target`."""
    exporting = {"export_wiki_trees": [{"space": "REL"}], "export_jobs": ["delivery"]}
    estate = Estate(folder, sandbox, ("ci", "tracker", "wiki"), **exporting)
    estate.change(("tracker_version", {**_VERSION, "description": "by hand"}))
    estate.report()
    (folder / "tree").mkdir()
    (folder / "tree/index.md").write_text("# Recorded\n\nText.\n", encoding="utf-8")
    (folder / "tree/below.md").write_text("# Below recorded\n\nMore.\n", encoding="utf-8")
    run = estate.change(("wiki_tree", {"src": "tree/", "space": "REL", "parent_id": "1002"}))
    for part in ("exported", "tree"):
        shutil.copytree(folder / part, target / part)
    (target / "report").mkdir()
    for name in ("report.json", "history.json"):
        shutil.copy(estate.reported(name, "URL_OF_{}"), target / "report")
    pages = [
        _page(sandbox.urls["wiki"], each["id"]) for each in run.event("By hand").result["pages"]
    ]
    (target / "pages.json").write_text(json.dumps(pages, indent=2) + "\n", encoding="utf-8")


def _page(wiki: str, page_id: str) -> dict[str, Any]:
    """Return what identifies a page of a tree on the server."""
    session = requests.Session()
    session.auth = ("reporter", "reporter-password")
    address = f"{wiki}/rest/api/content/{page_id}"
    page = session.get(address, params={"expand": "body.storage,ancestors"}).json()
    marks = session.get(f"{address}/property").json()
    return {
        "title": page["title"],
        "body": page["body"]["storage"]["value"],
        "parent": page["ancestors"][-1]["title"],
        "properties": {one["key"]: one["value"] for one in marks["results"]},
    }


def main() -> None:
    """Record what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("pictures")
    commands.add_parser("state").add_argument("target", type=Path, help="a new folder")
    options = parser.parse_args()
    tree.make_importable()
    with tempfile.TemporaryDirectory() as name, Sandbox.start(flavour="real") as sandbox:
        if options.command == "pictures":
            pictures(Path(name), sandbox)
        elif options.target.exists():
            parser.error(f"{options.target} exists: the state of a version never changes")
        else:
            state(Path(name), sandbox, options.target)


if __name__ == "__main__":
    main()
