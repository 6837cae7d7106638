# SPDX-License-Identifier: GPL-3.0-or-later
"""Transitions of 200 issues at 20 ms per response, in parallel (four) and in sequence.

Both modes send the same requests to a server in another process. The promise is broken if four
parallel transitions are not at least three times faster.
"""

from __future__ import annotations

import json
import re
import time
from http.server import BaseHTTPRequestHandler
from multiprocessing.connection import Connection as Pipe
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    resolve,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing.tracker_issue import (
    TrackerIssueOperation,
    TrackerIssueOptions,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from tests.benchmarks import costs, servers
from tests.benchmarks.costs import Cost
from tests.helpers.sizes import size

ISSUES = size(200, 8)
RUNS = size(5, 1)
DELAY = 0.02  # seconds per response
PARALLEL = 4
_OPEN, _DONE = {"id": "1", "name": "Open"}, {"id": "3", "name": "Done"}
_KEY = re.compile(r"/issue/([A-Z]+-\d+)")


class _Handler(BaseHTTPRequestHandler):
    """A simulated tracker with a single transition."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    done: set[str]

    def do_GET(self) -> None:
        if self.path == "/done":
            self._send(200, len(self.done))
            return
        time.sleep(DELAY)
        path = urlsplit(self.path).path
        found = _KEY.search(path)
        if found is None:
            issues = [self._issue(f"OPS-{number}") for number in range(1, ISSUES + 1)]
            self._send(200, {"startAt": 0, "total": ISSUES, "issues": issues})
        elif path.endswith("/transitions"):
            self._send(200, {"transitions": [{"id": "31", "name": "Close", "to": _DONE}]})
        else:
            self._send(200, self._issue(found[1]))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(DELAY)
        found = _KEY.search(self.path)
        if found is not None:
            self.done.add(found[1])
        self._send(204, None)

    def _issue(self, key: str) -> dict[str, Any]:
        return {"id": key, "key": key, "fields": {"status": _DONE if key in self.done else _OPEN}}

    def _send(self, status: int, body: Any) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is inherited
        """Suppress the request log."""


def _serve(pipe: Pipe) -> None:
    """Run the server: send the port, then respond until the process is terminated."""
    _Handler.done = set()
    servers.response(pipe, _Handler)


def _cost(parallel: int) -> Cost:
    """Return the cost to close all issues of a new server."""
    with servers.started(_serve) as url:
        given = {"url": url, "token": "x", "dialect": "server", "timeout": 30, "retries": 0}
        given |= {"retry_max_wait": 60, "validate_certs": True}
        task = Task(resolve(SERVICES["tracker"], given.get, {}), print, False)
        jql = "project = OPS"
        options = TrackerIssueOptions(jql=jql, status="Done", max_issues=ISSUES, parallel=parallel)
        operation = TrackerIssueOperation(task, options)
        cost = costs.of_work(lambda: operation.apply(operation.plan()))
        with urlopen(f"{url}/done", timeout=10) as response:
            done = int(response.read())
        if done != ISSUES:
            raise SystemExit(f"{done} of {ISSUES} issues are done")
    return cost


def run() -> bool:
    """Run the benchmark. Return whether the promise is kept."""
    print(f"\n{ISSUES} issues moved, {1000 * DELAY:.0f} ms an answer, median of {RUNS}\n")
    ways = {
        parallel: costs.median(_cost(parallel) for _run in range(RUNS))
        for parallel in (1, PARALLEL)
    }
    print(f"{'parallel':<10}{costs.HEAD}")
    for parallel, cost in ways.items():
        print(f"{parallel:<10}{cost}")
    faster = "200 issues in parallel, faster than in sequence"
    return costs.judge(faster, ways[1] / ways[PARALLEL])
