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

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server import java_support
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
    excerpt,
)


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
    try:
        versions, doubtful = java_support.supported(release.strip(), vendor=source == "vendor")
    except ToolchainError as error:
        raise AnsibleFilterError(f"ci_java_support: {error.message}") from None
    if doubtful and source == "interface":
        Display().warning(
            f"ci_java_support: for {release} the interface description and the vendor's policy"
            " contradict each other; source='vendor' selects the policy's versions"
        )
    return list(versions)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"ci_java_support": ci_java_support}
