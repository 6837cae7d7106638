# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the table of requests per operation into the documentation.

`tests/integration/execution/test_request_counts.py` and the contract test verify the same figures
against the log of the sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.promises import PROMISES
from tests.helpers import cases, operations

TABLE = Path(__file__).resolve().parents[2] / "docs" / "requests.md"
_HEAD = """\
# Requests of an operation

The requests that a task sends. The tests count exactly these requests in the log of the sandbox. If the two flavours of the sandbox
(a server with the written interfaces only, and a real server) differ, the table has both numbers.
In the cloud, a task finds a page that the run has written with a request less than another page.
`python -m tools.generated` writes this page from them.

| operation | module | requests | writes |
|---|---|---|---|
"""
_TIMES = """
## Promises about time

`make bench` prints wall and processor seconds of each method, and judges these promises by both. Processor seconds are those of all
processes that do the work. The limits are ratios, except those with the unit s. A dash means that nothing is promised.

| promise | wall | processor | note |
|---|---|---|---|
"""
#: Maps a step of a case to its name in the table, and to a suffix if several steps share the name.
_WORDS = {
    "unchanged": ("nothing to change", ""),
    "create again": ("nothing to change", "created"),
    "update again": ("nothing to change", "updated"),
    "delete again": ("nothing to change", "deleted"),
    "run in check mode": ("check mode", ""),
}


def files() -> dict[Path, str]:
    """Return the path and content of the page."""
    return {TABLE: _page()}


def _page() -> str:
    counts = "".join(f"| {row} |\n" for row in (*_promised(), *_cases()))
    return _HEAD + counts + _TIMES + "".join(f"| {row} |\n" for row in _times())


def _times() -> Iterator[str]:
    for name, one in PROMISES.items():
        bound = "at least" if one.at_least else "at most"
        suffix = " s" if one.unit == "seconds" else ""
        limits = (one.wall, one.processor)
        shown = ("-" if limit is None else f"{bound} {limit:g}{suffix}" for limit in limits)
        yield f"{name} | {' | '.join(shown)} | {one.note}"


def _promised() -> Iterator[str]:
    for name, one in operations.OPERATIONS.items():
        if one.requests is not None:
            yield f"{name} | `{one.module}` | {one.requests} | {one.writes}"


def _cases() -> Iterator[str]:
    """Yield the rows of the contract cases. The rows of a module's further cases contain their
    suffix.
    """
    named = {one.module for one in operations.OPERATIONS.values() if not one.changed}
    for name, case in cases.CASES.items():
        addition = name.removeprefix(case["module"]).strip("_")
        for step, figure in case.get("requests", {}).items():
            if isinstance(figure, int) and step == "unchanged" and name in named:
                continue
            kind, of = _WORDS[step]
            more = ", ".join(filter(None, (of, addition)))
            operation = f"{kind} ({more})" if more else kind
            yield f"{operation} | `{case['module']}` | {_figure(figure)} | 0"


def _figure(figure: int | dict[str, int]) -> str:
    if isinstance(figure, int):
        return str(figure)
    return ", ".join(f"{number} ({flavour})" for flavour, number in figure.items())
