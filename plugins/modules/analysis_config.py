#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_config
short_description: Bring a code analysis server into a desired state
version_added: 1.0.0
description:
  - Reads each kind of objects once (those inside projects once per project), plans everything, then writes what differs.
  - Entries of the lists have the options of the modules for single objects. What is not given is not managed; a list that
    is not given leaves its kind alone. Nothing that the lists do not name is deleted unless O(purge) says so.
  - Everything is planned before anything is written. Check mode shows the plan as the difference, object by object.
  - Users and groups are written first, then projects, roles, assignments, modules, views and defect types; deletions come
    last, the other way round. What does not depend on one another is written side by side.
  - A write that fails stops what depends on it. All else is finished, and the task fails in the end with RV(applied).
  - What was written is read back, one read per kind and project. After a lost answer that read tells what became of the write.
  - An object that is given twice in a list is refused.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.analysis
options:
  users:
    description: The users. Without the list no user is managed.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the user.
        type: str
        required: true
      password:
        description: Password of a user that is created.
        type: str
      state:
        description: Whether the user is to be there.
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
        description: The members; an empty list empties the group.
        type: list
        elements: str
      state:
        description: Whether the group is to be there.
        type: str
        choices: [present, absent]
        default: present
  projects:
    description: The projects.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the project, for an import that of the project on the other server.
        type: str
        required: true
      new_name:
        description: The name that the project is to have. All other lists name it so.
        type: str
      import_from:
        description: The server from which the project is imported where it is not there.
        type: dict
        suboptions:
          url:
            description: Address of that server.
            type: str
            required: true
          username:
            description: An administrator of that server.
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
        description: Longest time between two looks at an import, in seconds.
        type: float
        default: 5
      state:
        description: Whether the project is to be there.
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
        description: Permission to V(true) or V(false), as in M(delivery.toolchain.analysis_role).
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
        description: The changes of an issue's status that the role allows; an empty list empties it.
        type: list
        elements: dict
        suboptions:
          from:
            description: Status before the change; V(Any) stands for every status.
            type: str
            required: true
          to:
            description: Status after the change.
            type: str
            required: true
      state:
        description: Whether the role is to be there.
        type: str
        choices: [present, absent]
        default: present
  role_assignments:
    description: Who holds which role.
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
        description: Name of the project in which the role is held; without it, in all.
        type: str
      group:
        description: Whether the account is a group.
        type: bool
        default: false
      state:
        description: Whether the assignment is to be there.
        type: str
        choices: [present, absent]
        default: present
  modules:
    description: The modules of projects.
    type: list
    elements: dict
    suboptions:
      project:
        description: Name of the project.
        type: str
        required: true
      name:
        description: Name of the module.
        type: str
        required: true
      new_name:
        description: The name that the module is to have.
        type: str
      allow_all:
        description: Whether everybody has access to the module unless something else is said.
        type: bool
      paths:
        description: Patterns of the paths that belong to the module.
        type: list
        elements: str
      state:
        description: Whether the module is to be there.
        type: str
        choices: [present, absent]
        default: present
  views:
    description: The views of projects.
    type: list
    elements: dict
    suboptions:
      project:
        description: Name of the project.
        type: str
        required: true
      name:
        description: Name of the view.
        type: str
        required: true
      query:
        description: The search text.
        type: str
      tags:
        description: Tags of the view; an empty list empties it.
        type: list
        elements: str
      recreate:
        description: Deletes and creates the view where the server does not change its query.
        type: bool
        default: false
      state:
        description: Whether the view is to be there.
        type: str
        choices: [present, absent]
        default: present
  defect_types:
    description: The defect types of projects.
    type: list
    elements: dict
    suboptions:
      project:
        description: Name of the project.
        type: str
        required: true
      code:
        description: Code of the defect type.
        type: str
        required: true
      enabled:
        description: Whether an analysis looks for such defects.
        type: bool
        required: true
  purge:
    description:
      - Kinds that are to be exactly what their lists say; objects that are in no list are deleted.
      - A kind whose list is not given is left alone. Inside projects only those count that O(projects) or the list of the
        kind names.
      - What is read-only, the account of the task, the roles that it holds, what gives them to it, and what O(protect) names
        are never deleted.
      - A list that the server may have cut, or groups whose members it does not show, are not purged against; the task fails
        before it writes.
      - What another list refers to is not purged; the task fails before it writes.
      - A kind of which no entry is to be there is not purged; O(allow_empty) allows it, else the task fails before it reads.
      - Defect types come with the server, and none is deleted.
    type: list
    elements: str
    choices: [defect_types, groups, modules, projects, role_assignments, roles, users, views]
    default: []
  protect:
    description:
      - Patterns of names that are never deleted, with C(*) and C(?). Upper and lower case differ.
      - A pattern is held against the name of an object as RV(plan) spells it, against its own name in its project, and
        for an assignment against the role and the account.
      - What holds something that is protected stays, too, with a warning that names both; as a project with such a module,
        view or build, or a role, an account or a project with such an assignment.
      - A pattern that fits nothing is warned of. A name without wildcards that nothing has fails the task before it writes
        where something would be deleted.
    type: list
    elements: str
    default: []
  max_deletions:
    description: Most objects that may be deleted. Where more would be, the task fails before it writes anything.
    type: int
    default: 10
  allow_empty:
    description: Kinds of which all objects may be deleted, as O(purge) names them and no entry of their list is to be there.
    type: list
    elements: str
    choices: [defect_types, groups, modules, projects, role_assignments, roles, users, views]
    default: []
  force:
    description:
      - Whether the account of the task, the roles that it holds, and what gives them to it may be removed where an entry says so.
      - O(purge) never deletes them.
    type: bool
    default: false
  parallel:
    description: Most requests at once.
    type: int
    default: 4
notes:
  - Inside a project that the same task imports nothing is known before. Check mode then shows what the lists name as if nothing
    were there; the task looks at what the import has brought before it writes.
seealso:
  - module: delivery.toolchain.analysis_info
    description: With O(delivery.toolchain.analysis_info#module:export=true) it gives the lists of a server as it is.
"""

EXAMPLES = r"""
- name: Who may do what, and how the projects are cut
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
  description: The objects that differ, in the order in which they are written.
  returned: always, and when O(max_deletions) stopped the task
  type: list
  elements: dict
  contains:
    kind:
      description: The option that has such objects.
      type: str
    name:
      description:
        - The name. Inside projects C(project/name), for a defect type C(project/code), for an assignment C(role/account) or
          C(role/account/project).
      type: str
    action:
      description: What is done with it, C(create), C(update) or C(delete).
      type: str
    changes:
      description: The fields that differ, each with C(field), C(before) and C(after); of permissions only those that differ.
      type: list
      elements: dict
  sample:
    - kind: groups
      name: developers
      action: update
      changes: [{field: users, before: [alice], after: [alice, bob]}]
applied:
  description: What came of each object of the plan; empty in check mode.
  returned: always, and when a write failed
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
      description: Whether the server has it as planned.
      type: bool
    error:
      description:
        - Why not, as RV(error), and C(msg). An object that was not tried, as another one that it depends on failed, says so.
      type: dict
  sample:
    - {kind: groups, name: developers, action: update, ok: true, error: null}
counts:
  description: How many objects the plan has of each action (C(create), C(update), C(delete)), and how many are C(unchanged).
  returned: always, and when the task failed after it had planned
  type: dict
  sample: {create: 0, update: 1, delete: 0, unchanged: 41}
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
from ansible_collections.delivery.toolchain.plugins.module_utils.analysis.configuration import (
    analysis_config,
)


def main() -> None:
    runner.run(
        "analysis", analysis_config.AnalysisConfigOptions, analysis_config.AnalysisConfigOperation
    )


if __name__ == "__main__":
    main()
