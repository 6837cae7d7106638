# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as texts: for CI servers (JUnit), for merge requests (Markdown), for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any
from xml.etree import ElementTree

from ansible_collections.delivery.toolchain.plugins.plugin_utils.report.contents import (
    Contents,
    Object,
)

#: So many findings Markdown and the terminal tell one by one; then they say how many there are.
MOST_TOLD = 500
MOST_SHOWN = 50
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$]|:(?=//))")
_TITLES = ("service", "server", "as wanted", "differ", "failed")


def junit(contents: Contents) -> str:
    """C(report.xml): a suite for each server, a test case for each object."""
    root = ElementTree.Element("testsuites", name=_xml(contents.playbook))
    suites: dict[tuple[str, str], list[Object]] = {}
    for one in contents.objects:
        suites.setdefault((one["service"], one["server"]), []).append(one)
    for place in sorted(suites):
        root.append(_suite(" ".join(filter(None, place)), suites[place], contents.finished))
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(name: str, objects: Sequence[Object], time: str) -> ElementTree.Element:
    statuses = [one["status"] for one in objects]
    suite = ElementTree.Element(
        "testsuite",
        name=_xml(name or "play"),
        tests=str(len(objects)),
        failures=str(statuses.count("drift")),
        errors=str(statuses.count("failed")),
        timestamp=time.rstrip("Z"),
    )
    for one in objects:
        words = (one["service"] or "play", one["host"], one["kind"])
        case = ElementTree.SubElement(
            suite, "testcase", classname=_xml(".".join(words)), name=_xml(one["name"])
        )
        tag = {"drift": "failure", "failed": "error"}.get(one["status"])
        if tag is not None:
            told = ElementTree.SubElement(
                case, tag, type=_xml(one["action"]), message=_xml(one["text"])
            )
            told.text = _xml(_sides(one))
    return suite


def _sides(one: Object) -> str:
    lines = [f"task: {one['task']}"]
    for side in ("before", "after"):
        if one[side] is not None:
            lines += [f"{side}:", *_lines(one[side])]
    return "\n".join(lines)


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield f"  {key}: {each}"
    else:
        yield from (f"  {line}" for line in str(value).splitlines())


def _xml(text: Any) -> str:
    """A text without the characters that XML has no place for."""
    return _NO_XML.sub("\ufffd", str(text))


def markdown(contents: Contents) -> str:
    """C(report.md)."""
    lines = [f"# {escaped(contents.playbook)}", "", contents.sentence(), ""]
    lines += [f"Finished {contents.finished}.", ""]
    lines += ["| service | server | as wanted | differ | failed |", "|---|---|--:|--:|--:|"]
    lines += [
        f"| {row.service} | {escaped(row.server)} | {row.ok} | {row.drift} | {row.failed} |"
        for row in contents.rows()
    ]
    found = contents.findings
    if found:
        lines += ["", "| host | object | action |", "|---|---|---|"]
    lines += [
        f"| {escaped(one['host'])} | {escaped(one['text'])} | {_action(one)} |"
        for one in found[:MOST_TOLD]
    ]
    if len(found) > MOST_TOLD:
        lines += ["", f"{len(found) - MOST_TOLD:,} more are in report.json."]
    return "\n".join([*lines, ""])


def _action(one: Mapping[str, Any]) -> str:
    return "failed" if one["status"] == "failed" else str(one["action"])


def escaped(text: str) -> str:
    """A text as Markdown shows it letter by letter, on one line."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def table(contents: Contents) -> list[str]:
    """What a terminal shows at the end: the servers as a table, and the first findings."""
    cells = [
        (row.service, row.server, str(row.ok), str(row.drift), str(row.failed))
        for row in contents.rows()
    ]
    widths = [max(len(line[column]) for line in (_TITLES, *cells)) for column in range(5)]
    lines = [_aligned(line, widths) for line in (_TITLES, *cells)]
    found = contents.findings
    lines += ["", *(f"  {' '.join(one['text'].split())}" for one in found[:MOST_SHOWN])]
    if len(found) > MOST_SHOWN:
        lines.append(f"  and {len(found) - MOST_SHOWN:,} more")
    return [*lines, *([""] if found else []), contents.sentence()]


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    words = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
    words += [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
    return "  ".join(words)


def storage(findings: Sequence[Mapping[str, Any]]) -> str:
    """Findings as the body of a wiki page. It names no time: it is another one only where something
    else differs.
    """
    failed = sum(1 for one in findings if one["status"] == "failed")
    told = [f"Differences: {len(findings) - failed:,}.", f"Failures: {failed:,}." if failed else ""]
    parts = [f"<p><strong>{' '.join(filter(None, told))}</strong></p>"]
    if findings:
        rows = [_cells("th", ("Host", "Service", "Object", "Action"))]
        rows += [
            _cells("td", (one.get("host", ""), one["service"], one["text"], _action(one)))
            for one in findings[:MOST_TOLD]
        ]
        parts.append(f"<table><tbody>{''.join(rows)}</tbody></table>")
    if len(findings) > MOST_TOLD:
        parts.append(f"<p>And {len(findings) - MOST_TOLD:,} more.</p>")
    return "\n".join(parts)


def _cells(tag: str, texts: Sequence[Any]) -> str:
    cells = (f"<{tag}>{escape(_xml(' '.join(str(text).split())))}</{tag}>" for text in texts)
    return f"<tr>{''.join(cells)}</tr>"
