# SPDX-License-Identifier: GPL-3.0-or-later
"""Test options from a single declaration: the argument spec, and the values that an
operation gets.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds.ci_job_build import (
    BuildOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.typed_options import (
    Option,
    PathText,
    argument_spec,
    constraints,
    parse,
)


@dataclass(frozen=True)
class Transition:
    constraints: ClassVar[dict[str, Any]] = {"required_together": [("from", "to")]}

    from_: Annotated[str, Option(name="from")]
    to: str | None = None


@dataclass(frozen=True)
class Everything:
    constraints: ClassVar[dict[str, Any]] = {"mutually_exclusive": [("src", "content")]}

    repo: str
    src: PathText | None = None
    content: str | None = None
    password: Annotated[str | None, Option(secret=True)] = None
    key_file: Annotated[str | None, Option(type="path", secret=False)] = None
    count: int = 4
    limit: float | None = None
    force: bool = False
    properties: dict[str, Any] | None = None
    value: Any = None
    names: list[str] | None = None
    files: list[PathText] = field(default_factory=list)
    gather: list[Literal["roles", "users"]] | None = None
    state: Literal["present", "absent"] = "present"
    transitions: list[Transition] | None = None
    first: Transition | None = None
    user: Annotated[str | None, Option(aliases=("login",))] = None
    size: Literal[2048, 4096] = 2048
    parameters: Annotated[dict[str, Any] | None, Option(values="text", private=True)] = None
    body: Annotated[str | None, Option(empty=True)] = None


TRANSITION = {"from": {"type": "str", "required": True}, "to": {"type": "str"}}
TOGETHER = {"required_together": [("from", "to")]}


def test_argument_spec_follows_from_fields() -> None:
    assert argument_spec(Everything) == {
        "repo": {"type": "str", "required": True},
        "src": {"type": "path"},
        "content": {"type": "str"},
        "password": {"type": "str", "no_log": True},
        "key_file": {"type": "path", "no_log": False},
        "count": {"type": "int", "default": 4},
        "limit": {"type": "float"},
        "force": {"type": "bool", "default": False},
        "properties": {"type": "dict"},
        "value": {"type": "raw"},
        "names": {"type": "list", "elements": "str"},
        "files": {"type": "list", "elements": "path", "default": []},
        "gather": {"type": "list", "elements": "str", "choices": ["roles", "users"]},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "transitions": {"type": "list", "elements": "dict", "options": TRANSITION, **TOGETHER},
        "first": {"type": "dict", "options": TRANSITION, **TOGETHER},
        "user": {"type": "str", "aliases": ["login"]},
        "size": {"type": "int", "choices": [2048, 4096], "default": 2048},
        "parameters": {"type": "dict", "values": "text", "private": True},
        "body": {"type": "str", "empty": True},
    }
    assert constraints(Everything) == {"mutually_exclusive": [("src", "content")]}


@dataclass(frozen=True, kw_only=True)
class Inherited(BuildOptions):
    more: str | None = None


def test_inherited_options_use_the_names_of_their_module() -> None:
    assert argument_spec(Inherited) == {**argument_spec(BuildOptions), "more": {"type": "str"}}


def test_values_are_read_by_option_name() -> None:
    options = parse(
        Everything,
        {"repo": "r", "transitions": [{"from": "a", "to": "b"}], "first": {"from": "c"}},
    )
    assert options.transitions == [Transition("a", "b")]
    assert options.first == Transition("c")
    assert (options.count, options.state, options.names, options.files) == (4, "present", None, [])


def test_none_is_default_and_empty_is_a_value() -> None:
    options = parse(Everything, {"repo": "r", "count": None, "names": [], "properties": {}})
    assert (options.count, options.names, options.properties) == (4, [], {})


def test_options_are_immutable() -> None:
    options = parse(Everything, {"repo": "r"})
    with pytest.raises(FrozenInstanceError):
        options.repo = "other"  # type: ignore[misc]
