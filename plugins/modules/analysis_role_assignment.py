#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_role_assignment
short_description: Give a role of the code analysis server to a user or a group
version_added: 1.0.0
description:
  - Gives a role to a user or a group, everywhere or in one project, or takes it away.
  - An assignment that is as wanted costs one request, one in a project two.
  - After a change the assignments are read back.
  - A role that the account of the task holds, itself or by a group, is not taken away without O(force).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.analysis
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
    description: Name of the project in which the role is held. Without it the role is held in all projects.
    type: str
  group:
    description: Whether O(account) is a group.
    type: bool
    default: false
  state:
    description: Whether the assignment is to be there.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Whether the account of the task may lose a role that it holds itself or by a group.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.analysis_role
  - module: delivery.toolchain.analysis_user
  - module: delivery.toolchain.analysis_group
"""

EXAMPLES = r"""
- name: Developers may work in one project
  delivery.toolchain.analysis_role_assignment:
    name: Developer
    account: developers
    group: true
    project: legacy

- name: One user may do so everywhere
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
  description: The assignment as it is after the task.
  returned: when O(state=present)
  type: dict
  contains:
    name:
      description: Name of the role.
      type: str
    account:
      description: Name of the user or group.
      type: str
    project:
      description: Name of the project, C(null) for all projects.
      type: str
    group:
      description: Whether the account is a group.
      type: bool
  sample: {name: Developer, account: developers, project: legacy, group: true}
http:
  description: Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).
  returned: always
  type: dict
error:
  description: Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
  returned: on failure
  type: dict
"""

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import runner
from ansible_collections.delivery.toolchain.plugins.module_utils.analysis.resources import (
    analysis_role_assignment,
)


def main() -> None:
    runner.run(
        "analysis",
        analysis_role_assignment.AnalysisRoleAssignmentOptions,
        analysis_role_assignment.AnalysisRoleAssignmentOperation,
    )


if __name__ == "__main__":
    main()
