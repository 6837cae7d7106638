# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds and requests to trigger builds and wait for them, compared with `jenkins_build`.

One task with `builds` is compared with a loop of `community.general.jenkins_build`, which has no
other mode. Its polling interval is a second here. Its default of 10 s is even slower. A promise
is broken if a single task takes more than a second longer than its build, or if the task with many
builds is not as much faster as promised.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.benchmarks import costs, peers
from tests.benchmarks.costs import Cost
from tests.helpers import connections, playbook
from tests.helpers.sizes import size, smallest
from tools import tree

MANY = size(50, 2)
#: Items of the peer's loop in one playbook; a playbook must finish within the time limit of the
#: helper.
CHUNK = size(10, 2)
BUILD_SECONDS = size(2.0, 0.1)
JOB = "measured"
#: Cost and number of requests.
Row = tuple[Cost, int]
OURS, PEER = "ci_job_build", "jenkins_build"
SEED = {
    "ci": {
        "jobs": {
            JOB: {
                "build_seconds": BUILD_SECONDS,
                "concurrent": True,
                "parameters": [{"name": "VERSION", "type": "string"}],
            }
        }
    }
}


def _ours(versions: Sequence[str]) -> dict[str, Any]:
    """Return a single task for any number of builds."""
    if len(versions) == 1:
        arguments: dict[str, Any] = {"job": JOB, "parameters": {"VERSION": versions[0]}}
    else:
        arguments = {
            "builds": [{"job": JOB, "parameters": {"VERSION": version}} for version in versions]
        }
    return playbook.task("ci_job_build", arguments, OURS)


def _peer(url: str, versions: Sequence[str]) -> dict[str, Any]:
    login = connections.LOGINS["ci"]
    return {
        "name": PEER,
        "community.general.jenkins_build": {
            "name": JOB,
            "args": {"VERSION": "{{ item }}"},
            "url": url,
            "user": login["username"],
            "token": login["password"],
            "time_between_checks": 1,
        },
        "loop": list(versions),
    }


def _run(sandbox: Sandbox, collections: Path, task: dict[str, Any], builds: int) -> Row:
    """Return the cost and requests of a task. Verify that every build was started
    and succeeded.
    """
    sandbox.reset()
    play = playbook.play(
        [task],
        module_defaults=connections.module_defaults(sandbox.urls),
        vars={"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
    )
    with tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder:
        run = playbook.run(
            Path(folder),
            [play],
            controls={"localhost": sandbox.control},
            collections=Path(f"{collections}:{peers.COLLECTIONS}"),
        )
    (event,) = run.events
    started = [write for write in event.writes if write["status"] == 201]
    if event.status != "ok" or len(started) != builds:
        raise SystemExit(f"{event.task} did not do what it should:\n{run.output[-3000:]}")
    return costs.of_task(event), len(event.requests)


def _row(name: str, builds: int, cost: Cost, requests: int) -> None:
    print(f"{name:<24}{builds:>8}{cost}{requests:>10}{requests / builds:>16.1f}")


def _peers(sandbox: Sandbox, collections: Path, versions: Sequence[str]) -> tuple[Row, Row]:
    """Run a build, and then many builds in loops, which are separate playbooks."""
    url = sandbox.urls["ci"]
    one = _run(sandbox, collections, _peer(url, versions[:1]), 1)
    chunks = []
    for start in range(0, MANY, CHUNK):
        print(f"{PEER}: builds {start + 1} to {start + CHUNK} ...", file=sys.stderr, flush=True)
        task = _peer(url, versions[start : start + CHUNK])
        chunks.append(_run(sandbox, collections, task, CHUNK))
    cost = sum((cost for cost, _n in chunks), Cost(0, 0))
    return one, (cost, sum(count for _c, count in chunks))


def run() -> bool:
    """Run both modules. Return whether the promises are kept."""
    compared = peers.installed("community.general")
    if not compared and not smallest():
        raise SystemExit("community.general is not installed: run it through make bench")
    versions = [f"1.{number}" for number in range(MANY)]
    with (
        tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder,
        Sandbox.start(SEED, flavour="real") as sandbox,
    ):
        collections = Path(folder) / "collections"
        tree.link_tree(collections)
        one = _run(sandbox, collections, _ours(versions[:1]), 1)
        many = _run(sandbox, collections, _ours(versions), MANY)
        theirs = _peers(sandbox, collections, versions) if compared else None
    print(f"\nbuilds of {BUILD_SECONDS:g} s, triggered and waited for\n")
    print(f"{'way':<24}{'builds':>8}{costs.HEAD}{'requests':>10}{'requests/build':>16}")
    _row(OURS, 1, *one)
    _row(f"{OURS} with builds", MANY, *many)
    if theirs is None:
        print("\ncommunity.general is not installed: nothing is compared with it")
        return False
    peer_one, peer_many = theirs
    _row(PEER, 1, *peer_one)
    _row(f"{PEER} in a loop", MANY, *peer_many)
    longer = Cost(one[0].wall - BUILD_SECONDS, one[0].processor)
    prompt = costs.judge("one build, longer than itself", longer)
    return costs.judge("50 builds, faster than jenkins_build", peer_many[0] / many[0]) and prompt
