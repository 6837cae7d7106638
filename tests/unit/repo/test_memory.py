# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that the memory of a deployment does not depend on the size of the deployed content."""

from __future__ import annotations

from pathlib import Path

from tests.helpers import deploying
from tests.helpers.discarding import Server

MIB = 1024 * 1024


def test_memory_does_not_grow_with_file_size(tmp_path: Path) -> None:
    sizes = {"small": 8 * MIB, "large": 64 * MIB}
    for name, size in sizes.items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    with Server() as server:
        small, large = deploying.deploy_all(server.url, [tmp_path / name for name in sizes])
        counts = server.counts()
    assert (small.changed, large.changed) == (True, True)
    assert (small.sent, large.sent) == tuple(sizes.values())
    assert counts.body_bytes == sum(sizes.values())
    assert large.peak - small.peak < 16
    assert large.peak < 120
