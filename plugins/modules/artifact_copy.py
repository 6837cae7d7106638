#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: artifact_copy
short_description: Copy or move files and folders within the artifact repository manager
version_added: 1.0.0
description:
  - Makes sure that a file, or all files below a folder, are at another place of the same server with the same content.
  - What is below O(path) is afterwards below O(target_path). A folder goes file by file, so that nothing nests.
  - Only files whose content differs are copied. What is at the target beside them stays.
  - The server rehearses each file before the first one is copied, in check mode too.
  - Properties go along with a file; a file that has the content already is left alone, whatever its properties.
  - Not possible on a server that knows the written interface alone (dialect V(generic)).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.repo
options:
  repo:
    description: Key of the repository. With O(move) a virtual one stands for its default deployment repository.
    type: str
    required: true
  path:
    description: Path of a file or a folder, without wildcards. An empty one is refused.
    type: str
    required: true
  target_repo:
    description: Key of the target repository. A virtual one stands for its default deployment repository.
    type: str
    required: true
  target_path:
    description:
      - Path in the target repository; without it O(path).
      - With a slash at its end a file keeps its name below it.
    type: str
  move:
    description:
      - Move instead of copying. The source is gone afterwards, a folder too.
      - Unchanged where nothing is at the source and something is at the target.
    type: bool
    default: false
  parallel:
    description: Requests at once.
    type: int
    default: 4
seealso:
  - module: delivery.toolchain.build_promote
  - module: delivery.toolchain.artifact_deploy
"""

EXAMPLES = r"""
- name: Copy a folder to another repository
  delivery.toolchain.artifact_copy:
    repo: generic-snapshot-local
    path: nightly/agent
    target_repo: generic-staging-local

- name: Move a file
  delivery.toolchain.artifact_copy:
    repo: generic-snapshot-local
    path: agent/1.0.0/agent.txt
    target_repo: generic-release-local
    target_path: agent/released/
    move: true
"""

RETURN = r"""
artifacts:
  description: The files at the target.
  returned: always
  type: list
  elements: dict
  contains:
    repo:
      description: Key of the repository that holds the file.
      type: str
    path:
      description: Path in the target repository.
      type: str
    sha256:
      description: SHA-256 of the content; V(null) where the server has none.
      type: str
    action:
      description: What was done, V(copied), V(moved) or V(unchanged).
      type: str
  sample:
    - repo: generic-release-local
      path: agent/released/agent.txt
      sha256: d20bc21bb3c7736d8d03ade3ddb4c68b665cdfbca6f6df0f7fdd192f37f59060
      action: moved
http:
  description: What the task cost, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).
  returned: always
  type: dict
error:
  description: What went wrong, as C(kind), C(status), C(method), C(url) and C(detail).
  returned: on failure
  type: dict
"""

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import runner
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.transfer import artifact_copy


def main() -> None:
    runner.run("repo", artifact_copy.ArtifactCopyOptions, artifact_copy.ArtifactCopyOperation)


if __name__ == "__main__":
    main()
