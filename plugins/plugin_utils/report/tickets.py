# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the issues of a drift report, per finding or per server [C9]."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.delivery.toolchain.plugins.plugin_utils.report.since import finding_id

#: The label of all issues; each has a label of its finding, too.
LABEL = "drift"
PER = ("finding", "server")
_SUMMARY = 200
_VALUE = 2000
Ticket = dict[str, Any]


def wanted(report: Mapping[str, Any], per: str) -> list[Ticket]:
    """Return the issues that have to be open, with `label`, `summary` and `description`."""
    found = [finding for finding in report["findings"] if finding["status"] in ("drift", "failed")]
    if per == "finding":
        return [_ticket(one, f"{one['text']} on {_where(one)}", _told(one)) for one in found]
    servers: dict[str, list[Mapping[str, Any]]] = {}
    for one in found:
        servers.setdefault(_server_id(one), []).append(one)
    return [
        _ticket(
            _of_server(ones[0]),
            f"drift on {_where(ones[0])}",
            "\n".join(sorted(f"* {_line(record)}" for record in ones)),
        )
        for ones in servers.values()
    ]


def ended(report: Mapping[str, Any], per: str) -> dict[str, str]:
    """Return the labels of issues to close, with the reason.

    An object that was not read is in neither list: its issue is not changed.
    """
    if per == "finding":
        mended = {finding_id(one): f"mended: {one['text']}" for one in report["mended"]}
        earlier = dict.fromkeys(report.get("mended_earlier") or (), "mended in an earlier run")
        return {_label(key): why for key, why in {**earlier, **mended}.items()}
    unread = {_server_id(one) for one in report.get("unread") or ()}
    read = {_server_id(row) for row in report.get("servers") or () if not row["failed"]}
    return dict.fromkeys((_label(key) for key in read - unread), "mended: nothing differs")


def plan(
    report: Mapping[str, Any], issues: Iterable[Mapping[str, Any]], per: str, max_new: int
) -> dict[str, Any]:
    """Return what to do: `new`, `changed` and `ended`, lists of issues, and `left`, the number of
    issues that have to wait for the next run.

    :param issues: the open issues with the label of all
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


def _ticket(one: Mapping[str, Any], summary: str, description: str) -> Ticket:
    label = _label(finding_id(one))
    text = f"{description}\n\nThis issue belongs to {label}; drift_tickets keeps it up to date."
    short = _cut(" ".join(summary.split()), _SUMMARY)
    return {"label": label, "summary": short, "description": text}


def _label(key: str) -> str:
    return f"{LABEL}-{key}"


def _server_id(one: Mapping[str, Any]) -> str:
    return finding_id(_of_server(one))


def _of_server(one: Mapping[str, Any]) -> dict[str, str]:
    host = "" if one["server"] else one["host"]
    return {"host": host, "service": one["service"], "server": one["server"], "kind": "server"}


def _where(one: Mapping[str, Any]) -> str:
    return str(one["server"] or f"host {one['host']}")


def _line(one: Mapping[str, Any]) -> str:
    action = "failed" if one["status"] == "failed" else one["action"]
    return _cut(f"{action}: {' '.join(one['text'].split())} (host {one['host']})", _VALUE)


def _told(one: Mapping[str, Any]) -> str:
    lines = [f"* {_line(one)}", f"* server: {_where(one)}", f"* first seen: {one['first_seen']}"]
    for side in ("before", "after"):
        if one.get(side) is not None:
            shown = json.dumps(one[side], ensure_ascii=False, sort_keys=True, default=str)
            shown = shown.replace("{noformat}", "(noformat)")  # must not end the block
            lines += [f"* {side}:", f"{{noformat}}{_cut(shown, _VALUE)}{{noformat}}"]
    return "\n".join(lines)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def counted(result: Mapping[str, Sequence[Any]]) -> str:
    """Return one sentence about a plan."""
    numbers = [f"{len(result[name])} {name}" for name in ("new", "changed", "ended")]
    return f"Issues: {', '.join(numbers)}."
