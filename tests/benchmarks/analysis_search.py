# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds and memory of a search with 100,000 issues, compared with a client that buffers the
response.

Each method runs in a separate process: counting the records as they arrive, keeping all records
like `analysis_issue_info` does, and `requests` with the whole body split into lines, as public
clients do. The server runs in another process, so that only the client is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import requests

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.client import (
    AnalysisClient,
    Call,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.issues.issue_search import (
    IssueSearch,
    SearchRequest,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.connection import (
    Connection,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from tests.benchmarks import costs
from tests.benchmarks.costs import Cost
from tests.helpers.sizes import size

ISSUES = size(100_000, 1000)
ROUNDS = size(3, 1)
#: Promised maximum, relative to the client that buffers the whole response.
COUNTED_MEMORY, KEPT_MEMORY = 0.1, 0.5
#: Limit in MB for issues that are kept: a module uses 34 MB before, and must stay below 120 MB.
KEPT_MEGABYTES = 86.0
STREAMED, KEPT, WHOLE = "counted as they come", "kept", "requests, whole text"
ISSUE: dict[str, Any] = {
    "status": "Analyze",
    "severity": "Critical",
    "severityCode": 1,
    "state": "Existing",
    "code": "ABV.GENERAL",
    "title": "Buffer Overflow - Array Index Out of Bounds",
    "message": "Array 'name' of size 16 may use index value(s) 16..31",
    "file": "/src/core/names.c",
    "method": "copy_name",
    "owner": "unowned",
    "taxonomyName": "C and C++",
    "dateOriginated": 1767225600000,
    "url": "https://analysis.example.com/review/insight-review.html#problemid=101",
}


class _Lines(BaseHTTPRequestHandler):
    """Responds with all issues and a summary."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        for start in range(0, ISSUES, 1000):
            records = (json.dumps({"id": start + n, **ISSUE}) for n in range(1000))
            self.wfile.write(("\n".join(records) + "\n").encode())
        self.wfile.write(json.dumps({"summary": {"total": ISSUES}}).encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is inherited
        """Suppress the request log."""


def _task(url: str) -> Task:
    warnings: list[str] = []
    settings = {"timeout": 60, "retries": 0, "retry_max_wait": 60, "validate_certs": True}
    return Task(
        Connection(SERVICES["analysis"], url, "analyst", settings=settings), warnings.append, True
    )


def _counted(url: str) -> int:
    client = AnalysisClient(_task(url))
    return client.stream("searching", Call("search"), lambda found: sum(1 for _one in found)) - 1


def _kept(url: str) -> int:
    task = _task(url)
    return len(IssueSearch(task, AnalysisClient(task)).read(SearchRequest("p")).issues)


def _whole(url: str) -> int:
    form = {"action": "search", "project": "p", "summary": "true"}
    lines = requests.post(f"{url}/review/api", data=form, timeout=60).text.splitlines()
    return len([json.loads(line) for line in lines]) - 1


WAYS: dict[str, Callable[[str], int]] = {STREAMED: _counted, KEPT: _kept, WHOLE: _whole}


def _peak() -> float:
    """Return the peak memory of this process in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _measure(way: str, url: str) -> None:
    """Print the wall and processor seconds and the MB that a method took."""
    before, found = _peak(), list[int]()
    cost = costs.of_work(lambda: found.append(WAYS[way](url)))
    if found != [ISSUES]:
        raise SystemExit(f"{way}: {found} issues instead of {ISSUES}")
    print(json.dumps([cost.wall, cost.processor, _peak() - before]))


def _measured(way: str, url: str) -> tuple[Cost, float]:
    """Return the best seconds and the best MB of several rounds."""
    rounds = []
    for _round in range(ROUNDS):
        done = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.analysis_search", way, url],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        rounds.append(json.loads(done.stdout))
    wall, processor, megabytes = map(min, zip(*rounds, strict=True))
    return Cost(wall, processor), megabytes


def run() -> bool:
    """Print the table. Return whether the promises are kept."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Lines)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        found = {way: _measured(way, url) for way in WAYS}
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    print(f"\n{f'{ISSUES:,} issues':<28}{costs.HEAD}{'MB':>9}")
    for way, (cost, megabytes) in found.items():
        print(f"{way:<28}{cost}{megabytes:>9.1f}")
    whole, megabytes = found[WHOLE]
    kept, kept_megabytes = found[KEPT]
    counted = found[STREAMED][1] / megabytes
    verdicts = [
        costs.verdict("memory, counted against whole", counted, COUNTED_MEMORY),
        costs.verdict("memory, kept against whole", kept_megabytes / megabytes, KEPT_MEMORY),
        costs.judge("keep 100,000 issues, against requests", kept / whole),
        costs.verdict("MB, kept", kept_megabytes, KEPT_MEGABYTES),
    ]
    return all(verdicts)


if __name__ == "__main__":
    _measure(*sys.argv[1:])
