# SPDX-License-Identifier: GPL-3.0-or-later
"""Test every module that writes with every response that leaves the outcome of the write unknown.

    python -m tests.faults.matrix                 all cells
    python -m tests.faults.matrix wiki_page       the cells of the named modules

The expectation is the same for every cell: by the log of the sandbox, the write has at most one
effect, and the result reports the effect correctly. The program exits with 1 if a cell fails.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.faults import cell_runs
from tests.faults.writes import WRITERS, arguments
from tests.helpers import playbook
from tests.helpers.cases import CASES, module_of, seed, settings

NOTHING, OUTCOME_UNKNOWN = "nothing was changed", "whether it was done is not known"
_LATE = 2.0  # seconds; longer than the timeout of the tasks
#: Connection options of all cells.
PATIENCE = {"retries": 2, "retry_max_wait": 0.2, "timeout": _LATE / 2}
_PAGE = "<!DOCTYPE html><html><head><title>Welcome</title></head><body><p>Hello</p></body></html>"
_RANDOM = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Fault:
    """A response that leaves the outcome unknown. `put_off`: the server asks for a retry later.

    `after` is the fault if the server acted, `before` is the fault if it did not.
    """

    after: Mapping[str, Any]
    before: Mapping[str, Any] = field(default_factory=dict)
    put_off: bool = False


def _answered(**fault: Any) -> Fault:
    return Fault({**fault, "after": True}, fault)


def _put_off(status: int) -> Fault:
    fault = {"status": status, "headers": {"Retry-After": "0"}}
    return Fault({**fault, "after": True}, fault, put_off=True)


FAULTS = {
    "429": Fault({"status": 429, "after": True}, {"status": 429}, put_off=True),
    "429 with Retry-After": _put_off(429),
    "503 with Retry-After": _put_off(503),
    "500": _answered(status=500, body="it broke"),
    "502": _answered(status=502, body=_PAGE, content_type="text/html"),
    "503": _answered(status=503, body="overloaded"),
    "504": _answered(status=504, body=_PAGE, content_type="text/html"),
    "a page": _answered(status=200, body=_PAGE, content_type="text/html"),
    "a lost answer": _answered(cut=True),
    "a late answer": Fault({"late": _LATE}, {"delay": _LATE, "cut": True}),
}
#: Modules that cannot verify their write: if it was not done, and if it was done.
# a scan that waits in the queue of the CI server cannot be seen
UNSEEN_UNDONE = {"analysis_server_import", "ci_branch_scan", "ci_script", "tracker_issue"}
UNSEEN_DONE = {"ci_script"}


@dataclass(frozen=True)
class Cell:
    """A module, a fault, and whether the server acted on the write."""

    module: str
    fault: str
    acted: bool

    def __str__(self) -> str:
        return f"{self.module}: {self.fault}, {'acted' if self.acted else 'not acted'}"

    @property
    def service(self) -> str:
        return str(CASES[self.module]["service"])

    def task(self) -> dict[str, Any]:
        """Return the task that meets the fault. It starts from the seeds."""
        found = FAULTS[self.fault]
        fault = found.after if self.acted else found.before
        variables = {
            "sandbox_reset": settings(self.module),
            "sandbox_seed": seed(self.module),
            "sandbox_faults": [{"service": self.service, "write": True, **fault}],
        }
        module = module_of(self.module)
        return playbook.task(module, arguments(self.module), str(self), vars=variables)

    def wrong(self, event: playbook.Event) -> str | None:
        """Return the reason why the outcome is wrong, or None."""
        served = [write for write in event.writes if (write["served"] or 500) < 400]
        effects = Counter(map(identity, served))
        twice = [name for name, count in effects.items() if count > 1]
        if twice:
            return f"done twice: {twice[0]}"
        changed, said = event.result.get("changed"), event.result.get("msg", "")
        wanted = self._wanted()
        if wanted == "":
            done = event.status == "ok" and changed is True and effects
            return None if done else f"changed {changed}: {said}"
        sentences = [each for each in (NOTHING, OUTCOME_UNKNOWN) if each in said]
        if event.status != "failed" or sentences != [wanted] or changed is not False:
            return f"{event.status}, changed {changed}, not '{wanted}': {said}"
        return None

    def _wanted(self) -> str:
        """Return the required sentence of the message; empty if the task must succeed."""
        if self.module in (UNSEEN_DONE if self.acted else UNSEEN_UNDONE):
            return OUTCOME_UNKNOWN
        return "" if self.acted or FAULTS[self.fault].put_off else NOTHING


def identity(request: Mapping[str, Any]) -> str:
    """Return the identity of a write, without random marks that differ between requests."""
    body = _RANDOM.sub("", request["body"] or "")
    return f"{request['method']} {request['path']}?{request['query']} {body}"[:500]


def cells(modules: Sequence[str] = ()) -> list[Cell]:
    """Return all cells, or those of the given modules."""
    return [
        Cell(module, fault, acted)
        for module in modules or WRITERS
        for fault in FAULTS
        for acted in (True, False)
    ]


def sample() -> list[Cell]:
    """Return a cell of every module. Together they cover all faults, with and without effect."""
    kinds = [(fault, acted) for fault in FAULTS for acted in (True, False)]
    return [
        Cell(module, *kinds[(number * 7) % len(kinds)]) for number, module in enumerate(WRITERS)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the matrix. Return the exit status: 0 if no cell fails."""
    runner = cell_runs.runner(cells, PATIENCE)
    return cell_runs.print_all("tests.faults.matrix", WRITERS, runner, arguments)


if __name__ == "__main__":
    sys.exit(main())
