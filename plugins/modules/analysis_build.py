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
  - Renames or deletes a build. An unchanged build costs a single request.
  - Only an analysis creates builds. If the build does not exist and O(state=present), the task fails.
  - After a change, the builds are read again to verify it.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
options:
  project:
    description: Name of the project. It must exist.
    type: str
    required: true
  name:
    description: Name of the build.
    type: str
    required: true
  new_name:
    description:
      - New name of the build.
      - If a build has this name and no build has O(name), it is already renamed. If both exist, the task fails with a conflict.
      - Only with O(state=present).
    type: str
  state:
    description: Whether the build should exist.
    type: str
    choices: [present, absent]
    default: present
notes:
  - The documented interface renames a build without a project. Real servers need the project, so it is sent to servers that support it. On
    other servers, a build with the same name in another project may be renamed instead. The task then fails, because its own build is not
    renamed.
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
  description: Build after the task, or the expected build in check mode.
  returned: if O(state=present)
  type: dict
  contains:
    project:
      description: Name of the project.
      type: str
    name:
      description: Name of the build after the task.
      type: str
    id:
      description: Number of the build.
      type: int
      returned: if the server reports it
    date:
      description: Creation time in milliseconds since 1970.
      type: int
      returned: if the server reports it
    keepit:
      description: Whether the server keeps the build when it deletes old builds.
      type: bool
      returned: if the server reports it
  sample: {project: toolchain, name: release_1.0, id: 3, date: 1772323200000, keepit: false}
unknown:
  description: Names of the options that cannot be compared.
  returned: if something cannot be compared
  type: list
  elements: str
  sample: [keepit]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.analysis.resources import analysis_build


def main() -> None:
    run(analysis_build.AnalysisBuildOptions, analysis_build.AnalysisBuildOperation)


if __name__ == "__main__":
    main()
