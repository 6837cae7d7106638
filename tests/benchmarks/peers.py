# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the third-party collections that the benchmarks compare with."""

from __future__ import annotations

import sys
from pathlib import Path

#: Collections path for ansible-playbook. `make bench` unpacks the package `ansible` here.
COLLECTIONS = Path(sys.prefix) / "peers"


def installed(collection: str) -> bool:
    """Return whether a third-party collection, such as `community.general`, is present."""
    return (COLLECTIONS / "ansible_collections" / Path(*collection.split("."))).is_dir()
