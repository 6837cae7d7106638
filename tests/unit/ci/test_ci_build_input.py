# SPDX-License-Identifier: GPL-3.0-or-later
"""Test responding to the input of a pipeline: the right step, with all parameters, only once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds.ci_build_input import (
    CiBuildInputOperation,
    CiBuildInputOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.helpers.options import build as options_of
from tests.unit.ci.server import Played, build, waiting
from tests.unit.stub import Reply, Seen, Stub


@dataclass
class Inputs:
    """A build that waits for inputs. A response takes the first input."""

    ids: list[str] = field(default_factory=lambda: ["Deploy"])
    parameters: dict[str, str] = field(default_factory=dict)
    response: Reply = field(default_factory=lambda: Reply(200))
    acts: bool = True
    result: str | None = None

    def __call__(self, seen: Seen) -> Reply:
        if seen.path.startswith("/base/crumbIssuer"):
            return Reply(404)
        if seen.method == "POST":
            self.ids = self.ids[1:] if self.acts else self.ids
            return self.response
        shown = build(7, self.result)
        shown["actions"] += [waiting(name, **self.parameters) for name in self.ids]
        return Reply(body=shown)


def play(inputs: Inputs, *, read_only: bool = False, **given: Any) -> tuple[dict[str, Any], Played]:
    options = options_of(CiBuildInputOptions, **{"job": "app", "build": "lastBuild", **given})
    with Stub(response=inputs) as stub:
        played = Played(stub, given, read_only)
        return played.run(lambda task: CiBuildInputOperation(task, options)), played


@pytest.mark.parametrize(
    ("given", "request_name"),
    [
        ({}, "proceedEmpty"),
        ({"action": "abort"}, "abort"),
        ({"input_id": "deploy"}, "proceedEmpty"),
    ],
)
def test_reply_to_input_is_sent_once(given: dict[str, Any], request_name: str) -> None:
    values, played = play(Inputs(), **given)
    (post,) = played.posts
    assert post.target == f"/base/job/app/7/input/Deploy/{request_name}"
    action = given.get("action", "proceed")
    shown = {"id": "Deploy", "message": "Deploy?", "action": action}
    assert values == {"changed": True, "input": shown}


def test_parameters_are_converted_to_the_types_of_the_input() -> None:
    inputs = Inputs(
        parameters={"TARGET": "ChoiceParameterDefinition", "DRY": "BooleanParameterDefinition"}
    )
    _values, played = play(inputs, parameters={"TARGET": "live", "DRY": "False", "NONE": None})
    (post,) = played.posts
    assert post.target.endswith("/input/Deploy/proceed")
    sent = json.loads(parse_qs(post.body.decode())["json"][0])
    assert sent == {
        "parameter": [{"name": "TARGET", "value": "live"}, {"name": "DRY", "value": False}]
    }


@pytest.mark.parametrize(
    ("parameters", "given", "kind", "words"),
    [
        ({}, {"parameters": {"A": 1}}, "invalid", "has no parameter A: it has none"),
        ({"A": "StringParameterDefinition"}, {}, "invalid", "needs the parameter A: it has A"),
        ({"A": "BooleanParameterDefinition"}, {"parameters": {"A": "x"}}, "invalid", "A is a bool"),
        (
            {},
            {"input_id": "Other"},
            "not_found",
            "wait for the input Other, but for the input 'Dep",
        ),
        (
            {},
            {"action": "abort", "parameters": {"A": 1}},
            "invalid",
            "cannot be combined with action: abort",
        ),
        ({}, {"build": "../1"}, "invalid", "set it to a number or a permalink"),
    ],
)
def test_invalid_reply_is_not_sent(
    parameters: dict[str, str], given: dict[str, Any], kind: str, words: str
) -> None:
    inputs = Inputs(parameters=parameters, response=Reply(500))
    with pytest.raises(ToolchainError) as failure:
        play(inputs, **given)
    assert (failure.value.kind, words in failure.value.message) == (kind, True)
    assert inputs.ids == ["Deploy"]


def test_values_of_password_parameters_are_hidden() -> None:
    types = {"CODE": "PasswordParameterDefinition", "V": "StringParameterDefinition"}
    _values, played = play(Inputs(parameters=types), parameters={"CODE": "sesame", "V": "one"})
    assert played.hidden == ["sesame"]
    # the types of an input that is not there are unknown
    _values, played = play(Inputs(ids=[]), parameters={"CODE": "sesame"}, missing_ok=True)
    assert played.hidden == ["sesame"]


def test_input_id_is_required_for_several_inputs() -> None:
    with pytest.raises(ToolchainError, match="waits for more than one") as failure:
        play(Inputs(["A", "B"]))
    assert failure.value.kind == "invalid"
    values, _played = play(Inputs(["A", "B"]), input_id="A")
    assert values["input"]["id"] == "A"


def test_missing_input_is_an_error_unless_missing_ok() -> None:
    with pytest.raises(ToolchainError, match="does not wait for an input") as failure:
        play(Inputs([]))
    assert failure.value.kind == "not_found"
    values, played = play(Inputs([]), missing_ok=True)
    assert values == {"changed": False, "input": None}
    assert played.posts == []


@pytest.mark.parametrize(
    ("acts", "result", "words"),
    [
        (True, None, None),
        (False, None, "nothing was changed"),
        (True, "ABORTED", "whether it was done is not known"),
    ],
)
def test_lost_response_is_resolved_by_the_build(
    acts: bool, result: str | None, words: str | None
) -> None:
    inputs = Inputs(response=Reply(502), acts=acts, result=result)
    if words is None:
        assert play(inputs)[0]["changed"] is True
        return
    with pytest.raises(ToolchainError, match=words):
        play(inputs)


@pytest.mark.parametrize("action", ["proceed", "abort"])
def test_concurrently_aborted_build_is_not_a_successful_proceed(action: str) -> None:
    inputs = Inputs(result="ABORTED")
    if action == "abort":
        assert play(inputs, action=action)[0]["changed"] is True
        return
    with pytest.raises(ToolchainError, match="was aborted, and it is unknown whether") as failure:
        play(inputs, action=action)
    assert failure.value.kind == "failed"
