# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: unknown_variables
short_description: List variables with the prefix of a role that the role does not define
version_added: 1.0.0
description:
  - A misspelled variable of a role or a playbook is never read, so a run can succeed without doing anything.
  - Returns the variables that start with the name of a role or a playbook of this collection and that it does not define.
author: delivery.toolchain contributors (@delivery-toolchain)
options:
  _terms:
    description: Names of roles or playbooks of this collection.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Refuse misspelt variables
  ansible.builtin.assert:
    that: query('delivery.toolchain.unknown_variables', 'ci_build') | length == 0
"""

RETURN = r"""
_list:
  description: Names of the variables, with the closest known name.
  type: list
  elements: str
"""

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.delivery.toolchain.plugins.plugin_utils import role_variables as known


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[str]:
        self.set_options(var_options=variables, direct=kwargs)
        unknown = [term for term in terms if term not in known.owners()]
        if unknown:
            raise AnsibleError(f"this collection has no role and no playbook '{unknown[0]}'")
        return [text for term in terms for text in known.unknown(term, variables or {})]
