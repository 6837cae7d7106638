# SPDX-License-Identifier: GPL-3.0-or-later
"""Install the JavaScript clients that tests run against the sandbox.

    python -m tools.npm

npm installs the packages of `tests/strangers/node/package-lock.json`, whose digests it checks, into
a folder of the environment, and does not run their scripts. Without npm, or if Node.js is too old,
the tool prints that these clients are not tested.
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
    """Return the path of Node.js, if it is new enough and npm is installed, too."""
    program = shutil.which("node")
    if program is None or shutil.which("npm") is None:
        return None
    asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return program if int(asked.stdout.lstrip("v").split(".")[0]) >= _OLDEST else None


def installed() -> Path | None:
    """Return the folder of the packages; None if there is no Node.js.

    :raises RuntimeError: the packages could be installed, but are not; a test must not be skipped
        silently
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
    """Install the packages, or print that these clients are not tested."""
    if node() is not None:
        install()
    else:
        print(f"no npm and Node.js {_OLDEST}: clients in JavaScript are not tested against")
    return 0


if __name__ == "__main__":
    sys.exit(main())
