# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module. Only this file calls `exit_json` and `fail_json`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, Protocol

from ansible.module_utils import basic
from ansible.module_utils.basic import missing_required_lib

# before the rest, because it makes the imports below faster
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    import_finders,  # noqa: F401 - importing it installs the finder  # pylint: disable=unused-import
)

from .. import json_text
from ..connection.options import argument_spec, resolve
from ..connection.service import Service
from ..errors import ToolchainError, invalid, printable
from ..http.connections import REQUESTS_MISSING
from ..http.messages import Accounting
from ..plan import Operation, Plan, Predicting, Preflight
from ..secret import hidden, secrets_in_addresses, without_user_info
from . import diffs, typed_options
from .ansible_internals import MODULE_MASKS_RESULTS, UNCHECKED, HookedModule
from .authorship import Attributed
from .descriptor import Descriptor, lock_names
from .input_check import Options, ansible_spec, check_options
from .masking import OptionSecrets, mask_keys, mask_values, names_of, private_options
from .object_locks import ObjectLocks
from .predictions import Predictions
from .sealing import Sealing
from .server_values import ServerValues
from .task import Task


class _Module(HookedModule):
    """An AnsibleModule that registers secrets first, and then rejects invalid input before Ansible
    converts it.
    """

    def __init__(self, argument_spec: Options, **constraints: Any) -> None:
        self._options = argument_spec
        super().__init__(
            argument_spec=ansible_spec(argument_spec), supports_check_mode=True, **constraints
        )
        if not self.checked:
            self.fail_json(**_failure(ToolchainError("failed", UNCHECKED)))

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Check the options, and return them without null values.

        Ansible would count null values as given in rules such as `mutually_exclusive`.
        """
        hidden.clear()  # secrets of the previous task in this process
        deep = [name for name, value in arguments.items() if json_text.is_too_deep(value)]
        # without values that are too deep for the recursive functions below
        self.params = {**arguments, **dict.fromkeys(deep)}
        self._register_secrets()
        try:
            if deep:
                raise invalid(f"{deep[0]} is nested deeper than {json_text.DEEPEST} levels")
            return check_options(self._options, arguments)
        except ToolchainError as error:
            rejected = error
        # outside `except`, because Ansible would add the traceback to the result
        return self.fail_json(**_failure(rejected))

    def exit_json(self, **values: Any) -> NoReturn:
        self._finish(failed=False)
        super().exit_json(**self._masked(values))
        raise AssertionError("exit_json returned")

    def fail_json(self, msg: str, **values: Any) -> NoReturn:
        self._finish(failed=True)
        super().fail_json(**self._masked({"msg": msg, **values}))
        raise AssertionError("fail_json returned")

    def _finish(self, *, failed: bool) -> None:
        """Hide the secrets in `params`, which the result and the system log contain."""
        shown = self._register_secrets(failed=failed)
        known = names_of(self._options)
        self.params = mask_values(mask_keys(shown, self.no_log_values, known), self.no_log_values)
        self.log_invocation()

    def _register_secrets(self, *, failed: bool = False) -> dict[str, Any]:
        """Register the secrets in the options, and return the options with secrets hidden."""
        secrets = OptionSecrets(self._options, failed=failed)
        shown = secrets.shown(self.params)
        hidden.add(*secrets.found, *secrets_in_addresses("", self.params))
        self.no_log_values.update(hidden.forms)
        return shown

    def _masked(self, values: dict[str, Any]) -> dict[str, Any]:
        masked: dict[str, Any] = mask_keys(values, self.no_log_values)
        return masked if MODULE_MASKS_RESULTS else mask_values(masked, self.no_log_values)


class _LintedModule(_Module):
    """A module under ansible-lint, without input checks, which would reject templates."""

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments


@functools.cache
def _spec(service: Service | None, options: type) -> Options:
    """Return the argument spec of a module, cached for the items of a loop."""
    connection = {} if service is None else argument_spec(service)
    return {**connection, **typed_options.argument_spec(options)}


class OperationType(Protocol):
    """The class of an operation."""

    @property
    def descriptor(self) -> Descriptor:
        """Return the metadata of the module."""

    def __call__(self, task: Any, options: Any, /) -> Operation:
        """Create the operation. Raises `invalid` for contradictory options.

        :param task: `None` for a module that needs no server
        """


def run(options: type, operation: OperationType) -> None:
    """Run a module: plan, apply the plan unless in check mode, and exit with the result.

    :param options: dataclass of the module's options, without those of the connection
    """
    service = operation.descriptor.service
    current: Any = basic.AnsibleModule
    # ansible-lint replaces `AnsibleModule` with a class that only checks the options
    is_linted = current.__module__ != basic.__name__
    kind: Any = type("_Module", (_LintedModule, current), {}) if is_linted else _Module
    module: _Module = kind(_spec(service, options), **typed_options.constraints(options))
    task = None if service is None else _task(service, module)
    planner = _Planner(module, operation, task)
    failed: ToolchainError | None = None
    is_applied = False
    try:
        planner.options = typed_options.parse(options, module.params)
        prepared, plan, sealing = _planned(planner)
        asked = (module.sealed or {}).get("who") and module.check_mode and plan.changed
        attributed = asked and isinstance(prepared, Attributed)
        authors = prepared.authors(plan) if attributed else ()
        applied = {}
        if _must_apply(prepared, plan, module.check_mode):
            is_applied = True
            applied = prepared.apply(plan)
        if module.check_mode and plan.changed and isinstance(prepared, Predicting):
            prepared.predict(plan)
        values = _values(plan, applied, module.with_diff)
        if module.reports:
            from ..finding import RETURNED  # few runs are reported
            from . import reported

            secrets = {*module.no_log_values, *hidden.forms}
            found = reported.findings_of(prepared, plan, values, module.params, secrets)
            kind = operation.descriptor.kind
            values[RETURNED] = reported.rows(found, kind, sealing, authors)
        if sealing is not None and sealing.skipped:
            values["plan_skipped"] = sealing.skipped
    except ToolchainError as error:
        failed = error
    finally:
        if task is not None:
            task.locks.release()
    if failed is not None:
        values = _failure(failed) if task is None else task.failure(failed)
        if module.reports:
            from . import reported

            with_changes = module.check_mode or is_applied
            values |= reported.of_failure(
                planner.prepared, failed, values, with_changes=with_changes
            )
        module.fail_json(**values)
    if task is not None and task.accounting.acknowledged:
        task.predictions.clear()
    module.exit_json(**values, http=(task.accounting if task else Accounting()).as_dict())


class _Planned(NamedTuple):
    operation: Any
    plan: Plan
    sealing: Sealing | None


class _Planner:
    """Plans the task of a module. Each plan has an operation of its own, which reads again."""

    def __init__(self, module: _Module, operation: OperationType, task: Task | None) -> None:
        self.module, self.operation, self.task = module, operation, task
        self.options: Any = None
        #: The operation that was prepared last.
        self.prepared: Any = None

    def prepare(self) -> Any:
        self.prepared = self.operation(self.task, self.options)
        return self.prepared

    def plan(self, prepared: Any) -> _Planned:
        plan, module = prepared.plan(), self.module
        sealing = _sealing(module, type(self.options), self.task)
        if sealing is not None:
            plan = sealing.restrict(prepared, plan, self.options, check_mode=module.check_mode)
        return _Planned(prepared, plan, sealing)


def _planned(planner: _Planner) -> _Planned:
    """Plan, and lock the objects if the plan has changes.

    If another task of the run has written them meanwhile, plan again, even after an error, which
    may be due to its unfinished write. A task that nobody disturbs sends no further request.
    """
    prepared, task = planner.prepare(), planner.task
    if task is None or not _locks(planner, prepared, task):
        return planner.plan(prepared)
    planned = None
    try:
        planned = planner.plan(prepared)
    except ToolchainError:
        if not task.locks.is_stale():
            raise
    if planned is not None and not planned.plan.changed:
        failed = planned.plan.failure is not None  # perhaps due to the write of another task
        if not (failed and task.locks.is_stale()):
            return planned
    if task.locks.acquire() or planned is None:
        planned = planner.plan(planner.prepare())
        if not planned.plan.changed:
            task.unlock()
    return planned


def _locks(planner: _Planner, prepared: Any, task: Task) -> bool:
    """Watch the objects that the task writes. Return whether they can be locked."""
    descriptor = getattr(prepared, "descriptor", None)
    if planner.module.check_mode or descriptor is None or not descriptor.is_locked:
        return False
    try:
        task.locks.watch(lock_names(prepared, descriptor, planner.options))
    except OSError as error:
        reason = f"the folder of the run cannot be used ({error.strerror})"
        task.warn(f"{reason}: several hosts may write the same object at the same time")
        return False
    return True


def _sealing(module: _Module, options: type, task: Task | None) -> Sealing | None:
    """Return the sealing of the task, or `None` if the run makes or uses no sealed plan."""
    if module.sealed is None or task is None:
        return None
    spec = typed_options.argument_spec(options)
    secrets = OptionSecrets(spec)
    secrets.shown({name: value for name, value in module.params.items() if name in spec})
    place = (options.__name__, without_user_info(str(task.connection.url)).rstrip("/"))
    return Sealing(module.sealed, place, secrets.all, private=private_options(spec))


def _task(service: Service, module: _Module) -> Task:
    """Return the task of a module. The module fails if the connection options are invalid."""
    if REQUESTS_MISSING is not None:
        missing = invalid(missing_required_lib("requests"))
        module.fail_json(**_failure(missing), exception=REQUESTS_MISSING)
    hidden.add(*module.no_log_values)
    failed: ToolchainError | None = None
    try:
        connection = resolve(service, module.params.get)
    except ToolchainError as error:
        failed = error
    if failed is not None:
        module.fail_json(**_failure(failed))
    # the result contains the address of the server, even if a variable sets it
    module.params["url"] = module.params["url"] or connection.url
    warn: Callable[[str], None] = lambda text: module.warn(printable(text))  # noqa: E731
    return Task(
        connection,
        warn,
        module.check_mode,
        module.with_diff,
        predictions=Predictions(connection.url, check_mode=module.check_mode),
        server_values=ServerValues(connection.url),
        locks=ObjectLocks(connection.url),
    )


def _failure(error: ToolchainError) -> dict[str, Any]:
    """Return the return values of a task that failed before there was a connection."""
    return {
        "msg": error.message,
        "changed": False,
        "error": error.as_dict(),
        "http": Accounting().as_dict(),
    }


def _must_apply(operation: Operation, plan: Plan, check_mode: bool) -> bool:
    """Return whether to apply a plan.

    If not, raises the failure of the plan, or in check mode the error that the server would return
    for the write.
    """
    if plan.needs_apply and not check_mode:
        return True
    if plan.failure is not None:
        raise plan.failure
    if plan.changed and isinstance(operation, Preflight):
        operation.preflight(plan)
    return False


def _values(plan: Plan, applied: Mapping[str, Any], with_diff: bool) -> dict[str, Any]:
    values = {**plan.result, **applied}
    values["changed"] = values.get("changed", plan.changed)
    if with_diff and "diff" not in values:  # an info module may return a diff of its own
        before, after = plan.diff()
        values["diff"] = {"before": before, "after": after if values["changed"] else before}
    if "diff" in values:
        values["diff"] = diffs.printable_diff(values["diff"])
    return values
