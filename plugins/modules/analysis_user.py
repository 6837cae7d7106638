#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_user
short_description: Manage a user of the code analysis server
version_added: 1.0.0
description:
  - Creates or deletes a user. An existing user costs a single request.
  - After a change, the users are read again to verify it.
  - A user that the server marks as read-only (for example from a directory service) cannot be deleted. The task fails before it writes.
  - The account of the task is only deleted with O(force).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
options:
  name:
    description: Name of the user.
    type: str
    required: true
  password:
    description: Password of a new user. Servers do not return passwords, so the password of an existing user is not changed.
    type: str
  state:
    description: Whether the user should exist.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Whether to allow deleting the account of the task.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.analysis_group
  - module: delivery.toolchain.analysis_role_assignment
"""

EXAMPLES = r"""
- name: Make an account for the build agents
  delivery.toolchain.analysis_user:
    name: build-agent
    password: "{{ agent_password | default('example-password') }}"

- name: Remove an account
  delivery.toolchain.analysis_user:
    name: bob
    state: absent
"""

RETURN = r"""
user:
  description: User after the task.
  returned: if O(state=present)
  type: dict
  contains:
    name:
      description: Name of the user.
      type: str
    readonly:
      description: Whether the user cannot be deleted.
      type: bool
      returned: if the server reports it
  sample: {name: build-agent, readonly: false}
unknown:
  description: Names of the options that cannot be compared.
  returned: if something cannot be compared
  type: list
  elements: str
  sample: [password]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.analysis.resources import analysis_user


def main() -> None:
    run(analysis_user.AnalysisUserOptions, analysis_user.AnalysisUserOperation)


if __name__ == "__main__":
    main()
