# SPDX-License-Identifier: GPL-3.0-or-later
"""Test every module that writes with a short-lived login that the server rejects in the middle.

    python -m tests.faults.expiry                 all cells
    python -m tests.faults.expiry wiki_page       the cells of the named modules

The expectation is the same for every cell: the module succeeds as without a fault, each write has one
effect, and no output shows a secret. The program exits with 1 if a cell fails.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.faults import cell_runs
from tests.faults.matrix import PATIENCE, identity
from tests.faults.writes import WRITERS, arguments
from tests.helpers import playbook
from tests.helpers.cases import CASES, connection_options, module_of, seed, settings
from tests.helpers.connections import LOGINS, SHORT_LIVED, short_lived

_EXCHANGE = r"/(?:oidc|oauth)/token$"
_PAGE = "<html><head><title>Unauthorized (401)</title></head><body>Unauthorized</body></html>"
_EXPIRED = {"errors": [{"status": 401, "message": "Token failed verification: expired"}]}
_ONCE = {"status": 401, "body": _EXPIRED}
#: The first exchange passes; the renewal meets the fault.
_RENEWAL = {"path": _EXCHANGE, "skip": 1}
#: Responses to a request with an expired token, and to its renewal.
KINDS: dict[str, list[dict[str, Any]]] = {
    "once": [_ONCE],
    "a page": [{"status": 401, "body": _PAGE, "content_type": "text/html"}],
    "again later": [_ONCE, {**_ONCE, "skip": 1}],
    "renewal put off": [_ONCE, {**_RENEWAL, "status": 503, "headers": {"Retry-After": "0"}}],
    "renewal lost": [_ONCE, {**_RENEWAL, "cut": True}],
    "check mode": [_ONCE],
}
#: Requests of a module that are rejected, each in a cell of its own; most modules send fewer.
_REQUESTS = 40
MODULES = [name for name in WRITERS if CASES[name]["service"] in SHORT_LIVED]


@dataclass(frozen=True)
class Cell:
    """A module, the position of the rejected request, and the kind of rejection."""

    module: str
    request: int
    kind: str

    def __str__(self) -> str:
        return f"{self.module}: request {self.request} rejected, {self.kind}"

    @property
    def service(self) -> str:
        return str(CASES[self.module]["service"])

    def task(self) -> dict[str, Any]:
        """Return the task that meets the fault. It starts from the seeds."""
        faults = [
            {
                "path": f"^(?!.*{_EXCHANGE})",
                **fault,
                "service": self.service,
                "skip": fault.get("skip", 0) + (0 if "path" in fault else self.request),
            }
            for fault in KINDS[self.kind]
        ]
        variables = {
            "sandbox_reset": settings(self.module),
            "sandbox_seed": seed(self.module),
            "sandbox_faults": faults,
        }
        given = {**arguments(self.module), "token": None}
        task = playbook.task(module_of(self.module), given, str(self), vars=variables)
        return {**task, "check_mode": self.kind == "check mode"}

    def login(self, sandbox: Sandbox) -> Mapping[str, str]:
        """Return a short-lived login of the account of the case."""
        case = {**LOGINS[self.service], **connection_options(self.module, cell_runs.FLAVOUR)}
        return short_lived(self.service, sandbox.urls[self.service], case["token"])

    def is_met(self, event: playbook.Event) -> bool:
        """Return whether the module has sent enough requests to meet the fault."""
        return any(request["status"] == 401 for request in event.requests)

    def wrong(self, event: playbook.Event) -> str | None:
        """Return the reason why the outcome is wrong, or None."""
        served = [write for write in event.writes if (write["served"] or 500) < 400]
        twice = [name for name, count in Counter(map(identity, served)).items() if count > 1]
        if twice:
            return f"done twice: {twice[0]}"
        if event.status != "ok" or event.result.get("changed") is not True:
            return f"{event.status}: {event.result.get('msg')}"
        # not by the log of the sandbox, which counts the dry run of a promotion as a write
        if self.kind == "check mode" and event.result["http"]["writes"]:
            return "writes in check mode"
        shown = json.dumps(event.result)
        secrets = ("eyJ.exchanged.", "identity-token", "client-secret")
        return next((f"shows {secret}" for secret in secrets if secret in shown), None)


def cells(modules: Sequence[str] = ()) -> list[Cell]:
    """Return all cells, or those of the given modules."""
    return [
        Cell(module, request, kind)
        for module in modules or MODULES
        for request in range(_REQUESTS)
        for kind in KINDS
    ]


def sample() -> list[Cell]:
    """Return a cell of every module. Together they cover all kinds."""
    kinds = list(KINDS)
    return [Cell(module, 0, kinds[number % len(kinds)]) for number, module in enumerate(MODULES)]


def run(
    folder: Path, sandbox: Sandbox, chosen: Sequence[Cell]
) -> Iterator[tuple[Cell, str | None]]:
    """Run cells. Yield each whose fault was met with the reason why it is wrong, or None.

    After a request that a module does not send, its later requests are left out.
    """
    ended = set[str]()
    for (module, _number), mine in groupby(chosen, lambda cell: (cell.module, cell.request)):
        batch = [] if module in ended else list(mine)
        options = {**PATIENCE, **batch[0].login(sandbox)} if batch else {}
        found = list(cell_runs.events(folder, sandbox, batch, options)) if batch else []
        met = [(cell, wrong) for cell, event, wrong in found if cell.is_met(event) or wrong]
        ended.update(set() if met else {module})
        yield from met


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the matrix. Return the exit status: 0 if no cell fails."""

    def module_run(folder: Path, sandbox: Sandbox, module: str) -> list[tuple[Cell, str | None]]:
        return list(run(folder, sandbox, cells([module])))

    return cell_runs.print_all("tests.faults.expiry", MODULES, module_run, arguments)


if __name__ == "__main__":
    sys.exit(main())
