# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: enforcement
short_description: What the playbooks enforce and drift do on a host
version_added: 1.0.0
description:
  - The playbooks C(delivery.toolchain.enforce) and C(delivery.toolchain.drift) ask it which roles are run, by the variables of the host.
author: delivery.toolchain contributors (@delivery-toolchain)
options:
  _terms:
    description:
      - V(steps) gives the files of tasks to include, each with the role, or with what is wrong in the variables.
      - V(sent) gives, as a text, the roles and the variables that a worker needs for the host, for P(delivery.toolchain.run_slices#lookup).
    type: list
    elements: str
    choices: [steps, sent]
    required: true
  playbook:
    description: The playbook that asks.
    type: str
    choices: [drift, enforce]
    default: enforce
  folder:
    description: Whether a folder of the desired state that the variables name is yet to be read.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show what would be done
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.enforcement', 'steps') }}"
"""

RETURN = r"""
_raw:
  description: What was asked for.
  type: list
  elements: raw
"""

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.delivery.toolchain.plugins.plugin_utils import enforcement


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Any]:
        self.set_options(var_options=variables, direct=kwargs)
        return [self._told(term, variables or {}) for term in terms]

    def _told(self, term: str, variables: dict[str, Any]) -> Any:
        template = self._templar.template
        if term == "sent":
            return enforcement.packed(variables, template)
        if term != "steps":
            raise AnsibleError(f"enforcement tells steps or sent, not '{term}'")
        return enforcement.steps(
            variables, template, self.get_option("playbook"), folder=self.get_option("folder")
        )
