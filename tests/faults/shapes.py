# SPDX-License-Identifier: GPL-3.0-or-later
"""Test every module with every status, shape and size of a response to all of its requests.

    python -m tests.faults.shapes                 all cells
    python -m tests.faults.shapes wiki_page       the cells of the named modules

Whatever the response, a task finishes in time. It succeeds, or it fails with one sentence and the
right kind of error. The message contains no control characters of a terminal. The program exits
with 1 if a cell fails.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.faults import cell_runs
from tests.faults.writes import arguments
from tests.helpers import playbook
from tests.helpers.cases import CASES, FAULT_CASES, module_of, seed, settings
from tests.helpers.sentences import assert_one_sentence

_TIMEOUT = 0.7  # seconds
#: Connection options of all cells.
PATIENCE = {"retries": 0}
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_PAGE = "<!DOCTYPE html><html><head><title>Welcome</title></head><body><p>Hello</p></body></html>"
_LOGIN = '<html><form><input type="password" name="p"></form></html>'
_HTML = "text/html"
_JSON = "application/json"


@dataclass(frozen=True)
class Shape:
    """A fault, and the kinds of error that it may be reported as. Without kinds, the task may also
    succeed.
    """

    fault: Mapping[str, Any]
    kinds: tuple[str, ...] = ()
    timeout: float = _TIMEOUT


def _status(status: int, *kinds: str) -> Shape:
    return Shape({"status": status, "body": f"it answers {status}"}, kinds)


def _json(text: str) -> Shape:
    return Shape({"status": 200, "body": text, "content_type": _JSON})


_REJECTED = ("rejected", "not_found")
STATUSES = {
    **{str(one): _status(one, *_REJECTED) for one in (400, 402, 405, 406, 413, 414, 415, 422, 451)},
    "401": _status(401, "auth"),
    "403": _status(403, "permission"),
    "404": _status(404, "not_found", "rejected"),
    "408": _status(408, "timeout"),
    "409": _status(409, "conflict"),
    "410": _status(410, "not_found", "rejected"),
    "412": _status(412, "conflict"),
    "429": _status(429, "rate_limited"),
    **{str(one): _status(one, "server") for one in (500, 501, 502, 503, 504, 505, 507, 599)},
    "204": Shape({"status": 204}),
    "206": Shape({"status": 206, "body": "part"}),
    "300": Shape({"status": 300, "body": "choose"}),
    "304": Shape({"status": 304}),
}
#: An HTML page with status 200 only pretends success.
_PAGES = ("protocol", "auth", "not_found", "rejected")
SHAPES = {
    "an empty body": _json(""),
    "blanks": _json(" \n "),
    "null": _json("null"),
    "true": _json("true"),
    "a number": _json("7"),
    "a long number": _json("7" * 5000),
    "a text": _json('"OK"'),
    "an empty list": _json("[]"),
    "an empty object": _json("{}"),
    "lists in a list": _json("[[], [1], [null]]"),
    "nulls": _json('{"results": null, "values": null, "issues": null, "jobs": null}'),
    "wrong types": _json(
        '{"results": {"a": 1}, "issues": "x", "version": [], "name": 7, "id": {}}'
    ),
    "texts for objects": _json(
        '{"results": ["x"], "issues": [1], "children": ["a"], "files": [2]}'
    ),
    "not a number": _json('{"results": [NaN], "total": Infinity, "id": -1e999}'),
    "half a character": _json('{"message": "\\ud83d", "name": "\\udc00"}'),
    "cut JSON": _json('{"results": [{"id": 1'),
    "two objects": _json('{"a": 1}{"b": 2}'),
    "a byte order mark": _json('\ufeff{"results": []}'),
    "as deep as is read": _json('{"results":' * 198 + "[1]" + "}" * 198),
    "deep lists": _json("[" * 900 + "]" * 900),
    "deep objects": _json('{"results":' * 300 + "1" + "}" * 300),
    "very deep lists": _json("[" * 100_000),
    "a page": Shape({"status": 200, "body": _PAGE, "content_type": _HTML}, _PAGES),
    "a login page": Shape({"status": 200, "body": _LOGIN, "content_type": _HTML}, _PAGES),
    "XML": Shape({"status": 200, "body": "<a><b/></a>", "content_type": "text/xml"}),
    "deep XML": Shape({"status": 200, "body": "<a>" * 900 + "</a>" * 900}),
    "a packing that lies": Shape(
        {"status": 200, "body": "plain", "headers": {"Content-Encoding": "gzip"}}, ("protocol",)
    ),
    "a refusal whose packing lies": Shape(
        {"status": 500, "body": "plain", "headers": {"Content-Encoding": "gzip"}}, ("server",)
    ),
    "a long refusal": Shape({"status": 500, "body": "it broke. " * 30_000}, ("server",)),
    "marks in a refusal": Shape(
        {"status": 500, "body": "\x1b[31mred\x1b]0;title\x07 \u202etxet \x9b2J\r\x08"}, ("server",)
    ),
    "marks in a page": Shape(
        {"status": 500, "body": "<html><pre>\x1b[2J&#27;[31m\u202ex</pre>", "content_type": _HTML},
        ("server",),
    ),
    "a refusal in deep JSON": Shape(
        {"status": 500, "body": "[" * 900 + '"deep"' + "]" * 900}, ("server",)
    ),
    "redirected to itself": Shape({"redirect": "?again"}, ("protocol", "rejected", "auth")),
    "redirected nowhere": Shape({"redirect": "http://[x"}, ("protocol", "rejected")),
    "redirected to a file": Shape({"redirect": "file:///etc/passwd"}, ("protocol", "rejected")),
}
BOUNDS = {
    "a bomb": Shape({"status": 200, "bomb": 300}, ("protocol",), timeout=50),
    "a trickle": Shape({"status": 200, "body": "x" * 9999, "trickle": 0.05}, ("timeout",)),
    # The response to a HEAD request has no body.
    "a trickling refusal": Shape(
        {"status": 500, "body": "x" * 9999, "trickle": 0.05}, ("timeout", "server")
    ),
    "a cut": Shape({"cut": True}, ("network",)),
    "a truncated body": Shape(
        {"status": 200, "body": "x" * 99, "truncate": 9}, ("network", "protocol")
    ),
}
#: Options that shorten the wait of a task for an event that never happens.
WAITS: dict[str, dict[str, Any]] = {"analysis_server_import": {"wait_timeout": 1}}
ALL = {**STATUSES, **SHAPES, **BOUNDS}


@dataclass(frozen=True)
class Cell:
    module: str
    shape: str

    def __str__(self) -> str:
        return f"{self.module}: {self.shape}"

    def task(self) -> dict[str, Any]:
        """Return the task that meets the fault. It starts from the seeds."""
        given = {**arguments(self.module), **WAITS.get(self.module, {})}
        given["timeout"] = ALL[self.shape].timeout
        fault = {"service": CASES[self.module]["service"], "times": 9999, **ALL[self.shape].fault}
        variables = {
            "sandbox_reset": settings(self.module),
            "sandbox_seed": seed(self.module),
            "sandbox_faults": [fault],
        }
        return playbook.task(module_of(self.module), given, str(self), diff=True, vars=variables)

    def wrong(self, event: playbook.Event) -> str | None:
        """Return the reason why the outcome of the task is wrong, or None."""
        result, kinds = event.result, ALL[self.shape].kinds
        message = f"{event.status}: {str(result.get('msg', ''))[:300]}"
        if event.status == "ok":
            return f"taken for an answer, changed {result.get('changed')}" if kinds else None
        if "error" not in result:
            return f"it broke: {message} {str(result.get('module_stderr', ''))[-300:]}"
        try:
            assert_one_sentence(result, str(self))
        except AssertionError as error:
            return f"{str(error)[:300]}"
        if _STEERING.search(result["msg"] + str(result["error"]["detail"] or "")):
            return f"it steers a terminal: {message!r}"
        kind = result["error"]["kind"]
        if kind == "invalid" or (kinds and kind not in kinds):
            return f"{kind} instead of {' or '.join(kinds)}: {message}"
        return None


def cells(modules: Sequence[str] = ()) -> list[Cell]:
    """Return all cells, or those of the given modules."""
    return [Cell(module, shape) for module in modules or FAULT_CASES for shape in ALL]


def sample() -> list[Cell]:
    """Return two cells of every module. Together they cover every shape."""
    names = list(ALL)
    return [
        Cell(module, names[(2 * number + turn) % len(names)])
        for number, module in enumerate(FAULT_CASES)
        for turn in (0, 1)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the matrix. Return the exit status: 0 if no cell fails."""
    runner = cell_runs.runner(cells, PATIENCE)
    return cell_runs.print_all("tests.faults.shapes", FAULT_CASES, runner, arguments)


if __name__ == "__main__":
    sys.exit(main())
