# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: report_folder
short_description: Create the folder of a report
version_added: 1.0.0
description:
  - Creates the folder and checks that a report can be written to it. The playbooks of this collection use this lookup before any other
    task.
  - A relative path starts in the folder of the playbook, for a playbook of this collection in the working directory.
author: delivery.toolchain contributors (@delivery-toolchain)
options:
  _terms:
    description: Path of the folder.
    type: list
    elements: path
    required: true
"""

EXAMPLES = r"""
- name: Make the folder of the report
  ansible.builtin.assert:
    that: lookup('delivery.toolchain.report_folder', 'report') | length == 0
"""

RETURN = r"""
_raw:
  description: Reason why a report cannot be written to the folder. Empty if the folder is writable.
  type: list
  elements: str
"""

from typing import Any

from ansible.plugins.lookup import LookupBase

from ansible_collections.delivery.toolchain.plugins.plugin_utils import lookups
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report import writing


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[str]:
        self.set_options(var_options=variables, direct=kwargs)
        lookups.require_terms(terms, "a folder")
        return [_problem(term, variables or {}) for term in terms]


def _problem(term: Any, variables: dict[str, Any]) -> str:
    if not writing.is_path(term):
        return f"Cannot write the report to '{term}': it is not a path. Set the path of a folder."
    return writing.problem(writing.resolved(str(term), variables))
