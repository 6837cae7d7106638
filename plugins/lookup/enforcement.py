# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: enforcement
short_description: Choose the roles that enforce and drift run
version_added: 1.0.0
description:
  - Returns the roles that the playbooks C(delivery.toolchain.enforce) and C(delivery.toolchain.drift) run, by the variables of the host.
author: delivery.toolchain contributors (@delivery-toolchain)
options:
  _terms:
    description: V(steps) returns the task files to include. Variables of a file contain the role, or the error.
    type: list
    elements: str
    choices: [steps]
    required: true
  playbook:
    description: The calling playbook.
    type: str
    choices: [drift, enforce]
    default: enforce
  folder:
    description: Whether C(desired_state_folder) still has to be read.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show the roles of a run
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.enforcement', 'steps') }}"
"""

RETURN = r"""
_raw:
  description: Task files, as lists of the file and its label.
  type: list
  elements: raw
"""

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.delivery.toolchain.plugins.plugin_utils import (
    ansible_internals,
    enforcement,
)


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Any]:
        self.set_options(var_options=variables, direct=kwargs)
        return [self._steps(term, variables or {}) for term in terms]

    def _steps(self, term: str, variables: dict[str, Any]) -> list[list[str]]:
        if term != "steps":
            raise AnsibleError(
                f"The lookup enforcement accepts only the term 'steps', not '{term}'."
            )
        return enforcement.steps(
            variables,
            ansible_internals.template_of(self),
            self.get_option("playbook"),
            folder=self.get_option("folder"),
        )
