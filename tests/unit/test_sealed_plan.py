# SPDX-License-Identifier: GPL-3.0-or-later
"""Test sealed plans: their digests in modules, and their file on the controller."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections import UserString
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.service import SERVICE
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.descriptor import (
    Descriptor,
    reads,
    writes,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.sealing import (
    PlannedChange,
    Sealing,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Plan
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import bookkeeping, collection
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import ignored, sealed
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.contents import (
    Contents,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.since import finding_id
from tests.unit.arguments import run_of

AT = datetime(2026, 11, 24, 6, tzinfo=timezone.utc)
SERVER = "https://ci.example.com"
PLACE = ("CiJobOptions", SERVER)


class Whole:
    """An operation with an indivisible plan."""


@dataclass
class Options:
    """The options of such an operation."""

    job: str
    secret: Secret
    folder: str | None = None
    run: int = 1


@dataclass
class Many:
    """An operation with several changes."""

    sides: list[tuple[str, Any]]

    def parts(self, plan: Plan) -> Sequence[PlannedChange]:
        return [
            PlannedChange(name, {"password": "s3cret", "name": name}, None, after)
            for name, after in plan.data
        ]

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        sides = [each for n, each in enumerate(plan.data) if n not in places]
        return Plan({}, dict(sides), "update" if sides else "none", data=sides)


def held(
    given: dict[str, Any], operation: Any, *, check_mode: bool = False, after: Any = "new"
) -> tuple[Sealing, Plan]:
    sealing = Sealing({"salt": "salt", **given}, PLACE, {"s3cret"})
    plan = Plan("old", after, "update", data=getattr(operation, "sides", None))
    return sealing, sealing.restrict(operation, plan, {}, check_mode=check_mode)


def digests(operation: Any, **more: Any) -> list[str]:
    return digests_of(held({}, operation, check_mode=True, **more)[0])


def digests_of(sealing: Sealing) -> list[str]:
    return [change.digest for change in sealing.changes]


def test_plan_is_compared_with_the_sealed_plan() -> None:
    (digest,) = digests(Whole())
    assert held({"writes": [digest]}, Whole())[1].changed
    with pytest.raises(ToolchainError, match="conflict: the change is not in the sealed plan"):
        held({"writes": [digest]}, Whole(), after="other")
    sealing, plan = held({"writes": [], "rest": "skip"}, Whole())
    assert (plan.changed, plan.diff(), sealing.skipped) == (False, ("old", "old"), [""])
    assert held({"writes": [], "ignored": [digest]}, Whole())[1].changed is False


def test_changes_of_a_list_are_compared_individually() -> None:
    operation = Many([("a", 1), ("b", 2), ("c", 3)])
    first, second, third = digests(operation)
    with pytest.raises(ToolchainError, match="the change of b is not in the sealed plan") as caught:
        held({"writes": [first], "ignored": [third]}, operation)
    assert caught.value.kind == "conflict"
    sealing, plan = held({"writes": [second], "rest": "skip"}, operation)
    assert (plan.after, sealing.skipped) == ({"b": 2}, ["a", "c"])
    assert held({"writes": [], "rest": "skip"}, operation)[1].changed is False


class Following:
    """An operation with changes that earlier tasks lead to."""

    def parts(self, plan: Plan) -> Sequence[PlannedChange]:
        return [
            PlannedChange(f"{group}/{number}", None, number, None, group=group, follows=True)
            for group in "ab"
            for number in range(2)
        ]

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        return Plan({}, sorted(places), "delete")


def test_dependent_changes_are_omitted_without_conflict() -> None:
    sealing, _plan = held({}, Following(), check_mode=True)
    assert [change.name for change in sealing.changes] == ["a", "a", "b", "b"]
    _sealing, plan = held({"writes": digests_of(sealing)[1:]}, Following())
    assert plan.after == [0]


def test_long_conflict_is_shortened() -> None:
    operation = Many([(f"n{number}", number) for number in range(12)])
    with pytest.raises(ToolchainError, match=r"of n0, n1, .*, n9 and 2 more is not"):
        held({"writes": []}, operation)


def test_digests_depend_on_location_salt_sides_and_secrets() -> None:
    base = Sealing({"salt": "salt"}, PLACE, {"one", "two", "three"})

    def digest(sealing: Sealing, before: Any, wanted: Any) -> str:
        sealing.restrict(Whole(), Plan(before, "x", "update"), wanted, check_mode=True)
        return digests_of(sealing)[0]

    wanted: Any = {"password": ["one"], "secret": Secret("two")}
    found = {
        digest(base, "a", {}),
        digest(base, "b", {}),
        digest(base, "a", wanted),
        digest(base, "a", {"password": Secret("three")}),
        digest(Sealing({"salt": "other"}, PLACE, ()), "a", {}),
        digest(Sealing({"salt": "salt"}, ("X", SERVER), ()), "a", {}),
    }
    assert len(found) == 6
    assert digest(base, "a", wanted) in found


#: Changes, and whether their digest has to be slow: the password of a user is often weak.
GUESSABLE: list[tuple[Any, Any, bool]] = [
    ({"name": "x"}, {"description": "new"}, False),
    ({"password": Secret("abc")}, {}, True),
    ([{"login": {"password": Secret("abc")}}], {}, True),
    ({"url": "https://u:s3cret@host"}, {"url": "https://u:s3cret@host"}, True),
    ({}, {"script": "deploy --password=abc"}, True),
    ({}, {"config": {"password": "abc"}}, True),
]


@pytest.mark.parametrize(("wanted", "after", "is_slow"), GUESSABLE)
def test_values_with_secrets_are_expensive_to_guess(
    wanted: Any, after: Any, is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[int] = []
    derive = hashlib.pbkdf2_hmac

    def counting(name: str, text: bytes, salt: bytes, number: int, length: int) -> bytes:
        rounds.append(number)
        return derive(name, text, salt, number, length)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", counting)
    for private in (set[str](), {"config"}):
        rounds.clear()
        sealing = Sealing({"salt": "salt"}, PLACE, {"s3cret"}, private=private)
        sealing.restrict(Whole(), Plan({}, after, "update"), wanted, check_mode=True)
        assert [number >= 100_000 for number in rounds] == [True] * (is_slow or bool(private))
        assert [len(digest) for digest in digests_of(sealing)] == [32]


@dataclass
class Entry:
    """An object of a list."""

    name: str
    config: Any = None


@pytest.mark.parametrize(
    ("wanted", "before", "is_slow"),
    [
        (Entry("a"), None, False),
        (Entry("a"), {}, False),
        (Entry("a"), {"text": "of the server"}, True),
        (Entry("a", {"text": "of the options"}), None, True),
        ({"name": "a"}, None, True),
    ],
)
def test_only_new_objects_without_private_options_are_cheap(
    wanted: Any, before: Any, is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Single(Many):
        def parts(self, plan: Plan) -> Sequence[PlannedChange]:
            return [PlannedChange("a", wanted, before, {"x": 1})]

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", lambda *_values: b"slow")
    sealing = Sealing({"salt": "salt"}, PLACE, (), private={"config"})
    sealing.restrict(Single([]), Plan({}, {}, "update"), {}, check_mode=True)
    assert (digests_of(sealing) == [b"slow".hex()]) is is_slow


def test_digest_of_a_single_object_includes_its_options() -> None:
    """Verify that the approval of an object does not allow the same change of another object."""
    operation: Any = Whole()
    access = {"save": writes("configure")}
    operation.descriptor = Descriptor(SERVICE, access, kind="job", name="{folder}/{job}")

    def digest(sealed: Sealing, **options: Any) -> str:
        sealed.restrict(operation, Plan({}, "x", "create"), Options(**options), check_mode=True)
        return digests_of(sealed)[0]

    drift = Sealing({"salt": "salt"}, PLACE, {"s3cret"})
    given: dict[str, Any] = {"job": "a", "secret": Secret("s3cret")}
    assert digest(drift, **given) == digest(drift, **given)
    assert len({digest(drift, **{**given, **more}) for more in ({}, {"job": "b"}, {"run": 2})}) == 3
    enforce = Sealing({"salt": "salt", "writes": []}, PLACE, {"s3cret"})
    with pytest.raises(ToolchainError, match="the change of a is not in the sealed plan"):
        enforce.restrict(operation, Plan({}, "x", "create"), Options(**given), check_mode=False)


def test_files_on_the_controller_are_no_part_of_a_plan() -> None:
    operation: Any = Whole()
    operation.descriptor = Descriptor(SERVICE, {"read": reads()})
    sealing, plan = held({"writes": []}, operation)
    assert (plan.changed, digests_of(sealing)) == (True, [])


def test_unchanged_task_has_no_digest() -> None:
    sealing = Sealing({"salt": "salt", "writes": []}, PLACE, ())
    plan = Plan("a", "a")
    assert sealing.restrict(Whole(), plan, {}, check_mode=False) is plan
    assert digests_of(sealing) == []


def contents(*names: str, host: str = "h", **values: Any) -> Contents:
    found = Contents("drift", check=True, hosts=[host], finished="2026-11-24T05:00:00Z")
    for name in names:
        found.add(
            host=host,
            service="ci",
            server=SERVER,
            kind="job",
            name=name,
            action="update",
            text=f"job {name}: differs",
            status="drift",
            digests=[f"write {name}"],
            **values,
        )
    found.servers["h", "ci"] = SERVER
    return found.since(accepted=ignored.parse([{"name": "ignored"}]))


def plan(
    *names: str, key: str | None = None, host: str = "h", salt: str = "salt", **values: Any
) -> dict[str, Any]:
    made = sealed.make(contents(*names, host=host, **values), salt, key, [host])
    loaded: dict[str, Any] = json.loads(json.dumps(made))
    return loaded


def test_seal_covers_all_but_digest_and_seal() -> None:
    made = plan("a", key="k")
    covered = {name: value for name, value in made.items() if name not in ("digest", "seal")}
    text = json.dumps(covered, sort_keys=True).encode()
    assert made["seal"] == hmac.new(b"k", text, "sha256").hexdigest()


def test_failures_are_not_in_the_plan() -> None:
    found = contents("a")
    found.add(host="h", service="ci", server=SERVER, kind="task", name="b", status="failed")
    made = sealed.make(found.since(), "salt", None, ["h"])
    assert [one["name"] for one in made["entries"]] == ["a"]


def test_plan_contains_distinct_digests_and_no_values() -> None:
    made = plan("a", "b", "ignored", before="was s3cret", after="is s3cret")
    assert "s3cret" not in json.dumps(made)
    assert [one["name"] for one in made["entries"]] == ["a", "b"]
    assert len({one["digest"] for one in made["entries"]}) == 2
    assert [one["writes"] for one in made["entries"]] == [["write a"], ["write b"]]
    assert made["ignored"][0] == "write ignored"
    assert (made["servers"], made["seal"]) == ([SERVER], None)


def test_differences_name_new_missing_and_changed_entries() -> None:
    plans = sealed.Plans([plan("a", "b", "c", "ignored")])

    def differences(*names: str, **values: Any) -> list[str]:
        return plans.differences(contents(*names, **values), ["h"])

    assert differences("a", "b", "c", "ignored") == []
    assert differences("b", "c") == [f"gone: job a on {SERVER}"]
    assert differences("a", "b", "c", "d") == [f"new: job d on {SERVER}"]
    found = differences("a", "b", "c", after="x")
    assert found == [f"different: job {name} on {SERVER}" for name in "abc"]
    lines = [str(number) for number in range(60)]
    assert "; and 10 more." in sealed.conflict(lines, Contents())


def test_chosen_findings_are_compared_and_written_alone() -> None:
    made = plan("a", "b", "c")
    (chosen,) = [finding_id(entry) for entry in made["entries"] if entry["name"] == "b"]
    plans = sealed.Plans([made], [chosen])
    assert plans.of_host("h")["writes"] == ["write b"]
    assert plans.differences(contents("b", "new"), ["h"]) == []
    assert plans.differences(contents("a"), ["h"]) == [f"gone: job b on {SERVER}"]
    assert plans.differences(contents("a", "b", after="x"), ["h"]) == [
        f"different: job b on {SERVER}"
    ]
    with pytest.raises(sealed.PlanError, match="has no finding 0123: set enforce_only"):
        sealed.Plans([made], [chosen, "0123"])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"enforce_plan": plan("a"), "enforce_only": []}, "enforce_only is an empty list"),
        ({"enforce_plan": plan("a"), "enforce_only": ","}, "enforce_only is an empty list"),
        ({"enforce_plan": plan("a"), "enforce_only": {}}, "must be a list of ids"),
        ({"enforce_plan": plan("a"), "enforce_only": 7}, "must be a list of ids"),
        ({"enforce_only": "0123"}, "but enforce_plan is not set"),
        ({"enforce_plan": "", "enforce_only": ["0123"]}, "but enforce_plan is not set"),
    ],
)
def test_choice_of_nothing_never_applies_everything(given: dict[str, Any], told: str) -> None:
    with pytest.raises(bookkeeping.StepError, match=told):
        bookkeeping.perform("open_plan", run_of(inventory_hostname="h", **given), {})


def test_message_says_that_nothing_was_written_only_if_that_is_true() -> None:
    found = contents("a")
    assert sealed.failed_comparison(found) == ""
    found.add(
        host="h", service="ci", server=SERVER, kind="job", name="x", status="failed", text="x: no"
    )
    assert "sealed plan, and nothing was written: a" in sealed.conflict(["a"], found)
    assert "sealed plan, and nothing was written: x: no." in sealed.failed_comparison(found)
    found.written = 1
    assert "written" not in sealed.conflict(["a"], found) + sealed.failed_comparison(found)


def test_unmanaged_and_unknown_objects_are_no_part_of_a_plan() -> None:
    found = contents("a")
    for status in ("unmanaged", "unknown"):
        found.add(
            host="h",
            service="ci",
            server=SERVER,
            kind="job",
            name=status,
            action="none",
            text=status,
            status=status,
        )
    made = sealed.make(found, "salt", None, ["h"])
    accepted = found.since(accepted=ignored.parse([{"kind": "job", "name": "un*"}]))
    assert sealed.make(accepted, "salt", None, ["h"])["ignored"] == made["ignored"] == []
    assert [entry["name"] for entry in made["entries"]] == ["a"]
    assert sealed.Plans([made]).differences(accepted, ["h"]) == []


def test_run_uses_the_plans_of_its_hosts() -> None:
    one, two = plan("a", host="one"), plan("a", host="two", salt="other")
    plans = sealed.Plans([one, two])
    assert plans.of_host("two") == {"salt": "other", "writes": ["write a"], "ignored": []}
    assert plans.of_host("three")["writes"] == []
    for host in ("one", "two"):
        assert plans.differences(contents("a", host=host), [host]) == []
        assert plans.differences(contents(host=host), [host]) == [f"gone: job a on {SERVER}"]
    new = plans.differences(contents("a", host="three"), ["two", "three"])
    assert sorted(new) == [f"gone: job a on {SERVER}", f"new: job a on {SERVER}"]
    with pytest.raises(sealed.PlanError, match="is for one, two, but this run has none of these"):
        plans.require_hosts(["three"])
    with pytest.raises(sealed.PlanError, match="of the host one is listed twice"):
        sealed.Plans([one, one])


def read(given: Any, folder: Path = Path()) -> Any:
    return sealed.read(given, lambda name: folder / name).plans[0]


def test_plan_is_read_from_file_or_mapping(tmp_path: Path) -> None:
    made = plan("a", key="k")
    (tmp_path / "plan.json").write_text(json.dumps(made), encoding="utf-8")
    assert read("plan.json", tmp_path) == read(made) == read([made]) == made


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 7}, "has format 7, but this release reads format 1: run drift again"),
        *(
            ({name: value}, "was edited after drift wrote it")
            for name in plan("a").keys() - {"format", "seal"}
            for value in ("now", [1], None)
        ),
    ],
)
def test_modified_plan_is_rejected(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(sealed.PlanError, match=words):
        read({**plan("a"), **changes})


@pytest.mark.parametrize("text", ["", "[]", "{", "1"])
def test_file_without_plan_is_rejected(text: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(text, encoding="utf-8")
    with pytest.raises(sealed.PlanError, match=r"/plan\.json is not a plan that drift wrote"):
        read("plan.json", tmp_path)
    with pytest.raises(sealed.PlanError, match=r"/other\.json cannot be read: No such file"):
        read("other.json", tmp_path)


def test_only_a_regular_file_is_read_as_a_plan(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plan.json")
    with pytest.raises(
        sealed.PlanError, match=r"plan\.json cannot be read: it is a device, a pipe"
    ):
        read("plan.json", tmp_path)


def test_control_characters_of_a_plan_are_not_printed() -> None:
    made = {**plan("a"), "collection": "\x1b[2J9.9\u202e"}
    made["digest"] = sealed._digest(made)
    with pytest.raises(bookkeeping.StepError) as caught:
        bookkeeping.perform("open_plan", run_of(enforce_plan=made, inventory_hostname="h"), {})
    assert "made by version 9.9 of the collection" in str(caught.value)
    gone = sealed.Plans([plan("\x1b]0;x\x07a\nb")]).differences(contents(), ["h"])
    assert gone == [f"gone: job a b on {SERVER}"]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("version", r"made by version .* but this is version 9\.9\.9: run drift again"),
        (
            "content",
            r"another build of version [\d.]+ .* the digest [0-9a-f]{12}, but .* 9\.9\.9\.",
        ),
    ],
)
def test_plan_of_another_collection_is_rejected(
    part: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan("a")
    monkeypatch.setattr(collection, part, lambda: "9.9.9")
    with pytest.raises(sealed.PlanError, match=message):
        read(made)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the installed collection by an empty folder, and forget its version and digest."""
    monkeypatch.setattr(collection, "ROOT", tmp_path)
    for name in ("version", "content"):
        monkeypatch.setattr(collection, name, getattr(collection, name).__wrapped__)
    return tmp_path


def test_version_is_read_from_the_installed_collection(installed: Path) -> None:
    info = {"collection_info": {"version": "1.2.3"}}
    (installed / "MANIFEST.json").write_text(json.dumps(info), encoding="utf-8")
    assert collection.version() == "1.2.3"


def _write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name, encoding="utf-8")


def test_content_is_the_digest_of_the_files_that_a_run_executes(installed: Path) -> None:
    executed = ["meta/runtime.yml", "plugins/a.py", "plugins/b/c.py", "roles/é/tasks/main.yml"]
    others = [
        *("MANIFEST.json", "FILES.json", "galaxy.yml", "README.md", "tests/unit/test_a.py"),
        *("plugins/__pycache__/a.cpython-312.pyc", "plugins/a.pyc", "plugins/.a.py.swp"),
        *("plugins/a.py~", "playbooks/drift.retry", "roles/.ansible/x", ".git/plugins/a.py"),
    ]
    # created in another order than that of the names
    _write(installed, *reversed(executed), *others)
    lines = [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in executed]
    assert collection.content() == hashlib.sha256("".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("change", ["content", "name", "added", "removed"])
def test_each_change_of_a_file_changes_the_digest(change: str, installed: Path) -> None:
    _write(installed, "plugins/a.py", "plugins/b.py")
    before = collection.content()
    if change == "content":
        (installed / "plugins/a.py").write_text("other", encoding="utf-8")
    elif change == "name":
        (installed / "plugins/a.py").rename(installed / "plugins/c.py")
    elif change == "added":
        _write(installed, "playbooks/c.yml")
    else:
        (installed / "plugins/a.py").unlink()
    assert collection.content() != before


def verify(made: dict[str, Any], **more: Any) -> None:
    checks: dict[str, Any] = {
        "key": None,
        "max_age": None,
        "at": AT,
        "configured": {("h", "ci"): SERVER},
    }
    sealed.verify(made, **{**checks, **more})


def test_seal_age_and_servers_are_verified() -> None:
    made = plan("a", key="k")
    verify(made)
    verify(made, key="k", max_age=timedelta(hours=1))
    verify(made, configured={})
    for more, words in (
        ({"key": "other"}, "has a seal that does not match the key"),
        ({"at": AT - timedelta(hours=2), "max_age": timedelta(1)}, "was created in the future"),
        ({"max_age": timedelta(minutes=59)}, "is 60 minutes old, more than enforce_plan_max_age"),
        (
            {"configured": {("h", "ci"): "https://b"}},
            f"{SERVER}, but this run connects to https://b",
        ),
    ):
        with pytest.raises(sealed.PlanError, match=words):
            verify(made, **more)
    with pytest.raises(sealed.PlanError, match="has no seal: set drift_plan_key to the same key"):
        verify(plan("a"), key="k")
    with pytest.raises(sealed.PlanError, match="has a seal that does not match the key"):
        verify({**plan("b", key="k"), "seal": made["seal"]}, key="k")
    with pytest.raises(sealed.PlanError, match="has a seal that does not match the key"):
        verify({**made, "seal": "\u00e9"}, key="k")
    with pytest.raises(sealed.PlanError, match="has no valid creation time"):
        verify({**made, "created": "?"}, max_age=timedelta(1))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"enforce_plan_max_age": 0}, "enforce_plan_max_age: '0' is not an age"),
        ({"enforce_plan_rest": "all"}, "enforce_plan_rest must be fail or skip, not 'all'"),
        ({"enforce_plan_key": "k"}, "has no seal: set drift_plan_key to the same key"),
        *(
            ({"enforce_plan_key": key}, "enforce_plan_key is set, but is empty")
            for key in ("", "  ", None, False, True, 0, ["k"])
        ),
        ({"enforce_plan": []}, "is missing, because enforce_plan is an empty list"),
        ({"enforce_plan": "none.json"}, "cannot be read: No such file or directory"),
        ({"enforce_plan": "/"}, "cannot be read: Is a directory"),
        ({"enforce_plan": 1.5}, "cannot be read: No such file or directory"),
    ],
)
def test_unusable_plan_is_reported(given: dict[str, Any], words: str) -> None:
    run = run_of(
        **{"enforce_plan": plan("a"), "inventory_hostname": "h", "hostvars": {"h": {}}, **given}
    )
    with pytest.raises(bookkeeping.StepError) as raised:
        bookkeeping.perform("open_plan", run, {})
    assert words in str(raised.value)
    assert raised.value.kind == "invalid"


def test_key_in_the_environment_is_used_unless_a_variable_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Verify a wrong key, and an empty one, as a CI server sets it in a fork."""
    variables = {
        "enforce_plan": plan("a", key="k"),
        "inventory_hostname": "h",
        "hostvars": {"h": {}},
    }

    def refused(step: str, values: Mapping[str, Any], **more: Any) -> str:
        with pytest.raises(bookkeeping.StepError) as raised:
            bookkeeping.perform(step, run_of(**variables, **more), dict(values))
        return str(raised.value)

    monkeypatch.setenv("TOOLCHAIN_PLAN_KEY", "wrong key")
    assert "has a seal that does not match the key" in refused("open_plan", {})
    monkeypatch.setenv("TOOLCHAIN_PLAN_KEY", "k")
    assert bookkeeping.perform("open_plan", run_of(**variables), {})["sealed"]["rest"] == "fail"
    assert "does not match the key" in refused("open_plan", {}, enforce_plan_key="wrong key")
    monkeypatch.setenv("TOOLCHAIN_PLAN_KEY", "")
    steps: dict[str, dict[str, Any]] = {
        "open_plan": {},
        "begin": {"seals": True},
        "finish": {"salt": "s"},
    }
    for step, values in steps.items():
        assert "TOOLCHAIN_PLAN_KEY is set, but is empty" in refused(step, values)


def test_key_in_a_vault_is_a_key() -> None:
    """Verify a value of a vault, which is not a `str` up to ansible-core 2.18."""

    class Encrypted(UserString):
        pass

    def made(key: str) -> Any:
        run = run_of(drift_plan_key=Encrypted(key), hostvars={"h": {}}, inventory_hostname="h")
        return bookkeeping.perform("finish", run, {"salt": "s"})["plan"]

    verify({**plan("a", key="k"), **made("k")}, key="k", configured={})
    with pytest.raises(bookkeeping.StepError, match="drift_plan_key is set, but is empty"):
        made("")
