# SPDX-License-Identifier: GPL-3.0-or-later
"""Format the findings at the end of a run, for the terminal and as annotations for GitHub."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ansible.constants import config

from ansible_collections.delivery.toolchain.plugins.module_utils.core.errors import shorten
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report.contents import (
    Contents,
    Object,
    place_of,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report.texts import (
    accepted,
    overview,
    title_of,
)

#: The values of `drift_output`.
OUTPUTS = ("text", "github")
#: Maximum number of findings in the terminal. The last line contains the number of all others.
MAX_SHOWN = 50
#: The sign of a finding and the Ansible setting for its colour, by action.
_SIGNS = {
    "create": ("+", "COLOR_DIFF_ADD"),
    "update": ("~", "COLOR_CHANGED"),
    "delete": ("-", "COLOR_DIFF_REMOVE"),
}
_FAILED = ("!", "COLOR_ERROR")
_IGNORED = (".", "COLOR_SKIP")
_RESULTS = {"as wanted": "COLOR_OK", "failed": "COLOR_ERROR"}
_GITHUB_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}


class Line(NamedTuple):
    """A line, and the name of its colour or ""."""

    text: str
    colour: str = ""


def table(contents: Contents) -> list[Line]:
    """Return the lines at the end of a run: counts of each server, findings, and totals."""
    rows = overview(contents)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ends = [contents.sentence(), _totals(contents), contents.changes()]
    return [
        *(Line(_aligned(row, widths)) for row in rows),
        Line(""),
        *_finding_lines(contents),
        *(Line(text) for text in ends if text),
    ]


def result(contents: Contents) -> Line:
    """Return the last line: the result of the run in one word."""
    word = contents.result()
    return Line(f"Result: {word}", _colour(_RESULTS.get(word, "COLOR_CHANGED")))


def failure(host: str, task: str, message: object) -> Line:
    """Return the line for a failed task, for a run without a list of findings."""
    return Line(f"{_FAILED[0]} {host}: {task}: {shorten(str(message))}", _colour(_FAILED[1]))


def _colour(setting: str) -> str:
    return str(config.get_config_value(setting))


def _finding_lines(contents: Contents) -> Iterator[Line]:
    """Yield a line for each server, followed by lines for its findings.

    A line contains the host if the run has several hosts.
    """
    found = sorted(
        (finding for finding in contents.findings if finding["status"] != "ignored"),
        key=lambda finding: (place_of(finding), finding["kind"]),
    )
    several = len(contents.hosts) > 1
    last = None
    for record in found[:MAX_SHOWN]:
        place = place_of(record)
        if place != last:
            yield Line(" ".join(title_of(place)))
            last = place
        host = f" (host {record['host']})" if several and place[1] else ""
        seen = f" ({record['since']})" if record["since"] and contents.last_finished else ""
        yield _line(_sign(record), f"{record['text']}{host}{seen}")
    if len(found) > MAX_SHOWN:
        yield Line(f"and {len(found) - MAX_SHOWN:,} more")
    if found:
        yield Line("")
    ignored = [finding for finding in contents.findings if finding["status"] == "ignored"]
    for finding in ignored[:MAX_SHOWN]:
        yield _line(_IGNORED, f"{finding['text']} ({accepted(finding)})")
    if ignored:
        yield Line("")


def _sign(finding: Object) -> tuple[str, str]:
    return (
        _FAILED
        if finding["status"] == "failed"
        else _SIGNS.get(finding["action"], _SIGNS["update"])
    )


def _line(sign: tuple[str, str], text: str) -> Line:
    return Line(f"{sign[0]} {' '.join(text.split())}", _colour(sign[1]))


def _totals(contents: Contents) -> str:
    """Return the numbers of created, updated and deleted objects as a sentence."""
    counts = dict.fromkeys(_SIGNS, 0)
    for finding in contents.findings:
        if finding["status"] == "drift":
            counts[finding["action"]] += 1
    if contents.check:
        return f"Plan: {', '.join(f'{count:,} to {verb}' for verb, count in counts.items())}."
    done = ", ".join(f"{count:,} {verb}d" for verb, count in counts.items())
    ends = f"failed: {contents.counts['failed']:,}, skipped: {contents.skipped:,}"
    return f"Applied: {done}; {ends}."


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    words = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
    words += [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
    return "  ".join(words)


def github(contents: Contents) -> list[Line]:
    """Return a GitHub workflow command for each finding that is not ignored."""
    return [
        Line(_annotation(finding))
        for finding in contents.findings
        if finding["status"] != "ignored"
    ]


def _annotation(finding: Object) -> str:
    level = "error" if finding["status"] == "failed" else "warning"
    title = " ".join(title_of(place_of(finding)))
    for sign, code in {**_GITHUB_DATA, ":": "%3A", ",": "%2C"}.items():
        title = title.replace(sign, code)
    text = f"{_sign(finding)[0]} {' '.join(finding['text'].split())}"
    for sign, code in _GITHUB_DATA.items():
        text = text.replace(sign, code)
    return f"::{level} title={title}::{text}"
