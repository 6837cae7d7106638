# SPDX-License-Identifier: GPL-3.0-or-later
"""Java versions that the releases of the CI server support [W9].

Long-term releases have three numbers, weekly releases two. The table has a column for each, because
their numbers overlap: the weekly release 2.361 and the long-term release 2.361.1 are different.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...core.errors import excerpt, invalid

_RELEASE = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True)
class JavaSupport:
    """Java versions of a range of releases, which ends before the next newer row.

    :param weekly: first weekly release
    :param lts: first long-term release
    :param java: versions in the interface description; `None` if it lacks this range
    :param vendor: versions in the Java support policy and the upgrade guide on jenkins.io [ci-20];
        `None` if they are the same as `java`
    """

    weekly: str
    lts: str
    java: tuple[int, ...] | None
    vendor: tuple[int, ...] | None = None

    @property
    def doubtful(self) -> bool:
        """Return whether the two sources disagree."""
        return self.java is not None and self.vendor is not None


#: Newest first. The interface description lacks the three newest rows and the long-term release
#: 2.426.1; these come from the vendor's policy.
TABLE: tuple[JavaSupport, ...] = (
    JavaSupport("2.545", "2.555.1", None, (21, 25)),
    JavaSupport("2.534", "2.541.1", None, (17, 21, 25)),
    JavaSupport("2.463", "2.479.1", None, (17, 21)),
    JavaSupport("2.419", "2.426.1", (11, 17, 21)),
    JavaSupport("2.357", "2.361.1", (11, 17)),
    JavaSupport("2.340", "2.346.1", (8, 11, 17)),
    JavaSupport("2.164", "2.164.1", (8, 17), (8, 11)),
)


def supported(release: str, *, vendor: bool = False) -> tuple[tuple[int, ...], bool]:
    """Return the Java versions of a release, and whether the two sources disagree.

    :param release: `2.346.1` for a long-term release, `2.340` for a weekly release
    :param vendor: prefer the vendor's versions if the sources disagree
    """
    row = _row_of(release)
    if row.vendor is not None and (vendor or row.java is None):
        return row.vendor, row.doubtful
    return row.java or (), row.doubtful


def _row_of(release: str) -> JavaSupport:
    if _RELEASE.fullmatch(release) is None:
        raise invalid(
            f"{excerpt(release)} is not a release: write '2.346.1' for a long-term release, '2.340'"
            " for a weekly release"
        )
    numbers = _numbers(release)
    for row in TABLE:
        if numbers >= _numbers(row.weekly if len(numbers) == 2 else row.lts):
            return row
    raise invalid(f"the release {release} is older than the table, which begins with 2.164")


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))
