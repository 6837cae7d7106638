# SPDX-License-Identifier: GPL-3.0-or-later
"""Run Groovy programs in one Java machine, because its start takes longer than the programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from tests.helpers import installed

PROGRAM = installed.program("groovy")
#: Runs `driver.groovy` in a folder. It gets the folder as its argument, and the classes in it.
Evaluate: TypeAlias = Callable[[Path], None]
#: Options that save processor time at the start of Java.
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
_SERVER = """
System.in.eachLine { path ->
    def loader = new GroovyClassLoader(getClass().classLoader)
    loader.addClasspath(path)
    try {
        new GroovyShell(loader).run(new File(path, 'driver.groovy'), [path])
        println('done')
    } catch (Throwable thrown) {
        println(thrown.toString().readLines().first())
    }
}
"""


@contextmanager
def running(folder: Path) -> Iterator[Evaluate]:
    """Start Groovy, with its program in `folder`. Yields the function that runs drivers in it."""
    server = folder / "server.groovy"
    server.write_text(_SERVER, encoding="utf-8")
    with subprocess.Popen(
        [str(PROGRAM), "-Dfile.encoding=UTF-8", str(server)],
        env={**os.environ, **installed.environment(), "JAVA_OPTS": OPTIONS, "TZ": "UTC"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, said = process.stdin, process.stdout

        def evaluate(place: Path) -> None:
            print(place, file=asked, flush=True)
            assert said.readline() == "done\n", place

        yield evaluate
