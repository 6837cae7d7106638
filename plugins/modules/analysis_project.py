#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_project
short_description: Manage a project of the code analysis server
version_added: 1.0.0
description:
  - Imports, renames or deletes a project. An unchanged project costs a single request.
  - The interface cannot create an empty project. The action C(create_project) of newer servers is not documented, so this module does not
    send it. Create the project in the portal or with C(kwadmin create-project), or import it from another server with O(import_from).
    Without this option, the task fails if the project is missing.
  - An import runs in the background. It is started once, and the task waits for its end and shows every change of its status. If an import
    of the same project is already running, the task waits for it and starts no other import.
  - A server may report a status that is not documented. If the project exists, and this status does not change for 15 seconds (or half of
    O(wait_timeout), if that is shorter), the import counts as finished. A warning reports that its result is unknown.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
options:
  name:
    description: Name of the project. An import reads the project of this name from the other server.
    type: str
    required: true
  new_name:
    description:
      - New name of the project.
      - If a project has this name and no project has O(name), it is already renamed. If both exist, the task fails with a conflict. If
        neither exists, O(import_from) imports O(name) and renames it.
      - Only with O(state=present).
    type: str
  import_from:
    description: Server from which to import the project if it does not exist.
    type: dict
    suboptions:
      url:
        description: Address of that server.
        type: str
        required: true
      username:
        description: An administrator of that server.
        type: str
        required: true
      password:
        description: The password of O(import_from.username).
        type: str
  wait:
    description: Whether to wait for the end of an import. With V(false), the task ends when the import has started.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait for an import. Then the task fails, and the import continues.
    type: float
    default: 3600
  poll_interval:
    description: Maximum polling interval for an import in seconds. Polling starts at half a second.
    type: float
    default: 5
  state:
    description: Whether the project should exist.
    type: str
    choices: [present, absent]
    default: present
notes:
  - Deleting a project deletes its builds and all its issues.
  - The status of a running import is not documented. Words such as C(completed) and C(failed) are recognized. If the project exists, and
    the server shows no running import for it, the import is finished, too.
seealso:
  - module: delivery.toolchain.analysis_server_import
"""

EXAMPLES = r"""
- name: Bring a project from the old server
  delivery.toolchain.analysis_project:
    name: firmware
    import_from:
      url: https://old-analysis.example.com:8080
      username: admin
      password: "{{ old_password | default('source-password-1234567890') }}"
    poll_interval: 1

- name: Rename a project
  delivery.toolchain.analysis_project:
    name: firmware
    new_name: bootloader

- name: Remove it with all its builds and issues
  delivery.toolchain.analysis_project:
    name: bootloader
    state: absent
"""

RETURN = r"""
project:
  description: Project after the task.
  returned: if O(state=present)
  type: dict
  contains:
    name:
      description: Name of the project after the task.
      type: str
  sample: {name: bootloader}
unknown:
  description: Names of the options that cannot be compared.
  returned: if something cannot be compared
  type: list
  elements: str
  sample: [description]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.analysis.resources import analysis_project


def main() -> None:
    run(analysis_project.AnalysisProjectOptions, analysis_project.AnalysisProjectOperation)


if __name__ == "__main__":
    main()
