# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the gate `soak` with misbehaving servers: an unreadable answer never lets a promotion pass.

The object has been in its stage for long enough, so that only the answer about it can stop the
promotion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, forked, playbook
from tests.helpers.cases import connection_options, first_arguments, module_of, seed, settings
from tests.helpers.sentences import assert_one_sentence

#: Pattern of the path with the promotions of an object, by case.
CASES = {
    "build_promote_soak": "^/api/build/",
    "docker_promote_soak": "^/api/build/",
    "release_bundle_promote_soak": "/promotion/records/|/promotions/",
}
STAGED = {"status": "staged", "timestamp": "2026-01-02T03:04:05.678+0000"}


def _record(*statuses: Any, **more: Any) -> dict[str, Any]:
    info = {"name": "agent", "number": "13", "started": STAGED["timestamp"], **more}
    return {"body": {"buildInfo": {**info, "statuses": list(statuses)}}}


#: Faults of every read of promotions, and the kinds of their errors.
FAULTS: dict[str, tuple[Mapping[str, Any], str]] = {
    "an HTML answer": ({"body": "<html><body>Hello</body></html>"}, "protocol"),
    "an empty answer": ({"body": ""}, "protocol"),
    "an answer that is cut short": ({"truncate": 30}, "network"),
    "a cut connection": ({"cut": True}, "network"),
    "a broken server": ({"status": 500, "body": "it broke"}, "server"),
    "no permission": ({"status": 403, "body": "not yours"}, "permission"),
    "no object": ({"status": 404, "body": {"errors": []}}, "not_found"),
    "a list": ({"body": []}, "protocol"),
}
#: Faults of a build record.
RECORDS: dict[str, tuple[Mapping[str, Any], str]] = {
    "a record without promotions": (_record(), "not_found"),
    "another stage": (_record({**STAGED, "status": "tested"}), "not_found"),
    "promotions that are no list": ({"body": {"buildInfo": {"statuses": "staged"}}}, "protocol"),
    "a time without a zone": (_record({**STAGED, "timestamp": "2026-01-02T03:04:05"}), "protocol"),
    "a promotion without a time": (_record({**STAGED, "timestamp": None}), "protocol"),
    "a clock without a zone": (
        {**_record(STAGED), "headers": {"Date": "Fri, 02 Jan 2026 09:04:05"}},
        "protocol",
    ),
}


def _faults(case: str) -> dict[str, tuple[Mapping[str, Any], str]]:
    return FAULTS if case.startswith("release_bundle") else {**FAULTS, **RECORDS}


@pytest.fixture(scope="module")
def troubled(
    fresh: Callable[[str], Sandbox], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], playbook.Run]:
    """Return a function that promotes with all faults in both modes, and at last without one."""
    runs: dict[str, playbook.Run] = {}

    def once(case: str) -> playbook.Run:
        if case not in runs:
            runs[case] = _run(case, fresh("real"), tmp_path_factory.mktemp(case))
        return runs[case]

    return once


def _run(case: str, sandbox: Sandbox, folder: Any) -> playbook.Run:
    fresh = {"sandbox_reset": settings(case), "sandbox_seed": seed(case)}

    def one(name: str, faults: list[Mapping[str, Any]], *, check: bool) -> dict[str, Any]:
        condition = {"service": "repo", "method": "GET", "path": CASES[case], "times": 99}
        given = {"sandbox_faults": [{**condition, **fault} for fault in faults], **fresh}
        task = playbook.task(module_of(case), first_arguments(case), name, vars=given)
        return {**task, "check_mode": check}

    tasks = [
        one(f"{name}, {check}", [fault], check=check)
        for name, (fault, _kind) in _faults(case).items()
        for check in (False, True)
    ]
    options = {"retries": 0, **connection_options(case, "real")}
    defaults = connections.module_defaults(sandbox.urls, repo=options)
    play = playbook.play([*tasks, one("calm", [], check=False)], module_defaults=defaults)
    return forked.run(folder, play, sandbox)


@pytest.mark.parametrize(
    ("case", "name"), [(case, name) for case in CASES for name in _faults(case)]
)
def test_unreadable_answer_stops_a_promotion(
    troubled: Callable[[str], playbook.Run], case: str, name: str
) -> None:
    for check in (False, True):
        event = troubled(case).event(f"{name}, {check}")
        assert event.status == "failed", event.result.get("msg")
        assert event.result["error"]["kind"] == _faults(case)[name][1], event.result["msg"]
        assert "waiting" not in event.result
        assert event.writes == []
        assert_one_sentence(event.result, event.task)


@pytest.mark.parametrize("case", CASES)
def test_promotion_passes_without_a_fault(
    troubled: Callable[[str], playbook.Run], case: str
) -> None:
    event = troubled(case).event("calm")
    assert (event.status, len(event.writes)) == ("ok", 1), event.result.get("msg")
