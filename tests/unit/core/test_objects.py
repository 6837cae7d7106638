# SPDX-License-Identifier: GPL-3.0-or-later
"""Test tasks that manage one object, or many with `entries` [C11.1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
    invalid,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.operations.objects import (
    Item,
    ItemKind,
    Objects,
    attempt_each,
    entries_of,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import (
    Plan,
    plan,
    remaining,
)


@dataclass(frozen=True)
class Shelf:
    key: str
    colour: str | None = None
    labels: list[str] = field(default_factory=list)
    state: str = "present"


@dataclass(frozen=True)
class Options:
    key: str | None = None
    colour: str | None = None
    labels: list[str] = field(default_factory=list)
    state: str = "present"
    entries: list[Shelf] | None = None


class Shelves(ItemKind[Shelf, str]):
    """Shelves of a server that refuses the colour red and cannot show the shelf `hidden`.

    :param stuck: shelves that the server accepts changes for, but never changes
    """

    noun: ClassVar[str] = "shelf"

    def __init__(self, stuck: str = "", warned: list[str] | None = None, **there: str) -> None:
        super().__init__(SimpleNamespace(warn=[].append if warned is None else warned.append))  # type: ignore[arg-type]
        self.there, self.stuck, self.loaded, self.log = there, stuck, 0, list[str]()

    def name(self, entry: Shelf) -> str:
        if entry.key == "*":
            raise invalid("key is '*': name one shelf")
        return entry.key

    def load(self, items: Sequence[Item[Shelf, str]]) -> None:
        self.loaded += 1
        for item in items:
            item.state = self.there.get(item.name)

    def compare(self, item: Item[Shelf, str]) -> Plan:
        entry = item.entry
        if entry.key == "hidden":
            raise ToolchainError("permission", "reading the shelf 'hidden': 403", status=403)
        if item.state is None and entry.colour is None and entry.state == "present":
            raise invalid("a new shelf needs a colour")
        wanted = None if entry.state == "absent" else {"colour": entry.colour}
        found = plan(self.fields(item), wanted)
        return found.with_result(shelf={"key": entry.key, **found.after})

    def fields(self, item: Item[Shelf, str]) -> dict[str, str] | None:
        return None if item.state is None else {"colour": item.state}

    def foresee(self, item: Item[Shelf, str]) -> None:
        if item.entry.colour == "red":
            raise ToolchainError("rejected", "no red", status=400)

    def write(self, item: Item[Shelf, str]) -> None:
        self.foresee(item)
        self.log.append(f"{item.plan.action} {item.name}")
        if item.name not in self.stuck:
            self.there.pop(item.name, None)
            if item.plan.action != "delete":
                self.there[item.name] = item.plan.after["colour"]
        item.returned = {"shelf": {"key": item.name, **item.plan.after, "id": 7}}

    def left(self, item: Item[Shelf, str]) -> Plan:
        item.state = self.there.get(item.name)
        return remaining(item.plan, self.fields(item))


def operation(kind: Shelves, options: Options) -> Objects[Shelf, str]:
    return Objects(kind, *entries_of(options, Shelf))


def test_options_describe_a_single_object() -> None:
    kind = Shelves(a="blue")
    one = operation(kind, Options(key="a", colour="green"))
    found = one.plan()
    assert (found.before, found.after) == ({"colour": "blue"}, {"colour": "green"})
    assert found.result == {"shelf": {"key": "a", "colour": "green"}}
    assert one.apply(found) == {"shelf": {"key": "a", "colour": "green", "id": 7}}


def test_error_of_single_object_fails_the_task() -> None:
    one = operation(Shelves(), Options(key="a", colour="red"))
    with pytest.raises(ToolchainError, match=r"^no red$"):
        one.preflight(one.plan())
    with pytest.raises(ToolchainError, match=r"^reading the shelf"):
        operation(Shelves(), Options(key="hidden")).plan()
    with pytest.raises(ToolchainError, match=r"^key is"):
        operation(Shelves(), Options(key="*"))


def test_entries_are_compared_with_one_read() -> None:
    kind = Shelves(a="blue", b="blue", d="blue")
    entries = [
        Shelf("a", "blue"),
        Shelf("b", "green"),
        Shelf("c", "blue"),
        Shelf("d", state="absent"),
    ]
    one = operation(kind, Options(entries=entries))
    found = one.plan()
    assert kind.loaded == 1
    assert found.before == {"b": {"colour": "blue"}, "c": {}, "d": {"colour": "blue"}}
    assert found.after == {"b": {"colour": "green"}, "c": {"colour": "blue"}, "d": {}}
    planned = found.result["results"]
    assert [(item["name"], item["action"]) for item in planned] == [
        ("a", "unchanged"),
        ("b", "updated"),
        ("c", "created"),
        ("d", "deleted"),
    ]
    assert planned[1] == {
        "key": "b",
        "colour": "green",
        "name": "b",
        "action": "updated",
        "changes": [{"field": "colour", "before": "blue", "after": "green"}],
    }
    assert [item.get("id") for item in one.apply(found)["results"]] == [None, 7, 7, 7]
    assert kind.log == ["update b", "create c", "delete d"]


def test_secrets_in_free_text_of_changes_are_masked() -> None:
    kind = Shelves(a="password=hunter1 b", b="red")
    entries = [Shelf("a", "password=hunter2 b"), Shelf("b", "--password=hunter3")]
    one = operation(kind, Options(entries=entries))
    found = one.plan()
    changes = [item["changes"][0] for item in found.result["results"]]
    assert [(change["before"], change["after"]) for change in changes] == [
        ("password=*** b", "password=*** (new) b"),
        ("red", "--password=***"),
    ]
    assert [obj.plan.after["colour"] for obj in found.data] == [
        "password=hunter2 b",
        "--password=hunter3",
    ]


def test_unchanged_entries_are_not_written() -> None:
    found = operation(Shelves(a="blue"), Options(entries=[Shelf("a", "blue")])).plan()
    assert (found.changed, found.diff(), found.failure) == (False, ({}, {}), None)


def test_left_out_entries_are_missing_in_the_new_plan_only() -> None:
    kind = Shelves()
    one = operation(kind, Options(entries=[Shelf("a", "red"), Shelf("b", "blue")]))
    found = one.plan()
    left = one.leave_out(found, [0])
    assert [part.name for part in one.parts(found)] == ["a", "b"]
    assert [part.name for part in one.parts(left)] == ["b"]
    actions = [item["action"] for item in one.apply(left)["results"]]
    assert (actions, kind.log) == (["unchanged", "created"], ["create b"])
    with pytest.raises(ToolchainError, match=r"^1 of 2 entries failed, the first: entries\[0\]"):
        one.apply(found)


def test_failed_entry_does_not_stop_the_others() -> None:
    kind = Shelves()
    entries = [Shelf("hidden"), Shelf("a", "red"), Shelf("b", "blue")]
    one = operation(kind, Options(entries=entries))
    found = one.plan()
    assert found.failure is not None
    assert found.failure.message.startswith(
        "1 of 3 entries failed, the first: entries[0] ('hidden')"
    )
    with pytest.raises(ToolchainError, match=r"^2 of 3 entries failed") as caught:
        one.apply(found)
    assert kind.log == ["create b"]
    assert (caught.value.kind, caught.value.status) == ("permission", 403)
    results = caught.value.result["results"]
    assert [item.get("error", {}).get("kind") for item in results] == [
        "permission",
        "rejected",
        None,
    ]
    assert results[1]["error"]["msg"] == "no red"


@pytest.mark.parametrize("kind_", ["auth", "network"])
def test_refused_login_or_connection_ends_the_task(
    kind_: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verify that no further entry is read, or written, after the server as a whole refused one."""
    calls: list[str] = []

    def refuse(item: Item[Shelf, str]) -> Plan:
        calls.append(item.name)
        raise ToolchainError(kind_, "refused")

    kind = Shelves()
    one = operation(kind, Options(entries=[Shelf(key, "blue") for key in "abc"]))
    found = one.plan()
    monkeypatch.setattr(kind, "write", refuse)
    with pytest.raises(ToolchainError, match=r"^3 of 3 entries failed") as caught:
        one.apply(found)
    assert [item["error"]["kind"] for item in caught.value.result["results"]] == [kind_] * 3
    monkeypatch.setattr(kind, "compare", refuse)
    with pytest.raises(ToolchainError, match=r"entries\[0\] \('a'\): refused"):
        one.plan()
    assert calls == ["a", "a"]


def test_check_mode_reports_every_failure() -> None:
    one = operation(Shelves(), Options(entries=[Shelf("hidden"), Shelf("a", "red")]))
    with pytest.raises(ToolchainError, match=r"^2 of 2 entries failed"):
        one.preflight(one.plan())


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([Shelf("a", "blue"), Shelf("*")], r"^entries\[1\]: key is '\*'"),
        ([Shelf("a"), Shelf("b"), Shelf("a")], r"^entries\[2\] is 'a', the same as entries\[0\]"),
    ],
)
def test_invalid_entry_is_rejected_before_any_request(entries: list[Shelf], message: str) -> None:
    kind = Shelves()
    with pytest.raises(ToolchainError, match=message):
        operation(kind, Options(entries=entries))
    assert kind.loaded == 0


def test_entry_found_invalid_is_rejected_before_any_write() -> None:
    one = operation(Shelves(), Options(entries=[Shelf("a", "blue"), Shelf("b")]))
    with pytest.raises(ToolchainError, match=r"^entries\[1\] \('b'\): a new shelf needs") as caught:
        one.plan()
    assert caught.value.kind == "invalid"


@pytest.mark.parametrize(
    ("entry", "kind", "words", "changed"),
    [
        (Shelf("a", "green"), "rejected", "changing the shelf 'a': .*did not save colour$", False),
        (Shelf("a", state="absent"), "failed", "deleting .*the object still exists$", False),
        (Shelf("c", "green"), "failed", "creating .*the object does not exist$", False),
    ],
)
def test_write_without_effect_is_an_error(
    entry: Shelf, kind: str, words: str, *, changed: bool
) -> None:
    one = operation(Shelves(a="blue", stuck="ac"), Options(entries=[entry]))
    with pytest.raises(ToolchainError, match=words) as caught:
        one.apply(one.plan())
    assert caught.value.kind == kind
    assert caught.value.result["changed"] is changed


def test_update_that_the_server_does_not_take_warns() -> None:
    """Verify the rule for configurations that the server completes or normalizes."""
    warned: list[str] = []
    kind = Shelves(a="blue", b="blue", stuck="a", warned=warned)
    kind.accepts_server = True  # type: ignore[misc]
    one = operation(kind, Options(entries=[Shelf("a", "green")]))
    returned = one.apply(one.plan())
    assert returned["changed"] is False
    assert returned["results"][0]["action"] == "unchanged"
    assert warned == ["the shelf 'a': the server did not take colour, and is the same as before"]
    two = operation(kind, Options(entries=[Shelf("a", "green"), Shelf("b", "green")]))
    returned = two.apply(two.plan())
    assert "changed" not in returned
    assert [row["action"] for row in returned["results"]] == ["unchanged", "updated"]


def test_failed_task_is_changed_if_another_entry_was_written() -> None:
    one = operation(Shelves(), Options(entries=[Shelf("a", "red"), Shelf("b", "blue")]))
    with pytest.raises(ToolchainError) as caught:
        one.apply(one.plan())
    assert caught.value.result["changed"] is True


@pytest.mark.parametrize("parallel", [1, 3])
def test_first_refused_item_stops_the_others(parallel: int) -> None:
    asked: list[str] = []

    def refuse(item: Item[Shelf, str]) -> None:
        asked.append(item.name)
        result = {"changed": True}
        raise ToolchainError("auth", "401", status=401, outcome_unknown=True, result=result)

    items = [Item[Shelf, str](Shelf(key), key) for key in "abcd"]
    attempt_each(refuse, items, parallel)
    assert asked == ["a"]
    assert [item.error and item.error.status for item in items] == [401] * 4
    assert "b was not attempted after this error: 401" in str(items[1].error)
    told = [item.error and (item.error.result, item.error.outcome_unknown) for item in items]
    assert told == [({"changed": True}, True), *[({}, False)] * 3]
