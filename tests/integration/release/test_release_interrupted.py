# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that the next run finishes a release that was interrupted.

The release runs repeatedly, and every run fails later. A promotion, which moves files, fails
between two files. At the end, the servers have carried out the same writes as in an undisturbed
run, without duplicates. `tests/faults` interrupts each module at each of its requests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from sandbox.client import Sandbox
from tests.integration.release.test_release import DEMO, demo_of, release

Write = dict[str, Any]


def variables(sandbox: Sandbox, folder: Path) -> dict[str, Any]:
    """Return the variables of the demo without retries, so that a run stops at the first failed
    request.
    """
    services = yaml.safe_load(DEMO.read_text(encoding="utf-8"))["release_connections"]
    logins = {
        service: {**options, "url": sandbox.urls[service], "retries": 0}
        for service, options in services.items()
    }
    moved = {
        "build_name": "toolchain",
        "build_number": "{{ ci_build_results[0].build.number }}",
        "status": "released",
        "target_repo": "generic-release-local",
        "copy": False,
    }
    return {
        "demo": demo_of(sandbox, folder),
        "release_connections": logins,
        "release_builds": [moved],
    }


def key(write: Write) -> tuple[str, str, str, str]:
    """Return a key for a write, without values that differ between runs (times, form
    boundaries).
    """
    action = (
        re.search(r"\baction=\w+", write["body"] or "") if write["service"] == "analysis" else None
    )
    path = re.sub(r"\d{10,}", "N", write["path"])
    return write["service"], write["method"], path, action.group() if action else ""


def is_promotion(write: Write) -> bool:
    return "/api/build/promote/" in write["path"]


def carried_out(sandbox: Sandbox) -> list[Write]:
    """Return the writes that the servers carried out, in order."""
    found = sandbox.requests(writes=True)
    return [write for write in found if write["served"] is not None and write["served"] < 400]


def left(wanted: list[Write], sandbox: Sandbox) -> list[Write]:
    """Return the wanted writes that are not carried out yet, in order."""
    done = Counter(map(key, carried_out(sandbox)))
    found = []
    for write in wanted:
        if done[key(write)] > 0:
            done[key(write)] -= 1
        else:
            found.append(write)
    return found


def break_at(sandbox: Sandbox, write: Write, before: list[Write]) -> None:
    """Fail a write after earlier writes with the same key. A promotion fails between its files."""
    if is_promotion(write):
        sandbox.settings("repo", promote_breaks_after=1)
        return
    service, method, _path, action = key(write)
    sandbox.fault(
        service=service,
        method=method,
        path=f"^{re.escape(write['path'])}$",
        match=action or None,
        skip=sum(key(record) == key(write) for record in before),
        status=500,
        times=1000,
    )


def interruptions(wanted: list[Write]) -> list[Write]:
    """Return the writes to fail: the promotion, and the second in each row of a service's writes."""
    services = [None, None, *(write["service"] for write in wanted)]
    return [
        write
        for place, write in enumerate(wanted, 2)
        if is_promotion(write) or services[place - 2] != services[place - 1] == services[place]
    ]


def test_release_is_completed_after_failures(
    fresh: Callable[[str], Sandbox], tmp_path: Path
) -> None:
    undisturbed, interrupted = tmp_path / "undisturbed", tmp_path / "interrupted"
    undisturbed.mkdir()
    interrupted.mkdir()
    sandbox = fresh("real")
    assert release(undisturbed, variables(sandbox, undisturbed)).code == 0
    wanted = carried_out(sandbox)
    failing = interruptions(wanted)
    assert len({write["service"] for write in failing}) == 5
    sandbox.reset()
    for write in failing:
        todo = left(wanted, sandbox)
        break_at(sandbox, write, todo[: todo.index(write)])
        failed = release(interrupted, variables(sandbox, interrupted))
        assert failed.code == 2, key(write)
        sandbox.clear_faults()
        sandbox.settings("repo", promote_breaks_after=None)
        assert write in left(wanted, sandbox), key(write)
        assert len(left(wanted, sandbox)) < len(todo), key(write)
    finished = release(interrupted, variables(sandbox, interrupted))
    assert finished.code == 0, finished.output
    writes = sandbox.requests(writes=True)
    assert [write["served"] for write in writes if is_promotion(write)] == [500, 200]
    assert Counter(map(key, carried_out(sandbox))) == Counter(map(key, wanted))
