# SPDX-License-Identifier: GPL-3.0-or-later
"""Respond to an input that a pipeline build waits for: `ci_build_input` [C3.7, ci-28]."""

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
from ...core.progress import PollInterval
from ...core.verification import without_effect
from .. import client
from ..client import BUILD, CANCEL, SEES_JOB, object_of, require_confirmation, server_of
from ..job_address import JobName, build_path, build_segment, job_of
from ..service import SERVICE
from . import records
from .parameters import Parameters, text
from .records import described, pending_inputs

#: Number of verification reads, and seconds between them.
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
    """Selects one of the inputs that the build waits for, and responds to it once."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            **dict.fromkeys(
                ("proceed", "proceed with parameters"), writes(*SEES_JOB, unforeseen=(BUILD,))
            ),
            # server fact [ci-28]: one of the two permissions is enough
            "abort": writes(*SEES_JOB, unforeseen=(BUILD, CANCEL)),
        },
        kind="build",
        name="{job}/{build}",
    )

    def __init__(self, task: Task, options: CiBuildInputOptions) -> None:
        self._options, self._hide = options, task.hide
        self._parameters = without_none(options.parameters or {})
        if options.action == "abort" and self._parameters:
            raise invalid("parameters cannot be combined with action: abort: omit them")
        self._job = job_of(options.job, task.connection.url)
        self._segment = build_segment(options.build)
        build = f"build {self._segment} of the job '{self._job.name}'"
        self._purpose = f"responding to an input of {build}"
        self._server = server_of(task)

    def plan(self) -> Plan:
        starting = PollInterval(records.STARTING_SECONDS, _PAUSE)
        records.await_newest(self._server, self._purpose, self._job, self._segment, starting)
        build = self._read(self._segment)
        pending = self._find(pending_inputs(build))
        types = {entry["name"]: entry["type"] for entry in (pending or {}).get("parameters", ())}
        for name, value in self._parameters.items():
            if "Password" in types.get(name, "Password"):  # also if the types are unknown
                self._hide(text(value))
        if pending is None:
            return unchanged({"input": None})
        parameters: dict[str, object] = {}
        if self._options.action == "proceed":
            given = self._parameters
            # without a missing parameter, the server would continue
            for names, words in (
                (sorted(set(given) - set(types)), "has no parameter"),
                (sorted(set(types) - set(given)), "needs the parameter"),
            ):
                if names:
                    has = f"it has {', '.join(types)}" if types else "it has none"
                    wrong = f"{described(pending)} {words} {', '.join(names)}"
                    raise invalid(f"parameters: {wrong}: {has}")
            for name, kind in types.items():
                parameters[name] = value = text(given[name])
                if "BooleanParameter" in kind:
                    if value.lower() not in ("true", "false"):
                        raise invalid(f"parameters.{name} is a boolean: use true or false")
                    parameters[name] = value.lower() == "true"
        shown = {"build": records.number_of(build.get("number")), "id": pending["id"]}
        values = {
            "id": pending["id"],
            "message": pending["message"],
            "action": self._options.action,
        }
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
        try:
            self._server.write(
                self._purpose,
                "POST",
                # server fact [ci-28]: the id is percent-encoded in the path
                f"{build_path(self._job, number)}/input/{quote(input_id, safe='')}/{request}",
                form=form,
                expect=client.REDIRECTED,
                validate=partial(require_confirmation, self._server),
                verify=partial(self._is_answered, str(number), input_id),
            )
        except ToolchainError as error:
            # server fact [ci-28]: another user than the submitters is refused with 400
            if error.status == 400 and "You need to " in error.message:
                error.kind = "permission"
            raise
        # server fact [ci-6]: a success is a redirect, which a proxy may also send
        for _attempt in range(_ATTEMPTS):
            done = self._is_answered(str(number), input_id)
            if done:
                return {}
            if done is None:
                raise ToolchainError(
                    "failed",
                    f"{self._purpose}: the build was aborted, and it is unknown whether it had"
                    " received the input before",
                )
            time.sleep(_PAUSE)
        raise without_effect(self._purpose, "the build still waits for the input", changed=False)

    def _read(self, segment: str) -> Mapping[str, Any]:
        fields = records.FOLLOWED_FIELDS
        return object_of(
            records.build_response(self._server, self._purpose, self._job, segment, fields)
        )

    def _find(self, waiting: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """Return the pending input that the options select.

        Returns `None` if there is none and `missing_ok` is set.
        """
        wanted = self._options.input_id
        # server fact [ci-28]: the server capitalizes the id that the pipeline script sets
        names = (wanted, f"{wanted[:1].upper()}{wanted[1:]}") if wanted else ()
        found = [pending for pending in waiting if not names or pending["id"] in names]
        known = "; ".join(described(pending) for pending in waiting)
        if len(found) > 1:
            raise invalid(f"set input_id, because the build waits for more than one input: {known}")
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

    def _is_answered(self, number: str, input_id: str) -> bool | None:
        """Return whether the build no longer waits for the input.

        Returns `None` if the build was aborted, possibly by another user.
        """
        build = self._read(number)
        if any(pending["id"] == input_id for pending in pending_inputs(build)):
            return False
        if self._options.action == "proceed" and build.get("result") == "ABORTED":
            return None
        return True
