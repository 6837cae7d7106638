# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that the licence of every locked package is compatible with the licence of the collection.

    python -m tools.licences

Licences are SPDX expressions. They come from the metadata of the installed package. If the metadata
is missing or inexact, the licence was read from the package itself and is listed here.

antsibull-nox checks the headers of our files only. pip-licenses reads installed packages only: it
does not see packages that the lock file has for other systems, or the lock file of the benchmarks.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterable

from tools import lock

#: Licences of free software that may be combined with GPL-3.0-or-later.
ALLOWED = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "GPL-3.0-or-later"),
        *("ISC", "LGPL-3.0-only", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0"),
    }
)
FILES = (lock.FILE, lock.FILE.parent / "tests" / "benchmarks" / "requirements.txt")
#: Classifiers, and values of the old licence field, that name a licence unambiguously.
_SAID = {
    "Apache 2.0": "Apache-2.0",
    "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
#: Licences of packages that are not installed, or without a clear licence in their metadata.
_READ = {
    "alabaster": "BSD-3-Clause",
    "ansible": "GPL-3.0-or-later",
    "colorama": "BSD-3-Clause",
    "docutils": "0BSD AND BSD-2-Clause AND GPL-3.0-or-later",
    "jinja2": "BSD-3-Clause",
    "jira": "BSD-2-Clause AND BSD-3-Clause",
    "python-jenkins": "BSD-3-Clause",
    "semantic-version": "BSD-2-Clause",
    "sphinxcontrib-applehelp": "BSD-2-Clause",
    "sphinxcontrib-devhelp": "BSD-2-Clause",
    "sphinxcontrib-htmlhelp": "BSD-2-Clause",
    "sphinxcontrib-jsmath": "BSD-2-Clause",
    "sphinxcontrib-qthelp": "BSD-2-Clause",
    "sphinxcontrib-serializinghtml": "BSD-2-Clause",
    "twiggy": "BSD-3-Clause",
}


class UnknownLicenceError(Exception):
    """The licence of a package is unknown."""


def of(package: str) -> str:
    """Return the SPDX expression for the licence of a package."""
    if package in _READ:
        return _READ[package]
    try:
        metadata = importlib.metadata.metadata(package)
    except importlib.metadata.PackageNotFoundError:
        raise UnknownLicenceError(f"{package} is not installed") from None
    for expression in metadata.get_all("License-Expression") or []:
        return str(expression)
    said = [str(value) for value in metadata.get_all("Classifier") or []]
    said = [value.rpartition(" :: ")[2] for value in said if value.startswith("License")]
    for value in [*map(str, metadata.get_all("License") or []), *said]:
        if value in ALLOWED or value in _SAID:
            return _SAID.get(value, value)
    raise UnknownLicenceError(f"{package} names no licence that is known here: {said}")


def problems(packages: Iterable[str]) -> list[str]:
    """Return a line for every package without an allowed licence; one of alternatives is enough."""
    found = []
    for package in sorted(packages):
        try:
            choices = of(package).split(" OR ")
        except UnknownLicenceError as error:
            found.append(str(error))
            continue
        if not any(ALLOWED.issuperset(choice.split(" AND ")) for choice in choices):
            found.append(f"{package} is under {of(package)}, which is not allowed here")
    return found


def locked() -> set[str]:
    """Return the packages of all lock files."""
    texts = [file.read_text(encoding="utf-8") for file in FILES]
    return {entry.name for text in texts for entry in lock.read(text)}


if __name__ == "__main__":
    if found := problems(locked()):
        sys.exit("\n".join(found))
    print(f"{len(locked())} packages, each under an allowed licence")
