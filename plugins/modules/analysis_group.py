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
  - Creates, changes or deletes a group of users. A group that is as wanted costs one request.
  - After a change the group is read back; members that the server did not keep fail the task.
  - A group that the server marks as read-only cannot be changed or deleted; the task fails before it writes.
  - A group by which the account of the task holds a role is not deleted, and keeps that account, unless O(force=true). To
    find out, a task that would do so reads the roles of the account.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.analysis
options:
  name:
    description: Name of the group.
    type: str
    required: true
  users:
    description:
      - The members. The list replaces the present one, and an empty list empties the group. The order has no meaning.
      - Some servers do not show members. They then cannot be compared, are written when the group is created only, and a
        warning says so.
    type: list
    elements: str
  state:
    description: Whether the group is to be there.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Whether the group may be deleted, or lose the account of the task, where it gives that account a role.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.analysis_user
  - module: delivery.toolchain.analysis_role_assignment
"""

EXAMPLES = r"""
- name: Who develops
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
  description: The group as it is after the task (in check mode, as far as it is known before).
  returned: when O(state=present)
  type: dict
  contains:
    name:
      description: Name of the group.
      type: str
      returned: always
    users:
      description: Names of its members.
      type: list
      elements: str
      returned: when the server shows members
    readonly:
      description: Whether the group cannot be changed.
      type: bool
      returned: when the server tells
  sample: {name: developers, users: [alice, "Carol, QA"], readonly: false}
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
    analysis_group,
)


def main() -> None:
    runner.run(
        "analysis", analysis_group.AnalysisGroupOptions, analysis_group.AnalysisGroupOperation
    )


if __name__ == "__main__":
    main()
