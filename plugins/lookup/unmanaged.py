# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: unmanaged
short_description: List the objects that a desired state does not name
version_added: 1.0.0
description:
  - Compares an export of the servers with a folder of the desired state. Only lists that the desired state contains are compared.
  - The role C(desired_state) calls this lookup for its option C(desired_state_unmanaged).
author: delivery.toolchain contributors (@delivery-toolchain)
options:
  _terms:
    description: Folders of the desired state. A relative path starts as that of P(delivery.toolchain.desired_state#lookup).
    type: list
    elements: path
    required: true
  environment:
    description: The name of a folder in C(environments). By default, no differences apply.
    type: str
  export:
    description: The folder that an export wrote. A relative path starts as those of the terms.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show the objects that the desired state does not name
  ansible.builtin.debug:
    msg: "{{ query('delivery.toolchain.unmanaged', 'desired', export='exported') | map(attribute='text') }}"
"""

RETURN = r"""
_list:
  description:
    - A finding for each unmanaged object, with C(service), C(kind), C(name), C(action) (V(none)), C(text), C(before), C(after) and
      C(status) (V(unmanaged)).
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
from ansible_collections.delivery.toolchain.plugins.plugin_utils.findings import Finding


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Finding]:
        self.set_options(var_options=variables, direct=kwargs)
        lookups.require_terms(terms, "a folder")
        environment = self.get_option("environment") or None
        failed = None
        try:
            reading = desired_folder.reading(self, variables or {})
            export, *folders = (
                desired_folder.path_of(name, variables or {})
                for name in (self.get_option("export"), *terms)
            )
            if not any(export.iterdir()):  # no service could be exported
                return []
            on_server = desired_state.read(export, reading)
            described = [desired_state.read(folder, reading, environment) for folder in folders]
            return [
                finding
                for state in described
                for finding in desired_state.unmanaged(state, on_server)
            ]
        except desired_state.DesiredStateError as error:
            failed = AnsibleError(f"Cannot compare the desired state: {error}")
        raise failed
