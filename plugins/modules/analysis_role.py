#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_role
short_description: Manage a role of the code analysis server
version_added: 1.0.0
description:
  - Creates, changes or deletes a role, its permissions, and the changes of an issue status that it allows.
  - Options that are not set are not managed. An existing unchanged role costs a single request.
  - After a change, the role is read again to verify it. If the server did not store a field, the task fails and names the field.
  - A role that the server marks as read-only cannot be changed or deleted. The task fails before it writes.
  - A role of the account of the task is only deleted with O(force).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
options:
  name:
    description: Name of the role.
    type: str
    required: true
  permissions:
    description:
      - Permissions with V(true) (granted) or V(false) (revoked). Other permissions are not changed.
      - A permission name is the parameter name (V(create_project)) or the display name on the server (V(Create project)).
      - The documented interface has C(create_project), C(manage_roles) and C(change_issue_status). Real servers also have C(manage_users),
        C(access_source_files), C(assign_role), C(change_project_settings), C(create_build), C(delete_build), C(delete_project),
        C(manage_modules), C(use_local_configuration), C(webapi_access), C(execute_kwxsync), C(create_stream), C(delete_stream).
      - Every other permission that the server lists for the role is also accepted.
    type: dict
  create_project:
    description: Permission to create projects. See O(permissions).
    type: bool
  manage_roles:
    description: Permission to manage roles. See O(permissions).
    type: bool
  change_issue_status:
    description: Permission to change the status of issues. See O(permissions).
    type: bool
  allowed_status_transitions:
    description:
      - Complete list of issue status changes that the role allows. An empty list removes all.
      - The order is ignored.
    type: list
    elements: dict
    suboptions:
      from:
        description: Status before the change. V(Any) matches every status.
        type: str
        required: true
      to:
        description: Status after the change.
        type: str
        required: true
  state:
    description: Whether the role should exist.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Whether to allow deleting a role of the account of the task.
    type: bool
    default: false
notes:
  - If a server does not show the permissions of its roles, they cannot be compared. They are then only written when the role is created or
    with another change. A warning reports this.
seealso:
  - module: delivery.toolchain.analysis_module
"""

EXAMPLES = r"""
- name: Let developers analyse and fix issues
  delivery.toolchain.analysis_role:
    name: developers
    change_issue_status: true
    create_project: false
    allowed_status_transitions:
      - from: Any
        to: Analyze
      - from: Analyze
        to: Fix

- name: Grant a permission that only real servers support
  delivery.toolchain.analysis_role:
    name: build agents
    permissions:
      create_build: true
      Web API access: true

- name: Remove a role
  delivery.toolchain.analysis_role:
    name: contractors
    state: absent
"""

RETURN = r"""
role:
  description:
    - Role after the task, or the expected role in check mode, as far as known.
    - Fields that the server does not show are omitted.
  returned: if O(state=present)
  type: dict
  contains:
    name:
      description: Name of the role.
      type: str
    permissions:
      description: Parameter names of the permissions, and whether they are granted.
      type: dict
      returned: if the server shows permissions
    allowed_status_transitions:
      description: Allowed status changes, with C(from) and C(to).
      type: list
      elements: dict
      returned: if the server shows permissions
    readonly:
      description: Whether the role is built in and cannot be changed.
      type: bool
      returned: if the server reports it
  sample:
    name: developers
    permissions: {create_project: false, manage_roles: false, change_issue_status: true}
    allowed_status_transitions: [{from: Any, to: Analyze}, {from: Analyze, to: Fix}]
    readonly: false
unknown:
  description: Names of the options that cannot be compared.
  returned: if something cannot be compared
  type: list
  elements: str
  sample: [permissions]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.analysis.resources import analysis_role


def main() -> None:
    run(analysis_role.AnalysisRoleOptions, analysis_role.AnalysisRoleOperation)


if __name__ == "__main__":
    main()
