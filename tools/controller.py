# SPDX-License-Identifier: GPL-3.0-or-later
"""Install the collection awx.awx below the environment, for the tests of the playbook `awx_setup`.

    python -m tools.controller

The collection comes from the release of Ansible that the benchmarks measure against; the rest of
that release is discarded.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

#: A collections path that contains awx.awx.
FOLDER = Path(sys.prefix) / "controller"
_REQUIREMENTS = Path(__file__).resolve().parent.parent / "tests/benchmarks/requirements.txt"
_PREFIX = "ansible_collections/awx/awx/"


def main() -> int:
    """Download the release, check its digest, and unpack the collection."""
    with tempfile.TemporaryDirectory(prefix="toolchain-controller-") as folder:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        locked = ["--no-deps", "--require-hashes", "--requirement", str(_REQUIREMENTS)]
        subprocess.run([*pip, *locked, "--dest", folder], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        shutil.rmtree(FOLDER, ignore_errors=True)
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.startswith(_PREFIX)]
            archive.extractall(FOLDER, names)
    return 0 if names else 1


if __name__ == "__main__":
    sys.exit(main())
