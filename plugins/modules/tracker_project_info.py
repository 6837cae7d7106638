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
  - Reads all projects that the account sees, or one of them.
  - Where the server does not list projects at once any more, they are read page by page.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.attributes.info
  - delivery.toolchain.attributes.tracker
options:
  key:
    description:
      - Key (or id) of a project; servers tell more of a single one, such as its versions.
      - A project that is missing, or that the account may not see, is an error. Not given means all projects.
    type: str
seealso:
  - module: delivery.toolchain.jql_search
"""

EXAMPLES = r"""
- name: Read all projects
  delivery.toolchain.tracker_project_info:
  register: all_projects

- name: Read a project with its versions
  delivery.toolchain.tracker_project_info:
    key: REL
"""

RETURN = r"""
projects:
  description: The projects as the server gives them.
  returned: success
  type: list
  elements: dict
  sample: [{"id": "10000", "key": "REL", "name": "Releases", "projectTypeKey": "software"}]
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
    tracker_project_info,
)


def main() -> None:
    runner.run(
        "tracker",
        tracker_project_info.TrackerProjectInfoOptions,
        tracker_project_info.TrackerProjectInfoOperation,
    )


if __name__ == "__main__":
    main()
