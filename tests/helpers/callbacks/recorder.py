# SPDX-License-Identifier: GPL-3.0-or-later
"""Callback plugin that records the result of every task and the requests it sent to the sandbox."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: recorder
type: aggregate
short_description: Write the results of all tasks as JSON lines
description:
  - Writes one JSON object per task and host to the file that E(RECORDER_FILE) names.
  - E(RECORDER_CONTROLS) is a JSON object of host and control address of the sandbox that it asks.
  - The variable C(sandbox_faults) of a task, a list, is ordered before it and forgotten after it.
  - The variable C(sandbox_reset) puts the sandbox back to its seeds before, then changes the
    settings that it holds (by service); C(sandbox_seed) is added to the seeds then.
  - The variable C(process_environment) of a task sets environment variables for this task, as if
    the whole run had them.
options: {}
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "recorder"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._controls: dict[str, str] = json.loads(os.environ["RECORDER_CONTROLS"])
        self._since: dict[str, int] = {}
        #: The number of the last request in the log, by control address.
        self._last: dict[str, int] = {}
        self._started = self._processor = 0.0
        self._failed_items: dict[str, list[bool]] = {}
        self._play = ""
        self._has_faults = True  # perhaps, of an earlier play
        self._environment: dict[str, str] = {}

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._play = play.get_name()

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        for name in self._environment:
            del os.environ[name]
        self._environment = task.vars.get("process_environment", {})
        os.environ.update(self._environment)
        faults = task.vars.get("sandbox_faults", [])
        for control in self._controls.values():
            if "sandbox_reset" in task.vars:
                given = {"settings": task.vars["sandbox_reset"], "faults": faults}
                given["seed"] = task.vars.get("sandbox_seed", {})
                self._last[control] = _call("POST", f"{control}/reset", given)["last"]
            elif self._has_faults or faults:
                _call("PUT", f"{control}/faults", faults)
        self._has_faults = bool(faults)
        for host, control in self._controls.items():
            if control not in self._last:
                self._log(host, 2**60)
            self._since[host] = self._last[control]
        self._failed_items = {}
        self._started, self._processor = time.monotonic(), _processor_seconds()

    def v2_runner_item_on_ok(self, result: Any) -> None:
        self._failed_items.setdefault(_part(result, "host").get_name(), []).append(False)

    v2_runner_item_on_skipped = v2_runner_item_on_ok

    def v2_runner_item_on_failed(self, result: Any) -> None:
        self._failed_items.setdefault(_part(result, "host").get_name(), []).append(True)

    def v2_runner_on_ok(self, result: Any) -> None:
        self._write("ok", result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._write("failed", result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._write("skipped", result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._write("unreachable", result)

    def _write(self, status: str, result: Any) -> None:
        seconds = time.monotonic() - self._started
        processor = _processor_seconds() - self._processor
        host = _part(result, "host").get_name()
        requests = self._log(host, self._since[host])["requests"] if host in self._since else []
        event = {
            "play": self._play,
            "task": _part(result, "task").get_name().strip(),
            "host": host,
            "status": status,
            "seconds": seconds,
            "processor": processor,
            "result": self._with_failed_items(host, dict(_part(result, "result"))),
            "requests": requests,
        }
        with open(os.environ["RECORDER_FILE"], "a", encoding="utf-8") as file:
            file.write(json.dumps(event, default=str) + "\n")

    def _with_failed_items(self, host: str, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result with `failed` in each item of a loop; core 2.21 hides it from
        callbacks.
        """
        failed = self._failed_items.get(host)
        if failed is not None:
            pairs = zip(result["results"], failed, strict=True)
            result["results"] = [{**item, "failed": bad} for item, bad in pairs]
        return result

    def _log(self, host: str, since: int) -> dict[str, Any]:
        control = self._controls[host]
        log: dict[str, Any] = _call("GET", f"{control}/requests?since={since}")
        self._last[control] = log["last"]
        return log


def _processor_seconds() -> float:
    """Return the processor time of this process, of its workers, and of their modules."""
    workers = multiprocessing.active_children()  # this waits for those that have ended
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    for worker in workers:
        if worker.pid is not None:
            with suppress(OSError):  # it has ended, or the system has no clocks of processes
                seconds += time.clock_gettime(~worker.pid << 3 | 2)  # clock_getcpuclockid(3)
                fields = Path(f"/proc/{worker.pid}/stat").read_text("utf-8").rpartition(")")[2]
                seconds += sum(map(int, fields.split()[13:15])) / os.sysconf("SC_CLK_TCK")
    return seconds


def _part(result: Any, name: str) -> Any:
    """Return a part of a result. Up to core 2.18, these parts have no public name."""
    return getattr(result, name, None) or getattr(result, f"_{name}")


def _call(method: str, address: str, payload: Any = None) -> Any:
    body = None if payload is None else json.dumps(payload).encode()
    request = urllib.request.Request(
        address, body, {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        text = response.read()
    return json.loads(text) if text else None
