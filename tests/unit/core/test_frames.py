# SPDX-License-Identifier: GPL-3.0-or-later
"""Limit the frames and files between a module and the wire, so that a write is easy to follow."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.connections import (
    DeadlineAdapter,
)
from ansible_collections.delivery.toolchain.plugins.modules import build_promote
from tests.unit.arguments import given_to_a_module
from tests.unit.stub import Reply, Seen, Stub

RECORD = {"buildInfo": {"name": "agent", "number": "1", "started": "2026-01-02T03:04:05.678+0000"}}


def test_promotion_request_is_at_most_eleven_frames_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    paths: list[list[traceback.FrameSummary]] = []
    send = DeadlineAdapter.send

    def watched(self: DeadlineAdapter, request: Any, **options: Any) -> Any:
        frames = traceback.extract_stack()[:-1]
        if request.method == "POST":
            names = [frame.name for frame in frames]
            paths.append(list(frames[names.index("main", names.index(_NAME)) :]))
        return send(self, request, **options)

    def response(seen: Seen) -> Reply:
        return Reply(200, RECORD) if seen.method == "GET" else Reply(200, {"messages": []})

    monkeypatch.setattr(DeadlineAdapter, "send", watched)
    with Stub(response=response) as stub:
        given = {"url": stub.url, "build_name": "agent", "build_number": "1", "status": "released"}
        with given_to_a_module(given), pytest.raises(SystemExit):
            build_promote.main()
    (path,) = paths
    # one frame and its file are the loop over the builds to which an aggregated build refers
    assert len(path) <= 11, [frame.name for frame in path]
    assert len({frame.filename for frame in path}) <= 7


_NAME = test_promotion_request_is_at_most_eleven_frames_deep.__name__
