# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the cells of a matrix of modules and responses, and print the results."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from sandbox.client import Sandbox
from tools import tree

tree.make_importable()  # the matrices also run as programs

from tests.helpers import connections, forked, playbook  # noqa: E402 (imports plugins)
from tests.helpers.cases import connection_options, module_of  # noqa: E402

FLAVOUR = "real"


class Cell(Protocol):
    """One cell. `str()` of the cell is the name of its task."""

    @property
    def module(self) -> str: ...

    def task(self) -> dict[str, Any]:
        """Return the task that meets the fault. It starts from the seeds."""

    def wrong(self, event: playbook.Event) -> str | None:
        """Return the reason why the outcome of the task is wrong, or None."""


AnyCell = TypeVar("AnyCell", bound=Cell)
#: Runs all cells of a module. Parameters: folder, sandbox, module.
ModuleRun: TypeAlias = Callable[[Path, Sandbox, str], Sequence[tuple[Any, "str | None"]]]


def run(
    folder: Path,
    sandbox: Sandbox,
    chosen: Sequence[AnyCell],
    patience: Mapping[str, Any],
) -> Iterator[tuple[AnyCell, str | None]]:
    """Run cells. Yield each with the reason why it is wrong, or None. See :func:`events`."""
    for cell, _event, wrong in events(folder, sandbox, chosen, patience):
        yield cell, wrong


def events(
    folder: Path,
    sandbox: Sandbox,
    chosen: Sequence[AnyCell],
    patience: Mapping[str, Any],
) -> Iterator[tuple[AnyCell, playbook.Event, str | None]]:
    """Run cells. Yield each with its event and the reason why it is wrong, or None.

    `patience` are connection options of all cells.
    """
    defaults = connections.module_defaults(
        sandbox.urls, **dict.fromkeys(connections.LOGINS, patience)
    )
    play = playbook.play([_task(cell) for cell in chosen], module_defaults=defaults)
    ended = forked.run(folder, play, sandbox)
    for cell in chosen:
        event = ended.event(str(cell))
        yield cell, event, cell.wrong(event)


def _task(cell: Cell) -> dict[str, Any]:
    """Return the task of a cell with the connection options of its case."""
    task, module = cell.task(), f"{playbook.NAMESPACE}.{module_of(cell.module)}"
    return {**task, module: {**connection_options(cell.module, FLAVOUR), **task[module]}}


def runner(
    cells: Callable[[Sequence[str]], Sequence[Cell]], patience: Mapping[str, Any]
) -> ModuleRun:
    """Return a function that runs all cells of a module."""

    def module_run(folder: Path, sandbox: Sandbox, module: str) -> list[tuple[Cell, str | None]]:
        return list(run(folder, sandbox, cells([module]), patience))

    return module_run


def print_all(
    program: str,
    known: Sequence[str],
    module_run: ModuleRun,
    arguments: Sequence[str] | None,
) -> int:
    """Run the cells of the modules on the command line (default: all known modules), and print the
    results. Return the exit status: 0 if no cell fails.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {program}")
    parser.add_argument("modules", nargs="*", choices=[*known, []], metavar="MODULE")
    modules: Sequence[str] = parser.parse_args(arguments).modules or known
    started, count, failures = time.monotonic(), 0, 0
    with (
        Sandbox.start(flavour=FLAVOUR) as sandbox,
        tempfile.TemporaryDirectory(prefix="matrix-") as folder,
    ):
        for module in modules:
            own = Path(folder) / module
            own.mkdir()
            found = module_run(own, sandbox, module)
            wrong = [f"{cell}: {reason}" for cell, reason in found if reason is not None]
            print(f"{module:26s} {len(found)} cells, {len(wrong)} failures", flush=True)
            for line in wrong:
                print(f"FAILED {line}", flush=True)
            count, failures = count + len(found), failures + len(wrong)
    seconds = time.monotonic() - started
    print(f"{count} cells, {failures} failures in {seconds:.0f} s")
    return int(bool(failures))
