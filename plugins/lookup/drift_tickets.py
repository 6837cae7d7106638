# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: drift_tickets
short_description: Plan the issues of a drift report
version_added: 1.0.0
description:
  - Compares the findings of a report with the open issues of the tracker. The playbook C(delivery.toolchain.drift_tickets) uses it.
author: delivery.toolchain contributors (@delivery-toolchain)
options:
  _terms:
    description: Report, as the folder with C(report.json), or as a mapping.
    type: list
    elements: raw
    required: true
  issues:
    description: Open issues with the label C(drift), as M(delivery.toolchain.jql_search) returns them.
    type: list
    elements: dict
    default: []
  per:
    description: Whether each finding has an issue, or each server.
    type: str
    choices: [finding, server]
    default: finding
  max_new:
    description: Maximum number of new issues.
    type: int
    default: 20
"""

EXAMPLES = r"""
- name: Show the issues to create
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.drift_tickets', report).new }}"
  vars:
    report: {findings: [], mended: []}
"""

RETURN = r"""
_raw:
  description:
    - A dictionary with C(new), C(changed) and C(ended), lists of issues with C(label), C(key), C(summary), C(description) and C(comment),
      C(left), the number of issues that wait for the next run, and C(sentence).
  type: list
  elements: dict
"""

import json
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.delivery.toolchain.plugins.plugin_utils import lookups
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report import tickets, writing

_UNUSABLE = (
    "Cannot plan issues: no readable drift report was found. Run drift first, and set drift_report"
    " to the folder of its report."
)


class LookupModule(LookupBase):
    def run(
        self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        self.set_options(var_options=variables, direct=kwargs)
        lookups.require_terms(terms, "a report")
        return [self._plan(_report(term, variables or {})) for term in terms]

    def _plan(self, report: Any) -> dict[str, Any]:
        issues, per, most = (self.get_option(name) for name in ("issues", "per", "max_new"))
        try:
            found = tickets.plan(report, issues, per, most)
        except (KeyError, TypeError, AttributeError):
            found = None
        if found is None:
            raise AnsibleError(_UNUSABLE)
        return {**found, "sentence": tickets.counted(found)}


def _report(report: Any, variables: dict[str, Any]) -> Any:
    if not isinstance(report, str):
        return report
    try:
        return json.loads((writing.resolved(report, variables) / "report.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        failure = AnsibleError(_UNUSABLE)
    raise failure
