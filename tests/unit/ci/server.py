# SPDX-License-Identifier: GPL-3.0-or-later
"""A CI server that says what a test tells it, and a task for it that never waits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ansible_collections.delivery.toolchain.plugins.module_utils.ci.builds.ci_job_build import (
    CiJobBuildOperation,
    CiJobBuildOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.module.option_secrets import (
    OptionSecrets,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils.core.module.typed_options import (
    argument_spec,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.plan import Operation
from ansible_collections.delivery.toolchain.plugins.module_utils.core.polling import PollInterval
from ansible_collections.delivery.toolchain.plugins.module_utils.core.progress import progress_to
from ansible_collections.delivery.toolchain.plugins.module_utils.core.secret import Secret, hidden
from tests.helpers.options import build as build_options
from tests.unit.stub import Reply, Seen, Stub, connection_to

TOKEN = "api-token-1234567890"
STARTED = 1_700_000_000_000
PASSWORD_CLASS = "hudson.model.PasswordParameterValue"
#: What tests of C(ci_job_build) give where they say nothing else.
OPTIONS: dict[str, Any] = {"job": "folder/job", "wait_timeout": 60.0}


def definition(name: str, kind: str, default: Any = None, **more: Any) -> dict[str, Any]:
    """A parameter of a job as the server shows it; no default: its value is not shown."""
    value = {} if default is None else {"value": default}
    return {
        "name": name,
        "type": f"{kind}ParameterDefinition",
        "defaultParameterValue": value,
        **more,
    }


def parameters(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The `actions` that hold parameters; `...` is a value that is not shown."""
    entries = [
        {"_class": PASSWORD_CLASS, "name": name} if value is ... else {"name": name, "value": value}
        for name, value in values.items()
    ]
    return [{}, {"parameters": entries}, {}] if entries else [{}]


def build(number: int, result: str | None = "SUCCESS", **more: Any) -> dict[str, Any]:
    """A build; without a result it runs. `values` are its parameters, `user` who started it."""
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


def left(number: int | None) -> dict[str, Any]:
    """A queue item that has left the queue."""
    executable = None if number is None else {"number": number}
    return {"id": 14, "why": None, "cancelled": False, "executable": executable}


@dataclass
class Ci:
    """What the server says. In lists each entry is said once, the last one for ever after.

    `items` and `running` may hold a Reply in place of data. `after` are changes of the job once a
    build was triggered.
    """

    job: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    trigger: Reply = field(default_factory=lambda: created(14))
    items: list[Any] = field(default_factory=lambda: [left(7)])
    running: list[Any] = field(default_factory=lambda: [build(7)])
    queue: list[dict[str, Any]] | None = None
    log: bytes = b"one\ntwo\nFinished: SUCCESS\n"

    def __call__(self, seen: Seen) -> Reply:
        path = urlsplit(seen.target).path.removeprefix("/base")
        if seen.method == "POST":
            self.job = {**self.job, **self.after}
            return self.trigger
        if path.startswith("/crumbIssuer/"):
            return Reply(404)
        if path == "/queue/api/json":
            return Reply(404) if self.queue is None else Reply(body={"items": self.queue})
        if re.fullmatch(r"/queue/item/\d+/api/json", path):
            return _next(self.items)
        if path.endswith("/logText/progressiveText"):
            start = int(parse_qs(urlsplit(seen.target).query)["start"][0])
            return Reply(body=self.log[start:], headers={"X-Text-Size": str(len(self.log))})
        if re.search(r"/job/[^/]+/\d+/api/json$", path):
            return _next(self.running)
        return Reply(body={"buildable": True, "property": [], "builds": [], **self.job})

    def defines(self, *definitions: Mapping[str, Any]) -> Ci:
        self.job["property"] = [{}, {"parameterDefinitions": list(definitions)}]
        return self


def _next(said: list[Any]) -> Reply:
    one = said.pop(0) if len(said) > 1 else said[0]
    return one if isinstance(one, Reply) else Reply(body=one)


def created(item: int, status: int = 201, base: str = "http://inner:8080/ci") -> Reply:
    """The answer to a trigger; the server calls itself by another address than we do."""
    return Reply(status, headers={"Location": f"{base}/queue/item/{item}/"})


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.time = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds

    def pace(self, timeout: float, interval: float) -> PollInterval:
        return PollInterval(timeout, interval, now=lambda: self.time, sleep=self.sleep)


@dataclass
class Played:
    """One task against a server: what it returns, said, hid, and sent."""

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
        """The operation of C(ci_job_build); as in a task, what is secret by its name is known."""
        secrets = OptionSecrets(argument_spec(CiJobBuildOptions))
        secrets.shown(self.options)
        hidden.add(*secrets.found)
        options = build_options(CiJobBuildOptions, **{**OPTIONS, **self.options})
        return CiJobBuildOperation(task, options, self.clock.pace)

    def run(self, make: Callable[[Task], Operation] | None = None) -> dict[str, Any]:
        """Plan, and apply unless nothing changes or it is check mode, as a module does."""
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
