# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the table of requests per operation into the documentation.

    python -m tests.helpers.request_table

The figures are those that `tests/integration/test_request_counts.py` and the contract test count in
the log of the sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.helpers import cases, operations

TABLE = Path(__file__).resolve().parents[2] / "docs" / "requests.md"
_HEAD = """\
# Requests of an operation

What a task asks of a server, in its `real` flavour of the sandbox. The tests count the same figures in the log of the
server, exactly. `python -m tests.helpers.request_table` writes this page from them.

| operation | module | requests | of them writes |
|---|---|---|---|
"""


def page() -> str:
    """The page as it should be."""
    return _HEAD + "".join(f"| {row} |\n" for row in (*_promised(), *_unchanged()))


def _promised() -> Iterator[str]:
    for name, one in operations.OPERATIONS.items():
        if one.requests is not None:
            requests = f"{one.requests}" if one.exact else f"at most {one.requests}"
            yield f"{name} | `{one.module}` | {requests} | {one.writes}"


def _unchanged() -> Iterator[str]:
    """Of the cases of the contract; a further case of a module has its name after the module's."""
    named = {one.module for one in operations.OPERATIONS.values() if not one.changed}
    for name, case in cases.CASES.items():
        requests = case.get("requests", {}).get("unchanged")
        if requests is not None and case["module"] not in named:
            addition = name.removeprefix(case["module"]).strip("_")
            operation = f"nothing to change ({addition})" if addition else "nothing to change"
            yield f"{operation} | `{case['module']}` | {requests} | 0"


if __name__ == "__main__":
    TABLE.write_text(page(), encoding="utf-8")
