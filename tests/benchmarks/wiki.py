# SPDX-License-Identifier: GPL-3.0-or-later
"""Update a hundred pages, changed and unchanged: one task with `pages` against
`atlassian-python-api`.

The library is called like its users call it, by a script that calls `update_page` for each page.
The server is the sandbox with a delay of 20 ms per response, which simulates a network. It stores
bodies unchanged, because otherwise the library would write every page again. The promises are
broken if the library is not at least three times as slow. They are also broken if a page takes more
than one request (unchanged) or two requests (changed).

Times without any delay are shown without a promise, because they depend on the processors. The task
runs concurrently with the single process of the sandbox, but the library alternates with it. A busy
machine therefore slows down the task more. The start of the module counts, too: about a quarter of
an unchanged task.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    resolve,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages.wiki_page import (
    WikiPageOperation,
    WikiPageOptions,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from sandbox.client import Sandbox
from tests.benchmarks import costs, servers
from tests.benchmarks.costs import Cost
from tests.helpers import connections, playbook
from tests.helpers.options import build
from tests.helpers.sizes import size
from tools import tree

PAGES = size(100, 2)
ROUNDS = size(3, 1)
DELAY = 20  # milliseconds per response
TASK, CLIENT, PEER = "wiki_page, one task", "our client alone", "atlassian-python-api"
_PEER = """
import json, sys, time
import requests
from atlassian import Confluence

given = json.load(sys.stdin)
session = requests.Session()
session.headers["X-Atlassian-Token"] = "no-check"
wiki = Confluence(given["url"], token=given["token"], cloud=False, session=session)
wall, processor = time.monotonic(), time.process_time()
for page in given["pages"]:
    wiki.update_page(page["page_id"], page["title"], page["body"])
print(json.dumps([time.monotonic() - wall, time.process_time() - processor]))
"""

Entries = list[dict[str, str]]
#: Cost of each round by method and state.
Rounds = dict[tuple[str, str], list[Cost]]


def _entries(words: str) -> Entries:
    """Return pages of 3 KB, each with a heading, a table and a macro."""
    rows = "".join(f"<tr><td>REL-{row}</td><td>{words} {row}</td></tr>" for row in range(60))
    body = (
        f"<h1>Release</h1><p>What is new &amp; {words}.</p><table><tbody>{rows}</tbody></table>"
        '<ac:structured-macro ac:name="code" ac:schema-version="1"><ac:plain-text-body>'
        "<![CDATA[make release]]></ac:plain-text-body></ac:structured-macro>"
    )
    return [
        {"page_id": str(5000 + number), "title": f"Page {number}", "body": body}
        for number in range(PAGES)
    ]


def _peer(sandbox: Sandbox, entries: Entries) -> Cost:
    """Return the cost of the calls, without the start of the interpreter and the imports."""
    login = connections.LOGINS["wiki"]
    given = {"url": sandbox.urls["wiki"], **login, "pages": entries}
    done = subprocess.run(
        [sys.executable, "-c", _PEER],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{PEER} failed:\n{done.stderr[-3000:]}")
    return Cost(*json.loads(done.stdout))


def _client(sandbox: Sandbox, entries: Entries) -> Cost:
    settings = {"timeout": 30.0, "retries": 0, "retry_max_wait": 0.0}
    login = connections.connection("wiki", sandbox.urls["wiki"], **settings)
    connection = resolve(SERVICES["wiki"], login.get, environ={})
    options = build(WikiPageOptions, pages=list(entries))
    operation = WikiPageOperation(Task(connection, print, read_only=False), options)

    def write() -> None:
        plan = operation.plan()
        if plan.changed:
            operation.apply(plan)

    return costs.of_work(write)


def _task(sandbox: Sandbox, collections: Path, entries: Entries) -> Cost:
    """Return the cost of the task, including Ansible's work around the module."""
    task = playbook.task("wiki_page", {"pages": entries}, TASK)
    defaults = connections.module_defaults(sandbox.urls)
    with tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder:
        run = playbook.run(
            Path(folder),
            [playbook.play([task], module_defaults=defaults)],
            collections=collections,
        )
    event = run.event(TASK)
    if event.status != "ok":
        raise SystemExit(f"{TASK} failed:\n{run.output[-3000:]}")
    return costs.of_task(event)


def _rounds(sandbox: Sandbox, collections: Path) -> tuple[Rounds, dict[tuple[str, str], int]]:
    """Return the cost of each method in both states, and the number of its requests."""
    ways: dict[str, Callable[[Entries], Cost]] = {
        TASK: lambda entries: _task(sandbox, collections, entries),
        CLIENT: lambda entries: _client(sandbox, entries),
        PEER: lambda entries: _peer(sandbox, entries),
    }
    rounds: Rounds = defaultdict(list)
    requests: dict[tuple[str, str], int] = {}
    for number in range(ROUNDS):
        print(f"round {number + 1} of {ROUNDS} ...", file=sys.stderr, flush=True)
        for way, work in ways.items():
            entries = _entries(f"in round {number} by {way}")
            for state in ("changed", "unchanged"):
                mark = sandbox.mark()
                rounds[way, state].append(work(entries))
                seen = sandbox.requests("wiki", since=mark)
                requests[way, state] = len(seen)
                writes = sum(bool(record["write"]) for record in seen)
                if writes != (PAGES if state == "changed" else 0):
                    raise SystemExit(f"{way} wrote {writes} times where pages were {state}")
    return rounds, requests


def _kept(rounds: Rounds, requests: dict[tuple[str, str], int], *, judged: bool) -> bool:
    """Print the table. Return whether one task is as much faster as promised, with as
    few requests.
    """
    medians = {key: costs.median(each) for key, each in rounds.items()}
    print(f"{'way':<24}{'pages':<11}{costs.HEAD}{'ms/page':>9}{'requests':>10}{'ratio':>8}")
    for (way, state), cost in medians.items():
        ratio = (medians[PEER, state] / cost).wall
        print(
            f"{way:<24}{state:<11}{cost}{1000 * cost.wall / PAGES:>9.1f}"
            f"{requests[way, state]:>10}{ratio:>7.1f}x"
        )
    few = all(
        requests[way, state] == PAGES * each
        for way in (TASK, CLIENT)
        for state, each in (("changed", 2), ("unchanged", 1))
    )
    print(f"one request a page unchanged, two changed: {'yes' if few else 'NO'}")
    faster = "100 pages, faster than atlassian-python-api"
    states = ("changed", "unchanged") if judged else ()
    return all(
        [
            few,
            *(costs.judge(faster, medians[PEER, state] / medians[TASK, state]) for state in states),
        ]
    )


def _seed() -> dict[str, Any]:
    empty = [{**entry, "id": entry["page_id"], "space": "REL"} for entry in _entries("at first")]
    return {"wiki": {"pages": empty}}


def run() -> bool:
    """Run the benchmark. Return whether the promises are kept."""
    kept = True
    with (
        tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder,
        servers.sandbox() as sandbox,
    ):
        tree.link_tree(Path(folder))
        sandbox.seed(_seed())
        for delay in (0, DELAY):
            sandbox.settings("wiki", delay_ms=delay, rewrite_on_save=False)
            rounds, requests = _rounds(sandbox, Path(folder))
            print(f"\n{PAGES} pages, {delay} ms an answer, median of {ROUNDS} rounds\n")
            kept = _kept(rounds, requests, judged=delay > 0) and kept
    return kept
