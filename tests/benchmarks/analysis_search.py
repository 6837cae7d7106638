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
import time
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
from tests.helpers.sizes import size

ISSUES = size(100_000, 1000)
ROUNDS = size(3, 1)
#: Promised maximum, relative to the client that buffers the whole response.
COUNTED_MEMORY, KEPT_MEMORY, TIME = 0.1, 0.5, 2.5
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
    """Print the seconds and MB that a method took."""
    before, started = _peak(), time.monotonic()
    found = WAYS[way](url)
    seconds = time.monotonic() - started
    if found != ISSUES:
        raise SystemExit(f"{way}: {found} issues instead of {ISSUES}")
    print(json.dumps([seconds, _peak() - before]))


def _measured(way: str, url: str) -> tuple[float, float]:
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
        rounds.append(tuple(json.loads(done.stdout)))
    return min(seconds for seconds, _mb in rounds), min(mb for _seconds, mb in rounds)


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
    print(f"\n{f'{ISSUES:,} issues':<28}{'seconds':>9}{'MB':>9}")
    for way, (seconds, megabytes) in found.items():
        print(f"{way:<28}{seconds:>9.2f}{megabytes:>9.1f}")
    seconds, megabytes = found[WHOLE]
    promises = {
        "memory, counted against whole": (found[STREAMED][1] / megabytes, COUNTED_MEMORY),
        "memory, kept against whole": (found[KEPT][1] / megabytes, KEPT_MEMORY),
        "time, kept against whole": (found[KEPT][0] / seconds, TIME),
        "MB, kept": (found[KEPT][1], KEPT_MEGABYTES),
    }
    for text, (value, most) in promises.items():
        print(f"{text}: {value:.2f}, promised at most {most:g}: {'yes' if value <= most else 'NO'}")
    return all(value <= most for value, most in promises.values())


if __name__ == "__main__":
    _measure(*sys.argv[1:])
