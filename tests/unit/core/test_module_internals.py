# SPDX-License-Identifier: GPL-3.0-or-later
"""The private names of `AnsibleModule`: rename each, and expect a guarded outcome."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pytest
from ansible.module_utils import basic
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    ansible_internals,
    runner,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import invalid
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.descriptor import (
    Descriptor,
    reads,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.typed_options import (
    Option,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import (
    Plan,
    ReadOnly,
)
from tests.unit.arguments import given_to_a_module


@dataclass(frozen=True)
class Probe:
    name: str
    arguments: Annotated[dict[str, Any] | None, Option(private=True, values="json")] = None
    password: Annotated[str | None, Option(secret=True)] = None


class Reading(ReadOnly):
    """An operation that reports a difference and applies nothing; it fails for the name `fail`."""

    descriptor: ClassVar = Descriptor(None, {"read": reads()})

    def __init__(self, task: None, options: Probe) -> None:
        self._options = options

    def plan(self) -> Plan:
        if self._options.name == "fail":
            raise invalid("no such name")
        return Plan({"a": 1}, {"a": 2}, result={"changed": True, "name": self._options.name})


def ran(capsys: pytest.CaptureFixture[str], **given: Any) -> dict[str, Any]:
    """Return the result of a module with these arguments."""
    with given_to_a_module(given), pytest.raises(SystemExit):
        runner.run(Probe, Reading)
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def rename(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Rename a method of AnsibleModule, including the calls in its constructor."""
    method, create = getattr(AnsibleModule, old), AnsibleModule.__init__
    code = create.__code__
    names = tuple(new if name == old else name for name in code.co_names)
    assert names != code.co_names
    monkeypatch.setattr(create, "__code__", code.replace(co_names=names))
    monkeypatch.setattr(AnsibleModule, new, method, raising=False)
    monkeypatch.delattr(AnsibleModule, old)


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines that are written to the log of the system."""
    lines: list[str] = []
    monkeypatch.setattr(AnsibleModule, "log", lambda self, msg, log_args=None: lines.append(msg))
    return lines


def test_task_fails_if_input_checks_did_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rename(monkeypatch, "_load_params", "_read_params")
    result = ran(capsys, name="  ", password="pass-word-1", arguments={"token": "t-12345"})
    assert result["failed"]
    assert result["error"]["kind"] == "failed"
    assert "no longer calls AnsibleModule._load_params: nothing was done" in result["msg"]
    result.pop("_ansible_new_secrets", None)  # since 2.22, for the controller to mask
    assert not [secret for secret in ("pass-word-1", "t-12345") if secret in json.dumps(result)]


@pytest.mark.parametrize("renamed", [True, False])
@pytest.mark.parametrize("name", ["works", "fail"])
def test_invocation_is_logged_when_secrets_are_known(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    logged: list[str],
    *,
    renamed: bool,
    name: str,
) -> None:
    if renamed:
        rename(monkeypatch, "_log_invocation", "_log_call")
    arguments = {"token": "t-12345", "level": "high"}
    ran(capsys, name=name, password="pass-word-1", arguments=arguments)
    (line,) = logged
    assert line.startswith(f"Invoked with name={name} ")
    assert ("high" in line) == (name == "works")  # of a failed task every argument is hidden
    assert not [secret for secret in ("pass-word-1", "t-12345") if secret in line]


def test_no_log_task_logs_nothing(capsys: pytest.CaptureFixture[str], logged: list[str]) -> None:
    ran(capsys, name="works", _ansible_no_log=True)
    assert logged == []


@pytest.mark.parametrize("known", [True, False])
def test_missing_diff_attribute_gives_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, known: bool
) -> None:
    if not known:
        create = AnsibleModule.__init__
        names = tuple("_no_diff" if name == "_diff" else name for name in create.__code__.co_names)
        monkeypatch.setattr(create, "__code__", create.__code__.replace(co_names=names))
        passed = {**basic.PASS_VARS, "diff": ("_no_diff", False)}
        monkeypatch.setattr(basic, "PASS_VARS", passed)
    result = ran(capsys, name="works", _ansible_diff=True)
    assert ("diff" in result) == known
    warnings = [warning for warning in result.get("warnings", []) if "no diff" in str(warning)]
    assert len(warnings) == (0 if known else 1)


def test_internal_parameters_with_another_prefix_reach_ansible(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ansible_internals, "INTERNAL_PREFIX", "_core_")
    result = ran(capsys, name="works", _ansible_check_mode=True, _ansible_diff=True)
    assert result["diff"] == {"before": {"a": 1}, "after": {"a": 2}}
    shown = result.get("invocation", {}).get("module_args", {})  # missing since ansible-core 2.22
    assert set(shown) <= {"name", "arguments", "password"}


@pytest.mark.parametrize("name", ["works", "fail"])
def test_deprecations_never_name_the_collection(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    result = ran(capsys, name=name, password="pass-word-1", arguments={"token": "t-12345"})
    assert "deprecations" not in result
