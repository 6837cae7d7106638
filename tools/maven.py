# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetch the Java programs that tests run against the collection and the sandbox.

    python -m tools.maven          fetch the files, and reject files with unknown digests
    python -m tools.maven --lock   write the digests again

Maven fetches the requirements of the projects below `tests/strangers/java` into a folder of the
environment. Its settings (a mirror, a proxy) are the user's settings. Without Maven and Java the
tool prints which programs are not tested.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tools import debian

PROJECTS = Path(__file__).parents[1] / "tests" / "strangers" / "java"
FOLDER = Path(sys.prefix) / "maven"
_LOCK = PROJECTS / "digests.txt"
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_SECONDS = 900


def fetched(project: str) -> Path | None:
    """Return the folder with the files of a project; None if there is no Java.

    :raises RuntimeError: the files could be fetched, but are not; a test must not be skipped
        silently
    """
    if not available():
        return None
    if not (FOLDER / "finished").exists():
        raise RuntimeError(f"{project} is missing: run python -m tools.maven")
    return FOLDER / project


def available() -> bool:
    """Return whether all required programs exist, including a compiler."""
    return all(debian.program(name) for name in ("mvn", "javac", "java"))


def command(name: str) -> str:
    """Return the path of a program of Java or Maven."""
    return str(debian.program(name) or name)


def fetch(*, lock: bool = False) -> None:
    """Fetch the files of all projects, unless that has been done."""
    finished = FOLDER / "finished"
    names = sorted(each.parent.name for each in PROJECTS.glob("*/pom.xml"))
    if not lock and finished.exists() and finished.read_bytes() == _LOCK.read_bytes():
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name in names:
        _copy(name)
    found = _digests(names)
    if lock:
        _LOCK.write_text(found, encoding="utf-8")
    elif found != _LOCK.read_text(encoding="utf-8"):
        raise RuntimeError(f"files from Maven are not those of {_LOCK.name}:\n{found}")
    for archive in FOLDER.glob("*/*.war"):
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(archive.with_suffix(""))
        archive.unlink()
    shutil.rmtree(FOLDER / "repository")
    finished.write_bytes(_LOCK.read_bytes())


def _copy(name: str) -> None:
    """Let Maven copy the requirements of a project into its folder."""
    subprocess.run(
        [
            *(command("mvn"), "--quiet", "--batch-mode"),
            f"-Dmaven.repo.local={FOLDER / 'repository'}",
            *(f"-DoutputDirectory={FOLDER / name}", "--file", PROJECTS / name / "pom.xml"),
            f"{_PLUGIN}:copy-dependencies",
        ],
        check=True,
        timeout=_SECONDS,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **debian.environment()},
    )


def _digests(names: list[str]) -> str:
    """Return a line for each file: its SHA-256, project and name."""
    files = [file for name in names for file in sorted((FOLDER / name).iterdir())]
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.parent.name}/{file.name}\n"
        for file in files
    )


def main() -> int:
    """Fetch the files, or print which programs are not tested without them."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--lock", action="store_true", help="write the digests anew")
    options = parser.parse_args()
    if available():
        fetch(lock=options.lock)
    else:
        print("no Maven and Java: neither a CI server nor clients in Java are tested against")
    return 0


if __name__ == "__main__":
    sys.exit(main())
