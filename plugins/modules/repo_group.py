#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: repo_group
short_description: Manage groups of users of the repository manager
version_added: 1.0.0
description:
  - Creates, changes and deletes groups, one or many in a task. Options that are not set are not managed.
  - Uses the interface of Access. If the server does not have it, or does not accept the login there, the older interface is used.
  - After a change, the group is read again to verify it. If the server did not keep a field, the task fails.
  - An unchanged group costs a single request. With O(entries), one more request reads the list of all groups.
  - The members of a group of a directory, such as LDAP or SAML, cannot be changed. The task fails and names the realm.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
options:
  entries:
    description:
      - Many groups, each with the other options. A group that fails does not stop the others.
      - The task returns RV(results) instead of RV(group).
    type: list
    elements: dict
    suboptions: &entry
      name:
        description: Name of the group.
        type: str
        required: true
      description:
        description: Description of the group. An empty string removes it.
        type: str
      external_id:
        description: Id of the group in an external directory. An empty string removes it.
        type: str
      auto_join:
        description: Whether every new user becomes a member. Not possible together with O(admin_privileges).
        type: bool
      admin_privileges:
        description: Whether the members are administrators. Not possible together with O(auto_join).
        type: bool
      members:
        description:
          - Names of users, see O(members_mode). An empty list removes all members.
          - A new member that does not exist is C(not_found), in check mode too.
        type: list
        elements: str
      members_mode:
        description: Whether O(members) is the complete list, or only adds or removes members.
        type: str
        choices: [exact, add, remove]
        default: exact
      state:
        description: Whether the group should exist.
        type: str
        choices: [present, absent]
        default: present
  name:
    description: Name of the group. Either O(name) or O(entries) is required.
    type: str
  <<: *entry
seealso:
  - module: delivery.toolchain.repo_user
  - module: delivery.toolchain.repo_permission
"""

EXAMPLES = r"""
- name: A group with exactly these members
  delivery.toolchain.repo_group:
    name: release-managers
    description: May promote to the release repositories
    members: [deployer]

- name: Add a member, and keep the others
  delivery.toolchain.repo_group:
    name: developers
    members: [reader]
    members_mode: add

- name: Many groups
  delivery.toolchain.repo_group:
    entries:
      - name: testers
        description: Run the acceptance tests
      - name: contractors
        state: absent
"""

RETURN = r"""
group:
  description: Group after the task, or null after O(state=absent). In check mode, the fields that are known.
  returned: without O(entries)
  type: dict
  contains:
    name:
      description: Name of the group.
      type: str
    description:
      description: Description of the group.
      type: str
      returned: if known
    external_id:
      description: Id in an external directory.
      type: str
      returned: if known
    auto_join:
      description: Whether every new user becomes a member.
      type: bool
      returned: if known
    admin_privileges:
      description: Whether the members are administrators.
      type: bool
      returned: if known
    members:
      description: Names of the members.
      type: list
      elements: str
      returned: if known
  sample: {name: developers, description: Developers, external_id: "", auto_join: false, admin_privileges: false, members: [deployer]}
results:
  description:
    - A result for each of the O(entries), with C(name), C(action) (C(created), C(updated), C(deleted) or C(unchanged)), C(changes), the fields
      of the group, and C(error) if it failed.
  returned: with O(entries)
  type: list
  elements: dict
  sample: [{name: testers, action: created, changes: [{field: description, before: null, after: Run the acceptance tests}]}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.access import repo_group


def main() -> None:
    run(repo_group.RepoGroupOptions, repo_group.RepoGroupOperation)


if __name__ == "__main__":
    main()
