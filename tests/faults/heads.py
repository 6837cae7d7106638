# SPDX-License-Identifier: GPL-3.0-or-later
"""Test every module with each of its responses cut inside the head, at three places.

    python -m tests.faults.heads                 all cells
    python -m tests.faults.heads wiki_page       the cells of the named modules

If a response is cut, the module either fails or returns the same result as without the fault. A cut
response never counts as an empty list. The program exits with 1 if a cell fails.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.faults import cell_runs
from tests.faults.matrix import identity
from tests.faults.writes import arguments
from tests.helpers import playbook
from tests.helpers.cases import CASES, MODULES, seed, settings
from tests.helpers.sentences import assert_one_sentence

#: Connection options of all cells. A read with a cut response is repeated once.
PATIENCE = {"retries": 1, "retry_max_wait": 0.1, "timeout": 10}
#: Maps the place of the cut to the number of headers that are sent before it (-1: all of them).
PLACES = {"after the status line": 0, "after one header": 1, "before the blank line": -1}
#: Result keys with costs and connection data; they differ between runs.
_COSTS = {"http", "duration", "elapsed", "waited", "seconds", "downtime"}
#: Maps a module to the key of the server's message about its write: it is lost with the response.
_SERVER_MESSAGE = {"docker_promote": "message"}
#: Modules that create another object if the response with the secret is lost.
_CREATES_ANOTHER = ("ci_token", "tracker_token", "wiki_token")
#: Matches times, identifiers and digests that a server creates; they differ between runs.
_VOLATILE = re.compile(
    r"[0-9a-f]{16,}|\d{4}-\d\d-\d\d\S*|\d{10,}|\d+\.\d+ s|\w{3} \w{3} \d\d [\d:]{8} UTC \d{4}"
)


@dataclass(frozen=True)
class Baseline:
    """The task of a module without a fault."""

    module: str

    def __str__(self) -> str:
        return f"{self.module}: no fault"

    def task(self, fault: dict[str, Any] | None = None, name: str = "") -> dict[str, Any]:
        """Return the task that meets the fault. It starts from the seeds."""
        label = name or str(self)
        options = arguments(self.module)
        for local in {"dest", "console"} & set(options):
            options[local] = f"{_folder_name(label)}-{local}"
        service = CASES[self.module]["service"]
        variables = {
            "sandbox_reset": settings(self.module),
            "sandbox_seed": seed(self.module),
            "sandbox_faults": [] if fault is None else [{"service": service, **fault}],
        }
        return playbook.task(self.module, options, label, vars=variables)

    def wrong(self, event: playbook.Event) -> str | None:
        return None if event.status == "ok" else f"{event.status}: {event.result.get('msg')}"


@dataclass(frozen=True)
class Cell:
    """One response of a module (numbered from 0), and the place of the cut in its head."""

    module: str
    number: int
    place: str
    expected: Any = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.module}: response {self.number}, cut {self.place}"

    def task(self) -> dict[str, Any]:
        """Return the task that meets the fault. It starts from the seeds."""
        fault = {"cut_head": PLACES[self.place], "skip": self.number}
        return Baseline(self.module).task(fault, str(self))

    def wrong(self, event: playbook.Event) -> str | None:
        """Return the reason why the outcome is wrong, or None."""
        served = [write for write in event.writes if (write["served"] or 500) < 400]
        twice = [name for name, count in Counter(map(identity, served)).items() if count > 1]
        if twice:
            return f"done twice: {twice[0]}"
        if event.status == "ok":
            found, expected = outcome(event), dict(self.expected)
            if self.module in _CREATES_ANOTHER:
                expected["token"] = {**expected["token"], "id": found["token"]["id"]}
            key = _SERVER_MESSAGE.get(self.module)
            if key is not None and found[key] == "":
                expected[key] = ""
            return None if found == expected else _difference(found, expected)
        if "error" not in event.result:
            return f"it broke: {event.result.get('msg')} {event.result.get('module_stderr')}"
        try:
            assert_one_sentence(event.result, str(self))
        except AssertionError as error:
            return str(error)[:300]
        return None


def outcome(event: playbook.Event) -> dict[str, Any]:
    """Return the result of a task without the values that differ between runs."""
    kept = {name: value for name, value in event.result.items() if name not in _COSTS}
    found: dict[str, Any] = _stable(kept, _folder_name(event.task))
    return found


def _folder_name(label: str) -> str:
    return re.sub(r"\W+", "-", label)


def _stable(value: Any, folder: str) -> Any:
    if isinstance(value, dict):
        return {name: _stable(each, folder) for name, each in value.items() if name not in _COSTS}
    if isinstance(value, list):
        return [_stable(each, folder) for each in value]
    if isinstance(value, str):
        return _VOLATILE.sub("*", value.replace(folder, "folder"))
    return "*" if isinstance(value, int) and value > 10**9 else value


def _difference(found: dict[str, Any], expected: dict[str, Any]) -> str:
    names = [name for name in {**found, **expected} if found.get(name) != expected.get(name)]
    name = names[0]
    return f"{name} is {str(found.get(name))[:200]}, not {str(expected.get(name))[:200]}"


def run(
    folder: Path,
    sandbox: Sandbox,
    modules: Sequence[str],
    *,
    sampled: bool = False,
) -> list[tuple[Cell | Baseline, str | None]]:
    """Run the modules without a fault, then their cells, or a sample of the cells. Return each with
    the reason why it is wrong, or None.
    """
    (folder / "baseline").mkdir()
    baselines = [Baseline(module) for module in modules]
    events: dict[str, playbook.Event] = {}
    found: list[tuple[Cell | Baseline, str | None]] = []
    for cell, event, wrong in cell_runs.events(folder / "baseline", sandbox, baselines, PATIENCE):
        events[cell.module] = event
        found.append((cell, wrong))
    chosen = [cell for module in modules for cell in cells(events[module], module)]
    if sampled:
        chosen = sample(chosen)
    return [*found, *cell_runs.run(folder, sandbox, chosen, PATIENCE)]


def cells(event: playbook.Event, module: str) -> list[Cell]:
    """Return all cells of a module. `event` is its task without a fault."""
    expected = outcome(event)
    return [
        Cell(module, number, place, expected)
        for number in range(len(event.requests))
        for place in PLACES
    ]


def sample(chosen: Sequence[Cell]) -> list[Cell]:
    """Return the first and the last response per module. The place of the cut alternates."""
    places, found = list(PLACES), list[Cell]()
    by_module: dict[str, list[Cell]] = {}
    for cell in chosen:
        by_module.setdefault(cell.module, []).append(cell)
    for turn, some in enumerate(by_module.values()):
        for number in {0, some[-1].number}:
            place = places[(turn + number) % len(places)]
            found += [cell for cell in some if (cell.number, cell.place) == (number, place)]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the matrix. Return the exit status: 0 if no cell fails."""

    def module_run(
        folder: Path, sandbox: Sandbox, module: str
    ) -> list[tuple[Cell | Baseline, str | None]]:
        return run(folder, sandbox, [module])

    return cell_runs.print_all("tests.faults.heads", MODULES, module_run, arguments)


if __name__ == "__main__":
    sys.exit(main())
