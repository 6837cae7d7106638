# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ci_java_support
short_description: The versions of Java that a release of the CI server runs on
version_added: 1.0.0
description:
  - Looks up a release in the table of supported runtimes.
  - A release with three numbers (V(2.346.1)) is a long-term one, one with two (V(2.340)) a weekly one. Each line has a column of
    its own, as their numbers overlap.
  - A release that cannot be read, and one that is older than the table, is an error.
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input
options:
  _input:
    description: The release, as text. Put it into quotation marks, as YAML reads a bare 2.340 as the number 2.34.
    type: str
    required: true
  source:
    description:
      - What counts in a row where the two sources of the table contradict each other. That is the oldest one (V(2.164)), for
        which the interface description has Java 8 and 17, and the vendor's support policy has Java 8 and 11.
      - With V(interface) a warning says so. Releases that the interface description does not know yet have the vendor's
        values in both cases.
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

- name: Show what an old release ran on
  ansible.builtin.debug:
    msg: "{{ '2.164.1' | delivery.toolchain.ci_java_support(source='vendor') }}"
"""

RETURN = r"""
_value:
  description: The versions of Java, the oldest first.
  type: list
  elements: int
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display

from ansible_collections.delivery.toolchain.plugins.module_utils.ci.server import java_support
from ansible_collections.delivery.toolchain.plugins.module_utils.core.errors import ToolchainError


def ci_java_support(release: Any, source: str = "interface") -> list[int]:
    """The Java versions of a release; see the documentation of the filter."""
    if not isinstance(release, str):
        raise AnsibleFilterError(f"ci_java_support takes a release as text, not {release!r}")
    if source not in ("interface", "vendor"):
        raise AnsibleFilterError(f"ci_java_support: source is interface or vendor, not {source!r}")
    try:
        versions, doubtful = java_support.supported(release.strip(), vendor=source == "vendor")
    except ToolchainError as error:
        raise AnsibleFilterError(f"ci_java_support: {error.message}") from None
    if doubtful and source == "interface":
        Display().warning(
            f"ci_java_support: for {release} the interface description and the vendor's policy"
            " contradict each other; source='vendor' gives the policy's versions"
        )
    return list(versions)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"ci_java_support": ci_java_support}
