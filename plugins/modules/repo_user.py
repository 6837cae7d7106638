#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: repo_user
short_description: Manage users of the repository manager
version_added: 1.0.0
description:
  - Creates, changes and deletes users, one or many in a task. Options that are not set are not managed.
  - Uses the interface of Access. If the server does not have it, or does not accept the login there, the older interface is used.
  - After a change, the user is read again to verify it. If the server did not keep a field, the task fails.
  - An unchanged user costs a single request. With O(entries), one more request reads the list of all users.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details: The server does not show passwords. With O(update_password=always), every run writes the password.
options:
  entries:
    description:
      - Many users, each with the other options. A user that fails does not stop the others.
      - The task returns RV(results) instead of RV(user).
    type: list
    elements: dict
    suboptions: &entry
      name:
        description: Name of the user. The server writes it in lower case. Either O(name) or O(entries) is required.
        type: str
        required: true
      email:
        description: Email address. Required for a new user.
        type: str
      user_password:
        description:
          - Password of the user, see O(update_password). O(password) is the login of the task. A new user needs one, unless
            O(internal_password_disabled=true).
        type: str
      update_password:
        description:
          - Whether the password is sent for new users only, or in every task. The server shows no passwords, so V(always) is always a change.
        type: str
        choices: [on_create, always]
        default: on_create
      admin:
        description: Whether the user is an administrator.
        type: bool
      profile_updatable:
        description: Whether the user may change the own profile.
        type: bool
      disable_ui_access:
        description: Whether the user may not use the web interface. Excludes O(admin) and O(profile_updatable).
        type: bool
      internal_password_disabled:
        description: Whether the user can only log in by an external service.
        type: bool
      groups:
        description: Names of the groups, see O(groups_mode). An unknown group is C(not_found), in check mode too.
        type: list
        elements: str
      groups_mode:
        description:
          - Whether O(groups) is the complete list, or only adds or removes groups. V(exact) also removes groups that every new user joins.
        type: str
        choices: [exact, add, remove]
        default: exact
      force:
        description:
          - Whether to allow deleting the account of the task or a built-in account, or taking away its login or its administration.
        type: bool
        default: false
      state:
        description: Whether the user should exist.
        type: str
        choices: [present, absent]
        default: present
  name:
    description: Name of the user. The server writes it in lower case. Either O(name) or O(entries) is required.
    type: str
  <<: *entry
seealso:
  - module: delivery.toolchain.repo_group
  - module: delivery.toolchain.repo_permission
"""

EXAMPLES = r"""
- name: A user of the CI server
  delivery.toolchain.repo_user:
    name: ci
    email: ci@example.org
    user_password: "{{ vault_ci_password }}"
    groups: [developers]
  vars:
    vault_ci_password: An-example-2026

- name: Add a user to a group, and keep the other groups
  delivery.toolchain.repo_user:
    name: reader
    groups: [developers]
    groups_mode: add

- name: Many users
  delivery.toolchain.repo_user:
    entries:
      - name: reader
        email: reader@example.org
      - name: contractor
        state: absent
"""

RETURN = r"""
user:
  description: User after the task, or null after O(state=absent). In check mode, the fields that are known. Never with the password.
  returned: without O(entries)
  type: dict
  contains:
    name:
      description: Name of the user.
      type: str
    email:
      description: Email address.
      type: str
      returned: if known
    admin:
      description: Whether the user is an administrator.
      type: bool
      returned: if known
    profile_updatable:
      description: Whether the user may change the own profile.
      type: bool
      returned: if known
    disable_ui_access:
      description: Whether the user may not use the web interface.
      type: bool
      returned: if known
    internal_password_disabled:
      description: Whether the user can only log in by an external service.
      type: bool
      returned: if known
    groups:
      description: Names of the groups.
      type: list
      elements: str
      returned: if known
  sample: {name: ci, email: ci@example.org, admin: false, profile_updatable: true, disable_ui_access: false, groups: [developers]}
results:
  description:
    - A result for each of the O(entries), with C(name), C(action) (C(created), C(updated), C(deleted) or C(unchanged)), C(changes), the fields
      of the user, and C(error) if it failed.
  returned: with O(entries)
  type: list
  elements: dict
  sample: [{name: reader, action: updated, changes: [{field: email, before: "", after: reader@example.org}]}]
unknown:
  description: Names of the fields that cannot be compared. Each item of RV(results) has this key too.
  returned: if something cannot be compared
  type: list
  elements: str
  sample: [user_password]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.access import repo_user


def main() -> None:
    run(repo_user.RepoUserOptions, repo_user.RepoUserOperation)


if __name__ == "__main__":
    main()
