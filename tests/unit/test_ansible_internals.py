# SPDX-License-Identifier: GPL-3.0-or-later
"""The private names of Ansible on the controller: remove a name, and expect a guarded outcome."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleError
from ansible.executor import task_result as core_task_result
from ansible.module_utils import basic
from ansible.module_utils.common import warnings
from ansible.plugins.action import ActionBase
from ansible.plugins.action.normal import ActionModule as NormalAction
from ansible.plugins.lookup import LookupBase
from ansible.release import __version__
from ansible.utils.display import Display

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import input_check
from ansible_collections.delivery.toolchain.plugins.callback import report
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import (
    ansible_internals,
    in_process,
)

NEW = tuple(int(number) for number in __version__.split(".")[:2]) >= (2, 19)
NAMES = (
    *ansible_internals.COMMON,
    *(ansible_internals.SINCE_2_19 if NEW else ansible_internals.BEFORE_2_19),
)
ARGUMENTS = {"name": "Developer"}


def _owner(name: str) -> tuple[Any, str]:
    """Return the owner of a private part, and the name of the part there."""
    module, _colon, path = name.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, last = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    return owner, last


@pytest.mark.parametrize("name", NAMES)
def test_missing_part_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    owner, last = _owner(name)
    if last == "CONTROLLER_TO_MODULE":  # members of an enumeration cannot be removed
        owner, last = importlib.import_module("ansible.module_utils.common.json"), "Direction"
    monkeypatch.delattr(owner, last)
    with pytest.raises(ansible_internals.Missing, match=last):
        ansible_internals.find()


def test_changed_signature_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify this for the functions among the parts; ansible-core 2.16 has none."""
    ansible_internals.find()
    for name in NAMES:
        if name.endswith(("_BuiltModule", "get_module_encoder", "_exception")):
            with monkeypatch.context() as patch:
                patch.setattr(*_owner(name), lambda: None)
                with pytest.raises(ansible_internals.Missing):
                    ansible_internals.find()


@pytest.mark.parametrize("name", ["_global_warnings", "_global_deprecations"])
def test_fixed_collection_counts_as_missing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(warnings, name, ())
    with pytest.raises(ansible_internals.Missing):
        ansible_internals.find()


def test_unexpected_generation_of_core_counts_as_missing() -> None:
    """Verify this for a core that claims to be new or old, but is not."""
    if NEW:
        internals = ansible_internals.find("2.16.0")
        assert len(internals.built("#!python", "path")) == 4
    else:
        with pytest.raises(ansible_internals.Missing):
            ansible_internals.find("2.19.0")


@pytest.mark.parametrize("optional", ["_PARSED_MODULE_ARGS", "remove_values"])
def test_optional_name_may_be_missing(monkeypatch: pytest.MonkeyPatch, optional: str) -> None:
    monkeypatch.delattr(basic, optional, raising=False)
    with ansible_internals.find().ready_for(ARGUMENTS):
        assert not hasattr(basic, optional)
    assert not hasattr(basic, optional)


def test_module_run_restores_all_globals() -> None:
    before = dict(vars(basic))
    with ansible_internals.find().ready_for(ARGUMENTS):
        assert basic._load_params() == ARGUMENTS
        warnings.warn("a warning of the module")
    assert vars(basic) == before
    assert not warnings._global_warnings


class _Task:
    """The task of an action; other tests use `no_log`."""

    action, args, delegate_to, no_log = "delivery.toolchain.probe", {"name": "a"}, None, False
    become, async_val, diff, environment = False, 0, False, None


def _action(**parts: Any) -> Any:
    given = {
        "task": _Task(),
        "connection": SimpleNamespace(transport="local"),
        "play_context": SimpleNamespace(become=False),
        "loader": SimpleNamespace(get_basedir=lambda: "."),
        "templar": SimpleNamespace(template=lambda value: value),
        "shared_loader_obj": None,
    }
    return in_process.Action(**{**given, **parts})


def _warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    shown: list[str] = []
    monkeypatch.setattr(Display, "warning", lambda self, text, **_more: shown.append(text))
    return shown


def test_action_without_optional_name_runs_in_process_with_one_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = _warnings(monkeypatch)
    assert _action()._may_run_in_worker({})
    action = _action()
    action.internals = None
    monkeypatch.setattr(in_process, "_MISSING", "ActionBase has no _configure_module")
    assert not action._may_run_in_worker({"ansible_python_interpreter": "/usr/bin/python9"})
    (warning,) = shown
    assert "separate processes" in warning
    assert "_configure_module" in warning


def test_action_without_play_context_runs_in_a_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = _warnings(monkeypatch)
    monkeypatch.setattr(in_process, "_MISSING", "")
    assert not _action(play_context=None)._may_run_in_worker({})
    assert "no play_context" in shown[0]


@pytest.mark.parametrize(
    ("task", "transport", "variables"),
    [
        ({"delegate_to": "neighbour"}, "local", {}),
        ({"become": True}, "local", {}),
        ({"async_val": 30}, "local", {}),
        ({}, "ssh", {}),
        ({}, "local", {"toolchain_in_process": "no"}),
    ],
)
def test_task_that_needs_a_process_does_not_run_in_the_worker(
    monkeypatch: pytest.MonkeyPatch, task: dict[str, Any], transport: str, variables: dict[str, Any]
) -> None:
    shown = _warnings(monkeypatch)
    for name, value in task.items():
        monkeypatch.setattr(_Task, name, value)
    action = _action(connection=SimpleNamespace(transport=transport))
    assert not action._may_run_in_worker(variables)
    assert shown == []


@pytest.mark.parametrize(
    ("module", "transport", "known", "changed"),
    [
        (_Task.action, "local", True, True),
        (_Task.action, "local", False, False),
        (_Task.action, "ssh", True, False),
        ("ansible.legacy.async_wrapper", "local", True, False),
    ],
)
def test_only_a_module_on_a_local_connection_gets_bytecode(
    monkeypatch: pytest.MonkeyPatch, module: str, transport: str, *, known: bool, changed: bool
) -> None:
    action = _action(connection=SimpleNamespace(transport=transport))
    changing = SimpleNamespace(with_bytecode=lambda built: (*built, "bytecode"))
    action.internals = changing if known else None
    monkeypatch.setattr(ActionBase, "_configure_module", lambda *_args, **_more: ("built",))
    assert ("bytecode" in action._configure_module(module, {}, {})) == changed


def test_module_never_runs_without_the_connection_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without `_execute_module` the module might write to another server."""
    action = _action()
    monkeypatch.setattr(NormalAction, "run", lambda self, tmp, task_vars: {"changed": True})
    with pytest.raises(AnsibleError, match=r"does not call ActionBase\._execute_module"):
        action.run(None, {})
    monkeypatch.delattr(ActionBase, "_execute_module")
    with pytest.raises(AnsibleError, match=r"does not call ActionBase\._execute_module"):
        action.run(None, {})


@pytest.mark.parametrize("known", [True, False])
def test_old_python_is_reported_even_if_ansible_hides_it(
    monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    action = _action()
    if known:
        action._used_interpreter = "#!/opt/python3.6"
        monkeypatch.setattr(
            ActionBase, "_low_level_execute_command", lambda *_args, **_more: {"stdout": "True\n"}
        )
    else:
        del action._used_interpreter
    result = {"failed": True, "msg": "crashed", "module_stderr": "SyntaxError"}
    action._explain_old_python(result)
    assert "require Python 3.10 or newer" in str(result["msg"])
    assert ("/opt/python3.6 is older" in str(result["msg"])) == known
    assert ("module_stderr" in result) != known


def test_rows_are_marked_no_log_on_older_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_task_result, "censor_result", None, raising=False)
    result: dict[str, Any] = {"results": [{"a": 1}, "b"]}
    ansible_internals.mark_rows_as_secret(result)
    assert result["results"] == [{"a": 1, "_ansible_no_log": True}, "b"]
    monkeypatch.delattr(core_task_result, "censor_result")
    result = {"results": [{"a": 1}]}
    ansible_internals.mark_rows_as_secret(result)
    assert result["results"] == [{"a": 1}]


class _Lookup(LookupBase):
    def run(self, terms: Any, variables: Any = None, **kwargs: Any) -> list[Any]:
        return []


def test_lookup_without_private_name_fails_with_one_sentence() -> None:
    lookup = _Lookup(loader=object(), templar=object())
    del lookup._templar
    with pytest.raises(AnsibleError, match=r"which has no LookupBase\._templar"):
        ansible_internals.template_of(lookup)


@pytest.mark.parametrize("renamed", [True, False])
def test_omit_is_dropped_or_rejected(monkeypatch: pytest.MonkeyPatch, *, renamed: bool) -> None:
    """Since ansible-core 2.19 `omit` is an object; in a list it is always rejected."""
    module = SimpleNamespace(_OmitType=type("_OmitType", (), {}))
    monkeypatch.setitem(sys.modules, "ansible._internal", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "ansible._internal._templating", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "ansible._internal._templating._utils", module)
    omit = module._OmitType()
    assert ansible_internals.is_omitted(omit)
    if renamed:
        del module._OmitType
    assert ansible_internals.is_omitted(omit) is not renamed
    for value, kind in ((omit, {"type": "str"}), ([omit], {"type": "list", "elements": "str"})):
        with pytest.raises(ToolchainError, match="fields"):
            input_check.check_options({"fields": kind}, {"fields": value})


@pytest.mark.parametrize("name", ["host", "task", "result"])
def test_result_parts_are_read_from_public_or_private_names(name: str) -> None:
    public = SimpleNamespace(host="h", task="t", result={})
    private = SimpleNamespace(_host="h", _task="t", _result={})
    assert ansible_internals.result_parts(public) == ansible_internals.result_parts(private)
    delattr(public, name)
    with pytest.raises(ansible_internals.Missing, match=f"_{name}"):
        ansible_internals.result_parts(public)


def test_item_label_is_needed_only_in_loops() -> None:
    loop = {"ansible_loop_var": "item", "item": {"name": "a"}}
    assert ansible_internals.item_label({}) is None
    assert ansible_internals.item_label({**loop, "_ansible_item_label": "a"}) == "a"
    with pytest.raises(ansible_internals.Missing, match="_ansible_item_label"):
        ansible_internals.item_label(loop)


@pytest.mark.parametrize("missing", ["_file_name", "_uuid", "_host"])
def test_no_report_is_written_if_results_are_unreadable(
    missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A report without results would say that nothing differs."""
    monkeypatch.setattr(report.CallbackModule, "_active", None)
    monkeypatch.setenv("TOOLCHAIN_REPORT", str(tmp_path / "report"))
    shown = _warnings(monkeypatch)
    callback = report.CallbackModule()
    names = {"_file_name", "_uuid", "_host"} - {missing}
    values = {
        "_file_name": "site.yml",
        "_uuid": "1",
        "_host": SimpleNamespace(get_name=lambda: "h"),
    }
    task = SimpleNamespace(**{name: values[name] for name in names & {"_uuid"}})
    parts = {name: values[name] for name in names & {"_host"}}
    named = {name: values[name] for name in names & {"_file_name"}}
    callback.v2_playbook_on_start(SimpleNamespace(get_plays=list, **named))
    monkeypatch.setattr(callback, "_read_settings", lambda *_host: None)
    monkeypatch.setattr(callback._recorder, "result", lambda *_args, **_more: None)
    callback.v2_runner_on_ok(SimpleNamespace(_task=task, _result={}, **parts))
    callback.v2_playbook_on_stats(SimpleNamespace(processed={"h": 1}))
    (warning,) = shown
    assert "cannot write a report with" in warning
    assert missing in warning
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize(
    ("default", "expected"),
    [
        ("{{ entry.index }}", [0, 1]),
        ("{{ number }}", [0, 1]),
        ("{{ limit }}", [0, 0]),
        ("{{ of_item }}", [0, 1]),
        ("{{ settings.limit }}", [0, 1]),
        ("{{ ansible_loop.first }}", [0, 1]),
        ("{{ circle }}", [0, 0]),
        ("entry", [0, 0]),
    ],
)
def test_defaults_that_refer_to_the_item_are_evaluated_for_each(
    monkeypatch: pytest.MonkeyPatch, default: str, expected: list[int]
) -> None:
    values = iter([0, 1])
    monkeypatch.setattr(
        ansible_internals, "_module_defaults", lambda *_given: {"timeout": next(values)}
    )
    monkeypatch.setattr(ansible_internals, "_DEFAULTS", {})
    task = SimpleNamespace(_uuid="1", module_defaults=[{"delivery.toolchain.x": {"a": default}}])
    variables = {
        "ansible_loop_var": "entry",
        "ansible_index_var": "number",
        "limit": 5,
        "of_item": "{{ [limit, chosen] | max }}",
        "chosen": "{{ entry.limit }}",
        "settings": {"limit": "{{ number }}"},
        "circle": "{{ circle }}",
    }
    found = [
        ansible_internals.module_arguments("x", {}, task, None, variables)["timeout"]
        for _item in range(2)
    ]
    assert found == expected
