#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: tracker_version
short_description: Create, release, archive or delete a version of a project
version_added: 1.0.0
description:
  - Manages one version of a project, up to its release. Only what differs is sent.
  - Names of versions are unique in a project, without regard to letter case and to blanks at their ends; so they are compared.
  - The account must be allowed to administer the project.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.tracker
options:
  project:
    description: Key of the project.
    type: str
    required: true
  name:
    description: Name of the version.
    type: str
    required: true
  new_name:
    description:
      - The name that it gets. Where only the new name is there, it has been renamed already; where neither is there, it is created
        under the new name; where both are there, the task fails.
    type: str
  description:
    description: Description of the version; an empty one removes it.
    type: str
  start_date:
    description: The day on which it starts, as V(2026-05-01); V(none) removes it.
    type: str
  release_date:
    description:
      - The day of the release, as V(2026-05-31); V(none) removes it.
      - A version that this task releases gets the server's day where neither this option nor the server has one.
    type: str
  state:
    description:
      - V(present) creates it where it is missing, and leaves it released or archived as it is.
      - V(released) and V(unreleased) also take it out of the archive; V(archived) leaves it released or not, as it is.
      - V(absent) deletes it.
    type: str
    choices: [present, released, unreleased, archived, absent]
    default: present
  unresolved:
    description:
      - What to do with issues of the version that have no resolution when this task releases it.
      - V(warn) warns and V(ignore) does not. V(fail) fails before anything is changed.
      - Everything else is the name of the version that they move to, which must be there.
    type: str
    default: warn
  move_to:
    description: Name of the version that the issues get with O(state=absent); without it they lose the deleted one.
    type: str
seealso:
  - module: delivery.toolchain.tracker_issue
  - module: delivery.toolchain.tracker_project_info
"""

EXAMPLES = r"""
- name: Plan the next version
  delivery.toolchain.tracker_version:
    project: REL
    name: "1.2.0"
    start_date: "2026-05-01"

- name: Release a version, and move what is not done to the next one
  delivery.toolchain.tracker_version:
    project: REL
    name: "1.1.0"
    state: released
    unresolved: "1.2.0"

- name: Delete a version that was planned by mistake
  delivery.toolchain.tracker_version:
    project: REL
    name: "1.1.1"
    state: absent
    move_to: "1.2.0"
"""

RETURN = r"""
version:
  description:
    - The version as id, name, released, archived, release_date, start_date, description and url; null where it is absent.
    - In check mode a version that would be created has no id.
  returned: success
  type: dict
  sample:
    id: "10001"
    name: "1.1.0"
    released: true
    archived: false
    release_date: "2026-05-31"
    start_date: null
    description: ""
    url: https://tracker.example/projects/REL/versions/10001
unresolved_count:
  description:
    - With O(state=released) how many issues of the version had no resolution before the task, those that the account does not see included;
      else null.
  returned: success, or where unresolved issues made the task fail
  type: int
  sample: 0
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
from ansible_collections.delivery.toolchain.plugins.module_utils.tracker.projects import (
    tracker_version,
)


def main() -> None:
    runner.run(
        "tracker",
        tracker_version.TrackerVersionOptions,
        tracker_version.TrackerVersionOperation,
    )


if __name__ == "__main__":
    main()
