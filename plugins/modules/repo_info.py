#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: repo_info
short_description: Read repositories and the storage of the artifact repository manager
version_added: 1.0.0
description: Lists the repositories that are visible to the login, or reads a single repository, and optionally the storage usage.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes.info
options:
  repo:
    description:
      - Key of a single repository to read. For a virtual repository, the server then also returns C(defaultDeploymentRepo).
      - If the repository does not exist or is not visible to the login, the task fails.
    type: str
  project:
    description: Key of the project (JFrog Projects) that has the repositories. By default, all repositories are returned.
    type: str
  storage:
    description: Whether to read the storage usage. Servers show it to administrators, and may update it only occasionally.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.artifact_info
"""

EXAMPLES = r"""
- name: List the repositories
  delivery.toolchain.repo_info:

- name: Find the default deployment repository of a virtual repository
  delivery.toolchain.repo_info:
    repo: generic
  register: generic

- name: Read the storage usage
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
    - Repositories as returned by the server. C(type) is always in capitals, such as V(LOCAL).
    - C(defaultDeploymentRepo) of a virtual repository without a default deployment repository is V(null).
  returned: success
  type: list
  elements: dict
  sample:
    - key: generic
      type: VIRTUAL
      defaultDeploymentRepo: generic-staging-local
storage:
  description:
    - Storage usage, or V(null) without O(storage).
    - Counts are numbers. A size has an additional C(..._bytes), a percentage an additional C(..._percent).
  returned: success
  type: dict
  contains:
    binaries_size_bytes:
      description: Bytes of all contents, counted once. C(artifacts_size_bytes) counts shared contents for every use.
      type: int
    binaries_count:
      description: Number of contents. C(artifacts_count) and C(items_count) are returned too.
      type: int
    optimization_percent:
      description: Size of the contents in relation to the size without sharing.
      type: float
    used_space_bytes:
      description: Used bytes of the file store. C(total_space_bytes) and C(free_space_bytes) are returned too.
      type: int
    used_percent:
      description: Used percentage of the file store. C(free_percent) is returned too.
      type: float
    repositories:
      description: Storage usage per repository, with C(repo_key), C(files_count) and C(used_space_bytes).
      type: list
      elements: dict
    raw:
      description: Unchanged summary of the server.
      type: dict
  sample:
    binaries_size: 3.48 GB
    binaries_size_bytes: 3736621548
    used_space_bytes: 34595961569
    used_percent: 15.77
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.items import repo_info


def main() -> None:
    run(repo_info.RepoInfoOptions, repo_info.RepoInfoOperation)


if __name__ == "__main__":
    main()
