#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: tracker_component
short_description: Create, change or delete a component of a project
version_added: 1.0.0
description:
  - Manages a component of a project. Only differences are sent.
  - Component names are unique in a project. Letter case and surrounding whitespace are ignored, in comparisons too.
  - The account must be allowed to browse and to administer the project.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.attributes
options:
  entries:
    description:
      - Manages many components with the other options, in this order. All components of a project are compared with a single request.
      - An entry can give a component a name that an earlier entry frees, because it deletes or renames a component. If the component with that name was
        renamed in an earlier run, the task does not delete or rename it again. Two entries must not give the same name.
    type: list
    elements: dict
    suboptions: &entry
      project:
        description: Key of the project.
        type: str
        required: true
      name:
        description: Name of the component.
        type: str
        required: true
      new_name:
        description:
          - New name of the component. If only the new name exists, the component is already renamed. If neither name exists, the component is
            created with the new name. If both exist, the task fails.
        type: str
      description:
        description: Description of the component. An empty string removes it.
        type: str
      lead:
        description:
          - Account that leads the component. On Jira Cloud an account ID, a display name or an email address. An empty string removes the lead.
        type: str
      assignee_type:
        description: Account that new issues with the component are assigned to by default.
        type: str
        choices: [project_default, component_lead, project_lead, unassigned]
      archived:
        description: Whether the component is archived. The task fails on a server that cannot archive components.
        type: bool
      move_issues_to:
        description: Name of the component that the issues get with O(state=absent).
        type: str
      force:
        description:
          - Whether O(state=absent) also deletes a component that is set on issues. It is then removed from the issues.
          - Not needed with O(move_issues_to).
        type: bool
        default: false
      state:
        description: V(absent) deletes the component.
        type: str
        choices: [present, absent]
        default: present
  project:
    description: Key of the project. Needed without O(entries).
    type: str
  name:
    description: Name of the component.
    type: str
  <<: *entry
seealso:
  - module: delivery.toolchain.tracker_version
  - module: delivery.toolchain.tracker_project_role
"""

EXAMPLES = r"""
- name: Create a component
  delivery.toolchain.tracker_component:
    project: REL
    name: installer
    description: Everything that runs before the first start
    lead: alice
    assignee_type: component_lead

- name: Delete a component, and give its issues another one
  delivery.toolchain.tracker_component:
    project: REL
    name: client
    state: absent
    move_issues_to: server

- name: Manage the components of a project in one task
  delivery.toolchain.tracker_component:
    entries:
      - {project: REL, name: client, lead: alice}
      - {project: REL, name: server, lead: boris}
"""

RETURN = r"""
component:
  description:
    - Component as id, name, description, lead, assignee_type and archived. Null if it is absent.
    - In check mode, a component that would be created has no ID.
  returned: success, without O(entries)
  type: dict
  sample:
    id: "10003"
    name: installer
    description: Everything that runs before the first start
    lead: alice
    assignee_type: component_lead
    archived: false
results:
  description: With O(entries), an item for each entry, with the keys of RV(component), C(name), C(action), C(changes), and C(error) if it failed.
  returned: success, with O(entries)
  type: list
  elements: dict
  sample: [{name: REL/installer, action: created, changes: []}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.tracker.projects import tracker_component


def main() -> None:
    run(tracker_component.TrackerComponentOptions, tracker_component.TrackerComponentOperation)


if __name__ == "__main__":
    main()
