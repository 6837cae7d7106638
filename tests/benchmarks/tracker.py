# SPDX-License-Identifier: GPL-3.0-or-later
"""Search for 50,000 issues on a server that takes 50 ms per page, compared with `jira`.

Both clients use their default page size, which is 100. The clients run in separate processes. The
server runs in another process, with its pages prepared. The last method is a module that only
returns the same issues from a file. It shows Ansible's own overhead for a result of that size.

A promise is broken if the library is not at least twice as slow as our client, or if a page is
requested more than once. It is also broken if a task that writes the issues into a file takes more
than 1.2 times as long as the client alone. There is no promise for the task that returns the
issues: most of its overhead is Ansible's copying of the result for its callbacks.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from http.server import BaseHTTPRequestHandler
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

from jira import JIRA

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    resolve,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.jql_search import (
    JqlSearchOperation,
    JqlSearchOptions,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from tests.benchmarks import costs, servers
from tests.benchmarks.costs import Cost
from tests.helpers import playbook
from tests.helpers.sizes import size
from tools import tree

ISSUES = size(50_000, 300)
PAGE = 100
DELAY = 0.05  # seconds per page
JQL = "project = OPS ORDER BY key"
MAX_REQUESTS = ISSUES // PAGE + 2
PEER, CLIENT = "jira.search_issues(maxResults=False)", "our client"
MODULE, ALONE = "jql_search, one task", "Ansible alone, the same result"
WITH_FILE = "jql_search with dest, one task"
_HANDING_OVER = """
import json
from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule({"src": {"type": "path"}})
with open(module.params["src"], encoding="utf-8") as file:
    module.exit_json(changed=False, issues=json.load(file))
"""

#: Cost, issues, peak memory of the process in MB (None: not measured).
Measured = tuple[Cost, int, float | None]


def _issue(number: int) -> dict[str, Any]:
    user = {"name": f"user-{number % 50}", "displayName": f"User {number % 50}", "active": True}
    return {
        "id": str(10_000 + number),
        "key": f"OPS-{number}",
        "self": f"https://tracker.example/rest/api/2/issue/{10_000 + number}",
        "fields": {
            "summary": f"Operations task {number}, with some words about what there is to do",
            "status": {"id": "1", "name": "Open", "statusCategory": {"id": 2, "key": "new"}},
            "issuetype": {"id": "2", "name": "Task", "subtask": False},
            "assignee": user,
            "labels": ["deploy", "unicode"],
            "created": "2026-01-05T09:00:00.000+0000",
            "updated": "2026-02-05T09:00:00.000+0000",
        },
    }


def _serve(pipe: Pipe) -> None:
    """Run the server: send the port, then respond until the process is terminated."""
    shown = [json.dumps(_issue(number)) for number in range(1, ISSUES + 1)]
    responded = [0]

    def page(query: dict[str, list[str]]) -> str:
        start, size = int(query["startAt"][0]), int(query["maxResults"][0])
        listed = ",".join(shown[start : start + size])
        head = f'"startAt":{start},"maxResults":{size},"total":{ISSUES}'
        return f'{{{head},"issues":[{listed}]}}'

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # send the head and the body together

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/answered":
                body = str(responded[0])
                responded[0] = 0
            elif not parts.path.endswith("/search"):
                body = "[]"  # the library first reads the fields, which are not measured
            else:
                time.sleep(DELAY)
                responded[0] += 1
                body = page(parse_qs(parts.query))
            data = body.encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is inherited
            """Suppress the request log."""

    servers.response(pipe, Handler)


def _answered(url: str) -> int:
    """Return the number of pages that the server has sent since the last call."""
    with urlopen(f"{url}/answered", timeout=10) as response:
        return int(response.read())


def _measure(work: Callable[[str], int], url: str) -> Measured:
    found: list[int] = []
    cost = costs.of_work(lambda: found.append(work(url)))
    return cost, found[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _peer(url: str) -> int:
    client = JIRA(url, token_auth="x", get_server_info=False, max_retries=0)
    return len(client.search_issues(JQL, maxResults=False))


def _client(url: str) -> int:
    options = {"url": url, "token": "x", "dialect": "server", "timeout": 30, "retries": 0}
    options |= {"retry_max_wait": 60, "validate_certs": True}
    task = Task(resolve(SERVICES["tracker"], options.get, {}), print, True)
    return len(JqlSearchOperation(task, JqlSearchOptions(JQL, page_size=PAGE)).search().issues)


def _in_ansible(task: dict[str, Any]) -> Measured:
    """Run a task in a playbook and return its measurements."""
    with tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder:
        collections, work = Path(folder) / "collections", Path(folder) / "work"
        tree.link_tree(collections)
        (work / "library").mkdir(parents=True)
        (work / "library" / "hand_over.py").write_text(_HANDING_OVER, encoding="utf-8")
        issues = [_issue(number) for number in range(1, ISSUES + 1)]
        (work / "issues.json").write_text(json.dumps(issues), encoding="utf-8")
        run = playbook.run(work, [playbook.play([task])], collections=collections)
    event = run.event("search")
    if event.status != "ok":
        raise SystemExit(f"the task failed: {event.result.get('msg')}")
    result = event.result
    found: int = result["count"] if "count" in result else len(result["issues"])
    return costs.of_task(event), found, None


def _module(url: str) -> Measured:
    arguments = {"jql": JQL, "url": url, "token": "x", "dialect": "server"}
    return _in_ansible(playbook.task("jql_search", arguments, "search"))


def _with_file(url: str) -> Measured:
    arguments = {"jql": JQL, "url": url, "token": "x", "dialect": "server", "dest": "found.jsonl"}
    return _in_ansible(playbook.task("jql_search", arguments, "search"))


def _nothing_but_ansible(url: str) -> Measured:
    return _in_ansible({"name": "search", "hand_over": {"src": "issues.json"}})


def _alone(work: Callable[[str], int], url: str) -> Measured:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_measure, work, url).result()


def run() -> bool:
    """Run the benchmark. Return whether the promises are kept."""
    ways: dict[str, Callable[[str], Measured]] = {
        PEER: lambda url: _alone(_peer, url),
        CLIENT: lambda url: _alone(_client, url),
        MODULE: _module,
        WITH_FILE: _with_file,
        ALONE: _nothing_but_ansible,
    }
    found: dict[str, Cost] = {}
    few = True
    print(f"\n{ISSUES:,} issues, {PAGE} a page, {1000 * DELAY:.0f} ms a page\n")
    print(f"{'way':<40}{costs.HEAD}{'faster':>9}{'requests':>10}{'memory MB':>11}")
    with servers.started(_serve) as url:
        for name, way in ways.items():
            found[name], count, memory = way(url)
            requests, ratio = _answered(url), (found[PEER] / found[name]).wall
            few = few and requests <= MAX_REQUESTS
            held = "" if memory is None else f"{memory:.0f}"
            shown = f"{ratio:>8.1f}x" if name != ALONE else f"{'':>9}"
            print(f"{name:<40}{found[name]}{shown}{requests:>10}{held:>11}", flush=True)
            if count != ISSUES:
                raise SystemExit(f"{name} found {count} issues")
    return _print_promise(found) and few


def _print_promise(found: dict[str, Cost]) -> bool:
    """Print the promises. Return whether they are kept."""
    whole = (found[PEER] / found[MODULE]).wall
    print(f"\nthe task that returns the issues, which nothing is promised of: {whole:.1f}x")
    into_file = "50,000 issues into a file, against our client alone"
    return all(
        [
            costs.judge("search for 50,000 issues, faster than jira", found[PEER] / found[CLIENT]),
            costs.judge(into_file, found[WITH_FILE] / found[CLIENT]),
        ]
    )
