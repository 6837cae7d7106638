# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a tree of a hundred pages in folders, then repeat the same `wiki_tree` task without
changes.

The promises are broken if the unchanged tree writes anything, or takes more than one request per
page plus four. They are also broken if the task takes longer than promised on a sandbox without
delay, including the start of the module.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from sandbox.client import Sandbox
from tests.benchmarks import costs, servers
from tests.benchmarks.costs import Cost
from tests.helpers import connections, playbook
from tests.helpers.sizes import size
from tools import tree

PAGES = size(100, 3)
ROUNDS = size(5, 1)
PROMISED_REQUESTS = PAGES + 4
TASK = "wiki_tree, one task"
_FILES_IN_A_FOLDER = 9


def _write_files(folder: Path) -> None:
    """Write pages with a table, code, an image and a link to another page. A tenth of the pages belong to a folder."""
    rows = "".join(f"| REL-{row} | what {row} does |\n" for row in range(20))
    (folder / "plan.png").write_bytes(b"no image" * 500)
    for number in range(PAGES):
        section, place = divmod(number, _FILES_IN_A_FOLDER + 1)
        name = f"part{section}/{'index' if place == 0 else f'page{place}'}.md"
        file = folder / ("index.md" if number == 0 else name)
        file.parent.mkdir(parents=True, exist_ok=True)
        up = "" if number == 0 else "../"
        file.write_text(
            f"# Page {number}\n\nSee [the beginning]({up}index.md) & ![plan]({up}plan.png).\n\n"
            f"| issue | text |\n|---|---|\n{rows}\n```yaml\nversion: '{number}'\n```\n",
            encoding="utf-8",
        )


def _task(sandbox: Sandbox, folder: Path, collections: Path) -> tuple[Cost, int, int]:
    """Return the cost of the task, its requests and its writes."""
    options = {"src": str(folder), "space": "REL", "parent_id": "1003"}
    play = playbook.play(
        [playbook.task("wiki_tree", options, TASK)],
        module_defaults=connections.module_defaults(sandbox.urls),
    )
    mark = sandbox.mark()
    with tempfile.TemporaryDirectory(prefix="toolchain-bench-") as place:
        event = playbook.run(Path(place), [play], collections=collections).event(TASK)
    if event.status != "ok":
        raise SystemExit(f"{TASK} failed: {event.result.get('msg')}")
    seen = sandbox.requests("wiki", since=mark)
    return costs.of_task(event), len(seen), sum(bool(record["write"]) for record in seen)


def run() -> bool:
    """Run the benchmark. Return whether the promises are kept."""
    with (
        tempfile.TemporaryDirectory(prefix="toolchain-bench-") as collections,
        tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder,
        servers.sandbox() as sandbox,
    ):
        tree.link_tree(Path(collections))
        _write_files(Path(folder))
        first = _task(sandbox, Path(folder), Path(collections))
        again = [_task(sandbox, Path(folder), Path(collections)) for _round in range(ROUNDS)]
    unchanged = costs.median(each[0] for each in again)
    requests, writes = max(each[1] for each in again), max(each[2] for each in again)
    print(f"{'tree of ' + str(PAGES) + ' pages':<24}{costs.HEAD}{'requests':>10}{'writes':>8}")
    print(f"{'created':<24}{first[0]}{first[1]:>10}{first[2]:>8}")
    print(f"{'unchanged':<24}{unchanged}{requests:>10}{writes:>8}")
    few = requests <= PROMISED_REQUESTS and writes == 0
    print(f"unchanged at most {PROMISED_REQUESTS} requests and no write: {'yes' if few else 'NO'}")
    return costs.judge("100 unchanged pages of a tree", unchanged) and few
