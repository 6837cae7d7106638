# SPDX-License-Identifier: GPL-3.0-or-later
"""Take the pictures of the drift page in `docs/pictures`: light and dark, from the sandbox.

python -m tools.pictures
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.helpers import browser, connections, playbook
from tools import tree

PICTURES = tree.ROOT / "docs" / "pictures"
_SERVICES = ("analysis", "ci", "tracker")
#: What people change by hand after the export, night by night.
_NIGHTS: tuple[tuple[tuple[str, dict[str, Any]], ...], ...] = (
    (
        ("analysis_group", {"name": "quality", "users": ["alice", "bob"]}),
        ("tracker_version", {"project": "REL", "name": "2.0.0", "release_date": "2026-05-31"}),
    ),
    (
        ("ci_job", {"job": "no-parameters", "enabled": False}),
        ("analysis_user", {"name": "bob", "state": "absent"}),
        ("tracker_version", {"project": "REL", "name": "2.0.0", "release_date": "none"}),
    ),
)


def main() -> int:
    """Take both pictures."""
    tree.make_importable()
    with (
        tempfile.TemporaryDirectory(prefix="toolchain-pictures-") as name,
        Sandbox.start(flavour="real") as sandbox,
    ):
        report = _report(sandbox, Path(name))
        with browser.browser() as page:
            for scheme in ("light", "dark"):
                page.open(report, width=1100, scheme=scheme)
                page.picture(PICTURES / f"drift-{scheme}.png")
    return 0


def _report(sandbox: Sandbox, folder: Path) -> Path:
    """Return the page of the last of several nights, with addresses of examples."""
    logins = {one: connections.connection(one, sandbox.urls[one]) for one in _SERVICES}
    exporting = {"export_folder": "state", "export_connections": logins}
    drifting = {
        "desired_state_folder": "state",
        "enforce_connections": logins,
        "drift_report": "report",
    }
    drift = {"import_playbook": f"{playbook.NAMESPACE}.drift", "vars": drifting}
    _run(folder, {"import_playbook": f"{playbook.NAMESPACE}.export", "vars": exporting}, drift)
    defaults = connections.module_defaults(sandbox.urls)
    for night in _NIGHTS:
        by_hand = [playbook.task(*each, "By hand", ignore_errors=False) for each in night]
        _run(folder, playbook.play(by_hand, module_defaults=defaults))
        _run(folder, drift)
    page = folder / "report" / "report.html"
    text = page.read_text(encoding="utf-8")
    for service, url in sandbox.urls.items():
        text = text.replace(url, f"https://{service}.example.com")
    page.write_text(text, encoding="utf-8")
    return page


def _run(folder: Path, *plays: dict[str, Any]) -> None:
    run = playbook.run(folder, plays)
    if run.code:
        raise SystemExit(run.output)


if __name__ == "__main__":
    sys.exit(main())
