# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the collection in the current folder and have galaxy-importer judge the archive.

The importer ends well whatever it warns of; here a warning is a failure.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command,
        check=False,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(done.stdout, end="", flush=True)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} ended with status {done.returncode}")
    return done.stdout


def main() -> int:
    """Return 1 when the importer had anything to say against the archive."""
    # The importer leaves its result in the folder that it is started in.
    with tempfile.TemporaryDirectory(prefix="toolchain-importer-") as name:
        folder = Path(name)
        build = ["ansible-galaxy", "collection", "build", "--output-path", name, str(Path.cwd())]
        _run(build, folder)
        (archive,) = folder.glob("*.tar.gz")
        judged = _run([sys.executable, "-m", "galaxy_importer.main", str(archive)], folder)
    return int(any(line.startswith(("WARNING", "ERROR")) for line in judged.splitlines()))


if __name__ == "__main__":
    sys.exit(main())
