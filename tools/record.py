# SPDX-License-Identifier: GPL-3.0-or-later
"""Take the light and the dark picture of the drift page, from the sandbox, for docs/pictures."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

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
_SERVICES = ("analysis", "ci", "tracker")
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

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self.folder, self._urls = folder, sandbox.urls
        logins = {one: connections.connection(one, sandbox.urls[one]) for one in _SERVICES}
        exporting = {"export_folder": "exported", "export_connections": logins}
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

    def change(self, *tasks: Task) -> None:
        """Change the servers by hand, and not in the exported state."""
        by_hand = [playbook.task(*each, "By hand", ignore_errors=False) for each in tasks]
        defaults = connections.module_defaults(self._urls)
        self._run(playbook.play(by_hand, module_defaults=defaults))

    def reported(self, name: str, address: str) -> Path:
        """Return a file of the report, in which `address` replaces those of the sandbox."""
        file = self.folder / "report" / name
        text = file.read_text(encoding="utf-8")
        for service, url in self._urls.items():
            text = text.replace(url, address.format(service))
        file.write_text(text, encoding="utf-8")
        return file

    def _run(self, play: dict[str, Any]) -> None:
        run = playbook.run(self.folder, [play])
        if run.code:
            raise SystemExit(run.output)


def pictures(folder: Path, sandbox: Sandbox) -> None:
    """Take the pictures of the page after several nights."""
    estate = Estate(folder, sandbox)
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


def main() -> None:
    """Write the pictures."""
    tree.make_importable()
    with tempfile.TemporaryDirectory() as name, Sandbox.start(flavour="real") as sandbox:
        pictures(Path(name), sandbox)


if __name__ == "__main__":
    main()
