#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: build_record
short_description: Delete build records
version_added: 1.0.0
description:
  - Deletes the records of builds, including all runs of a number.
  - Numbers that do not exist are skipped. If no build exists, nothing is written.
  - If there are no builds of the name, a warning says so, because O(build_name) or O(project) may be wrong.
  - The list of builds is verified afterwards. If a build still exists, the task fails.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
options:
  build_name:
    description: Name of the builds.
    type: str
    required: true
  build_numbers:
    description:
      - Numbers of the builds. At least one number is required.
      - A number with a comma is sent in a separate request. Real servers interpret the comma as a separator. O(dialect=jfrog) encodes such
        a number to avoid this. With O(dialect=generic), the task fails if the parts are numbers of other builds.
    type: list
    elements: str
    required: true
  project:
    description: Key of the project (JFrog Projects) that has the build. By default, the builds outside projects are used.
    type: str
  delete_artifacts:
    description:
      - Whether to delete the artifacts of the builds.
      - The server finds them by their properties C(build.name) and C(build.number).
    type: bool
    default: false
  state:
    description: The build records do not exist. This module cannot create them. Build tools write them.
    type: str
    choices: [absent]
    default: absent
seealso:
  - module: delivery.toolchain.build_retention
  - module: delivery.toolchain.build_info
"""

EXAMPLES = r"""
- name: Delete the records of two broken builds
  delivery.toolchain.build_record:
    build_name: nightly
    build_numbers: ["101", "102"]

- name: Delete a build and its artifacts
  delivery.toolchain.build_record:
    build_name: nightly
    build_numbers: ["103"]
    delete_artifacts: true
"""

RETURN = r"""
deleted:
  description: Numbers of the builds that were deleted, or would be deleted in check mode, in the order of O(build_numbers).
  returned: success
  type: list
  elements: str
  sample: ["101", "102"]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.builds import build_record


def main() -> None:
    run(build_record.BuildRecordOptions, build_record.BuildRecordOperation)


if __name__ == "__main__":
    main()
