# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: report_settings
short_description: Check the variables of a report
version_added: 1.0.0
description:
  - Checks the variables that decide what a report shows. The playbooks of this collection use this lookup before any other task.
author: delivery.toolchain contributors (@delivery-toolchain)
options:
  _terms:
    description: Value of the variable C(drift_ignore).
    type: list
    elements: raw
    required: true
  output:
    description: Value of the variable C(drift_output), V(text) or V(github).
    type: raw
    default: text
  fail:
    description: Value of the variable C(drift_fail), a boolean.
    type: raw
    default: false
"""

EXAMPLES = r"""
- name: Reject an invalid entry
  ansible.builtin.assert:
    that: lookup('delivery.toolchain.report_settings', accepted) | length == 0
  vars:
    accepted:
      - name: sandbox-*
        reason: people try things there
"""

RETURN = r"""
_raw:
  description: The error message. Empty if the value is valid.
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.lookup import LookupBase

from ansible_collections.delivery.toolchain.plugins.plugin_utils import lookups
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report import ignored, terminal


class LookupModule(LookupBase):
    def run(
        self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[str]:
        self.set_options(var_options=variables, direct=kwargs)
        lookups.require_terms(terms, "the settings of a report")
        output, fail = self.get_option("output"), self.get_option("fail")
        return [_problem(term, output, fail) for term in terms]


def _problem(entries: Any, output: Any, fail: Any) -> str:
    if output not in terminal.OUTPUTS:
        return f"drift_output must be one of {', '.join(terminal.OUTPUTS)}, not '{output}'."
    try:
        boolean(fail)
    except TypeError:
        return f"drift_fail must be true or false, not '{fail}'."
    try:
        ignored.parse(entries)
    except ignored.IgnoreError as error:
        return f"{error}."
    return ""
