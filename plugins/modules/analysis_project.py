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
  - ImportPolling, renames or deletes a project. A project that is as wanted costs one request.
  - The interface has no action that makes an empty project. One that is not there is imported from another server
    with O(import_from); without it the task fails.
  - An import goes on in the background. It is started once and waited for, with a line of progress for each change of its
    status; an import of the same project that runs already is waited for and not started again.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.analysis
options:
  name:
    description: Name of the project, for an import that of the project on the other server.
    type: str
    required: true
  new_name:
    description:
      - The name that the project is to have.
      - A project that has it already, while none is called O(name) any more, counts as renamed. Where there are both, the
        task fails with a conflict. Where there is neither, O(import_from) imports O(name) and renames it.
      - Only with O(state=present).
    type: str
  import_from:
    description: The server from which the project is imported where it is not there.
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
    description: Whether to wait for the end of an import. Without it the task is over when the import has begun.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait for an import. After that the task fails, and the import goes on.
    type: float
    default: 3600
  poll_interval:
    description: Longest time between two looks at an import, in seconds. The first looks come faster, from half a second on.
    type: float
    default: 5
  state:
    description: Whether the project is to be there.
    type: str
    choices: [present, absent]
    default: present
notes:
  - Deleting a project deletes its builds and all issues in it.
  - What a server shows of a running import is not documented. Words as C(completed) and C(failed) are understood, and so
    is a project that is there while no import of it is shown.
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

- name: Give it another name
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
  description: The project as it is after the task.
  returned: when O(state=present)
  type: dict
  contains:
    name:
      description: Name of the project, the new one after a change of it.
      type: str
  sample: {name: bootloader}
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
    analysis_project,
)


def main() -> None:
    runner.run(
        "analysis",
        analysis_project.AnalysisProjectOptions,
        analysis_project.AnalysisProjectOperation,
    )


if __name__ == "__main__":
    main()
