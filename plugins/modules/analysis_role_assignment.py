#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_role_assignment
short_description: Assign a role of the code analysis server to a user or a group
version_added: 1.0.0
description:
  - Assigns a role to a user or a group, in all projects or in a single project, or removes the assignment.
  - An unchanged assignment costs a single request, or two requests in a project.
  - After a change, the assignments are read again to verify it.
  - A role that the account of the task has, directly or by a group, is only removed with O(force).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
options:
  name:
    description: Name of the role.
    type: str
    required: true
  account:
    description: Name of the user, or of the group with O(group=true).
    type: str
    required: true
  project:
    description: Name of the project of the assignment. By default, the assignment applies to all projects.
    type: str
  group:
    description: Whether O(account) is a group.
    type: bool
    default: false
  state:
    description: Whether the assignment should exist.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Whether to allow removing a role from the account of the task, assigned directly or by a group.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.analysis_role
  - module: delivery.toolchain.analysis_user
  - module: delivery.toolchain.analysis_group
"""

EXAMPLES = r"""
- name: Assign a role to developers in a project
  delivery.toolchain.analysis_role_assignment:
    name: Developer
    account: developers
    group: true
    project: legacy

- name: Assign a role to a user in all projects
  delivery.toolchain.analysis_role_assignment:
    name: Developer
    account: alice

- name: And no longer
  delivery.toolchain.analysis_role_assignment:
    name: Developer
    account: alice
    state: absent
"""

RETURN = r"""
role_assignment:
  description: Assignment after the task.
  returned: if O(state=present)
  type: dict
  contains:
    name:
      description: Name of the role.
      type: str
    account:
      description: Name of the user or group.
      type: str
    project:
      description: Name of the project, or C(null) for all projects.
      type: str
    group:
      description: Whether the account is a group.
      type: bool
  sample: {name: Developer, account: developers, project: legacy, group: true}
unknown:
  description: Names of the options that cannot be compared.
  returned: if something cannot be compared
  type: list
  elements: str
  sample: [users]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.analysis.resources import analysis_role_assignment


def main() -> None:
    run(
        analysis_role_assignment.AnalysisRoleAssignmentOptions,
        analysis_role_assignment.AnalysisRoleAssignmentOperation,
    )


if __name__ == "__main__":
    main()
