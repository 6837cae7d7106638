# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the collections of others are that the benchmarks are held against."""

from __future__ import annotations

import sys
from pathlib import Path

#: `make bench` unpacks the package `ansible` here; a collections path for ansible-playbook.
COLLECTIONS = Path(sys.prefix) / "peers"


def installed(collection: str) -> bool:
    """Whether a collection of others, as `community.general`, is there."""
    return (COLLECTIONS / "ansible_collections" / Path(*collection.split("."))).is_dir()
