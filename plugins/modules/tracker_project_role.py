#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: tracker_project_role
short_description: Manage users and groups of a role of a project
version_added: 1.0.0
description:
  - Sets, adds or removes the users and groups of a role in one project. Roles themselves belong to the whole server and are not created.
  - The account must be allowed to administer the project.
  - The task fails if its account, directly or through its groups, would lose the role of the administrators, unless O(force) is set.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.attributes
options:
  entries:
    description: Manages many roles with the other options. If an entry fails, the others are still processed.
    type: list
    elements: dict
    suboptions: &entry
      project:
        description: Key of the project.
        type: str
        required: true
      role:
        description: Name of the role, such as V(Developers). Letter case is ignored.
        type: str
        required: true
      users:
        description:
          - Names of users. On Jira Cloud account IDs, display names or email addresses.
          - Without this option, users are not changed. An empty list removes all users with O(mode=exact).
        type: list
        elements: str
      groups:
        description: Names of groups. Without this option, groups are not changed. An empty list removes all groups with O(mode=exact).
        type: list
        elements: str
      mode:
        description: V(exact) sets the lists. V(add) only adds, V(remove) only removes.
        type: str
        choices: [exact, add, remove]
        default: exact
      force:
        description: Whether the account of the task may lose the role of the administrators.
        type: bool
        default: false
  project:
    description: Key of the project. Needed without O(entries).
    type: str
  role:
    description: Name of the role, such as V(Developers). Letter case is ignored.
    type: str
  <<: *entry
seealso:
  - module: delivery.toolchain.tracker_component
  - module: delivery.toolchain.tracker_project_info
"""

EXAMPLES = r"""
- name: Give the developers their role in the project
  delivery.toolchain.tracker_project_role:
    project: REL
    role: Developers
    users: [alice, boris]
    groups: [developers]

- name: Take a user out of a role
  delivery.toolchain.tracker_project_role:
    project: REL
    role: Developers
    users: [boris]
    mode: remove

- name: Manage several roles in one task
  delivery.toolchain.tracker_project_role:
    entries:
      - {project: REL, role: Developers, groups: [developers]}
      - {project: REL, role: Users, users: [chloé], mode: add}
"""

RETURN = r"""
role:
  description: Role as name, users and groups. On Jira Cloud users are account IDs.
  returned: success, without O(entries)
  type: dict
  sample:
    name: Developers
    users: [alice, boris]
    groups: [developers]
results:
  description: With O(entries), an item for each entry, with the keys of RV(role), C(name), C(action), C(changes), and C(error) if it failed.
  returned: success, with O(entries)
  type: list
  elements: dict
  sample: [{name: REL/Developers, action: created, changes: []}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.tracker.projects import tracker_project_role


def main() -> None:
    run(
        tracker_project_role.TrackerProjectRoleOptions,
        tracker_project_role.TrackerProjectRoleOperation,
    )


if __name__ == "__main__":
    main()
