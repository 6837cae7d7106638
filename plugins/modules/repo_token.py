#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: repo_token
short_description: FILL_IN
version_added: 1.0.0
description:
  - FILL_IN
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.repo
options:
  name:
    description: FILL_IN
    type: str
    required: true
"""

EXAMPLES = r"""
- name: FILL_IN
  delivery.toolchain.repo_token:
    name: example
"""

RETURN = r"""
token:
  description: FILL_IN
  returned: success
  type: dict
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
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.access import (
    repo_token,
)


def main() -> None:
    runner.run(
        "repo",
        repo_token.RepoTokenOptions,
        repo_token.RepoTokenOperation,
    )


if __name__ == "__main__":
    main()
