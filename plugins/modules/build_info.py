#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: build_info
short_description: Read the builds of a name, or a build record
version_added: 1.0.0
description:
  - Lists the builds of a name, newest first, with their promotions, or reads the record of a build.
  - The promotions of a list need one request for each build.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes.info
options:
  build_name:
    description: Name of the builds.
    type: str
    required: true
  build_number:
    description: Number of a build whose record to read. If the number has several runs, the server returns the newest.
    type: str
  project:
    description: Key of the project (JFrog Projects) that has the build. By default, the builds outside projects are used.
    type: str
seealso:
  - module: delivery.toolchain.build_promote
  - module: delivery.toolchain.build_retention
"""

EXAMPLES = r"""
- name: Find the newest build
  delivery.toolchain.build_info:
    build_name: nightly
  register: nightly

- name: Read the record of the newest build
  delivery.toolchain.build_info:
    build_name: nightly
    build_number: "{{ nightly.builds[0].number }}"
"""

RETURN = r"""
builds:
  description: Builds of the name, newest first.
  returned: success
  type: list
  elements: dict
  contains:
    number:
      description: Number of the build, a string.
      type: str
    started:
      description: Start time as ISO 8601 in UTC. If the server returns no valid time, its unchanged value.
      type: str
    status:
      description: Status of the newest promotion. Null without a promotion. With O(build_number), null for other builds.
      type: str
    promotions:
      description:
        - Promotions, oldest first, as C(status), C(repository), C(timestamp) and C(user).
        - Null for a build whose record was not read. With O(build_number), these are all other builds.
      type: list
      elements: dict
  sample: [{number: "104", started: "2026-01-02T03:04:05.678Z", status: null, promotions: []}]
build:
  description: Record of the build as returned by the server. C(properties) is always a dictionary.
  returned: with O(build_number)
  type: dict
  sample: {number: "104", started: "2026-01-02T03:04:05.678+0000", properties: {}}
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.builds import build_info


def main() -> None:
    run(build_info.BuildInfoOptions, build_info.BuildInfoOperation)


if __name__ == "__main__":
    main()
