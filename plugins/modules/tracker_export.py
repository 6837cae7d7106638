#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: tracker_export
short_description: Export versions, components and roles of projects as a desired state
version_added: 1.0.0
description:
  - Writes C(tracker.yml) with the versions, components and roles of projects into a folder that the role C(desired_state) and the playbooks C(enforce) and
    C(drift) read. Missing values of a version (a date, a description) are not managed.
  - Only an administrator of a project sees the users and groups of its roles. For other accounts they are left out.
  - Objects that cannot be expressed or read are listed in RV(left_out) and at the start of the file. No object is skipped silently.
  - Everything is read before anything is written. The server is not changed.
  - Files that the export did not write, or that were changed since, are only replaced with O(overwrite). Files of earlier exports are
    removed if the object no longer exists on the server.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.export
  - delivery.toolchain.attributes
options:
  projects:
    description: Keys of projects. By default, all projects that are visible to the account.
    type: list
    elements: str
  parallel:
    description: Number of projects to read in parallel.
    type: int
    default: 4
seealso:
  - module: delivery.toolchain.tracker_version
  - module: delivery.toolchain.tracker_component
  - module: delivery.toolchain.tracker_project_role
"""

EXAMPLES = r"""
- name: Write the versions of two projects
  delivery.toolchain.tracker_export:
    dest: desired
    projects: [REL, OPS]
"""

RETURN = r"""
files:
  description: The files, by their paths in O(dest).
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The path of the file.
      type: str
    action:
      description: V(created), V(updated), V(deleted) or V(unchanged).
      type: str
  sample: [{path: tracker.yml, action: created}]
exported:
  description: Number of objects per list in the file of the service.
  returned: success
  type: dict
  sample: {versions: 12}
left_out:
  description: Objects that were not exported, with the reason.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the object.
      type: str
    name:
      description: The name of the object.
      type: str
    reason:
      description: Reason why the object was not exported.
      type: str
    unread:
      description: V(true) if the account may not read the object, so the server may have more than the export.
      type: bool
      returned: if the object was not read
not_exported:
  description: What this module never exports, a sentence for each kind of data.
  returned: success
  type: list
  elements: str
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.tracker.projects import tracker_export


def main() -> None:
    run(tracker_export.TrackerExportOptions, tracker_export.TrackerExportOperation)


if __name__ == "__main__":
    main()
