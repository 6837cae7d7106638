# SPDX-License-Identifier: GPL-3.0-or-later
"""Run scripts on the CI server: `ci_script` [C3.3, W4.4]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ...core.errors import ToolchainError, invalid
from ...core.files import read_text
from ...core.finding import Finding, sides
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText
from ...core.plan import Plan, unchanged
from .. import script_run
from ..client import ADMINISTER
from ..script_run import ScriptEnd, console_of, printed, run_script
from ..service import SERVICE
from ..ssh_commands import SshOptions

_NOTHING: dict[str, Any] = {"output": "", "output_lines": [], "result": None}


@dataclass(frozen=True, kw_only=True)
class CiScriptOptions(SshOptions):
    """The options of `ci_script`."""

    script: str | None = None
    src: PathText | None = None
    unless: str | None = None
    arguments: Annotated[dict[str, Any], Option(values="json", private=True)] | None = None
    changed_when_output: str | None = None
    has_dry_run: bool = False

    constraints: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [("script", "src")],
        "required_one_of": [("script", "src")],
    }


class CiScriptOperation:
    """Runs a script unless it has no effect.

    Two runs that only read decide that: the run of the `unless` script, and a dry run of the script
    itself if it supports that.
    """

    descriptor: ClassVar = Descriptor(
        SERVICE, {"run": writes(ADMINISTER), "over SSH": writes(ADMINISTER)}, lock=("script", "src")
    )

    def __init__(self, task: Task, options: CiScriptOptions) -> None:
        src = options.src
        self._script = options.script or "" if src is None else read_text(src, "the script")
        self._unless = options.unless
        self._arguments = options.arguments or {}
        try:
            pattern = options.changed_when_output
            self._changed_when = None if pattern is None else re.compile(pattern, re.MULTILINE)
        except re.error as error:
            raise invalid(f"changed_when_output is not a regular expression: {error}") from None
        self._has_dry_run = options.has_dry_run
        self._console, self._warn = console_of(task, options), task.warn

    def plan(self) -> Plan:
        if self._unless is not None:
            purpose = "running the unless script"
            if _is_true(self._run(purpose, self._unless, only_reads=True)):
                return unchanged(_NOTHING, state="")
        values: Mapping[str, Any] = _NOTHING
        if self._has_dry_run:
            purpose = "running the script in check mode"
            values = self._values(self._run(purpose, self._script, only_reads=True))
            if not values["changed"]:
                return unchanged(values, state="")
        return Plan("", self._script, "run", result=values)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        try:
            return self._values(self._run("running the script", self._script, only_reads=False))
        except ToolchainError as error:
            if not error.outcome_unknown or self._unless is None:
                raise
            with suppress(ToolchainError):
                purpose = "running the unless script again"
                if _is_true(self._run(purpose, self._unless, only_reads=True)):
                    return {**_NOTHING, "changed": True}
            raise

    def findings(self, plan: Plan, values: Mapping[str, Any]) -> list[Finding]:
        """Return the finding of the script, which is named after the task."""
        if not values["changed"]:
            return [Finding(kind="script")]
        return [Finding("", "script", "update", *sides(values), "would change something")]

    def _values(self, end: ScriptEnd) -> dict[str, Any]:
        """Return the values for the result.

        `changed` comes from `changed_when_output`, otherwise from the result of the script. It is
        true without both.
        """
        result = end.result
        if isinstance(result, str) and result.lstrip().startswith(("{", "[")):
            result = script_run.decoded(result)
        changed = result.get("changed") if isinstance(result, Mapping) else None
        if self._changed_when is not None:
            changed = self._changed_when.search(end.output) is not None
        changed = changed if isinstance(changed, bool) else True
        return {**printed(end), "result": result, "changed": changed}

    def _run(self, purpose: str, script: str, *, only_reads: bool) -> ScriptEnd:
        return run_script(
            self._console, purpose, script, self._arguments, only_reads=only_reads, warn=self._warn
        )


def _is_true(end: ScriptEnd) -> bool:
    """Return whether the result of a script, or the last line of its output, is `true`."""
    lines = end.output.rstrip().splitlines()
    value = end.result is True or end.result == "true"
    return value or (bool(lines) and lines[-1].strip() == "true")
