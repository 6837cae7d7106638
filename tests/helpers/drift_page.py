# SPDX-License-Identifier: GPL-3.0-or-later
"""The drift page in the pictures of the documentation: what people have changed by hand on three
servers, on two nights.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import findings
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import commands, page
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.contents import (
    Contents,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.since import (
    Last,
    finding_id,
)
from tests.helpers.browser import Browser

_NOW = "2026-11-28T04:00:00Z"
#: The page is looked at a few minutes later, whatever the time is.
_CLOCK = f"Date.now = () => Date.parse({json.dumps(_NOW)}) + 5 * 60000;"
#: Unfold a difference of fields and a difference of lines.
_UNFOLD = """Promise.all(['version', 'job'].map((kind) => {
  const kinds = [...document.querySelectorAll('li .kind')];
  const details = kinds.find((each) => each.textContent === kind).closest('details');
  details.open = true;
  return new Promise((done) => details.addEventListener('toggle', done));
}))"""
#: Numbers of differences, night by night.
_NIGHTS = (0, 0, 1, 1, 0, 2, 3, 3, 1, 5)
_CONFIG = """<project>
  <description>Packages the agent</description>
  <keepDependencies>false</keepDependencies>
  <disabled>%s</disabled>
</project>
"""


def report() -> Contents:
    """Return the findings of the page."""
    contents = Contents("delivery.toolchain.drift", check=True, finished=_NOW)
    contents.hosts = ["localhost"]
    last: dict[str, dict[str, Any]] = {}
    disabled, enabled = (_CONFIG % value for value in ("true", "false"))
    dated = {"release_date": "2026-05-31"}, {"release_date": None}
    users = {"users": ["alice", "bob", "carol"]}, {"users": ["alice", "bob"]}
    rows = (
        ("tracker", findings.different("version", "REL/2.0.0", "differs in release_date", *dated)),
        ("ci", findings.different("job", "delivery/package", "differs", disabled, enabled)),
        ("ci", findings.unwanted("job", "delivery/try-out", {"config": disabled})),
        ("analysis", findings.missing("user", "eve", {"name": "eve"})),
        ("analysis", findings.different("group", "quality", "differs in users", *users)),
    )
    tasks = {
        "tracker": "Manage the versions of the tracker",
        "ci": "Manage the jobs of the CI server",
        "analysis": "Apply the desired state of the code analysis server",
    }
    for service, finding in rows:
        place = {
            "host": "localhost",
            "service": service,
            "server": f"https://{service}.example.com",
        }
        author = {"changed_by": "m.keller"} if service == "tracker" else {}
        contents.add(**place, **finding, **author, task=tasks[service])
        contents.files[service, finding["kind"], finding["name"]] = f"{service}.yml"
        if finding["kind"] in ("group", "user"):  # it was there the night before, too
            key = finding_id({**place, **finding})
            last[key] = {**place, **finding, "id": key, "first_seen": "2026-11-22T04:00:00Z"}
    for service, count in (("tracker", 11), ("ci", 22), ("analysis", 20)):
        contents.add_unnamed((service, f"https://{service}.example.com", ""), count)
    return contents.since(Last(last, "2026-11-27T04:00:00Z"))


def write_page(folder: Path) -> Path:
    """Write the page of the report, and return its file."""
    contents = report()
    history = [
        {
            "finished": f"2026-11-{28 - len(_NIGHTS) + night:02}T04:00:00Z",
            "playbook": contents.playbook,
            "check": True,
            "counts": {"ok": 58 - drift, "drift": drift, "failed": 0},
        }
        for night, drift in enumerate(_NIGHTS, 1)
    ]
    given = {"extra_vars": ["@settings.yml"]}
    shown = commands.commands(given, Path("report"), str)
    file = folder / "report.html"
    file.write_text(page.html(contents, history, shown), encoding="utf-8")
    return file


def shown(driven: Browser, file: Path, scheme: str) -> str:
    """Open the page as in the picture, and return the text that it shows."""
    script = driven.call("Page.addScriptToEvaluateOnNewDocument", source=_CLOCK)
    driven.open(file, width=1100, scheme=scheme)
    driven.call("Page.removeScriptToEvaluateOnNewDocument", **script)
    driven.run(_UNFOLD)
    text: str = driven.run("document.body.innerText")
    return text
