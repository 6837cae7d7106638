# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the declared rules between options, of a task and of its entries [C1.6]."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
    invalid,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.rules import Rule
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.typed_options import (
    NotNegative,
    Option,
    Positive,
    Seconds,
    argument_spec,
    constraints,
    parse,
)

UTILS = Path(__file__).parents[3] / "plugins" / "module_utils" / "_lib"


@dataclass(frozen=True)
class Shelf:
    option_rules: ClassVar = (
        Rule("state=absent", forbids=("colour", "boards")),
        Rule("force", "move_to", requires="state=absent"),
        Rule("move_to", forbids="force=true", because="nothing is lost"),
        Rule("mode", requires=("boards", "colour")),
    )

    key: str
    colour: str | None = None
    boards: Positive | None = None
    mode: Literal["exact", "add"] = "exact"
    force: bool = False
    move_to: str | None = None
    numbers: Annotated[list[int] | None, Option(least=1)] = None
    state: Literal["present", "absent"] = "present"

    def check(self) -> None:
        if self.key == "*":
            raise invalid("key is '*': name one shelf")


@dataclass(frozen=True)
class Shelves(Shelf):
    entries: list[Shelf] | None = None
    timeout: Seconds = 5
    retries: NotNegative = 0


@dataclass(frozen=True)
class Strict:
    option_rules: ClassVar = (
        Rule("state=absent", allows=("name",)),
        Rule(requires=("labels", "state=absent")),
    )

    name: str
    labels: list[str] = field(default_factory=list)
    state: str = "present"


@dataclass(frozen=True)
class Room:
    shelf: Shelf
    strict: list[Strict] | None = None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"state": "absent", "colour": "red"},
            "colour cannot be combined with state=absent: omit colour",
        ),
        ({"force": True}, "force requires state=absent: set it, or omit force"),
        ({"move_to": "b"}, "move_to requires state=absent: set it, or omit move_to"),
        (
            {"move_to": "b", "force": True, "state": "absent"},
            "force=true cannot be combined with move_to, because nothing is lost: omit force=true",
        ),
        ({"mode": "add"}, "mode requires boards or colour: set one of them, or omit mode"),
        ({"boards": 0}, "boards is 0: set it to 1 or more"),
        ({"numbers": [1, 0]}, "numbers[1] is 0: set it to 1 or more"),
        ({"key": "*"}, "key is '*': name one shelf"),
    ],
)
def test_rules_apply_to_task_and_entries(given: dict[str, Any], message: str) -> None:
    def message_of(params: dict[str, Any]) -> str:
        with pytest.raises(ToolchainError) as caught:
            parse(Shelves, params)
        assert caught.value.kind == "invalid"
        return caught.value.message

    assert message_of({"key": "a", **given}) == message
    entries = [{"key": "a"}, {"key": "b", **given}]
    assert message_of({"entries": entries}) == f"entries[1]: {message}"


@pytest.mark.parametrize(
    "given",
    [
        {"state": "absent", "force": True},
        {"state": "absent", "move_to": "b", "force": False},
        {"mode": "add", "boards": 1},
        {"colour": "red", "numbers": [1]},
    ],
)
def test_options_that_fit_each_other_are_accepted(given: dict[str, Any]) -> None:
    parsed = parse(Shelves, {"key": "a", **given})
    assert {name: getattr(parsed, name) for name in given} == given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"timeout": 0}, "timeout is 0: set it to more than 0"),
        ({"retries": -1}, "retries is -1: set it to 0 or more"),
        ({"colour": "red"}, "colour cannot be combined with entries: set colour in every entry"),
        ({"state": "absent"}, "state cannot be combined with entries: set state in every entry"),
    ],
)
def test_options_of_task_with_entries(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolchainError) as caught:
        parse(Shelves, {"entries": [{"key": "a"}], **given})
    assert caught.value.message == message


def test_task_needs_the_name_of_an_object_only_without_entries() -> None:
    spec = argument_spec(Shelves)
    assert "required" not in spec["key"]
    assert spec["entries"]["options"]["key"]["required"]
    keys = [["key", "entries"]]
    assert constraints(Shelves) == {"mutually_exclusive": keys, "required_one_of": keys}
    assert constraints(Shelf) == {}


def test_rules_of_nested_options_name_their_place() -> None:
    with pytest.raises(ToolchainError, match=r"^shelf: force requires state=absent"):
        parse(Room, {"shelf": {"key": "a", "force": True}})
    strict = {"name": "b", "state": "absent", "labels": ["x"]}
    with pytest.raises(ToolchainError, match=r"^strict\[0\]: labels cannot be combined with"):
        parse(Room, {"shelf": {"key": "a"}, "strict": [strict]})
    with pytest.raises(
        ToolchainError, match=r"^strict\[0\]: labels or state=absent is missing: set"
    ):
        parse(Room, {"shelf": {"key": "a"}, "strict": [{"name": "b"}]})
    assert parse(Room, {"shelf": {"key": "a"}, "strict": [{**strict, "labels": []}]}).strict


def _classes() -> Iterator[type]:
    for file in sorted(UTILS.rglob("*.py")):
        if "Rule(" in file.read_text("utf-8") and file.name != "rules.py":
            names = file.relative_to(UTILS).with_suffix("").parts
            module = importlib.import_module(
                "ansible_collections.delivery.toolchain.plugins.module_utils._lib."
                + ".".join(names)
            )
            yield from (kind for kind in vars(module).values() if hasattr(kind, "option_rules"))


@pytest.mark.parametrize("kind", sorted(set(_classes()), key=str))
def test_rules_name_options_and_choices(kind: type) -> None:
    spec = argument_spec(kind)
    for rule in getattr(kind, "option_rules", ()):
        allowed = rule.allows or ()
        for condition in (*rule.conditions, *rule.requires, *rule.forbids, *allowed):
            name, mark, value = condition.partition("=")
            assert name in spec
            choices = spec[name].get("choices", ["true", "false"])
            assert not mark or value in choices
