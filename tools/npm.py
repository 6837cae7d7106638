# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients in JavaScript that tests hold the sandbox against.

    python -m tools.npm

npm installs what `tests/strangers/node/package-lock.json` says, digests included, into a folder of
the environment, and runs none of its scripts. Without npm, or with a Node.js that is too old, a
line says what is not tested by that.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

CLIENTS = Path(__file__).parents[1] / "tests" / "strangers" / "node"
FOLDER = Path(sys.prefix) / "node"
_FILES = ("package.json", "package-lock.json")
_OLDEST = 20
_SECONDS = 900


def node() -> str | None:
    """The program, where it is new enough and comes with npm."""
    program = shutil.which("node")
    if program is None or shutil.which("npm") is None:
        return None
    asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return program if int(asked.stdout.lstrip("v").split(".")[0]) >= _OLDEST else None


def installed() -> Path | None:
    """The folder of the packages; None where there is no Node.js.

    RuntimeError where it could be had and is not: a test must not be left out in silence.
    """
    if node() is None:
        return None
    if not _is_finished():
        raise RuntimeError("clients in JavaScript are missing: run python -m tools.npm")
    return FOLDER


def _is_finished() -> bool:
    finished = FOLDER / "finished"
    return finished.exists() and finished.read_bytes() == (CLIENTS / _FILES[1]).read_bytes()


def install() -> None:
    """Install the packages, unless that has been done."""
    if _is_finished():
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for name in _FILES:
        shutil.copy(CLIENTS / name, FOLDER / name)
    subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"],
        cwd=FOLDER,
        check=True,
        timeout=_SECONDS,
        stdin=subprocess.DEVNULL,
    )
    shutil.copy(CLIENTS / _FILES[1], FOLDER / "finished")


def main() -> int:
    """Install, or say what is not tested without."""
    if node() is not None:
        install()
    else:
        print(f"no npm and Node.js {_OLDEST}: clients in JavaScript are not tested against")
    return 0


if __name__ == "__main__":
    sys.exit(main())
