# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: desired_state
short_description: Read the desired state of all services from a folder
version_added: 1.0.0
description:
  - Reads a folder with a YAML file, or a folder of YAML files, per service. Returns the variables for the roles that manage the services.
  - Every file is validated against the JSON schema of its service. All errors are reported together, with file and line.
  - Values are literal. Strings that are encrypted with Ansible Vault are decrypted. A secret in plain text is refused. The value of a
    secret can also come from a variable of the play, with the only key C(from).
  - Files in C(environments/NAME) describe the differences of an environment. Entries of lists are merged by the options that identify them,
    and every other value is replaced.
author: delivery.toolchain contributors (@delivery-toolchain)
options:
  _terms:
    description: Folders. A relative path starts in the folder of the playbook, for a playbook of this collection in the working directory.
    type: list
    elements: path
    required: true
  environment:
    description: The name of a folder in C(environments). By default, no differences apply.
    type: str
"""

EXAMPLES = r"""
- name: Show which variables a folder sets
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.desired_state', 'desired') | list }}"

- name: Show the versions that production has
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.desired_state', 'desired', environment='production').desired_state_versions }}"
"""

RETURN = r"""
_list:
  description: Variables and their values, a dictionary per folder.
  type: list
  elements: dict
"""

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.delivery.toolchain.plugins.plugin_utils import (
    desired_folder,
    desired_state,
    lookups,
)


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        self.set_options(var_options=variables, direct=kwargs)
        lookups.require_terms(terms, "a folder")
        environment = self.get_option("environment") or None
        failed = None
        try:
            reading = desired_folder.reading(self, variables or {})
            folders = [desired_folder.path_of(term, variables or {}) for term in terms]
            return [desired_state.variables(folder, reading, environment) for folder in folders]
        except desired_state.DesiredStateError as error:
            failed = AnsibleError(f"Cannot use the desired state: {error}")
        raise failed
