#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_config
short_description: Manage the configuration of a code analysis server
version_added: 1.0.0
description:
  - Reads every object kind once (project-specific kinds once per project), plans all changes, then writes the differences.
  - The list entries have the options of the modules for single objects. Options that are not set are not managed. Kinds without a list are
    not changed. Objects that are in no list are only deleted with O(purge).
  - All changes are planned before anything is written. Check mode shows the plan as a diff, object by object.
  - Users and groups are written first, then projects, roles, assignments, modules, views and defect types. Deletions follow in reverse
    order. Independent objects are written in parallel.
  - If a write fails, its dependent objects are not written. All other objects are. The task then fails and returns RV(applied).
  - Changes are verified with a read per kind and project. This read also shows the result of a write with a lost response.
  - An object that occurs twice in a list is rejected.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
options:
  users:
    description: Users. Without this list, users are not managed.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the user.
        type: str
        required: true
      password:
        description: Password of a new user.
        type: str
      state:
        description: Whether the user should exist.
        type: str
        choices: [present, absent]
        default: present
  groups:
    description: The groups.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the group.
        type: str
        required: true
      users:
        description: Complete list of members. An empty list removes all members.
        type: list
        elements: str
      state:
        description: Whether the group should exist.
        type: str
        choices: [present, absent]
        default: present
  projects:
    description: The projects.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the project. For an import, the name of the project on the other server.
        type: str
        required: true
      new_name:
        description: New name of the project. All other lists use this name.
        type: str
      import_from:
        description: Server from which to import the project if it does not exist.
        type: dict
        suboptions:
          url:
            description: Address of that server.
            type: str
            required: true
          username:
            description: Administrator of the other server.
            type: str
            required: true
          password:
            description: The password of the administrator.
            type: str
      wait:
        description: Whether to wait for the end of an import.
        type: bool
        default: true
      wait_timeout:
        description: Seconds to wait for an import.
        type: float
        default: 3600
      poll_interval:
        description: Maximum polling interval for an import in seconds.
        type: float
        default: 5
      state:
        description: Whether the project should exist.
        type: str
        choices: [present, absent]
        default: present
  roles:
    description: The roles.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the role.
        type: str
        required: true
      permissions:
        description: Permissions with V(true) or V(false), as in M(delivery.toolchain.analysis_role).
        type: dict
      create_project:
        description: The permission to create projects.
        type: bool
      manage_roles:
        description: The permission to manage roles.
        type: bool
      change_issue_status:
        description: The permission to change the status of issues.
        type: bool
      allowed_status_transitions:
        description: Complete list of issue status changes that the role allows. An empty list removes all.
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
  role_assignments:
    description: Assignments of roles to users and groups.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the role.
        type: str
        required: true
      account:
        description: Name of the user or group.
        type: str
        required: true
      project:
        description: Name of the project of the assignment. By default, the assignment applies to all projects.
        type: str
      group:
        description: Whether the account is a group.
        type: bool
        default: false
      state:
        description: Whether the assignment should exist.
        type: str
        choices: [present, absent]
        default: present
  modules:
    description: The modules of projects.
    type: list
    elements: dict
    suboptions:
      project: &project
        description: Name of the project.
        type: str
        required: true
      name:
        description: Name of the module.
        type: str
        required: true
      new_name:
        description: New name of the module.
        type: str
      allow_all:
        description: Whether all users may access the module, unless denied explicitly.
        type: bool
      paths:
        description: Complete list of patterns for the paths of the module.
        type: list
        elements: str
      state:
        description: Whether the module should exist.
        type: str
        choices: [present, absent]
        default: present
  views:
    description: The views of projects.
    type: list
    elements: dict
    suboptions:
      project: *project
      name:
        description: Name of the view.
        type: str
        required: true
      query:
        description: Search query.
        type: str
      tags:
        description: Complete list of tags of the view. An empty list removes all tags.
        type: list
        elements: str
      recreate:
        description: Delete and create the view if the server cannot change its query.
        type: bool
        default: false
      state:
        description: Whether the view should exist.
        type: str
        choices: [present, absent]
        default: present
  defect_types:
    description: The defect types of projects.
    type: list
    elements: dict
    suboptions:
      project: *project
      code:
        description: Code of the defect type.
        type: str
        required: true
      enabled:
        description: Whether an analysis detects these defects.
        type: bool
        required: true
  purge:
    description:
      - Kinds whose lists are complete. Objects that are in no list are deleted.
      - A kind without a list is not changed. Project-specific objects are only purged in projects that O(projects) or the list of the kind
        names.
      - Read-only objects, the account of the task, its roles, the assignments and groups that grant them, and objects in O(protect) are
        never deleted.
      - If the server may have truncated a list, or does not show the members of groups, the task fails before it writes.
      - If another list refers to an object to delete, the task fails before it writes.
      - If no entry of a kind would remain, the task fails before it reads, unless O(allow_empty) allows it.
      - Defect types are built in and never deleted.
    type: list
    elements: str
    choices: [defect_types, groups, modules, projects, role_assignments, roles, users, views]
    default: []
  protect:
    description:
      - Patterns for names that are never deleted. C(*) and C(?) match within a segment, C(**) across segments. Letter case is significant.
      - A pattern is compared with the name of an object as in RV(plan), with its name in its project, and for an assignment with the role
        and the account.
      - Objects that contain or need a protected object are kept too. A warning names both objects. Examples are a project with a protected
        module, view or build, and a role, an account or a project with a protected assignment.
      - A pattern without a match adds a warning. If objects would be deleted and a name without wildcards does not exist, the task fails
        before it writes.
    type: list
    elements: str
    default: []
  max_deletions:
    description: Maximum number of deletions. If more objects would be deleted, the task fails before it writes.
    type: int
    default: 10
  allow_empty:
    description: Kinds for which O(purge) may delete all objects, because no entry of their list should exist.
    type: list
    elements: str
    choices: [defect_types, groups, modules, projects, role_assignments, roles, users, views]
    default: []
  force:
    description:
      - Whether entries may remove the account of the task, its roles, and the assignments and groups that grant them.
      - O(purge) never deletes them.
    type: bool
    default: false
  parallel:
    description: Maximum number of parallel requests.
    type: int
    default: 4
notes:
  - The content of a project that the same task imports is not known in advance. Check mode shows all listed objects as new. After the
    import, the task reads the content before it writes.
seealso:
  - module: delivery.toolchain.analysis_info
    description: With O(delivery.toolchain.analysis_info#module:export=true) it returns the lists of an existing server.
"""

EXAMPLES = r"""
- name: Manage roles, assignments and modules
  delivery.toolchain.analysis_config:
    users:
      - name: alice
      - name: bob
    groups:
      - name: developers
        users: [alice, bob]
    roles:
      - name: reviewer
        change_issue_status: true
        allowed_status_transitions:
          - from: Any
            to: Analyze
    role_assignments:
      - name: reviewer
        account: developers
        group: true
        project: toolchain
    modules:
      - project: toolchain
        name: core
        paths: ["**/core/*"]
      - project: toolchain
        name: drivers
        allow_all: false
        paths: ["**/drivers/*"]
    views:
      - project: toolchain
        name: new issues
        query: "state:New"
    defect_types:
      - project: toolchain
        code: ABV.GENERAL
        enabled: true
    parallel: 8

- name: These modules and no others
  delivery.toolchain.analysis_config:
    modules:
      - project: toolchain
        name: core
        paths: ["**/core/*"]
    purge: [modules]
    protect: ["ui*"]
    max_deletions: 5
"""

RETURN = r"""
plan:
  description: Objects that differ, in the order of the writes.
  returned: always, on failure because of O(max_deletions)
  type: list
  elements: dict
  contains:
    kind:
      description: Option that contains such objects.
      type: str
    name:
      description:
        - Name of the object. In projects C(project/name), for a defect type C(project/code), for an assignment C(role/user) or
          C(role/group:name), in a single project with C(/project).
      type: str
    action:
      description: Planned action, C(create), C(update) or C(delete).
      type: str
    changes:
      description: Fields that differ, with C(field), C(before) and C(after). For permissions, only those that differ.
      type: list
      elements: dict
  sample:
    - kind: groups
      name: developers
      action: update
      changes: [{field: users, before: [alice], after: [alice, bob]}]
applied:
  description: Results of the objects in the plan. Empty in check mode.
  returned: always, on failure if a write failed
  type: list
  elements: dict
  contains:
    kind:
      description: As in RV(plan).
      type: str
    name:
      description: As in RV(plan).
      type: str
    action:
      description: As in RV(plan).
      type: str
    ok:
      description: Whether the object on the server is as planned.
      type: bool
    error:
      description: Details of the error as in RV(error), and C(msg). An object that was skipped because of a failed dependency reports it here.
      type: dict
  sample:
    - {kind: groups, name: developers, action: update, ok: true, error: null}
counts:
  description: Number of objects in the plan per action (C(create), C(update), C(delete)), and of unchanged objects (C(unchanged)).
  returned: always, on failure if the plan was complete
  type: dict
  sample: {create: 0, update: 1, delete: 0, unchanged: 41}
unknown:
  description: Objects with fields that cannot be compared, with C(kind), C(name) and C(fields).
  returned: success
  type: list
  elements: dict
  sample: [{kind: users, name: eve, fields: [password]}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.analysis.configuration import analysis_config


def main() -> None:
    run(analysis_config.AnalysisConfigOptions, analysis_config.AnalysisConfigOperation)


if __name__ == "__main__":
    main()
