# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: survey_answers
short_description: Return the answers of an AWX survey as playbook variables
version_added: 1.0.0
description:
  - The job templates of the playbook C(delivery.toolchain.awx_setup) ask for variables. An answer is a string. If the variable is a list or
    a mapping, the string is parsed as YAML. An empty answer is ignored.
  - Answers are the variables that start with C(survey_). An answer without a question in the playbook is rejected.
author: delivery.toolchain contributors (@delivery-toolchain)
options:
  _terms:
    description: Names of playbooks of this collection, V(release), V(enforce), V(drift) or V(housekeeping).
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Show the answers
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.survey_answers', 'housekeeping') }}"
  vars:
    survey_repo_housekeeping_rules: "[{repo: generic-snapshot-local, created_before: 30d}]"
"""

RETURN = r"""
_raw:
  description: Variables and their values, per playbook.
  type: list
  elements: dict
"""

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.delivery.toolchain.plugins.plugin_utils import survey


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        self.set_options(var_options=variables, direct=kwargs)
        try:
            return [survey.answers(term, variables or {}) for term in terms]
        except survey.SurveyError as error:
            message = str(error)
        raise AnsibleError(message)
