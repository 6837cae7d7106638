# SPDX-License-Identifier: GPL-3.0-or-later
"""Respond to an input that a pipeline waits for: `ci_build_input` [C3.7, ci-28]."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.plan import Plan, unchanged, without_none
from ..builds import records
from ..builds.parameters import Parameters, text
from ..client import object_of, require_confirmation, server_of
from ..job_address import JobName, build_path, build_segment, job_of
from ..pending_input import described, pending_inputs
from ..permissions import BUILD, CANCEL, SEES_JOB

#: Reads of the build after the response, and seconds between them.
_ATTEMPTS, _PAUSE = 3, 0.5


@dataclass(frozen=True, kw_only=True)
class CiBuildInputOptions:
    """The options of `ci_build_input`."""

    job: JobName
    build: str
    input_id: str | None = None
    action: Literal["proceed", "abort"] = "proceed"
    parameters: Parameters | None = None
    missing_ok: bool = False


class CiBuildInputOperation:
    """Finds the input among those that the build waits for, and responds to it once."""

    descriptor: ClassVar = Descriptor(
        "ci",
        {
            **dict.fromkeys(
                ("proceed", "proceed with parameters"), writes(*SEES_JOB, unforeseen=(BUILD,))
            ),
            # server fact [ci-28]: either of them is enough
            "abort": writes(*SEES_JOB, unforeseen=(BUILD, CANCEL)),
        },
        kind="build",
        name="{job}/{build}",
    )

    def __init__(self, task: Task, options: CiBuildInputOptions) -> None:
        self._options = options
        self._parameters = without_none(options.parameters or {})
        if options.action == "abort" and self._parameters:
            raise invalid("parameters require the action proceed: omit them to abort")
        self._job = job_of(options.job, task.connection.url)
        self._segment = build_segment(options.build)
        build = f"build {self._segment} of the job '{self._job.name}'"
        self._purpose = f"responding to an input of {build}"
        self._server = server_of(task)

    def plan(self) -> Plan:
        build = self._read(self._segment)
        asked = self._find(pending_inputs(build))
        if asked is None:
            return unchanged({"input": None})
        parameters = self._typed_parameters(asked) if self._options.action == "proceed" else {}
        shown = {"build": records.number_of(build.get("number")), "id": asked["id"]}
        values = {"id": asked["id"], "message": asked["message"], "action": self._options.action}
        plan = Plan({"input": shown}, {"input": {**shown, "action": values["action"]}}, "run")
        return plan.with_result(input=values).with_data(parameters)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        number, input_id = plan.before["input"]["build"], plan.before["input"]["id"]
        request: str = self._options.action
        form = {}
        if request == "proceed" and not plan.data:
            request = "proceedEmpty"
        elif request == "proceed":
            values = [{"name": name, "value": value} for name, value in plan.data.items()]
            form = {"json": json.dumps({"parameter": values})}
        self._server.write(
            self._purpose,
            "POST",
            # server fact [ci-28]: the id is encoded in the path
            f"{build_path(self._job, number)}/input/{quote(input_id, safe='')}/{request}",
            form=form,
            expect=(200, 201, 202, 204, 302, 303),
            validate=partial(require_confirmation, self._server),
            verify=partial(self._is_given, str(number), input_id),
        )
        self._require_given(str(number), input_id)
        return {}

    def _require_given(self, number: str, input_id: str) -> None:
        """Raise `failed` if the build still waits for the input, or was aborted meanwhile. Server
        fact [ci-6]: 302 is the response to a success, and to a redirect of another program.
        """
        for _attempt in range(_ATTEMPTS):
            done = self._is_given(number, input_id)
            if done:
                return
            if done is None:
                raise ToolchainError(
                    "failed",
                    f"{self._purpose}: the build was aborted meanwhile, and it is unknown whether"
                    " it had received the input",
                )
            time.sleep(_PAUSE)
        raise ToolchainError(
            "failed",
            f"{self._purpose}: the server accepted it, but the build still waits for the input",
            result={"changed": False},
        )

    def _read(self, segment: str) -> Mapping[str, Any]:
        response = self._server.read(
            self._purpose,
            f"{self._job.path}/{segment}/api/json",
            query={"tree": records.FOLLOWED_FIELDS},
            expect=(200, 404),
        )
        if response.status == 404:
            raise records.no_build(self._server, self._purpose, self._job, segment)
        return object_of(response)

    def _find(self, waiting: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """Return the wanted input; `None` if it does not wait and need not."""
        wanted = self._options.input_id
        # server fact [ci-28]: the server capitalizes the id of a pipeline's source
        names = (wanted, f"{wanted[:1].upper()}{wanted[1:]}") if wanted else ()
        found = [asked for asked in waiting if not names or asked["id"] in names]
        known = "; ".join(described(asked) for asked in waiting)
        if len(found) > 1:
            raise invalid(
                f"input_id is missing, but the build waits for more than one input: {known}"
            )
        if found:
            return found[0]
        if self._options.missing_ok:
            return None
        which = f"the input {wanted}" if wanted else "an input"
        raise ToolchainError(
            "not_found",
            f"{self._purpose}: the build does not wait for {which}"
            + (f", but for {known}" if known else ""),
        )

    def _typed_parameters(self, asked: Mapping[str, Any]) -> dict[str, object]:
        """Return the values of the parameters. Raises `invalid` unless the task has a value for
        each parameter of the input, and no other: the server would continue without one.
        """
        values = self._parameters
        types = {entry["name"]: entry["type"] for entry in asked["parameters"]}
        for wrong, words in (
            (sorted(set(values) - set(types)), "has no parameter"),
            (sorted(set(types) - set(values)), "needs the parameter"),
        ):
            if wrong:
                has = f"it has {', '.join(types)}" if types else "it has none"
                raise invalid(f"parameters: {described(asked)} {words} {', '.join(wrong)}: {has}")
        return {name: _value(name, values[name], kind) for name, kind in types.items()}

    def _is_given(self, number: str, input_id: str) -> bool | None:
        """Return whether the input was given, after a lost response; `None` if someone else may
        have aborted the build.
        """
        build = self._read(number)
        if any(asked["id"] == input_id for asked in pending_inputs(build)):
            return False
        if self._options.action == "proceed" and build.get("result") == "ABORTED":
            return None
        return True


def _value(name: str, value: object, kind: str) -> object:
    """Return the value of a parameter for the server. Raises `invalid` for an impossible one."""
    if "BooleanParameter" not in kind:
        return text(value)
    if text(value).lower() not in ("true", "false"):
        raise invalid(f"parameters.{name} is a boolean: use true or false")
    return text(value).lower() == "true"
