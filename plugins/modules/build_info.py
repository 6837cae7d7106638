#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: build_info
short_description: Read the builds of a name, or the record of one
version_added: 1.0.0
description:
  - Lists the builds of a name, the newest first, and reads the record of one of them.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes.info
  - delivery.toolchain.attributes.repo
options:
  build_name:
    description: Name of the builds.
    type: str
    required: true
  build_number:
    description: Number of the build whose record is read, too. Where a number has several runs, the server gives the newest.
    type: str
seealso:
  - module: delivery.toolchain.build_promote
  - module: delivery.toolchain.build_retention
"""

EXAMPLES = r"""
- name: Which build is the newest?
  delivery.toolchain.build_info:
    build_name: nightly
  register: nightly

- name: Which job made it?
  delivery.toolchain.build_info:
    build_name: nightly
    build_number: "{{ nightly.builds[0].number }}"
"""

RETURN = r"""
builds:
  description: The builds, the newest first.
  returned: success
  type: list
  elements: dict
  contains:
    number:
      description: The number, which is a text.
      type: str
    started:
      description: When it started, in UTC as in ISO-8601; as the server writes it where that is no time.
      type: str
  sample: [{number: "104", started: "2026-01-02T03:04:05.678Z"}]
build:
  description: The record as the server has it. C(properties) is always a dictionary.
  returned: with O(build_number)
  type: dict
  sample: {number: "104", started: "2026-01-02T03:04:05.678+0000", properties: {}}
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
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.builds import build_info


def main() -> None:
    runner.run("repo", build_info.BuildInfoOptions, build_info.BuildInfoOperation)


if __name__ == "__main__":
    main()
