# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the gates of the playbook `release`: freezes, issues that hold it, and stages [C7]."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from ansible.errors import AnsibleUndefinedVariable

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import bookkeeping
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.steps import gates

NOW = datetime(2026, 12, 24, 12, tzinfo=timezone.utc)
LATER = "{{ ci_build_results[0].build.number }}"
FREEZE = {"from": "2026-12-20T00:00:00Z", "to": "2027-01-02T00:00:00Z"}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "_now", lambda: NOW)


def step(name: str, *, values: Any = None, **variables: Any) -> dict[str, Any]:
    def template(value: Any) -> Any:
        if LATER in str(value):
            raise AnsibleUndefinedVariable("'ci_build_results' is undefined")
        return value

    run = bookkeeping.Run(variables, template, template)
    return bookkeeping.perform(name, run, values or {})


def fails(name: str, *, values: Any = None, **variables: Any) -> bookkeeping.StepError:
    with pytest.raises(bookkeeping.StepError) as caught:
        step(name, values=values, **variables)
    return caught.value


def test_freeze_stops_a_release() -> None:
    error = fails("freeze", release_freeze=[{**FREEZE, "reason": "holidays"}])
    assert error.kind == "waiting"
    assert error.values["waiting"] == {
        "reason": "releases are frozen since 2026-12-20T00:00:00.000Z: holidays",
        "until": "2027-01-02T00:00:00.000Z",
    }
    assert str(error).endswith("holidays: wait until 2027-01-02T00:00:00.000Z.")


@pytest.mark.parametrize(
    ("begin", "end", "stops"),
    [
        ("2026-12-24T12:00:00Z", "2026-12-24T12:00:01Z", True),
        ("2026-12-24T11:00:00Z", "2026-12-24T12:00:00Z", False),
        ("2026-12-24T12:00:01Z", "2026-12-25T12:00:00Z", False),
        ("2026-12-24 13:00+01:00", "2026-12-24T13:00:01.5+0100", True),
        ("2026-12-24T13:00:01+01:00", "2026-12-25T00:00:00Z", False),
        # YAML reads a time without quotes as a datetime
        (NOW - timedelta(hours=1), NOW + timedelta(hours=1), True),
        (NOW + timedelta(hours=1), NOW + timedelta(hours=2), False),
    ],
)
def test_freeze_begins_and_ends(begin: Any, end: Any, stops: bool) -> None:
    freeze = [{"from": begin, "to": end}]
    if stops:
        assert fails("freeze", release_freeze=freeze).kind == "waiting"
    else:
        assert step("freeze", release_freeze=freeze) == {}


def test_freezes_may_follow_each_other() -> None:
    next_one = {"from": "2027-01-01T00:00:00Z", "to": "2027-01-05T00:00:00Z"}
    error = fails("freeze", release_freeze=[FREEZE, next_one])
    assert error.values["waiting"]["until"] == "2027-01-05T00:00:00.000Z"


@pytest.mark.parametrize(
    ("variables", "stops"),
    [
        ({"release_builds": [{"build_name": "hotfix"}]}, False),
        ({"release_images": [{"image": "team/app"}]}, False),
        ({"release_bundles": [{"name": "1"}]}, False),
        ({"release_build_publish": {"build_name": "hotfix"}}, False),
        ({"release_build_publish": {"build_name": "other"}}, True),
        ({"release_builds": [{"build_name": "hotfix"}, {"build_name": "app"}]}, True),
        ({"release_builds": [{"build_name": "hotfix"}], "release_images": [{"image": "x"}]}, True),
        ({"release_builds": [{"build_name": LATER}]}, True),
        ({"release_builds": LATER}, True),
        ({"release_builds": []}, True),
        ({}, True),
    ],
)
def test_only_a_release_of_exempt_names_passes(variables: Any, stops: bool) -> None:
    freeze = [{**FREEZE, "except": ["hotfix", "team/app", 1]}]
    if stops:
        assert fails("freeze", release_freeze=freeze, **variables).kind == "waiting"
    else:
        assert step("freeze", release_freeze=freeze, **variables) == {}


@pytest.mark.parametrize("given", [None, []])
def test_nothing_is_frozen_or_held_without_entries(given: Any) -> None:
    assert step("freeze") == step("freeze", release_freeze=given) == {}
    assert step("holds") == step("holds", release_hold=given) == {"holds": []}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"from": FREEZE["from"]}, "release_freeze[1].to is None"),
        ({**FREEZE, "from": ""}, "release_freeze[1].from is ''"),
        ({**FREEZE, "from": "2026-12-20"}, "release_freeze[1].from"),
        ({**FREEZE, "from": "2026-12-20T00:00:00"}, "a time with a zone"),
        ({**FREEZE, "to": "2027-02-30T00:00:00Z"}, "release_freeze[1].to"),
        ({**FREEZE, "to": "2027-01-02T00:00:00+2500"}, "release_freeze[1].to"),
        ({**FREEZE, "to": "2027-01-02T00:00:00 CET"}, "release_freeze[1].to"),
        ({**FREEZE, "to": datetime(2027, 1, 2)}, "release_freeze[1].to"),  # noqa: DTZ001 - that is it
        ({**FREEZE, "to": 20270102.5}, "release_freeze[1].to"),
        ({**FREEZE, "to": 1798761600000}, "release_freeze[1].to"),
        ({"from": FREEZE["to"], "to": FREEZE["from"]}, "from must be before to"),
        ({"from": FREEZE["to"], "to": FREEZE["to"]}, "from must be before to"),
        ({**FREEZE, "reson": "x"}, "did you mean reason?"),
        ({**FREEZE, "until": "x"}, "'until'"),
        ({**FREEZE, "reason": ""}, "release_freeze[1].reason"),
        ({**FREEZE, "reason": 1.5}, "release_freeze[1].reason"),
        ({**FREEZE, "except": [1.10]}, "release_freeze[1].except[0]"),
        ({**FREEZE, "except": ["a", " "]}, "release_freeze[1].except[1]"),
        ({**FREEZE, "except": {"a": 1}}, "release_freeze[1].except"),
        ("2026-12-20", "release_freeze[1] must be a mapping"),
    ],
)
def test_freeze_that_cannot_be_understood_is_invalid(entry: Any, message: str) -> None:
    """Also if another entry is over, or this one."""
    over = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
    error = fails("freeze", release_freeze=[over, entry])
    assert error.kind == "invalid"
    assert message in str(error)


@pytest.mark.parametrize("given", ["", " ", "2026-12-20", FREEZE, 1.5])
def test_freeze_must_be_a_list(given: Any) -> None:
    error = fails("freeze", release_freeze=given)
    assert (error.kind, "release_freeze" in str(error)) == ("invalid", True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("project = REL", [("project = REL", "")]),
        ({"jql": "project = REL", "reason": "broken"}, [("project = REL", "broken")]),
        (["a = 1", {"jql": "b = 2", "reason": "why"}], [("a = 1", ""), ("b = 2", "why")]),
    ],
)
def test_holds_are_queries(given: Any, expected: Any) -> None:
    found = step("holds", release_hold=given)["holds"]
    assert [(hold["jql"], hold["reason"]) for hold in found] == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "release_hold is empty"),
        (" ", "release_hold is empty"),
        ([""], "release_hold[0].jql"),
        ([{"jql": " "}], "release_hold[0].jql"),
        ([{"reason": "x"}], "release_hold[0].jql"),
        ([{"jql": "a = 1", "reason": " "}], "release_hold[0].reason"),
        ([{"jql": "a = 1", "raeson": "x"}], "did you mean reason?"),
        (1.5, "release_hold.jql"),
        (["a = 1", True], "release_hold[1].jql"),
        ([["a = 1"]], "release_hold[0].jql"),
    ],
)
def test_hold_that_cannot_be_understood_is_invalid(given: Any, message: str) -> None:
    error = fails("holds", release_hold=given)
    assert error.kind == "invalid"
    assert message in str(error)


HOLD = {"jql": "project = REL", "reason": "broken"}
NONE = {"issues": [], "complete": True}


def held(*searches: Any, holds: Any = None) -> dict[str, Any]:
    return {"holds": holds or [HOLD] * len(searches), "searches": list(searches)}


def test_any_issue_stops_the_release() -> None:
    assert step("held", values=held()) == step("held", values=held(NONE, NONE)) == {}
    fields = {"summary": "Broken", "created": "2026-12-01T10:00:00.000+0100"}
    issues = [{"key": "REL-1", "fields": fields}, *({"key": f"REL-{n}"} for n in range(2, 9))]
    found = {"issues": issues, "complete": False}
    error = fails("held", values=held(NONE, found))
    assert error.kind == "waiting"
    assert error.values["waiting"] == {
        "reason": "REL-1 'Broken' (since 2026-12-01T09:00:00.000Z), REL-2, REL-3, REL-4, REL-5 and"
        " 3 more stop the release until no issue matches: broken",
        "until": None,
    }


@pytest.mark.parametrize(
    "values",
    [
        held({"failed": True, "msg": "x"}),
        held({"skipped": True}),
        held({**NONE, "complete": False}),
        held({"issues": []}),
        held({**NONE, "warnings": ["The value 'REL' does not exist for the field 'project'."]}),
        held({"issues": {}, "complete": True}),
        held(NONE, holds=[HOLD, HOLD]),
        {"holds": [HOLD], "searches": []},
    ],
)
def test_unreadable_search_never_passes(values: Any) -> None:
    assert fails("held", values=values).kind == "protocol"


def test_reason_is_that_of_the_task_or_of_its_item() -> None:
    early, late = ({"reason": "r", "until": f"2026-01-0{day}"} for day in (1, 2))
    waits = {"failed": True, "waiting": early, "error": {"kind": "waiting"}}
    broken = {"failed": True, "error": {"kind": "server"}}
    for result, expected in (
        (waits, early),
        ({}, {}),
        ({"failed": True, "results": [{"changed": True}, waits]}, early),
        ({"failed": True, "results": [waits, {**waits, "waiting": late}]}, late),
        ({"failed": True, "results": [waits, broken]}, {}),
        ({"failed": True, "results": [{"failed": True}, waits]}, {}),
        ({"results": [{"waiting": early}]}, {}),
    ):
        assert step("waits", values={"result": result}) == {"waiting": expected}


# --- entries that can be decided before the first write

SOAK = {"status": "staged", "for": "2h"}


def build(name: Any, status: Any, number: Any = "1", **more: Any) -> dict[str, Any]:
    return {"build_name": name, "build_number": number, "status": status, **more}


def image(**more: Any) -> dict[str, Any]:
    return {"repo": "a", "target_repo": "b", "image": "i", "tag": "1", "soak": SOAK, **more}


def bundle(name: str, environment: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "version": "1", "environment": environment, **more}


@pytest.mark.parametrize(
    ("builds", "expected"),
    [
        ([build("app", "released", soak=SOAK)], [0]),
        ([build("app", "released")], []),
        ([build("app", "staged"), build("app", "released", soak=SOAK)], []),
        ([build("app", "released", soak=SOAK), build("app", "staged")], [0]),
        ([build("lib", "staged"), build("app", "released", soak=SOAK)], [1]),
        ([build("app", "staged", "2"), build("app", "released", soak=SOAK)], [1]),
        ([build("app", "tested"), build("app", "released", soak=SOAK)], [1]),
        # that build may refer to this one
        ([build("all", "staged", aggregated="follow"), build("app", "released", soak=SOAK)], []),
        ([build("app", "released", LATER, soak=SOAK)], []),
        ([build("app", "staged", LATER), build("app", "released", soak=SOAK)], []),
        ([build("app", LATER), build("app", "released", soak=SOAK)], []),
        ([build("app", "released", soak=SOAK, comment=LATER)], [0]),
    ],
)
def test_builds_that_can_be_decided(builds: Any, expected: list[int]) -> None:
    for of in ("release", "release_promote"):
        found = step("soaked", values={"of": of}, **{f"{of}_builds": builds})["builds"]
        assert [entry["soak"] for entry in found] == [
            {**SOAK, "check_only": True} for _ in expected
        ]
        assert [entry["build_name"] for entry in found] == [
            builds[place]["build_name"] for place in expected
        ]


def test_later_promotions_are_known() -> None:
    builds = [build("app", "released", soak=SOAK, copy=False), build("app", "sold", comment="x")]
    (found,) = step("soaked", values={"of": "release"}, release_builds=builds)["builds"]
    assert found["followed_by"] == [build("app", "sold")]
    assert found["copy_files"] is False


def test_images_and_bundles_that_can_be_decided() -> None:
    gate = {"environment": "QA", "for": "2h"}
    variables = {
        "release_builds": [build("app", "tested")],
        "release_images": [image(), image(tag=LATER), image(soak=None)],
        "release_bundles": [
            bundle("a", "PROD", soak=gate),
            bundle("a", "QA"),
            bundle("b", "QA"),
            bundle("b", "PROD", soak=gate),
        ],
    }
    found = step("soaked", values={"of": "release"}, **variables)
    assert found["builds"] == []
    assert [entry["image"] for entry in found["images"]] == ["i"]
    assert [entry["name"] for entry in found["bundles"]] == ["a"]
    variables["release_builds"] = [build("app", "staged")]
    assert step("soaked", values={"of": "release"}, **variables)["images"] == []
    without = [{"name": "a", "version": "1", "sources": {}, "soak": gate}]
    error = fails("soaked", values={"of": "release"}, release_bundles=without)
    assert (error.kind, "release_bundles[0].soak" in str(error)) == ("invalid", True)
