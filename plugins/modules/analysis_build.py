#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_build
short_description: Rename or delete a build of a project on the code analysis server
version_added: 1.0.0
description:
  - Gives a build another name, or deletes it. A build that is as wanted costs one request.
  - Only an analysis makes builds; one that is not there, but is to be, fails the task.
  - After a change the builds are read back.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.analysis
options:
  project:
    description: Name of the project. It must be there.
    type: str
    required: true
  name:
    description: Name of the build.
    type: str
    required: true
  new_name:
    description:
      - The name that the build is to have.
      - A build that has it already, while none is called O(name) any more, counts as renamed. Where there are both, the
        task fails with a conflict.
      - Only with O(state=present).
    type: str
  state:
    description: Whether the build is to be there.
    type: str
    choices: [present, absent]
    default: present
notes:
  - The written interface renames a build without saying in which project. Real servers need the project, so that it is
    sent to servers that know it. Where a server does not, and another project has a build of the same name, that one may
    be meant; the task then fails, as its own build is not renamed.
"""

EXAMPLES = r"""
- name: A build becomes a release
  delivery.toolchain.analysis_build:
    project: toolchain
    name: build_10
    new_name: release_1.0

- name: Delete a build
  delivery.toolchain.analysis_build:
    project: toolchain
    name: build_2
    state: absent
"""

RETURN = r"""
build:
  description: The build as it is after the task (in check mode, as it would be).
  returned: when O(state=present)
  type: dict
  contains:
    project:
      description: Name of the project.
      type: str
      returned: always
    name:
      description: Name of the build, the new one after a change of it.
      type: str
      returned: always
    id:
      description: Number of the build.
      type: int
      returned: when the server tells
    date:
      description: When it was made, in milliseconds since 1970.
      type: int
      returned: when the server tells
    keepit:
      description: Whether the build is kept when old ones are deleted.
      type: bool
      returned: when the server tells
  sample: {project: toolchain, name: release_1.0, id: 3, date: 1772323200000, keepit: false}
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
from ansible_collections.delivery.toolchain.plugins.module_utils.analysis.resources import (
    analysis_build,
)


def main() -> None:
    runner.run(
        "analysis", analysis_build.AnalysisBuildOptions, analysis_build.AnalysisBuildOperation
    )


if __name__ == "__main__":
    main()
