# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the deletion of builds: selection, protected builds, and the limit `max_deletions`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds.ci_build_delete import (
    CiBuildDeleteOperation,
    CiBuildDeleteOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.helpers.options import build as options_of
from tests.unit.ci.server import STARTED, Played, build
from tests.unit.stub import Reply, Seen, Stub

DAY = 86_400_000
BACK = Reply(302, headers={"Location": "."})


def _made(number: int, result: str | None = "SUCCESS", keep: bool = False) -> dict[str, Any]:
    return build(number, result, keepLog=keep, timestamp=STARTED + number * DAY)


@dataclass
class Builds:
    """A job with builds. `answers` are responses to paths, which then do nothing."""

    builds: list[dict[str, Any]] = field(
        default_factory=lambda: [
            _made(1, "FAILURE"),
            _made(2),
            _made(3, "FAILURE"),
            _made(4, keep=True),
            _made(5),
            _made(6, None),
        ]
    )
    answers: dict[str, Reply] = field(default_factory=dict)

    def __call__(self, seen: Seen) -> Reply:
        *_job, number, name = seen.path.partition("?")[0].split("/")
        if seen.path.startswith("/base/crumbIssuer"):
            return Reply(404)
        if seen.method == "POST":
            found = next(record for record in self.builds if record["number"] == int(number))
            if f"{number}/{name}" in self.answers:
                return self.answers[f"{number}/{name}"]
            if name == "doDelete":
                self.builds.remove(found)
            elif name == "toggleLogKeep":
                found["keepLog"] = not found["keepLog"]
            else:
                found.update(building=False, result="ABORTED")
            return BACK
        if "/job/app/api/" in seen.path:
            return Reply(
                body={"allBuilds": self.builds, "lastSuccessfulBuild": {"number": 5}},
                headers={"Date": "Wed, 22 Nov 2023 22:13:20 GMT"},
            )
        number = seen.path.split("/job/app/")[1].partition("/")[0]
        shown = [record for record in self.builds if record["number"] == int(number)]
        return Reply(body=shown[0]) if shown else Reply(404)


def play(served: Builds, *, read_only: bool = False, **given: Any) -> tuple[dict[str, Any], Played]:
    options = options_of(CiBuildDeleteOptions, **{"job": "app", **given})
    with Stub(response=served) as stub:
        played = Played(stub, given, read_only)
        values = played.run(
            lambda task: CiBuildDeleteOperation(task, options, played.clock.polling)
        )
        return values, played


@pytest.mark.parametrize(
    ("given", "deleted", "kept"),
    [
        ({"builds": [1, 3, 9]}, [3, 1], []),
        ({"builds": [4, 5, 6]}, [], [6, 5, 4]),
        ({"keep_last": 0}, [3, 2, 1], [6, 5, 4]),
        ({"keep_last": 4}, [2, 1], []),
        ({"keep_last": 9}, [], []),
        # the server's clock is eight days after the start of the series
        ({"older_than": "5d"}, [2, 1], []),
        ({"older_than": "132h"}, [2, 1], []),
        ({"older_than": "1w"}, [], []),
        ({"keep_last": 0, "results": ["FAILURE"]}, [3, 1], []),
    ],
)
def test_builds_are_selected(given: dict[str, Any], deleted: list[int], kept: list[int]) -> None:
    served = Builds()
    values, played = play(served, **given)
    found = {
        action: [row["number"] for row in values["builds"] if row["action"] == action]
        for action in ("deleted", "kept")
    }
    assert found == {"deleted": deleted, "kept": kept}
    assert values["changed"] is bool(deleted)
    left = [record["number"] for record in served.builds]
    assert left == [number for number in range(1, 7) if number not in deleted]
    assert bool(played.warnings) is bool(kept)
    assert all(f"#{number}" in played.warnings[0] for number in kept)


def test_force_stops_and_unlocks_builds_first() -> None:
    served = Builds()
    values, played = play(served, keep_last=0, force=True)
    assert served.builds == []
    assert [row["action"] for row in values["builds"]] == ["deleted"] * 6
    sent = [post.path.split("/job/app/")[1] for post in played.posts]
    assert sent[:4] == ["6/stop", "6/doDelete", "5/doDelete", "4/toggleLogKeep"]


def test_check_mode_deletes_nothing() -> None:
    values, played = play(Builds(), read_only=True, keep_last=0)
    assert (values["changed"], played.posts) == (True, [])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"keep_last": 0, "max_deletions": 2}, "3 builds (#3, #2, #1) would be deleted"),
        ({"keep_last": -1}, "keep_last is -1"),
        ({"builds": [0]}, "builds[0] is 0"),
        (
            {"older_than": "yesterday"},
            "older_than is 'yesterday': set it to a positive number with",
        ),
        ({"older_than": "0d"}, "older_than is '0d': set it to a positive number with"),
    ],
)
def test_invalid_options_delete_nothing(given: dict[str, Any], words: str) -> None:
    served = Builds()
    with pytest.raises(ToolchainError) as failure:
        play(served, **given)
    assert (failure.value.kind, words in failure.value.message) == ("invalid", True)
    assert len(served.builds) == 6


def test_failure_reports_the_deleted_builds() -> None:
    served = Builds(answers={"2/doDelete": Reply(403)})
    with pytest.raises(ToolchainError) as failure:
        play(served, keep_last=3)
    assert failure.value.kind == "permission"
    assert failure.value.result["changed"] is True
    assert [row["number"] for row in failure.value.result["builds"]] == [3]


def test_warning_names_why_a_build_is_left() -> None:
    _values, played = play(Builds(), builds=[4, 5, 6])
    assert "#6 (running), #5 (last successful), #4 (kept)" in played.warnings[0]


def test_build_that_the_server_keeps_because_it_runs_is_named() -> None:
    def starts_again(seen: Seen) -> Reply:
        if seen.path.endswith("1/doDelete"):
            served.builds[0] |= {"building": True, "result": None}
            return BACK
        return Builds.__call__(served, seen)

    served = Builds()
    with Stub(response=starts_again) as stub:
        played = Played(stub, {})
        options = options_of(CiBuildDeleteOptions, job="app", builds=[1])
        with pytest.raises(ToolchainError, match="running builds stay: #1"):
            played.run(lambda task: CiBuildDeleteOperation(task, options))


def test_deletion_without_effect_is_an_error() -> None:
    served = Builds(answers={"1/doDelete": BACK})
    with pytest.raises(ToolchainError, match="did not delete #1") as failure:
        play(served, builds=[1])
    assert (failure.value.kind, failure.value.result["changed"]) == ("failed", False)


@pytest.mark.parametrize(
    ("number", "answers", "kind", "step"),
    [
        (6, {"6/doDelete": Reply(403)}, "permission", "stopped"),
        (4, {"4/doDelete": Reply(403)}, "permission", "released"),
        (6, {"6/stop": BACK}, "timeout", "stopped"),
        (4, {"4/doDelete": BACK}, "failed", "released"),
        (6, {"6/doDelete": BACK}, "failed", "stopped"),
        (6, {"6/stop": Reply(403)}, "permission", None),
    ],
)
def test_stopped_or_unlocked_build_counts_as_changed(
    number: int, answers: dict[str, Reply], kind: str, step: str | None
) -> None:
    with pytest.raises(ToolchainError) as failure:
        play(Builds(answers=answers), builds=[number], force=True)
    result = failure.value.result
    assert (failure.value.kind, result["changed"]) == (kind, step is not None)
    assert [(row["number"], row["action"]) for row in result["builds"]] == (
        [] if step is None else [(number, step)]
    )


def test_build_that_does_not_stop_is_reported() -> None:
    with pytest.raises(
        ToolchainError, match=r"build #6 is still running 60 s after the stop request"
    ):
        play(Builds(answers={"6/stop": BACK}), builds=[6], force=True)
