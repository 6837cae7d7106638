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
  - Manages versions of projects, including their release. Only differences are sent.
  - Version names are unique in a project. Letter case and surrounding whitespace are ignored, in comparisons too.
  - The account must be allowed to administer the project.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.attributes
options:
  entries:
    description:
      - Manages many versions with the other options, in this order. All versions of a project are compared with a single request.
      - An entry can give a version a name that an earlier entry frees, because it deletes or renames a version. If the version with that name was
        renamed in an earlier run, the task does not delete or rename it again. Two entries must not give the same name.
    type: list
    elements: dict
    suboptions: &entry
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
          - New name of the version. If only the new name exists, the version is already renamed. If neither name exists, the version is created
            with the new name. If both exist, the task fails.
        type: str
      description:
        description: Description of the version. An empty string removes it.
        type: str
      start_date:
        description: Start date, such as V(2026-05-01). V(none) removes the date.
        type: str
      release_date:
        description:
          - Release date, such as V(2026-05-31). V(none) removes the date.
          - If this task releases a version and neither this option nor the server has a date, the current day of the server is used.
        type: str
      state:
        description:
          - V(present) creates the version if it does not exist. It does not change whether the version is released or archived.
          - V(released) and V(unreleased) also restore it from the archive. V(archived) does not change whether it is released.
          - V(absent) deletes it.
        type: str
        choices: [present, released, unreleased, archived, absent]
        default: present
      unresolved:
        description:
          - Handling of unresolved issues of the version if this task releases it.
          - V(warn) adds a warning, V(ignore) does nothing. V(fail) fails before anything is changed, and names up to 20 issues.
          - Any other value is the name of a version to which the issues are moved. It exists, or an earlier entry creates or renames it.
        type: str
        default: warn
      move_to:
        description: Name of the version to which the issues are moved with O(state=absent). By default, the deleted version is removed from the issues.
        type: str
      create:
        description: Whether to create a version that does not exist. With V(false) the task fails instead, unless O(state=absent).
        type: bool
        default: true
  project:
    description: Key of the project. Needed without O(entries).
    type: str
  name:
    description: Name of the version.
    type: str
  <<: *entry
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

- name: Release a version, and move unresolved issues to the next version
  delivery.toolchain.tracker_version:
    project: REL
    name: "1.1.0"
    state: released
    unresolved: "1.2.0"

- name: Plan the next versions in one task
  delivery.toolchain.tracker_version:
    entries:
      - {project: REL, name: "1.3.0", release_date: "2026-07-31"}
      - {project: REL, name: "1.4.0", release_date: "2026-10-30"}

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
    - Version as id, name, released, archived, release_date, start_date, description and url. Null if it is absent.
    - In check mode, a version that would be created has no ID.
  returned: success, without O(entries)
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
    - With O(state=released), the number of unresolved issues of the version before the task, including issues that are not visible to the
      account.
    - Otherwise null.
  returned: success without O(entries), or if unresolved issues fail the task
  type: int
  sample: 0
unresolved_issues:
  description: With O(unresolved=fail), up to 20 keys of unresolved issues that the account sees.
  returned: if unresolved issues fail the task
  type: list
  elements: str
  sample: [REL-3, REL-5]
results:
  description: With O(entries), an item for each entry, with the keys of RV(version), C(name), C(action), C(changes), and C(error) if it failed.
  returned: success, with O(entries)
  type: list
  elements: dict
  sample: [{name: REL/1.3.0, action: created, changes: []}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.tracker.projects import tracker_version


def main() -> None:
    run(tracker_version.TrackerVersionOptions, tracker_version.TrackerVersionOperation)


if __name__ == "__main__":
    main()
