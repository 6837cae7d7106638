# SPDX-License-Identifier: GPL-3.0-or-later
"""Test scans of computed folders: told apart by their logs, followed to the end, and refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs.ci_branch_scan import (
    CiBranchScanOperation,
    CiBranchScanOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.helpers.options import build as options_of
from tests.unit.ci.server import Played
from tests.unit.stub import Reply, Seen, Stub

OLD = "Started by timer\n[Mon 08:00:00] Starting\nFinished: SUCCESS\n"
NEW = "Started by builder\n[Mon 09:00:00] Starting\n"
END = "Finished: SUCCESS\n"
MULTIBRANCH = "org.jenkinsci.plugins.workflow.multibranch.WorkflowMultiBranchProject"


@dataclass
class Scans:
    """A folder with branches before and after a scan, and the logs that it shows in turn."""

    logs: list[str | Reply] = field(default_factory=lambda: ["", NEW, NEW + END])
    before: list[str] = field(default_factory=lambda: ["main", "old"])
    after: list[str] = field(default_factory=lambda: ["main", "feature%2Fx"])
    more: dict[str, Any] = field(default_factory=lambda: {"buildable": True})
    response: Reply = field(default_factory=lambda: Reply(302, headers={"Location": "."}))
    asked: bool = False

    def __call__(self, seen: Seen) -> Reply:
        if seen.path.startswith("/base/crumbIssuer"):
            return Reply(404)
        if seen.method == "POST":
            self.asked = True
            return self.response
        if "/logText/" in seen.path:
            log = self.logs.pop(0) if len(self.logs) > 1 else self.logs[0]
            if isinstance(log, Reply):
                return log
            headers = {} if "Finished" in log or not log else {"X-More-Data": "true"}
            return Reply(200 if log else 404, body=log.encode(), headers=headers)
        names = self.after if self.asked else self.before
        jobs = [{"name": name} for name in names]
        more = {"buildable": False} if self.asked and self.response.status == 500 else self.more
        return Reply(body={"_class": MULTIBRANCH, "jobs": jobs, **more})


def play(scans: Scans, *, read_only: bool = False, **given: Any) -> tuple[dict[str, Any], Played]:
    options = options_of(CiBranchScanOptions, **{"job": "app", **given})
    with Stub(response=scans) as stub:
        played = Played(stub, given, read_only)
        made = lambda task: CiBranchScanOperation(task, options, played.clock.polling)  # noqa: E731
        return played.run(made), played


@pytest.mark.parametrize(
    "logs",
    [
        ["", "", NEW, NEW + END],
        [OLD, OLD, NEW, NEW + END],
        # the scan before ours still runs
        [OLD[:45], OLD, NEW, NEW + END],
        ["", Reply(503), NEW + END],
        # the server adds notes and carriage returns
        ["", f"\x1b[8mha:////4A=\x1b[0m{NEW}{END}".replace("\n", "\r\n")],
    ],
)
def test_scan_is_followed_to_its_end(logs: list[str | Reply]) -> None:
    values, played = play(Scans(list(logs)))
    (post,) = played.posts
    assert post.target == "/base/job/app/build?delay=0sec"
    assert values == {
        "changed": True,
        "scan": {"result": "SUCCESS", "log": NEW + END},
        "branches": ["feature/x", "main"],
        "added": ["feature/x"],
        "removed": ["old"],
    }


def test_scan_is_not_awaited_without_wait() -> None:
    values, _played = play(Scans(), wait=False)
    assert values["scan"] == {"result": None, "log": ""}
    assert (values["branches"], values["added"]) == (["main", "old"], [])


@pytest.mark.parametrize(
    ("scans", "kind", "words"),
    [
        (
            Scans(more={"buildable": False}),
            "conflict",
            "a parent folder is disabled, or the project has no branch source",
        ),
        (Scans(more={"buildable": False, "disabled": True}), "conflict", "enable it with ci_job"),
        (Scans(more={"buildable": False, "disabled": False}), "conflict", "no branch source: add"),
        (Scans([OLD], response=Reply(500)), "conflict", "is disabled"),
        (
            Scans(more={"_class": "com.cloudbees.hudson.plugins.folder.Folder"}),
            "rejected",
            "it is a folder: set job to a multibranch project",
        ),
        (Scans(["", NEW + "Finished: FAILURE\n"]), "failed", "the scan ended with FAILURE"),
        (Scans([OLD]), "timeout", "wait_timeout (60 s) expired"),
        (Scans([OLD], response=Reply(502)), "server", "whether it was done is not known"),
    ],
)
def test_unsuccessful_scan_is_an_error(scans: Scans, kind: str, words: str) -> None:
    with pytest.raises(ToolchainError) as failure:
        play(scans, wait_timeout=60)
    assert (failure.value.kind, words in failure.value.message) == (kind, True)
    if kind == "failed":
        assert failure.value.result["branches"] == ["feature/x", "main"]


def test_lost_response_is_resolved_by_the_log() -> None:
    values, _played = play(Scans(["", NEW, NEW + END], response=Reply(502)))
    assert values["scan"]["result"] == "SUCCESS"


def test_check_mode_starts_nothing() -> None:
    values, played = play(Scans(), read_only=True)
    assert (values["changed"], played.posts) == (True, [])
