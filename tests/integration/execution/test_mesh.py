# SPDX-License-Identifier: GPL-3.0-or-later
"""Test slices on nodes of a mesh, with the commands of AWX. A node is killed during a write.

`python -m tests.benchmarks mesh` does the same with 40 servers. Without Receptor and OpenSSH, a
message reports that nothing was run.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, mesh

Fresh = Callable[[str], Sandbox]

#: Seconds for which the server holds back a response; the node is killed before.
HELD_BACK = 60.0
SECONDS = 120


def _estate(sandbox: Sandbox, folder: Path) -> mesh.Estate:
    """Return four servers in two slices. Each lacks a version."""
    servers = {
        name: {"desired_state_versions": [{"project": "REL", "name": f"8.{name}"}]}
        for name in ("s1", "s2", "s3", "s4")
    }
    login = connections.connection("tracker", sandbox.urls["tracker"])
    given = {"enforce_connections": {"tracker": login}}
    # with a single fork, the second server of a slice is still unchanged when the node is lost
    return mesh.Estate(folder, servers, slices=2, given=given, forks=1)


def _wait(sandbox: Sandbox) -> None:
    deadline = time.monotonic() + SECONDS
    while sandbox.pending_faults():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_lost_node_is_reported_and_the_next_run_completes(
    fresh: Fresh, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox = fresh("real")
    estate = _estate(sandbox, tmp_path)
    with mesh.nodes(2, tmp_path / "mesh") as nodes:
        if nodes is None:
            with capsys.disabled():
                print("\nneither Receptor nor OpenSSH on this machine: no job was sent to a node")
            return
        sandbox.fault(service="tracker", method="POST", match="8.s2", late=HELD_BACK)
        jobs = estate.run("enforce", nodes)
        _wait(sandbox)
        nodes[1].kill()
        assert mesh.results(jobs)[0] == ["successful", "error"], jobs[1].result().output
        lost = estate.summary()
        assert lost.code == 2
        for server in ("s2", "s4"):
            assert f"host {server}: is in no report" in lost.output
        assert "host s1: is in no report" not in lost.output
        drifted, artifacts = mesh.results(estate.run("drift", nodes[:1], only=[1]))
        enforced, _artifacts = mesh.results(
            estate.run("enforce", nodes[:1], only=[1], artifacts=artifacts)
        )
        assert (drifted, enforced) == (["successful"], ["successful"])
        assert estate.summary().code == 0
    written = Counter(str(request["body"]) for request in sandbox.requests(writes=True))
    assert sorted(written.values()) == [1, 1, 1, 1], written
