# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the lines that are shown during a transfer."""

from __future__ import annotations

import io
import queue
import threading
from typing import Literal

import pytest
import urllib3

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.bodies import (
    Incoming,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.multipart import (
    Upload,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.transfer_progress import (
    TransferProgress,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.progress import (
    progress_to,
)
from tests.unit.stub import connection_to

_SIZE = 4_000_000


def transfer(task: Task, moved: Literal["sent", "received"], lines: queue.Queue[str]) -> str:
    """Transfer a file of 4 MB, and return the first line after the first block."""
    if moved == "sent":
        open_body = lambda: io.BytesIO(bytes(_SIZE))  # noqa: E731
        blocks = iter(Upload("sending", open_body, _SIZE, task.accounting))
    else:
        raw = urllib3.HTTPResponse(io.BytesIO(bytes(_SIZE)), preload_content=False)
        blocks = Incoming(raw, "http://host/", task.accounting).iter_content()
    next(blocks)
    while not lines.empty():
        lines.get_nowait()
    lines.get(timeout=20)  # it may have been composed before the block
    return lines.get(timeout=20)


@pytest.mark.parametrize(
    ("moved", "files", "size", "line"),
    [
        ("sent", 1, _SIZE, "moving: 1.0 of 4.0 MB sent"),
        ("received", 1, _SIZE, "moving: 0.1 of 4.0 MB received"),
        ("sent", 1, 0, "moving: 1.0 MB sent"),
        ("sent", 1200, 944_000_000, "moving: 1 of 1,200 files, 1.0 of 944.0 MB sent"),
    ],
)
def test_bytes_of_an_unfinished_file_are_shown(
    moved: Literal["sent", "received"], files: int, size: int, line: str
) -> None:
    task = Task(connection_to("http://host"), pytest.fail, read_only=False)
    task.accounting.add(bytes_sent=7_000_000, bytes_received=7_000_000)  # before the transfer
    lines: queue.Queue[str] = queue.Queue()
    progress = TransferProgress(
        task, "moving", moved, done=["first"], files=files, size=size, pause=0.001
    )
    threads = threading.active_count()
    with progress_to(lines.put), progress:
        assert transfer(task, moved, lines) == line
    assert threading.active_count() == threads
