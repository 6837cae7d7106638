# SPDX-License-Identifier: GPL-3.0-or-later
"""AnsibleModule in, result out: the only place where a module exits or fails."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from ansible.module_utils import basic
from ansible.module_utils.ansible_release import __version__
from ansible.module_utils.basic import AnsibleModule, missing_required_lib

# before the rest, which its import makes faster
# pylint: disable-next=unused-import
from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import (
    archive_imports,  # noqa: F401
)

from .. import json_text
from ..accounting import Accounting
from ..connection.options import argument_spec, resolve
from ..errors import ToolchainError, invalid, printable
from ..http.sessions import REQUESTS_MISSING
from ..plan import Operation, Plan, Preflight
from ..secret import hidden, secrets_in_addresses
from . import diffs, typed_options
from .input_check import Options, ansible_spec, check_options
from .option_secrets import OptionSecrets
from .task import Task

Given = TypeVar("Given")
#: Up to ansible-core 2.21 Ansible takes the secrets of a module out of its result. Since then it
#: masks what it shows, and knows of no spelling but that of the options.
_ANSIBLE_MASKS_RESULTS = tuple(int(part) for part in __version__.split(".")[:2]) < (2, 22)


class _Module(AnsibleModule):
    """An AnsibleModule that refuses slips before Ansible converts them, and that knows what is
    secret before anything can fail. It tells the system's log how it was called only at its end:
    which parameters of a build are passwords is known to the server alone.
    """

    params: dict[str, Any]
    _to_be_logged = False

    def __init__(self, argument_spec: Options, **constraints: Any) -> None:
        self._options = argument_spec
        super().__init__(
            argument_spec=ansible_spec(argument_spec), supports_check_mode=True, **constraints
        )

    def _load_params(self) -> None:
        """An option that is C(null) is one that is not given, in what goes together with what, too:
        Ansible counts it as given there.
        """
        hidden.clear()  # of the task before in the same process
        super()._load_params()
        internal = {name: self.params[name] for name in self.params if name.startswith("_ansible_")}
        self.params = {name: self.params[name] for name in self.params if name not in internal}
        refused = self._without_depths()
        self._hide_secrets()
        try:
            if refused is None:
                self.params = {**internal, **check_options(self._options, self.params)}
        except ToolchainError as error:
            refused = error
        if refused is not None:
            self.fail_json(**_refusal(refused))

    def _without_depths(self) -> ToolchainError | None:
        """Leaves out what is nested so deep that nothing can go through it; C(invalid) for that."""
        deep = [name for name, value in self.params.items() if json_text.is_too_deep(value)]
        self.params.update(dict.fromkeys(deep))
        if not deep:
            return None
        return invalid(f"{deep[0]} is nested more than {json_text.DEEPEST} levels deep")

    def _log_invocation(self) -> None:
        self._to_be_logged = True

    def exit_json(self, **values: Any) -> NoReturn:
        self.params = self._masked(self._hide_secrets())
        self._log_now()
        super().exit_json(**self._masked(values))
        raise AssertionError("exit_json does not come back")

    def fail_json(self, msg: str, **values: Any) -> NoReturn:
        self.params = self._masked(self._hide_secrets(failed=True))
        self._log_now()
        super().fail_json(**self._masked({"msg": msg, **values}))
        raise AssertionError("fail_json does not come back")

    def _hide_secrets(self, *, failed: bool = False) -> dict[str, Any]:
        """The options as result and system's log may show them."""
        secrets = OptionSecrets(self._options, failed=failed)
        shown = secrets.shown(self.params)
        hidden.add(*secrets.found, *secrets_in_addresses("", self.params))
        self.no_log_values.update(hidden.forms)
        return shown

    def _masked(self, values: dict[str, Any]) -> dict[str, Any]:
        if _ANSIBLE_MASKS_RESULTS:
            return values
        masked: dict[str, Any] = basic.remove_values(values, self.no_log_values)
        return masked

    def _log_now(self) -> None:
        if self._to_be_logged:
            super()._log_invocation()


class _Linted(_Module):
    """What ansible-lint hands over may be templates: Ansible's own check alone passes over them."""

    def _load_params(self) -> None:
        super(_Module, self)._load_params()


def _module_class() -> type[_Module]:
    """The class, on top of whatever C(AnsibleModule) is when a module is called: ansible-lint puts
    one of its own there, which checks the options and stops. Bound earlier, the module would run.
    """
    now = basic.AnsibleModule
    if now.__module__ == basic.__name__:
        return _Module
    return type("_Module", (_Linted, now), {})


@functools.cache
def _spec(service: str | None, options: type) -> Options:
    """The argument spec of a module, made once: the items of a loop share it."""
    connection = {} if service is None else argument_spec(service)
    return {**connection, **typed_options.argument_spec(options)}


def run(service: str, options: type[Given], operation: Callable[[Task, Given], Operation]) -> None:
    """Run a module: read its options, plan, apply what the plan says (not in check mode), exit.

    :param options: the dataclass of the module's options, without those of the connection
    :param operation: makes the operation from the task and its options; raises C(invalid) for
        options that contradict each other
    """
    kind: type = options
    module = _module_class()(_spec(service, kind), **typed_options.constraints(options))
    if REQUESTS_MISSING is not None:
        error = invalid(missing_required_lib("requests"))
        module.fail_json(**_refusal(error), exception=REQUESTS_MISSING)
    hidden.add(*module.no_log_values)
    failed: ToolchainError | None = None  # outside of `except`: there Ansible adds a traceback
    try:
        connection = resolve(service, module.params.get)
    except ToolchainError as error:
        failed = error
    if failed is not None:
        module.fail_json(**_refusal(failed))
    # the result tells which server was asked, wherever its address came from
    module.params["url"] = module.params["url"] or connection.url
    warn: Callable[[str], None] = lambda text: module.warn(printable(text))  # noqa: E731
    task = Task(connection, warn, module.check_mode, module._diff)
    given = typed_options.parse(options, module.params)
    try:
        wanted = operation(task, given)
        plan = wanted.plan()
        applied = wanted.apply(plan) if _is_to_be_done(wanted, plan, module.check_mode) else {}
        values = _values(plan, applied, module._diff)
    except ToolchainError as error:
        failed = error
    if failed is not None:
        failure = task.failure(failed)
        module.fail_json(failure.pop("msg"), **failure)
    module.exit_json(**values, http=task.accounting.as_dict())


def run_locally(options: type[Given], operation: Callable[[Given], Operation]) -> None:
    """Run a module that speaks to no server, in the same way as :func:`run`."""
    kind: type = options
    module = _module_class()(_spec(None, kind), **typed_options.constraints(options))
    given = typed_options.parse(options, module.params)
    failed: ToolchainError | None = None
    try:
        wanted = operation(given)
        plan = wanted.plan()
        applied = wanted.apply(plan) if _is_to_be_done(wanted, plan, module.check_mode) else {}
        values = _values(plan, applied, module._diff)
    except ToolchainError as error:
        failed = error
    if failed is not None:
        module.fail_json(**_refusal(failed))
    module.exit_json(**values, http=Accounting().as_dict())


def _refusal(error: ToolchainError) -> dict[str, Any]:
    """The return values of a task that failed before there was a connection."""
    return {"msg": error.message, "error": error.as_dict(), "http": Accounting().as_dict()}


def _is_to_be_done(operation: Operation, plan: Plan, predict: bool) -> bool:
    """Whether a plan is to be applied; where it is not, raises what could not be planned and, in
    check mode, what the server would refuse.
    """
    if plan.needs_apply and not predict:
        return True
    if plan.failure is not None:
        raise plan.failure
    if plan.changed and isinstance(operation, Preflight):
        operation.preflight(plan)
    return False


def _values(plan: Plan, applied: Mapping[str, Any], with_diff: bool) -> dict[str, Any]:
    """The return values of a plan, and of what came of it."""
    values = {**plan.result, **applied}
    values["changed"] = values.get("changed", plan.changed)
    if with_diff and "diff" not in values:  # a reading may return one of what it compares
        before, after = plan.diff()
        values["diff"] = {"before": before, "after": after if values["changed"] else before}
    if "diff" in values:
        values["diff"] = diffs.shown(values["diff"])
    return values
