#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: repo_info
short_description: Read repositories and the storage of the artifact repository manager
version_added: 1.0.0
description:
  - Lists the repositories that the login may see, or reads one, and on request the use of the storage in numbers.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes.info
  - delivery.toolchain.attributes.repo
options:
  repo:
    description:
      - Key of the only repository to read. Of a virtual one the server then tells its C(defaultDeploymentRepo), too.
      - One that is not there, or not visible to the login, is an error.
    type: str
  storage:
    description: Whether to read the use of the storage. Servers show it to administrators, and may compute it only now and then.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.artifact_query
"""

EXAMPLES = r"""
- name: Which repositories are there?
  delivery.toolchain.repo_info:

- name: Where do deployments to the virtual repository go?
  delivery.toolchain.repo_info:
    repo: generic
  register: generic

- name: Is there space left?
  delivery.toolchain.repo_info:
    token: "{{ admin_token }}"
    storage: true
  vars:
    admin_token: repo-admin-token-1234567890
  register: info
  failed_when: info.storage.used_percent > 90
"""

RETURN = r"""
repositories:
  description:
    - The repositories as the server gives them, with C(type) always in capitals, as V(LOCAL).
    - C(defaultDeploymentRepo) of a virtual one that has none is V(null).
  returned: success
  type: list
  elements: dict
  sample:
    - key: generic
      type: VIRTUAL
      defaultDeploymentRepo: generic-staging-local
storage:
  description:
    - The use of the storage; V(null) without O(storage).
    - Counts are numbers. Beside a size there is C(..._bytes), beside a share of hundred C(..._percent).
  returned: success
  type: dict
  contains:
    binaries_size_bytes:
      description: Bytes of all contents, each counted once. In the same way C(artifacts_size_bytes), each as often as it is used.
      type: int
    binaries_count:
      description: Number of contents. In the same way C(artifacts_count) and C(items_count).
      type: int
    optimization_percent:
      description: Contents in relation to what they would be without sharing.
      type: float
    used_space_bytes:
      description: Bytes of the file store in use. In the same way C(total_space_bytes) and C(free_space_bytes).
      type: int
    used_percent:
      description: Share of the file store in use. In the same way C(free_percent).
      type: float
    repositories:
      description: The same of each repository, as C(repo_key), C(files_count) and C(used_space_bytes).
      type: list
      elements: dict
    raw:
      description: The summary as the server gives it.
      type: dict
  sample:
    binaries_size: 3.48 GB
    binaries_size_bytes: 3736621548
    used_space_bytes: 34595961569
    used_percent: 15.77
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
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.items import repo_info


def main() -> None:
    runner.run("repo", repo_info.RepoInfoOptions, repo_info.RepoInfoOperation)


if __name__ == "__main__":
    main()
