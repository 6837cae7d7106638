# SPDX-License-Identifier: GPL-3.0-or-later
"""Identify the installed collection."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
#: Roles that compare objects. Their tasks return findings, whether or not the run is reported.
ROLES = ("analysis_config", "ci_baseline", "desired_state", "repo_housekeeping")
#: Folders with everything that a run executes. They are the same in a checkout and an archive.
_EXECUTED = ("meta", "playbooks", "plugins", "roles")
#: What Python, Ansible and editors leave behind, besides hidden files.
_LEFT_BEHIND = (".pyc", ".retry", "~")


@functools.cache
def version() -> str:
    """Return the version of the collection."""
    manifest = ROOT / "MANIFEST.json"
    if manifest.exists():
        found = json.loads(manifest.read_text("utf-8"))["collection_info"]["version"]
        return str(found)
    lines = (ROOT / "galaxy.yml").read_text("utf-8").splitlines()
    return next(line.split(":")[1].strip() for line in lines if line.startswith("version:"))


@functools.cache
def content() -> str:
    """Return a SHA-256 digest of the files that a run executes.

    Two builds with the same version but other files have different digests. It is the digest of
    the output of `sha256sum` for these files, sorted by name.
    """
    whole = hashlib.sha256()
    for name in sorted(map(os.fsencode, _files())):
        with open(os.path.join(os.fsencode(ROOT), name), "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        whole.update(b"%s  %s\n" % (digest.encode(), name))
    return whole.hexdigest()


def _files() -> Iterator[str]:
    """Yield the names of the files, relative to the collection."""
    for executed in _EXECUTED:
        for folder, below, names in os.walk(ROOT / executed):
            below[:] = [name for name in below if not name.startswith((".", "__pycache__"))]
            for name in names:
                if not name.startswith(".") and not name.endswith(_LEFT_BEHIND):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)
