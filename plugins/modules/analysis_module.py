#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_module
short_description: Manage a module of a project on the code analysis server
version_added: 1.0.0
description:
  - Creates, changes, renames or deletes a module of a project. A module is a named part of the source code.
  - Options that are not set are not managed. An unchanged module costs a single request.
  - After a change, the module is read again to verify it. If the server did not store a field, the task fails and names the field.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
options:
  project:
    description: Name of the project. It must be there.
    type: str
    required: true
  name:
    description: Name of the module.
    type: str
    required: true
  new_name:
    description:
      - New name of the module.
      - If a module has this name and no module has O(name), it is already renamed. If neither exists, the module is created with the new
        name. If both exist, the task fails with a conflict.
      - Only with O(state=present).
    type: str
  allow_all:
    description:
      - Whether all users may access the module, unless denied explicitly.
      - Some servers do not show this value. It then cannot be compared, and is only written when the module is created or with another
        change. A warning reports this.
    type: bool
  paths:
    description:
      - Complete list of patterns for the paths of the module, such as V(**/src/*).
      - The order is ignored. Required to create a module.
    type: list
    elements: str
  state:
    description: Whether the module should exist.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: delivery.toolchain.analysis_role
"""

EXAMPLES = r"""
- name: Everything below lib and include is the library
  delivery.toolchain.analysis_module:
    project: toolchain
    name: library
    allow_all: true
    paths:
      - "**/lib/*"
      - "**/include/*"

- name: Rename a module
  delivery.toolchain.analysis_module:
    project: toolchain
    name: library
    new_name: runtime

- name: Remove it
  delivery.toolchain.analysis_module:
    project: toolchain
    name: runtime
    state: absent
"""

RETURN = r"""
module:
  description:
    - Module after the task, or the expected module in check mode, as far as known.
    - Fields that the server does not show are omitted.
  returned: if O(state=present)
  type: dict
  contains:
    project:
      description: Name of the project.
      type: str
    name:
      description: Name of the module after the task.
      type: str
    allow_all:
      description: Whether all users may access the module by default.
      type: bool
      returned: if the server shows it
    paths:
      description: Patterns of the paths that belong to the module.
      type: list
      elements: str
      returned: if the server shows them
  sample:
    project: toolchain
    name: library
    allow_all: true
    paths: ["**/lib/*", "**/include/*"]
unknown:
  description: Names of the options that cannot be compared.
  returned: if something cannot be compared
  type: list
  elements: str
  sample: [paths]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.analysis.resources import analysis_module


def main() -> None:
    run(analysis_module.AnalysisModuleOptions, analysis_module.AnalysisModuleOperation)


if __name__ == "__main__":
    main()
