# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the return values of a module for a plan, in check mode and without it."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any
from urllib.parse import quote_plus

import pytest
from ansible.module_utils import basic

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    diffs,
    runner,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.job_address import job_of
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.address import (
    require_address,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
    invalid,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.messages import (
    Accounting,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.descriptor import (
    Descriptor,
    reads,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.typed_options import (
    Option,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import (
    Operation,
    Plan,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from tests.unit.arguments import given_to_a_module


def module_of(service: str, operation: Any) -> Any:
    """Return an operation of a service that a function creates."""
    operation.descriptor = Descriptor(SERVICES[service], {"read": reads()}, lock=None)
    return operation


@dataclass(frozen=True)
class ImportFrom:
    url: str | None = None


@dataclass(frozen=True)
class Addresses:
    job: str | None = None
    source_url: str | None = None
    any: str | None = None
    import_from: ImportFrom | None = None


@dataclass(frozen=True)
class SourcePassword:
    source_password: Annotated[str | None, Option(secret=True)] = None


@dataclass(frozen=True)
class Nothing:
    pass


class Known:
    """An operation with a given plan; it fails if the plan has a failure."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self.applied = plan, 0

    def plan(self) -> Plan:
        return self._plan

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        self.applied += 1
        if plan.failure is not None:
            raise plan.failure
        return {"done": True}


class Refused(Known):
    """An operation that the server would reject."""

    def preflight(self, plan: Plan) -> None:
        raise ToolchainError("not_found", "there is no such member")


def test_preflight_runs_only_in_check_mode() -> None:
    changed = Refused(Plan(None, {}, "create"))
    with pytest.raises(ToolchainError, match="no such member"):
        carried_out(changed, predict=True, with_diff=False)
    assert carried_out(changed, predict=False, with_diff=False)["done"]
    unchanged = Refused(Plan({}, {}))
    assert carried_out(unchanged, predict=True, with_diff=False) == {"changed": False}


def carried_out(operation: Operation, predict: bool, with_diff: bool) -> dict[str, Any]:
    """Return the return values of an operation, as a module has them."""
    plan = operation.plan()
    applied = operation.apply(plan) if runner._must_apply(operation, plan, predict) else {}
    return runner._values(plan, applied, with_diff)


@pytest.mark.parametrize(
    ("given", "accepted"),
    [({"a": None, "b": "x"}, True), ({"a": None, "b": None}, False), ({"b": "x", "c": None}, True)],
)
def test_null_option_counts_as_unset(
    *, given: dict[str, Any], accepted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {"a": {}, "b": {}, "c": {"default": "d"}}
    rules = {"mutually_exclusive": [("a", "b")], "required_one_of": [("a", "b")]}
    with given_to_a_module(given):
        if accepted:
            module = runner._Module(argument_spec=spec, **rules)
            assert module.params == {"a": None, "b": "x", "c": "d"}
        else:
            with pytest.raises(SystemExit):
                runner._Module(argument_spec=spec, **rules)
            assert "one of the following is required: a, b" in capsys.readouterr().out


@pytest.mark.parametrize("fails", [True, False])
def test_user_info_of_url_is_not_in_the_result(
    *, fails: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with given_to_a_module({"url": "https://ann:s%40cret@host/base"}):
        module = runner._Module(argument_spec={"url": {}})
        with pytest.raises(SystemExit):
            module.fail_json("s@cret") if fails else module.exit_json(said="s@cret")
    printed = capsys.readouterr().out
    assert module.params["url"] == "https://host/base"  # shown by ansible as invocation
    assert not any(word in printed for word in ("ann", "s@cret", "s%40cret"))


@pytest.mark.parametrize(
    "given",
    [
        {"url": "https://ann:PW-1/x@host"},
        {"url": "ann:PW-1@host/x"},
        {"url": "http:/ann:PW-1@host"},
        {"url": "https://ann:PW-1#x@host", "wrong": 1},
        {"url": "http://host", "job": "https://ann:PW-1/x@host/job/a"},
        {"url": "http://host", "job": "ann:PW-1@host/job/a"},
        {"url": "http://host", "import_from": {"url": "https://ann:PW-1?@host"}},
        {"url": "http://host", "source_url": "ann:PW-1@host"},
        {"url": "http://host", "any": "https://ann:PW-1@host/x", "wrong": 1},
    ],
)
def test_text_before_at_sign_is_not_in_the_result(
    given: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    def operation(task: Task, options: Addresses) -> Known:
        job_of(options.job or "job", task.connection.url)
        imported = ImportFrom() if options.import_from is None else options.import_from
        for address in (imported.url, options.source_url):
            if address is not None:
                require_address(address, "in an option")
        raise AssertionError("nobody refused the address")

    with given_to_a_module(given), pytest.raises(SystemExit):
        runner.run(Addresses, module_of("ci", operation))
    result = json.loads(capsys.readouterr().out)
    assert "wrong" in given or result["error"]["kind"] == "invalid"
    assert "wrong" in given or "percent-encode the password" in result["msg"]
    assert "PW-1" not in json.dumps(result)


@pytest.mark.parametrize("fails", [True, False])
def test_secrets_of_options_are_masked_in_every_spelling(
    *, fails: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    text, reported = 'pass/wörd "1', "told/by <server>"
    spelt = [
        spelling(secret)
        for secret in (text, reported)
        for spelling in (str, quote_plus, html.escape, lambda one: json.dumps(one)[1:-1])
    ]

    def operation(task: Task, options: SourcePassword) -> Known:
        task.hide(reported)
        for each in spelt:
            task.warn(f"warned of {each}\x1b[31m")
        if fails:
            raise ToolchainError(
                "failed", f"said {' '.join(spelt)}", detail="x" * 3990 + reported + "x" * 99
            )
        return Known(Plan({}, {}, result={"said": spelt}))

    given = {"url": "http://host", "source_password": text}
    with given_to_a_module(given), pytest.raises(SystemExit):
        runner.run(SourcePassword, module_of("ci", operation))
    printed = json.loads(capsys.readouterr().out)
    # ansible-core 2.22 passes this to the controller, so that the controller can mask it
    printed.pop("_ansible_new_secrets", None)
    shown = json.dumps(printed, ensure_ascii=False)
    assert not [form for form in (*spelt, "told", "pass/w", "\x1b", "u001b") if form in shown]


def test_rejected_input_is_a_result_without_changes(capsys: pytest.CaptureFixture[str]) -> None:
    with given_to_a_module({"a": 1.5}), pytest.raises(SystemExit):
        runner._Module(argument_spec={"a": {"type": "str"}})
    result = json.loads(capsys.readouterr().out)
    assert (result["changed"], result["error"]["kind"]) == (False, "invalid")
    assert result["http"]["requests"] == 0


@pytest.mark.parametrize("predict", [True, False])
def test_unpredictable_values_are_absent_in_check_mode(*, predict: bool) -> None:
    operation = Known(Plan({"a": 1}, {"a": 2}, "update", result={"name": "x"}))
    values = carried_out(operation, predict, True)
    assert values["changed"] is True
    assert values["diff"] == {"before": {"a": 1}, "after": {"a": 2}}
    assert values.get("done", False) is not predict
    assert operation.applied == int(not predict)


@pytest.mark.parametrize("with_diff", [True, False])
def test_slow_diff_is_computed_only_on_request(*, with_diff: bool) -> None:
    made: list[str] = []

    def make_diff() -> tuple[str, str]:
        made.append("once")
        return "a", "b"

    values = carried_out(Known(Plan(None, None, "update", make_diff=make_diff)), True, with_diff)
    assert values.get("diff") == ({"before": "a", "after": "b"} if with_diff else None)
    assert made == ["once"] * with_diff


def test_diff_escapes_control_characters() -> None:
    sides = ({"a\x1b[31m": ["x\u202ey", "bell\x07", 1]}, "one\r\ntwo\rthree\ttab ü\u200b")
    values = carried_out(Known(Plan(*sides, "update", result={"name": "x\u202ey"})), True, True)
    assert values["diff"] == {
        "before": {"a\\x1b[31m": ["x\\u202ey", "bell\\x07", 1]},
        "after": "one\r\ntwo\\rthree\ttab ü\\u200b",
    }
    assert values["name"] == "x\u202ey"


@pytest.mark.parametrize("other", [{}, {"name": "Weite", "rank": None}])
def test_diff_keeps_non_ascii_characters(other: dict[str, Any]) -> None:
    """Verify this because Ansible would escape all non-ASCII characters in a mapping."""
    size = {"rank": 1, "name": "Größe \U0001f680", "half": "a\udc80", "day": date(2026, 1, 2)}
    values = carried_out(Known(Plan(size, other, "update")), True, True)
    before, after = values["diff"]["before"], values["diff"]["after"]
    lines = [
        '"day": "2026-01-02",',
        '"half": "a\\\\udc80",',
        '"name": "Größe \U0001f680",',
        '"rank": 1',
    ]
    assert before.splitlines() == ["{", *(f"    {line}" for line in lines), "}"]
    assert after == json.dumps(other, indent=4, sort_keys=True) + "\n"


@pytest.mark.parametrize("with_diff", [True, False])
def test_reading_may_return_a_diff(*, with_diff: bool) -> None:
    found = {"before": "<a/>", "after": "<b/>"}
    values = carried_out(Known(Plan({}, {}, result={"diff": found})), False, with_diff)
    assert (values["changed"], values["diff"]) == (False, found)


@pytest.mark.parametrize(
    ("action", "predict", "applied"),
    [("none", False, 0), ("none", True, 0), ("update", True, 0), ("update", False, 1)],
)
def test_planning_failure_is_raised_after_the_rest_is_done(
    action: Any, predict: bool, applied: int
) -> None:
    failure = invalid("one of two")
    operation = Known(Plan({}, {"a": 2}, action, failure=failure).with_result(name="x"))
    with pytest.raises(ToolchainError) as caught:
        carried_out(operation, predict, False)
    assert caught.value is failure
    assert operation.applied == applied


def test_part_of_a_task_counts_towards_the_whole() -> None:
    total = Accounting()
    one, other = Accounting(total=total), Accounting(total=total)
    one.add(requests=2, seconds=0.5)
    other.add(requests=1, acknowledged=1)
    assert (one.requests, other.requests, total.requests) == (2, 1, 3)
    assert (one.acknowledged, total.acknowledged) == (0, 1)
    assert total.as_dict()["seconds"] == 0.5


class _Stopped(Exception):
    """The options are valid; the module must not run."""


class _Checking(basic.AnsibleModule):
    """Check the options and stop, as ansible-lint does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        raise _Stopped


def test_replaced_ansible_module_class_is_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def operation(task: Task, options: Nothing) -> Operation:
        raise AssertionError("the module ran")

    monkeypatch.setattr(basic, "AnsibleModule", _Checking)
    with given_to_a_module({"url": "http://127.0.0.1:9"}), pytest.raises(_Stopped):
        runner.run(Nothing, module_of("repo", operation))
    with given_to_a_module({"timeout": "{{ seconds }}"}), pytest.raises(SystemExit):
        runner.run(Nothing, module_of("repo", operation))
    assert "argument 'timeout' is of type" in capsys.readouterr().out  # lint knows this message
    with given_to_a_module({"urll": "http://127.0.0.1:9"}), pytest.raises(SystemExit):
        runner.run(Nothing, module_of("repo", operation))
    assert "Unsupported parameters" in capsys.readouterr().out


def test_secrets_in_free_text_of_diffs_are_masked() -> None:
    before = {"shell": ["make TOKEN=one", "ls"], "url": "http://u:one@h/", "same": "TOKEN=x"}
    after = {"shell": ["make TOKEN=two", "ls -l"], "url": "http://u:two@i/", "same": "TOKEN=x"}
    assert diffs.printable_diff({"before": before, "after": after}) == {
        "before": {
            "shell": ["make TOKEN=***", "ls"],
            "url": "http://u:***@h/",
            "same": "TOKEN=***",
        },
        "after": {
            # the diff would be empty otherwise
            "shell": ["make TOKEN=*** (new)", "ls -l"],
            "url": "http://u:***@i/",
            "same": "TOKEN=***",
        },
    }
