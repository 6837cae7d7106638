# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the lock file: the packages and the reason why each package is required.

    python -m tools.lock FILE    print the part of the lock that a requirement file needs

Only the standard library is used here: this runs before anything is installed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
FILE = _ROOT / "requirements-dev.txt"
_PIN = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[0-9][0-9a-z.]*)(?: ; .+?)?(?: \\)?")
_HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")
_ASKED = re.compile(r"(?m)^ +# +(?:via)?(.*)")


@dataclass(frozen=True)
class Entry:
    """A version of a package; the lock may have another version for another Python."""

    name: str
    version: str
    #: As pip reads them: the pin with its marker, then the hashes.
    lines: tuple[str, ...]
    #: Packages, and requirement files as `-r requirements.txt`, that require this package.
    asked_by: frozenset[str]


def read(text: str) -> list[Entry]:
    """Return the entries of a lock file.

    :raises ValueError: a line is neither a pin nor a hash nor a comment
    """
    entries = []
    for block in re.split(r"\n(?! |#)", text.removesuffix("\n")):
        first, *more = [line for line in block.splitlines() if not line.lstrip().startswith("#")]
        pin = _PIN.fullmatch(first)
        if not pin or not more or not all(map(_HASH.fullmatch, more)):
            raise ValueError(f"the lock file pins no package with hashes here: {first}")
        asked = {found.strip() for found in _ASKED.findall(block)} - {""}
        entries.append(Entry(pin["name"], pin["version"], (first, *more), frozenset(asked)))
    return entries


def needed(entries: Iterable[Entry], askers: Collection[str]) -> list[Entry]:
    """Return the packages in `askers`, and all direct and indirect requirements of `askers`."""
    listed = list(entries)
    wanted = set(askers)
    before = 0
    while len(wanted) != before:
        before = len(wanted)
        wanted |= {entry.name for entry in listed if entry.asked_by & wanted}
    return [entry for entry in listed if entry.name in wanted]


def included(file: str) -> Iterator[str]:
    """Yield `-r FILE` for a requirement file of the checkout and for the files that it includes."""
    yield f"-r {file}"
    for line in (_ROOT / file).read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            yield from included(line.removeprefix("-r "))


if __name__ == "__main__":
    for needed_entry in needed(read(FILE.read_text(encoding="utf-8")), {*included(sys.argv[1])}):
        print(*needed_entry.lines, sep="\n")
