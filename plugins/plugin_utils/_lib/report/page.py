# SPDX-License-Identifier: GPL-3.0-or-later
"""Create `report.html`, a page in a single file that loads no other resources.

Strings from servers are escaped here, or embedded as JSON that a script inserts as text nodes. The
content security policy allows neither other scripts nor requests.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from ..findings import RULED
from .contents import SIDES, Contents, Row
from .links import link
from .texts import columns, titles

#: Classes of the sentence by the result of the run. All other results are differences.
_TONES = {"as wanted": "fine", "changed": "fine", "failed": "failed"}
#: What the sign before a finding means, and the sign before a change that `enforce` has made.
_SIGNS = ("+ missing on the server", "~ different", "- delete on the server")
_SIGNS_OF_CHANGES = ("+ created", "~ updated", "- deleted on the server")
_OTHER_SIGNS = ("! failed", "? not managed or not compared", ". ignored")
#: Maximum number of findings on the page, and of resolved ones; `report.json` has all of them.
MAX_FINDINGS = 5_000
#: Statuses in the order in which findings are left out: the last ones first.
_FIRST = ("failed", "drift", "unmanaged", "unknown", "ignored")
_FOLDER = Path(__file__).resolve().parent


def html(
    contents: Contents, history: list[dict[str, Any]], commands: Mapping[str, str] | None = None
) -> str:
    """Return the page of a report.

    :param history: content of `history.json`: all runs including this run, oldest first
    :param commands: see :mod:`.commands`; `None` shows no commands
    """
    style, script = _part("page.css"), _part("page.js")
    found = sorted(contents.findings, key=lambda finding: _FIRST.index(finding["status"]))
    shown = found[:MAX_FINDINGS]
    resolved = contents.resolved[:MAX_FINDINGS]
    data = {
        "report": {**contents.summary(), "findings": shown, "resolved": resolved},
        "resolved_count": len(contents.resolved),
        "history": history,
        "links": [link(finding) for finding in shown],
        "files": [contents.file_of(finding) for finding in shown],
        "compared": contents.compared_with,
        "commands": commands,
        "ruled": RULED,
    }
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}';"
        " base-uri 'none'; form-action 'none'"
    )
    sentence, approval = contents.sentence(), contents.approval()
    hosts = contents.hosts
    # the characters of HTML tags and comments are escaped
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), default=str)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    values: Mapping[str, str] = {
        "policy": policy,
        "title": escape(f"{sentence} {contents.playbook}"),
        "sentence": escape(sentence),
        "tone": _TONES.get(contents.result(), "different"),
        "finished": escape(contents.finished),
        "playbook": escape(contents.playbook),
        "mode": "nothing was changed (check mode)"
        if contents.check
        else "what differed was changed",
        "hosts": escape(", ".join(hosts) if len(hosts) <= 3 else f"{len(hosts)} hosts"),
        "approval": f"<p>{escape(approval)}</p>" if approval else "",
        "totals": escape(contents.totals()),
        "heading": "Differences" if contents.check else "Changes",
        "legend": _legend(contents),
        "servers": _servers(contents),
        "cut": _cut(contents),
        "data": text,
        "style": style,
        "script": script,
    }
    return Template(_part("page.html")).substitute(values)


def _legend(contents: Contents) -> str:
    """Return what the signs of findings and of compared lines mean."""
    if not contents.findings:
        return ""
    signs = _SIGNS if contents.check else _SIGNS_OF_CHANGES
    server, git = SIDES[contents.check]
    meanings = (*signs, *_OTHER_SIGNS, f"Compared lines: - {server}, + {git}")
    return f'<p id="legend">{" ".join(f"<span>{each}</span>" for each in meanings)}</p>'


def _cut(contents: Contents) -> str:
    total = len(contents.findings)
    if total <= MAX_FINDINGS:
        return ""
    shown = f"{MAX_FINDINGS:,} of {total:,}"
    return f'<p class="note">The page shows the first {shown} findings: report.json has all.</p>'


@cache
def _part(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _servers(contents: Contents) -> str:
    """Return the section about servers.

    Servers with failures are first, then servers with differences. All others are collapsed.
    """
    rows = sorted(contents.rows(), key=lambda row: (-row.failed, -row.drift))
    busy = [row for row in rows if any(row.counts()[1:])]
    fine = [row for row in rows if row not in busy]
    count = f"{len(fine):,} server{' is' if len(fine) == 1 else 's are'} in sync"
    parts = [_table(busy, contents)] if busy else []
    if fine:
        parts.append(f"<details><summary>{count}</summary>{_table(fine, contents)}</details>")
    return (
        '<section aria-labelledby="servers-title"><h2 id="servers-title">Servers</h2>'
        f"{''.join(parts)}</section>"
    )


def _table(rows: list[Row], contents: Contents) -> str:
    shown = columns(contents)
    named = dict(zip(shown, (each.capitalize() for each in titles(contents, shown)), strict=True))
    head = "".join(
        f'<th scope="col">{title}</th>' for title in ("Service", "Server", *named.values())
    )
    body = "".join(_row(row, named) for row in rows)
    return (
        f'<div class="wide"><table class="servers"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(row: Row, named: Mapping[str, str]) -> str:
    """Return the row of a server.

    :param named: titles of the counts; a narrow screen shows them in the cells
    """
    service, where = row.title()
    address = escape(where)
    anchor = f'<a href="{address}" rel="noopener noreferrer">{address}</a>'
    server = anchor if row.server.startswith(("http://", "https://")) else address
    classes = {"drift": "different", "failed": "failed"}
    cells = ""
    for name, title in named.items():
        count = getattr(row, name)
        tone = classes.get(name, "") if count else ""
        cells += f'<td class="number {tone}" data-title="{title}">{count:,}</td>'
    return f"<tr><td>{escape(service)}</td><td>{server}</td>{cells}</tr>"
