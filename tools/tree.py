# SPDX-License-Identifier: GPL-3.0-or-later
"""Put the checkout into the folder structure in which Ansible's tools find a collection.

The tools require `ansible_collections/delivery/toolchain`, wherever the checkout itself is. A link
is enough for pytest, mypy and playbooks; ansible-test resolves links and needs a copy.
"""

from __future__ import annotations

import argparse
import atexit
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLLECTION = Path("ansible_collections", "delivery", "toolchain")


def link_tree(destination: Path) -> Path:
    """Link the checkout below `destination`, as a collections path; return the link."""
    link = destination / COLLECTION
    link.parent.mkdir(parents=True)
    link.symlink_to(ROOT, target_is_directory=True)
    return link


def copy_tree(destination: Path) -> Path:
    """Copy the checkout below `destination`, as a collections path; return the root of the copy.

    The copy contains all files that git tracks or would track, with uncommitted changes.
    """
    copy = destination / COLLECTION
    for name in sources():
        source = ROOT / name
        if source.is_symlink() or source.exists():
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    return copy


def make_importable() -> None:
    """Let this process and its child processes import the collection of the checkout."""
    with suppress(ModuleNotFoundError):
        if importlib.util.find_spec("ansible_collections.delivery.toolchain"):
            return
    folder = tempfile.TemporaryDirectory(prefix="toolchain-tree-")
    atexit.register(folder.cleanup)
    link_tree(Path(folder.name))
    os.environ.update(environment(Path(folder.name)))
    sys.path.insert(0, folder.name)
    importlib.invalidate_caches()


def environment(collections: Path) -> dict[str, str]:
    """Return the variables with which Python and Ansible find the collection and its repository."""
    return {
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "PYTHONPATH": os.pathsep.join([str(collections), str(collections / COLLECTION)]),
    }


def sources() -> list[str]:
    """Return the files of the checkout that git tracks or would track, or those of its copy."""
    # In a container the checkout often belongs to another user; git rejects it by default.
    git = ["git", "-c", "safe.directory=*", "-C", str(ROOT)]
    if (ROOT / ".git").exists():
        command = [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    else:
        command = [*git, "grep", "--no-index", "--exclude-standard", "-lz", "-e", ""]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("destination", type=Path, help="a folder that becomes a collections path")
    print(copy_tree(parser.parse_args().destination.resolve()))
