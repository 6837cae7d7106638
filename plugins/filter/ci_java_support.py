# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ci_java_support
short_description: Return the Java versions that a release of the CI server supports
version_added: 1.0.0
description:
  - Searches the table of supported runtimes for a release.
  - A release with three numbers (V(2.346.1)) is a long-term release, a release with two numbers (V(2.340)) is a weekly release. They have
    separate columns, because their numbers overlap.
  - A release that cannot be parsed, or that is older than the table, is an error.
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input
options:
  _input:
    description: Release as a string. Quote it, because YAML reads 2.340 without quotes as the number 2.34.
    type: str
    required: true
  source:
    description:
      - Source to use for a row with contradicting sources. This is the oldest row (V(2.164)). The interface description has Java 8 and 17,
        the support policy of the vendor has Java 8 and 11.
      - With V(interface), a warning reports the contradiction. Releases that are not in the interface description always use the values of
        the vendor.
    type: str
    choices: [interface, vendor]
    default: interface
seealso:
  - module: delivery.toolchain.ci_script
"""

EXAMPLES = r"""
- name: Check the Java of the server
  ansible.builtin.assert:
    that: 17 in ('2.479.3' | delivery.toolchain.ci_java_support)

- name: Show the Java versions of an old release
  ansible.builtin.debug:
    msg: "{{ '2.164.1' | delivery.toolchain.ci_java_support(source='vendor') }}"
"""

RETURN = r"""
_value:
  description: Java versions, oldest first.
  type: list
  elements: int
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display

from ..module_utils._lib.core.errors import excerpt

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


#: Java versions [W9], newest first. Long-term releases have three numbers, weekly releases two. The
#: table has a column for each, because their numbers overlap: the weekly release 2.361 and the
#: long-term release 2.361.1 are different. The interface description lacks the three newest rows and the long-term release
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
    if _RELEASE.fullmatch(release) is None:
        raise AnsibleFilterError(
            f"ci_java_support: {excerpt(release)} is not a release: write '2.346.1' for a long-term"
            " release, '2.340' for a weekly release"
        )
    numbers = _numbers(release)
    for row in TABLE:
        if numbers >= _numbers(row.weekly if len(numbers) == 2 else row.lts):
            break
    else:
        raise AnsibleFilterError(
            f"ci_java_support: the release {release} is older than the table, which begins with"
            " 2.164"
        )
    if row.vendor is not None and (vendor or row.java is None):
        return row.vendor, row.doubtful
    return row.java or (), row.doubtful


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def ci_java_support(release: Any, source: str = "interface") -> list[int]:
    """Return the Java versions of a release; see the documentation of the filter."""
    if not isinstance(release, str):
        raise AnsibleFilterError(
            f"ci_java_support: the release must be a string, not {excerpt(release)}"
        )
    if source not in ("interface", "vendor"):
        raise AnsibleFilterError(
            f"ci_java_support: source must be 'interface' or 'vendor', not {excerpt(source)}"
        )
    versions, doubtful = supported(release.strip(), vendor=source == "vendor")
    if doubtful and source == "interface":
        Display().warning(
            f"ci_java_support: for {release} the interface description and the vendor's policy"
            " contradict each other; source='vendor' selects the policy's versions"
        )
    return list(versions)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"ci_java_support": ci_java_support}
