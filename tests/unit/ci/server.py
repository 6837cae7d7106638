# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated CI server whose responses are set by the test, and a task for it that never waits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds.ci_job_build import (
    CiJobBuildOperation,
    CiJobBuildOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.masking import (
    OptionSecrets,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.typed_options import (
    argument_spec,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Operation
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.progress import (
    PollInterval,
    progress_to,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import (
    Secret,
    hidden,
)
from tests.helpers.options import build as build_options
from tests.unit.stub import Reply, Seen, Stub, connection_to

TOKEN = "api-token-1234567890"
STARTED = 1_700_000_000_000
PASSWORD_CLASS = "hudson.model.PasswordParameterValue"
#: Default options of tests of `ci_job_build`.
OPTIONS: dict[str, Any] = {"job": "folder/job", "wait_timeout": 60.0}


def definition(name: str, kind: str, default: Any = None, **more: Any) -> dict[str, Any]:
    """Return a job parameter as the server shows it; without a default, its value is hidden."""
    value = {} if default is None else {"value": default}
    return {
        "name": name,
        "type": f"{kind}ParameterDefinition",
        "defaultParameterValue": value,
        **more,
    }


def parameters(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the `actions` that contain parameters; `...` is a value that the server
    does not show.
    """
    entries = [
        {"_class": PASSWORD_CLASS, "name": name} if value is ... else {"name": name, "value": value}
        for name, value in values.items()
    ]
    return [{}, {"parameters": entries}, {}] if entries else [{}]


def build(number: int, result: str | None = "SUCCESS", **more: Any) -> dict[str, Any]:
    """Return a build, running if without a result. `values`: parameters; `user`: who started it."""
    actions = parameters(more.pop("values", {}))
    if "user" in more:
        actions.append({"causes": [{"userId": more.pop("user")}]})
    return {
        "number": number,
        "queueId": 100 + number,
        "building": result is None,
        "result": result,
        "duration": 0 if result is None else 1500,
        "estimatedDuration": 10_000,
        "timestamp": STARTED,
        "actions": actions,
        **more,
    }


def waiting(name: str, **parameters: str) -> dict[str, Any]:
    """Return the action of a build that waits for the input `name`; parameters with their types."""
    asked = {
        "id": name,
        "message": f"{name}?",
        "ok": "Proceed",
        "submitter": None,
        "parameters": [{"name": each, "type": kind} for each, kind in parameters.items()],
    }
    return {"waitingForInput": True, "executions": [{"id": name, "settled": False, "input": asked}]}


def left(number: int | None) -> dict[str, Any]:
    """Return a queue item that has left the queue."""
    executable = None if number is None else {"number": number}
    return {"id": 14, "why": None, "cancelled": False, "executable": executable}


@dataclass
class Ci:
    """Responses of the server. The entries of a list are sent in order; the last entry
    repeats.

    `items` and `running` may hold a Reply in place of data. `jobs` replaces `job` in successive
    responses. `after` are changes of the job, applied when a build is triggered.
    """

    job: dict[str, Any] = field(default_factory=dict)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    after: dict[str, Any] = field(default_factory=dict)
    trigger: Reply = field(default_factory=lambda: created(14))
    items: list[Any] = field(default_factory=lambda: [left(7)])
    running: list[Any] = field(default_factory=lambda: [build(7)])
    queue: list[dict[str, Any]] | None = None
    login_page: Reply = field(default_factory=lambda: Reply(body="<html>"))
    #: Mark of the start of the server, and the mark after a trigger.
    mark: str = ""
    mark_after: str = ""
    log: bytes = b"one\ntwo\nFinished: SUCCESS\n"

    def __call__(self, seen: Seen) -> Reply:
        path = urlsplit(seen.target).path.removeprefix("/base")
        if seen.method == "POST":
            self.job = {**self.job, **self.after}
            self.mark = self.mark_after or self.mark
            return self.trigger
        if path.startswith("/crumbIssuer/"):
            return Reply(404)
        if path == "/login":
            return self.login_page
        if path == "/queue/api/json":
            return Reply(404) if self.queue is None else Reply(body={"items": self.queue})
        if re.fullmatch(r"/queue/item/\d+/api/json", path):
            return _next(self.items)
        if path.endswith("/logText/progressiveText"):
            start = int(parse_qs(urlsplit(seen.target).query)["start"][0])
            return Reply(body=self.log[start:], headers={"X-Text-Size": str(len(self.log))})
        if re.search(r"/job/[^/]+/(\d+|last\w+)/api/json$", path):
            return _next(self.running)
        self.job = self.jobs.pop(0) if self.jobs else self.job
        job = {"buildable": True, "property": [], "builds": [], **self.job}
        return Reply(body=job, headers={"X-Jenkins-Session": self.mark} if self.mark else {})

    def defines(self, *definitions: Mapping[str, Any]) -> Ci:
        self.job["property"] = [{}, {"parameterDefinitions": list(definitions)}]
        return self


def _next(said: list[Any]) -> Reply:
    one = said.pop(0) if len(said) > 1 else said[0]
    return one if isinstance(one, Reply) else Reply(body=one)


def created(item: int, status: int = 201, base: str = "http://inner:8080/ci") -> Reply:
    """Return the response to a trigger; the server uses another base address than the client."""
    return Reply(status, headers={"Location": f"{base}/queue/item/{item}/"})


class Clock:
    """A clock that advances only during a sleep."""

    def __init__(self) -> None:
        self.time = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds

    def polling(self, timeout: float, interval: float) -> PollInterval:
        return PollInterval(timeout, interval, now=lambda: self.time, sleep=self.sleep)


@dataclass
class Played:
    """A task run against a server: its return values, messages, hidden values and requests."""

    stub: Stub
    options: Mapping[str, Any] = field(default_factory=dict)
    read_only: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    warnings: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def task(self) -> Task:
        connection = connection_to(
            self.stub.url,
            "ci",
            username="builder",
            password=Secret(TOKEN),
            settings={"retries": 0, **self.settings},
        )
        return Task(connection, self.warnings.append, self.read_only, hide=self._hide)

    def _hide(self, text: str) -> None:
        self.hidden.append(text)
        hidden.add(text)

    def listening(self) -> AbstractContextManager[None]:
        return progress_to(self.lines.append)

    def job_build(self, task: Task) -> Operation:
        """Return the operation of `ci_job_build`; secret names are recognized, as in a task."""
        secrets = OptionSecrets(argument_spec(CiJobBuildOptions))
        secrets.shown(self.options)
        hidden.add(*secrets.found)
        options = build_options(CiJobBuildOptions, **{**OPTIONS, **self.options})
        return CiJobBuildOperation(task, options, self.clock.polling)

    def run(self, make: Callable[[Task], Operation] | None = None) -> dict[str, Any]:
        """Plan, and apply if something changes and check mode is off, as a module does."""
        with self.listening():
            operation = (make or self.job_build)(self.task())
            plan = operation.plan()
            values = dict(plan.result)
            if plan.needs_apply and not self.read_only:
                values.update(operation.apply(plan))
            elif plan.failure is not None:
                raise plan.failure
        return {"changed": plan.changed, **values}

    @property
    def posts(self) -> list[Seen]:
        return [seen for seen in self.stub.seen if seen.method == "POST"]
