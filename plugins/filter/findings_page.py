# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: findings_page
short_description: Convert findings to the body of a wiki page
version_added: 1.0.0
description:
  - Converts findings to storage format, such as C(drift_findings), the statistics of the playbook C(delivery.toolchain.drift).
  - The same findings always result in the same body, so a page only changes if the findings change.
  - The first 500 findings are listed, followed by the number of the others.
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input
options:
  _input:
    description: Findings.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Publish the differences
  delivery.toolchain.wiki_page:
    space: REL
    title: Drift
    body: "{{ drift_findings | default([]) | delivery.toolchain.findings_page }}"
"""

RETURN = r"""
_value:
  description: Body in storage format.
  type: str
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils._lib.report import texts


def findings_page(findings: Any) -> str:
    """Convert findings to storage format; see the documentation of the filter."""
    if not isinstance(findings, list) or not all(
        isinstance(finding, Mapping) for finding in findings
    ):
        raise AnsibleFilterError("findings_page expects a list of findings, which are mappings")
    for number, finding in enumerate(findings):
        for key in ("service", "action", "text", "status"):
            if key not in finding:
                raise AnsibleFilterError(f"findings_page: finding {number + 1} has no {key}")
    return texts.storage(findings)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"findings_page": findings_page}
