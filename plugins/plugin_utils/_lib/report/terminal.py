# SPDX-License-Identifier: GPL-3.0-or-later
"""Format the findings at the end of a run, for the terminal and as annotations for GitHub."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ansible.constants import config

from ....module_utils._lib.core.errors import printable, shorten
from .contents import SIDES, Contents, Object, place_of
from .texts import changed_by, overview, title_of

#: The values of `drift_output`.
OUTPUTS = ("text", "github")
#: Maximum number of findings of a server in the terminal, and the number of findings after which no
#: other server is listed.
MAX_OF_SERVER, MAX_SHOWN = 5, 50
#: Maximum number of lines for the values of a finding.
MAX_VALUES, MAX_WIDTH = 10, 300
#: The sign of a finding and the Ansible setting for its colour, by action.
_SIGNS = {
    "create": ("+", "COLOR_DIFF_ADD"),
    "update": ("~", "COLOR_CHANGED"),
    "delete": ("-", "COLOR_DIFF_REMOVE"),
}
_FAILED = ("!", "COLOR_ERROR")
_OPEN = ("?", "COLOR_WARN")
_RESULTS = {
    "as wanted": "COLOR_OK",
    "failed": "COLOR_ERROR",
    **dict.fromkeys(("unmanaged", "nothing compared"), "COLOR_WARN"),
}
_GITHUB_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}


class Line(NamedTuple):
    """A line, and the name of its colour or ""."""

    text: str
    colour: str = ""


def table(contents: Contents, *, values: bool = False) -> list[Line]:
    """Return the lines at the end of a run: counts of each server, findings, and totals.

    :param values: list the values that differ below each finding
    """
    rows = overview(contents)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ends = [contents.sentence(), contents.totals(), contents.changes(), contents.approval()]
    return [
        *(Line(_aligned(row, widths)) for row in rows),
        Line(""),
        *_finding_lines(contents, values=values),
        *(Line(text) for text in ends if text),
    ]


def result(contents: Contents) -> Line:
    """Return the last line: the result of the run in one word."""
    word = contents.result()
    return Line(f"Result: {word}", _colour(_RESULTS.get(word, "COLOR_CHANGED")))


def change(host: str, task: str) -> Line:
    """Return the line for a task that changed something, for a run without a list of findings."""
    sign, colour = _SIGNS["update"]
    return Line(f"{sign} {host}: {task}", _colour(colour))


def failure(host: str, task: str, message: object) -> Line:
    """Return the line for a failed task, for a run without a list of findings."""
    return Line(f"{_FAILED[0]} {host}: {task}: {shorten(str(message))}", _colour(_FAILED[1]))


def _colour(setting: str) -> str:
    return str(config.get_config_value(setting))


def _finding_lines(contents: Contents, *, values: bool) -> Iterator[Line]:
    """Yield a line for each server, followed by lines for its findings.

    Servers with failures are first. A line contains the host if the run has several hosts.
    """
    servers: dict[tuple[str, str, str], list[Object]] = {}
    for finding in contents.findings:
        if finding["status"] != "ignored":
            servers.setdefault(place_of(finding), []).append(finding)
    several, shown = len(contents.hosts) > 1, 0
    order = sorted(servers, key=lambda place: (min(map(_rank, servers[place])), place))
    for number, place in enumerate(order):
        if shown >= MAX_SHOWN:
            rest = sum(len(servers[other]) for other in order[number:])
            yield Line(f"+{rest:,} more on {len(order) - number:,} other servers")
            break
        yield Line(" ".join(title_of(place)))
        found = sorted(servers[place], key=lambda finding: (_rank(finding), finding["kind"]))
        for record in found[:MAX_OF_SERVER]:
            host = f" (host {record['host']})" if several and place[1] else ""
            since = record["since"] if contents.compared_with else ""
            known = ", ".join(filter(None, [since, changed_by(record)]))
            seen = f" ({known})" if known else ""
            sign, colour = _sign(record)
            text = " ".join(f"{record['text']}{host}{seen}".split())
            yield Line(f"{sign} {text}", _colour(colour))
            if values and record["status"] == "drift":
                yield from _values(record, check=contents.check)
        if found[MAX_OF_SERVER:]:
            yield Line(f"+{len(found) - MAX_OF_SERVER:,} more")
        shown += len(found[:MAX_OF_SERVER])
    if servers:
        yield Line("")


def _values(finding: Object, *, check: bool) -> Iterator[Line]:
    """Yield the values of a finding that differ, at most :data:`MAX_VALUES` lines.

    :param check: see :attr:`.Contents.check`
    """
    before, after = finding["before"], finding["after"]
    lines: list[Line] = []
    if finding["action"] == "update" and isinstance(before, dict) and isinstance(after, dict):
        fields = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        # several values may be from several accounts
        by = str(finding.get("changed_by") or "") if check and len(fields) == 1 else ""
        pairs = {name: (before.get(name), after.get(name)) for name in fields}
        short = [name for name in fields if all(map(_is_short, pairs[name]))]
        lines += [_line_of_field(name, *pairs[name], by, check=check) for name in short]
        for name in fields:
            if name not in short:
                lines += _compared(f"{name}: ", *map(_texts, pairs[name]), check=check)
    else:
        if finding["action"] == "delete":
            verb = "Delete" if check else "Deleted"
            lines.append(Line(f"    {verb} on the server", _colour(_SIGNS["delete"][1])))
        lines += _compared("", _texts(before), _texts(after), check=check)
    yield from lines[:MAX_VALUES]
    if lines[MAX_VALUES:]:
        yield Line(f"    +{len(lines) - MAX_VALUES:,} more lines")


def _line_of_field(name: str, before: object, after: object, by: str, *, check: bool) -> Line:
    """Return the line of a field with both values.

    :param by: account that changed the object last, "" if it is unknown
    """
    server, git = ("Server", "Git") if check else ("Before", "After")
    one, two = _short(before), _short(after)
    if one == two:  # such as a number and its digits
        one, two = json.dumps(before), json.dumps(after)
    who = f" (set by {by})" if by else ""
    return Line(f"    {printable(f'{name}: {server}: {one}{who}, {git}: {two}', MAX_WIDTH)}")


def _compared(start: str, before: list[str], after: list[str], *, check: bool) -> Iterator[Line]:
    """Yield the lines that are in one of both sides, below a line that names the sides.

    :param start: beginning of the first line
    """
    changed = [
        line.rstrip("\n")
        for line in difflib.unified_diff(before, after, lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    signs = dict(zip("-+", SIDES[check], strict=True))
    used = {line[:1] for line in changed}
    sides = [f"{sign} {side}" for sign, side in signs.items() if sign in used]
    if sides:
        yield Line(f"    {start}{', '.join(sides)}")
    for line in changed:
        colour = _SIGNS["delete" if line.startswith("-") else "create"][1]
        yield Line(f"    {line[:1]} {printable(line[1:], MAX_WIDTH)}", _colour(colour))


def _is_short(value: object) -> bool:
    """Return whether a value fits in a line with the value of the other side."""
    if isinstance(value, list):
        return all(map(_is_short, value)) and len(_short(value)) <= MAX_WIDTH // 3
    is_scalar = value is None or isinstance(value, str | int | float)
    return is_scalar and "\n" not in str(value) and len(str(value)) <= MAX_WIDTH // 3


def _short(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    if value is None or value == "":
        return "none" if value is None else "empty"
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _texts(side: object) -> list[str]:
    """Return the lines of one side of a finding: a line for each field of an object."""
    if side is None:
        return []
    if isinstance(side, dict):
        return [f"{name}: {json.dumps(value, default=str)}" for name, value in side.items()]
    if isinstance(side, list):
        return [json.dumps(value, default=str) for value in side]
    return str(side).splitlines()


def _rank(finding: Object) -> int:
    """Return the position of a finding: failures first, then new differences, then the rest."""
    if finding["status"] == "drift":
        return 1 if finding["since"] == "new" else 2
    return {"failed": 0, "unmanaged": 3}.get(finding["status"], 4)


def _sign(finding: Object) -> tuple[str, str]:
    if finding["status"] == "failed":
        return _FAILED
    if finding["status"] in ("unmanaged", "unknown"):
        return _OPEN
    return _SIGNS.get(finding["action"], _SIGNS["update"])


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    words = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
    words += [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
    return "  ".join(words)


def github(contents: Contents) -> list[Line]:
    """Return a GitHub workflow command for each failure, difference and unmanaged object."""
    lines = []
    for finding in contents.findings:
        if finding["status"] in ("ignored", "unknown"):
            continue
        level = "error" if finding["status"] == "failed" or finding.get("fails") else "warning"
        title = " ".join(title_of(place_of(finding)))
        for sign, code in {**_GITHUB_DATA, ":": "%3A", ",": "%2C"}.items():
            title = title.replace(sign, code)
        text = f"{_sign(finding)[0]} {' '.join(finding['text'].split())}"
        for sign, code in _GITHUB_DATA.items():
            text = text.replace(sign, code)
        lines.append(Line(f"::{level} title={title}::{text}"))
    return lines
