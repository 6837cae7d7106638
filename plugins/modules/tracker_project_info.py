#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: tracker_project_info
short_description: Read projects of the issue tracker
version_added: 1.0.0
description:
  - Reads all projects that are visible to the account, or a single project.
  - If the server no longer lists all projects in a single response, the pages are read.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.attributes.info
options:
  project:
    description:
      - Key or ID of a project. Servers return more details of a single project, such as its versions.
      - If the project does not exist or is not visible to the account, the task fails. By default, all projects are read.
    type: str
    aliases: [key]
seealso:
  - module: delivery.toolchain.jql_search
"""

EXAMPLES = r"""
- name: Read all projects
  delivery.toolchain.tracker_project_info:
  register: all_projects

- name: Read a project with its versions
  delivery.toolchain.tracker_project_info:
    project: REL
"""

RETURN = r"""
projects:
  description: Unchanged projects of the server.
  returned: success
  type: list
  elements: dict
  sample: [{"id": "10000", "key": "REL", "name": "Releases", "projectTypeKey": "software"}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.tracker.projects import tracker_project_info


def main() -> None:
    run(
        tracker_project_info.TrackerProjectInfoOptions,
        tracker_project_info.TrackerProjectInfoOperation,
    )


if __name__ == "__main__":
    main()
