#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_group
short_description: Manage a group of users of the code analysis server
version_added: 1.0.0
description:
  - Creates, changes or deletes a group of users. An unchanged group costs a single request.
  - After a change, the group is read again to verify it. If the server did not store a member, the task fails.
  - A group that the server marks as read-only cannot be changed or deleted. The task fails before it writes.
  - A group that grants a role to the account of the task is only deleted, or loses this account, with O(force=true). A task that would do
    so reads the roles of the account first.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
options:
  name:
    description: Name of the group.
    type: str
    required: true
  users:
    description:
      - Complete list of members. An empty list removes all members. The order is ignored.
      - Some servers do not show members. The members then cannot be compared and are only set when the group is created. A warning reports
        this.
    type: list
    elements: str
  state:
    description: Whether the group should exist.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Whether to allow deleting a group that grants a role to the account of the task, or removing this account from it.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.analysis_user
  - module: delivery.toolchain.analysis_role_assignment
"""

EXAMPLES = r"""
- name: Create a group of developers
  delivery.toolchain.analysis_group:
    name: developers
    users:
      - alice
      - Carol, QA

- name: A group without members
  delivery.toolchain.analysis_group:
    name: contractors
    users: []

- name: Remove it
  delivery.toolchain.analysis_group:
    name: contractors
    state: absent
"""

RETURN = r"""
group:
  description: Group after the task, or the expected group in check mode, as far as known.
  returned: if O(state=present)
  type: dict
  contains:
    name:
      description: Name of the group.
      type: str
    users:
      description: Names of its members.
      type: list
      elements: str
      returned: if the server shows members
    readonly:
      description: Whether the group cannot be changed.
      type: bool
      returned: if the server reports it
  sample: {name: developers, users: [alice, "Carol, QA"], readonly: false}
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
from ..module_utils._lib.analysis.resources import analysis_group


def main() -> None:
    run(analysis_group.AnalysisGroupOptions, analysis_group.AnalysisGroupOperation)


if __name__ == "__main__":
    main()
