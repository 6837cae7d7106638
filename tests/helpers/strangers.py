# SPDX-License-Identifier: GPL-3.0-or-later
"""Run third-party clients in other languages, and return what they received from a server at each
step.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from tests.helpers import installed

#: Runs a client with an address, a user and a secret; returns the results of its steps.
RunClient: TypeAlias = Callable[..., dict[str, str]]
_SECONDS = 120


@contextmanager
def java(folder: Path) -> Iterator[RunClient]:
    """Start Java, with its classes in `folder`. Yields the function that runs a client in it."""
    command = (installed.program("java") or "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    with subprocess.Popen(
        [*command, installed.JAVA_CLIENTS / "Clients.java"],
        env={**os.environ, **installed.environment()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, said = process.stdin, process.stdout

        def run(client: str, url: str, user: str, secret: str) -> dict[str, str]:
            """Return the results of the steps as strings."""
            source = installed.JAVA_CLIENTS / client / "Client.java"
            classes = folder / client
            classes.mkdir()
            given = (source, installed.java_files(client), classes, url, user, secret)
            print(*given, sep="\t", file=asked, flush=True)
            lines = list(itertools.takewhile(lambda line: line not in ("end\n", ""), said))
            assert process.poll() is None, client
            return _results(line.rstrip("\n") for line in lines)

        yield run


def in_javascript(client: str, folder: Path, url: str, user: str, secret: str) -> dict[str, Any]:
    """Return the results of the steps. Node.js looks for packages next to the program, hence
    `folder`.
    """
    for program in installed.NODE_CLIENTS.glob("*.mjs"):
        shutil.copy(program, folder)
    (folder / "node_modules").symlink_to(installed.node_modules())
    steps = _steps([installed.node(), folder / f"{client}.mjs", url, user, secret])
    return {name: json.loads(value) for name, value in steps.items()}


def _steps(command: Sequence[str | Path]) -> dict[str, str]:
    finished = subprocess.run(
        command,
        env={**os.environ, **installed.environment()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return _results(finished.stdout.splitlines())


def _results(lines: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        name, _tab, value = line.partition("\t")
        found[name] = value
    return found
