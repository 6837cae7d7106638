# SPDX-License-Identifier: GPL-3.0-or-later
"""Format a report as JUnit for CI servers, as Markdown for merge requests, and for the wiki."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any
from xml.etree import ElementTree

from .contents import COUNTS, SIDES, TITLES, Contents, Object, Row, not_read, place_of

#: Maximum number of findings in Markdown and in the wiki. The number of all others is added.
MAX_LISTED = 500
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$]|:(?=//))")
# A mention of a person or of an issue, and an address without a scheme. Neither is stopped by a
# backslash, because servers search for them in the text after they have read the Markdown.
_REFERENCE = re.compile(r"(@|\\#|\bwww)(?=[\w.])")
_NO_REFERENCE = r"\1&#8203;"


def junit(contents: Contents) -> str:
    """Return `report.xml`, with a test suite for each server and a test case for each object."""
    root = ElementTree.Element("testsuites", name=_xml(contents.playbook))
    suites: dict[tuple[str, str, str], list[Object]] = {}
    for place, count in contents.unnamed().items():
        suites.setdefault(place, []).append(_unnamed(place, count))
    resolved = {
        record["id"]: {**record, "status": "ok", "since": "resolved"}
        for record in contents.resolved
    }
    for obj in contents.objects:
        suites.setdefault(place_of(obj), []).append(resolved.pop(obj["id"], obj))
    for record in resolved.values():  # deleted objects
        suites.setdefault(place_of(record), []).append(record)
    for place in sorted(suites):
        root.append(_suite(" ".join(title_of(place)), suites[place], contents))
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def title_of(place: tuple[str, str, str]) -> tuple[str, str]:
    """Return service and server for display, with replacements for empty values."""
    return Row(*place, 0, 0, 0).title()


def _unnamed(place: tuple[str, str, str], count: int) -> Object:
    """Return a single passed test case for unchanged objects whose names are unknown."""
    name = f"{count:,} unchanged"
    return {"service": place[0], "host": place[2], "kind": "object", "name": name, "status": "ok"}


def _suite(name: str, objects: Sequence[Object], contents: Contents) -> ElementTree.Element:
    tags = [_tag(obj) for obj in objects]
    suite = ElementTree.Element(
        "testsuite",
        name=_xml(name),
        tests=str(len(objects)),
        failures=str(tags.count("failure")),
        errors=str(tags.count("error")),
        skipped=str(tags.count("skipped")),
        timestamp=contents.finished.rstrip("Z"),
    )
    for obj in objects:
        words = filter(None, (obj["service"] or "playbook", obj["host"], obj["kind"]))
        case = ElementTree.SubElement(
            suite, "testcase", classname=_xml(".".join(words)), name=_xml(obj["name"])
        )
        tag = _tag(obj)
        if tag == "skipped":
            why = accepted(obj) if obj["status"] == "ignored" else obj["text"]
            ElementTree.SubElement(case, tag, message=_xml(why))
        elif tag:
            result = ElementTree.SubElement(
                case, tag, type=_xml(obj["action"]), message=_xml(obj["text"])
            )
            lines = [f"task: {obj['task']}", f"seen: {_seen(obj)}"]
            for label, side in zip(SIDES[contents.check], ("before", "after"), strict=True):
                if obj[side] is not None:
                    lines += [f"{label}:", *_lines(obj[side])]
            result.text = _xml("\n".join(lines))
        elif obj.get("since") == "resolved":
            ElementTree.SubElement(case, "system-out").text = _xml(f"resolved: {obj['text']}")
    return suite


def _tag(obj: Object) -> str:
    """Return the element of a test case for the status of an object, "" for a passed test."""
    if obj["status"] == "unmanaged" and obj.get("fails"):
        return "failure"
    tags = {"ok": "", "drift": "failure", "failed": "error"}
    return tags.get(obj["status"], "skipped")


def accepted(finding: Mapping[str, Any]) -> str:
    """Return why a finding is ignored, and until which day."""
    reason = finding.get("reason") or "no reason given"
    return (
        f"ignored until {finding['until']}: {reason}"
        if finding.get("until")
        else f"ignored: {reason}"
    )


def _seen(finding: Mapping[str, Any]) -> str:
    """Return whether a finding is new or older, with the day it was first seen, and who changed the
    object last.
    """
    seen = str(finding.get("since") or "")
    if seen == "still":
        seen = f"still, since {str(finding.get('first_seen') or '')[:10]}"
    return "; ".join(filter(None, [seen, changed_by(finding)]))


def changed_by(finding: Mapping[str, Any]) -> str:
    """Return who changed the object of a finding last, and on which day, "" if it is unknown."""
    by, at = (str(finding.get(key) or "") for key in ("changed_by", "changed_at"))
    parts = [f"by {by}" if by else "", f"on {at[:10]}" if at else ""]
    return " ".join(["changed", *filter(None, parts)]) if by or at else ""


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"  {key}: {item}"
    else:
        yield from (f"  {line}" for line in str(value).splitlines())


def _xml(text: Any) -> str:
    """Replace the characters that XML cannot contain."""
    return _NO_XML.sub("\ufffd", str(text))


def markdown(contents: Contents) -> str:
    """Return `report.md`."""
    lines = [f"# {escaped(contents.playbook)}", "", contents.sentence(), ""]
    more = escaped(" ".join(filter(None, [contents.changes(), contents.approval()])))
    lines += [f"Finished {contents.finished}. {more}".rstrip(), ""]
    first, *cells = overview(contents)
    lines += [f"| {' | '.join(first)} |", f"|---|---|{'--:|' * (len(first) - 2)}"]
    lines += [f"| {' | '.join(map(escaped, row))} |" for row in cells]
    listed = [finding for finding in contents.findings if finding["status"] != "ignored"]
    ignored = [finding for finding in contents.findings if finding["status"] == "ignored"]
    place, most = ("host", "service", "server", "object"), ("action", "seen")
    lines += _rows("", (*place, *most), listed, lambda found: (_action(found), _seen(found)))
    lines += _rows(
        "Resolved", (*place, most[0]), contents.resolved, lambda found: (_action(found),)
    )
    lines += _rows("Ignored", (*place, "why"), ignored, lambda found: (accepted(found),))
    return "\n".join([*lines, ""])


def _rows(
    heading: str,
    head: Sequence[str],
    found: Sequence[Object],
    more: Callable[[Object], Sequence[str]],
) -> Iterator[str]:
    """Yield a Markdown table with at most :data:`MAX_LISTED` findings.

    :param head: titles of the columns
    :param more: returns the cells of a finding after its text
    """
    if not found:
        return
    yield from ["", f"## {heading}"] if heading else []
    yield from ["", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for record in found[:MAX_LISTED]:
        place = (record["host"], *title_of(place_of(record)))
        cells = (*place, record["text"], *more(record))
        yield f"| {' | '.join(map(escaped, cells))} |"
    if len(found) > MAX_LISTED:
        yield from ["", f"{len(found) - MAX_LISTED:,} more are in report.json."]


def _action(finding: Mapping[str, Any]) -> str:
    return str(finding["action"] if finding["status"] == "drift" else finding["status"])


def escaped(text: str) -> str:
    """Escape a string for Markdown, and join its lines."""
    return _REFERENCE.sub(_NO_REFERENCE, _MARKUP.sub(r"\\\1", " ".join(text.split())))


def overview(contents: Contents) -> list[tuple[str, ...]]:
    """Return a table with the counts of each server; its first row contains the titles.

    Of the columns after `failed`, those without any finding are omitted.
    """
    shown = columns(contents)
    return [
        ("service", "server", *titles(contents, shown)),
        *((*row.title(), *(str(getattr(row, name)) for name in shown)) for row in contents.rows()),
    ]


def titles(contents: Contents, shown: Sequence[str]) -> list[str]:
    """Return the titles of counts."""
    words = TITLES if contents.check else {**TITLES, "drift": "changed"}
    return [words.get(name, name) for name in shown]


def columns(contents: Contents) -> list[str]:
    """Return the counts that tables show."""
    return [*COUNTS[:3], *(name for name in COUNTS[3:] if contents.counts[name])]


def storage(findings: Sequence[Mapping[str, Any]]) -> str:
    """Return findings as the body of a wiki page in storage format.

    The body contains no time, because the page must not change if the findings are the same.
    """
    unread = [finding for finding in findings if finding.get("not_compared") is not None]
    statuses = [finding["status"] for finding in findings if finding not in unread]
    named = {
        "Failures": "failed",
        "Not managed": "unmanaged",
        "Unknown": "unknown",
        "Ignored": "ignored",
    }
    numbers = {title: statuses.count(status) for title, status in named.items()}
    counts = f"{not_read(unread)}. " if unread else ""
    counts += f"Differences: {statuses.count('drift'):,}."
    counts += "".join(f" {title}: {number:,}." for title, number in numbers.items() if number)
    parts = [f"<p><strong>{counts}</strong></p>"]
    if findings:
        rows = [_cells("th", ("Host", "Service", "Object", "Action"))]
        rows += [
            _cells(
                "td",
                (finding.get("host", ""), finding["service"], finding["text"], _action(finding)),
            )
            for finding in findings[:MAX_LISTED]
        ]
        parts.append(f"<table><tbody>{''.join(rows)}</tbody></table>")
    if len(findings) > MAX_LISTED:
        parts.append(f"<p>And {len(findings) - MAX_LISTED:,} more.</p>")
    return "\n".join(parts)


def _cells(tag: str, texts: Sequence[Any]) -> str:
    cells = (f"<{tag}>{escape(_xml(' '.join(str(text).split())))}</{tag}>" for text in texts)
    return f"<tr>{''.join(cells)}</tr>"
