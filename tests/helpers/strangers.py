# SPDX-License-Identifier: GPL-3.0-or-later
"""Run third-party clients in other languages, and return what they received from a server at each
step.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.helpers import installed

_SECONDS = 120


def in_java(client: str, url: str, user: str, secret: str) -> dict[str, str]:
    """Return the results of the steps as strings."""
    files = installed.java_files(client)
    assert files is not None
    source = installed.JAVA_CLIENTS / client / "Client.java"
    java = installed.program("java") or "java"
    command = (java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{files}/*", source)
    return _steps([*command, url, user, secret])


def in_javascript(client: str, folder: Path, url: str, user: str, secret: str) -> dict[str, Any]:
    """Return the results of the steps. Node.js looks for packages next to the program, hence
    `folder`.
    """
    packages = installed.node_modules()
    assert packages is not None
    for program in installed.NODE_CLIENTS.glob("*.mjs"):
        shutil.copy(program, folder)
    (folder / "node_modules").symlink_to(packages)
    command = (installed.node() or "node", folder / f"{client}.mjs")
    steps = _steps([*command, url, user, secret])
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
    found: dict[str, str] = {}
    for line in finished.stdout.splitlines():
        name, _tab, value = line.partition("\t")
        found[name] = value
    return found
