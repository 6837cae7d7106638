# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the archive of the collection and check it with galaxy-importer by the rules of the hub.

These rules are stricter than the rules of Galaxy: a tag of the hub's list and a version from 1.0.0
on. The importer exits with 0 despite warnings; here a warning is a failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import build

HUB = {
    "GALAXY_IMPORTER_CHECK_CHANGELOG": "true",
    "GALAXY_IMPORTER_CHECK_REQUIRED_TAGS": "true",
    "GALAXY_IMPORTER_REQUIRE_V1_OR_GREATER": "true",
    "GALAXY_IMPORTER_RUN_ANSIBLE_DOC": "true",
    # the job ansible-lint runs it with stricter rules
    "GALAXY_IMPORTER_RUN_ANSIBLE_LINT": "false",
}


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command,
        check=False,
        cwd=folder,
        env={**os.environ, **HUB},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(done.stdout, end="", flush=True)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} ended with status {done.returncode}")
    return done.stdout


def main() -> int:
    """Return 1 if the importer reports a warning or an error for the archive."""
    # The importer writes its result to the current folder.
    with tempfile.TemporaryDirectory(prefix="toolchain-importer-") as name:
        folder = Path(name)
        # The importer does not check the times of the files.
        archive = build.build(folder, 0)
        judged = _run([sys.executable, "-m", "galaxy_importer.main", str(archive)], folder)
    return int(any(line.startswith(("WARNING", "ERROR")) for line in judged.splitlines()))


if __name__ == "__main__":
    sys.exit(main())
