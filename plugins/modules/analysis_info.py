#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_info
short_description: Read data of the code analysis server and its projects
version_added: 1.0.0
description:
  - Reads the parts in O(gather) in parallel, and returns them unchanged under their names.
  - With O(export), it also returns the configuration of the server in the format of M(delivery.toolchain.analysis_config). Use this to
    manage an existing server.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes.info
options:
  gather:
    description:
      - Parts to read.
      - V(builds), V(modules), V(views), V(taxonomies), V(defect_types) and V(project_configuration) belong to a project and require
        O(project).
    type: list
    elements: str
    choices:
      - version
      - license
      - task_status
      - import_status
      - projects
      - roles
      - role_assignments
      - users
      - groups
      - builds
      - modules
      - views
      - taxonomies
      - defect_types
      - project_configuration
    default: [version]
  project:
    description:
      - Name of the project.
      - For O(export), it may be a list of names. By default, all projects are exported.
    type: raw
  build:
    description: Name of the build whose RV(project_configuration) to read. By default, the server chooses the build, usually the newest.
    type: str
  feature:
    description: Feature whose RV(license) to read. By default, all features, if the server supports this.
    type: str
  search:
    description:
      - Limits RV(roles) and RV(role_assignments) to names that contain this string. On real servers, the prefix C(+) selects exactly this
        name.
      - Limits RV(users) and RV(groups) to names that match this pattern, in which C(*) matches any characters.
    type: str
  limit:
    description: Maximum number of RV(users) and RV(groups) to read. By default, all are read. A list as long as its limit adds a warning.
    type: int
  export:
    description: Whether to return the configuration of the server as well.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.analysis_config
"""

EXAMPLES = r"""
- name: Read the version and the licenses
  delivery.toolchain.analysis_info:
    gather: [version, license]
  register: server

- name: Read the roles and assignments of a project
  delivery.toolchain.analysis_info:
    gather: [builds, role_assignments, groups]
    project: toolchain

- name: Take the configuration of a server that was set up by hand
  delivery.toolchain.analysis_info:
    export: true
  register: exported
"""

RETURN = r"""
version:
  description: Version as returned by the server, with both parts joined as C(full).
  returned: if O(gather) contains it
  type: dict
  sample: {"majorVersion": "24", "minorVersion": "2", "full": "24.2"}
license:
  description: Licenses of a feature, or of all features.
  returned: if O(gather) contains it
  type: list
  elements: dict
  sample: [{"feature": "kwadmin10", "version": "24.2", "count": 5, "permanent": true, "days_to_expiry": -1, "servers": []}]
task_status:
  description: Running tasks of the server.
  returned: if O(gather) contains it
  type: list
  elements: dict
import_status:
  description: The imports of projects.
  returned: if O(gather) contains it
  type: list
  elements: dict
projects:
  description: The projects.
  returned: if O(gather) contains it
  type: list
  elements: dict
  sample: [{"id": "toolchain", "name": "toolchain", "creator": "analyst", "description": "The toolchain itself", "tags": ["delivery"]}]
roles:
  description: Roles with their permissions.
  returned: if O(gather) contains it
  type: list
  elements: dict
role_assignments:
  description: Roles with their accounts.
  returned: if O(gather) contains it
  type: list
  elements: dict
users:
  description: Users with their roles and groups.
  returned: if O(gather) contains it
  type: list
  elements: dict
groups:
  description: Groups with their users, as far as the server shows them.
  returned: if O(gather) contains it
  type: list
  elements: dict
builds:
  description: Builds of the project, newest first.
  returned: if O(gather) contains it
  type: list
  elements: dict
  sample: [{"id": 3, "name": "build_10", "date": 1772323200000, "keepit": false}]
modules:
  description: Modules of the project.
  returned: if O(gather) contains it
  type: list
  elements: dict
views:
  description: Views of the project.
  returned: if O(gather) contains it
  type: list
  elements: dict
taxonomies:
  description: Taxonomies of the project.
  returned: if O(gather) contains it
  type: list
  elements: dict
  sample: [{"name": "C and C++", "is_custom": false}]
defect_types:
  description: Defect types of the project.
  returned: if O(gather) contains it
  type: list
  elements: dict
project_configuration:
  description: Configuration of the analysis of a build. Real servers return every value as a string.
  returned: if O(gather) contains it
  type: dict
  sample: {"build": "build_10", "numberOfFiles": "3", "linesOfCode": "3000"}
config:
  description: Lists for M(delivery.toolchain.analysis_config), without built-in objects.
  returned: if O(export) is V(true)
  type: dict
  sample: {"groups": [{"name": "developers", "users": ["alice", "bob"]}], "modules": [{"project": "toolchain", "name": "core", "paths": ["**/core/*"]}]}
omitted:
  description: Data that a server never shows and that is therefore missing in RV(config).
  returned: if O(export) is V(true)
  type: list
  elements: str
  sample: ["users: password"]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.analysis.configuration import analysis_info


def main() -> None:
    run(analysis_info.AnalysisInfoOptions, analysis_info.AnalysisInfoOperation)


if __name__ == "__main__":
    main()
