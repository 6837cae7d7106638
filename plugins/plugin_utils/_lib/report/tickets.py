# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the tracker issues for a drift report, by finding or by server [C9]."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .contents import SIDES, sentence_of
from .since import finding_id

#: The common label of all issues. Each issue also has the label of its finding or server.
LABEL = "drift"
PER = ("finding", "server")
_SUMMARY = 200
_VALUE = 2000
#: Maximum length of a text in the tracker, without the sentences that are added to a description.
#: It counts UTF-16 code units, and a line break as two.
MAX_TEXT = 32_767 - 500
#: The marks of links and mentions, pictures, macros, tables and the escape itself.
_MARKUP = re.compile(r"[\\{}\[\]!|]")
_ESCAPES = {"\\": "&#92;"}
#: The end of a block without formats, which also begins one with parameters.
_END = re.compile(r"\{noformat", re.IGNORECASE)
Ticket = dict[str, Any]


def wanted(report: Mapping[str, Any], per: str) -> list[Ticket]:
    """Return the issues that must be open, with `label`, `summary` and `description`.

    :param per: `finding` or `server`
    """
    # a run that changes the servers leaves only failures open
    check = bool(report.get("check", True))
    open_ = ("drift", "failed") if check else ("failed",)
    found = [finding for finding in report["findings"] if finding["status"] in open_]
    if per == "finding":
        return [
            _ticket(
                finding,
                f"{finding['text']} on {_where(finding)}",
                _description(finding, SIDES[check]),
            )
            for finding in found
        ]
    servers: dict[str, list[Mapping[str, Any]]] = {}
    for finding in found:
        servers.setdefault(_server_id(finding), []).append(finding)
    return [
        _ticket(
            _of_server(group[0]),
            f"drift on {_where(group[0])}",
            _listed(sorted(f"* {_line(record)}" for record in group)),
        )
        for group in servers.values()
    ]


def ended(report: Mapping[str, Any], per: str) -> dict[str, str]:
    """Return the reasons for closing issues, by label.

    Issues of objects that were not read are not closed.
    """
    resolved = [*report["resolved"]]
    if not report.get("check", True):  # what the run has changed, with its reason
        reason = {"reason": report.get("reason")}
        drift = (finding for finding in report["findings"] if finding["status"] == "drift")
        resolved += [{**finding, **reason} for finding in drift]
    if per == "finding":
        reasons = {
            finding_id(finding): f"resolved: {_quoted(finding['text'])}{_why(finding)}"
            for finding in resolved
        }
        earlier = dict.fromkeys(report.get("resolved_earlier") or (), "resolved in an earlier run")
        return {_label(key): why for key, why in {**earlier, **reasons}.items()}
    unread = {_server_id(finding) for finding in report.get("unread") or ()}
    read = {_server_id(row) for row in report.get("servers") or () if not row["failed"]}
    read |= {_server_id(finding) for finding in resolved}
    why = {_server_id(finding): _why(finding) for finding in resolved}
    return {
        _label(key): f"resolved: nothing differs{why.get(key, '')}" for key in sorted(read - unread)
    }


def _why(finding: Mapping[str, Any]) -> str:
    """Return the reason that somebody gave for the change of an object, for a comment."""
    reason = str(finding.get("reason") or "")
    return f". Reason: {_quoted(reason)}" if reason else ""


def plan(
    report: Mapping[str, Any], issues: Iterable[Mapping[str, Any]], per: str, max_new: int
) -> dict[str, Any]:
    """Return the issues to create (`new`), update (`changed`) and close (`ended`).

    `left` is the number of new issues above `max_new`, which are left to the next run.

    :param issues: open issues with the common label
    """
    open_ = {label: issue for issue in issues for label in issue["fields"].get("labels") or ()}
    tickets = wanted(report, per)
    new = [ticket for ticket in tickets if ticket["label"] not in open_]
    labels = {ticket["label"] for ticket in tickets}
    return {
        "new": new[:max_new],
        "left": len(new[max_new:]),
        "changed": [
            {**ticket, "key": open_[ticket["label"]]["key"]}
            for ticket in tickets
            if ticket["label"] in open_ and not _is_same(ticket, open_[ticket["label"]])
        ],
        "ended": [
            {"key": open_[label]["key"], "label": label, "comment": why}
            for label, why in ended(report, per).items()
            if label in open_ and label not in labels
        ],
    }


def _is_same(ticket: Ticket, issue: Mapping[str, Any]) -> bool:
    there = str(issue["fields"].get("description") or "")
    return _lines(there) == _lines(ticket["description"])


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def _ticket(finding: Mapping[str, Any], summary: str, description: str) -> Ticket:
    label = _label(finding_id(finding))
    text = f"{description}\n\nThis issue belongs to {label}; drift_tickets keeps it up to date."
    short = _cut(" ".join(summary.split()), _SUMMARY)
    return {"label": label, "summary": short, "description": text}


def _label(key: str) -> str:
    return f"{LABEL}-{key}"


def _server_id(finding: Mapping[str, Any]) -> str:
    return finding_id(_of_server(finding))


def _of_server(finding: Mapping[str, Any]) -> dict[str, str]:
    host = "" if finding["server"] else finding["host"]
    return {
        "host": host,
        "service": finding["service"],
        "server": finding["server"],
        "kind": "server",
    }


def _where(finding: Mapping[str, Any]) -> str:
    return str(finding["server"] or f"host {finding['host']}")


def _line(finding: Mapping[str, Any]) -> str:
    action = "failed" if finding["status"] == "failed" else finding["action"]
    text = f"{' '.join(finding['text'].split())} (host {finding['host']})"
    return f"{action}: {_quoted(_cut(text, _VALUE))}"


def _quoted(text: str) -> str:
    """Return a string that the markup of the tracker shows as it is: no mention, picture or macro.

    A backslash before a character that has a meaning is an escape, two backslashes break the line.
    """
    return _MARKUP.sub(lambda found: _ESCAPES.get(found[0], f"\\{found[0]}"), text)


def _description(finding: Mapping[str, Any], sides: tuple[str, str]) -> str:
    lines = [
        f"* {_line(finding)}",
        f"* server: {_where(finding)}",
        f"* first seen: {finding['first_seen']}",
    ]
    for name, side in zip(sides, ("before", "after"), strict=True):
        if finding.get(side) is not None:
            shown = json.dumps(finding[side], ensure_ascii=False, sort_keys=True, default=str)
            shown = _END.sub("(noformat", _cut(shown, _VALUE))
            lines += [f"* {name}:", f"{{noformat}}{shown}{{noformat}}"]
    return "\n".join(lines)


def _listed(lines: Sequence[str]) -> str:
    """Join lines up to the limit of the tracker. A last line has the number of all others."""
    size = 0
    for number, line in enumerate(lines):
        size += len(line.encode("utf-16-le", "surrogatepass")) // 2 + 2
        if size > MAX_TEXT:
            rest = f"* {len(lines) - number:,} more findings are in report.json"
            return "\n".join([*lines[:number], rest])
    return "\n".join(lines)


def steps_of(given: Any, status: str) -> list[dict[str, str]]:
    """Return `status` and `transition` of the steps that close an issue.

    :param given: `tickets_close_transition`: name or id of the closing transition, or a list with
        it at the end; each entry before is a status on the way, or a mapping of both
    :param status: the status of a closed issue
    :raises ValueError: if it is neither
    """
    *before, last = given if isinstance(given, list) and given else [given]
    found = []
    for entry in before:
        step = entry if isinstance(entry, Mapping) else {"status": entry}
        if not {"status"} <= set(step) <= {"status", "transition"}:
            raise ValueError("status")
        found.append({name: _name(value) for name, value in step.items()})
    if last is None:
        return [*found, {"status": status}]
    return [*found, {"status": status, "transition": _name(last)}]


def _name(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise ValueError("name")
    return str(value).strip()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def counted(report: Mapping[str, Any], result: Mapping[str, Sequence[Any]]) -> str:
    """Return the summary of the report, and the numbers of issues in a plan."""
    check = report.get("check", True)
    sentence = sentence_of(report.get("servers") or (), report["findings"], check=check)
    numbers = [f"{len(result[name])} {name}" for name in ("new", "changed", "ended")]
    return f"{sentence} Issues: {', '.join(numbers)}."
