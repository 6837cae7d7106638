#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: repo_export
short_description: Export the configuration of the artifact repository manager as a desired state
version_added: 1.0.0
description:
  - Writes C(repo.yml) with all repositories, groups, users and permissions into a folder that the role C(desired_state) and the playbooks
    C(enforce) and C(drift) read.
  - All fields of a repository are exported, empty ones too, except for secrets. The account must be an administrator.
  - Objects and fields that cannot be expressed are listed in RV(left_out) and at the start of the file. No object is skipped silently.
  - Everything is read before anything is written. The server is not changed.
  - Files that the export did not write, or that were changed since, are only replaced with O(overwrite). Files of earlier exports are
    removed if the object no longer exists on the server.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.export
  - delivery.toolchain.attributes
options:
  repositories:
    description: Whether to export the repositories.
    type: bool
    default: true
  groups:
    description: Whether to export the groups. Their members follow from the users.
    type: bool
    default: true
  users:
    description: Whether to export the users, with their groups and without passwords. Users of a directory are left out.
    type: bool
    default: true
  permissions:
    description: Whether to export the permissions.
    type: bool
    default: true
  members:
    description:
      - Whether to export the members of groups too. The entries of users already list their groups, so a folder needs only one of both.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.repo_repository
"""

EXAMPLES = r"""
- name: Write the repositories
  delivery.toolchain.repo_export:
    token: "{{ admin_token }}"
    dest: desired
  vars:
    admin_token: repo-admin-token-1234567890
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
  sample: [{path: repo.yml, action: created}]
exported:
  description: Number of objects per list in the file of the service.
  returned: success
  type: dict
  sample: {repositories: 12}
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
not_exported:
  description: What this module never exports, a sentence for each kind of data.
  returned: success
  type: list
  elements: str
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.configuration import repo_export


def main() -> None:
    run(repo_export.RepoExportOptions, repo_export.RepoExportOperation)


if __name__ == "__main__":
    main()
