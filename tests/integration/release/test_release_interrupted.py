# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that the next run finishes a release that was interrupted at any point.

The release runs repeatedly, and every run fails at the next write. A promotion, which moves files,
fails between two files. At the end, the servers have carried out the same writes as in an
undisturbed run, without duplicates.
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


def carried_out(sandbox: Sandbox, since: int = 0) -> list[Write]:
    """Return the writes that the servers carried out, in order."""
    found = sandbox.requests(writes=True, since=since)
    return [write for write in found if write["served"] is not None and write["served"] < 400]


def left(wanted: list[Write], sandbox: Sandbox, since: int) -> list[Write]:
    """Return the wanted writes that are not carried out yet, in order."""
    done = Counter(map(key, carried_out(sandbox, since)))
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


def test_release_is_completed_after_a_failure_at_any_write(
    fresh: Callable[[str], Sandbox], tmp_path: Path
) -> None:
    sandbox = fresh("real")
    wanted: list[Write] = []
    for folder in (tmp_path / "undisturbed", tmp_path / "interrupted"):
        folder.mkdir()
        sandbox.reset()
        mark, broken = sandbox.mark(), 0
        todo = left(wanted, sandbox, mark)
        while len(todo) > 1:
            break_at(sandbox, todo[1], todo[:1])
            broken += release(folder, variables(sandbox, folder)).code != 0
            sandbox.clear_faults()
            sandbox.settings("repo", promote_breaks_after=None)
            before, todo = todo, left(wanted, sandbox, mark)
            assert len(todo) < len(before), key(before[0])
        finished = release(folder, variables(sandbox, folder))
        assert finished.code == 0, finished.output
        wanted = wanted or carried_out(sandbox, mark)
    assert broken > len(wanted) / 2
    writes = sandbox.requests(writes=True, since=mark)
    assert [write["served"] for write in writes if is_promotion(write)] == [500, 200]
    assert Counter(map(key, carried_out(sandbox, mark))) == Counter(map(key, wanted))
