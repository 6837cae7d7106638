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
  - Ensures that a file, or all files of a folder, exist with the same content at another path of the same server.
  - The content of O(path) is copied to O(target_path). A folder is copied file by file, which avoids nested copies.
  - O(path) may be a pattern, and O(artifacts) lists several paths. O(properties) and O(exclude) select from these files.
  - Files that the server computes, as in M(delivery.toolchain.artifact_deploy), are left out unless a path names the file exactly. A warning
    gives their number.
  - Only files with different content are copied. Other files at the target are kept.
  - The server validates all copies in a dry run before the first file is copied, in check mode too.
  - Properties are copied with the file. A file whose content is already at the target is unchanged, even if its properties differ.
  - Not supported on servers that implement only the documented interface (dialect V(generic)).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
options:
  repo:
    description: Key of the repository. With O(move), a virtual repository resolves to its default deployment repository.
    type: str
  path:
    description:
      - Path of a file or a folder. An empty path is rejected.
      - In a pattern, V(*) and V(?) match within a segment, and V(**) matches across segments. A pattern without a match fails.
      - With O(properties) or O(exclude), the path of a folder ends with a slash.
    type: str
  artifacts:
    description:
      - Files, folders (with a slash at their end) and patterns to copy together, instead of O(path).
      - If one of them has no file, nothing is copied.
    type: list
    elements: dict
    suboptions:
      path:
        description: Path of the file or the folder, or a pattern.
        type: str
        required: true
      repo:
        description: Key of its repository. The default is O(repo).
        type: str
  properties:
    description: Copy only files with these properties. A file must have all values of a list.
    type: dict
  exclude:
    description:
      - Patterns of paths that are not copied, compared with the path below the folder and with the path in the repository.
      - V(*.md5) excludes files of the folder itself, and V(**/*.md5) those of all folders. A pattern with a trailing slash excludes the content
        of a folder.
    type: list
    elements: str
  target_repo:
    description: Key of the target repository. A virtual repository resolves to its default deployment repository.
    type: str
    required: true
  target_path:
    description:
      - Path in the target repository. The default is O(path).
      - If the path ends with a slash, a file keeps its name below the path.
      - Files of a pattern or of O(artifacts) keep their path by default. With this option, they keep the part below the first wildcard, below
        their folder, or their name, below this path.
    type: str
  move:
    description:
      - Move instead of copying. The source is deleted, even if it is a folder.
      - If the source does not exist and the target does, the task reports no change.
    type: bool
    default: false
  max_items:
    description: Maximum number of files that a pattern, O(artifacts), O(properties) or O(exclude) may select. If there are more, nothing is copied.
    type: int
    default: 1000
  parallel:
    description: Number of parallel requests.
    type: int
    default: 4
seealso:
  - module: delivery.toolchain.build_promote
  - module: delivery.toolchain.artifact_deploy
"""

EXAMPLES = r"""
- name: Copy the packages that passed the tests
  delivery.toolchain.artifact_copy:
    repo: generic-snapshot-local
    path: nightly/**/*.txt
    exclude: ["**/keep.txt"]
    target_repo: generic-staging-local
    max_items: 20

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
  description: Files at the target.
  returned: always
  type: list
  elements: dict
  contains:
    repo:
      description: Key of the repository that contains the file.
      type: str
    path:
      description: Path in the target repository.
      type: str
    sha256:
      description: SHA-256 of the content, or V(null) if the server does not report it.
      type: str
    action:
      description: Action on the file, V(copied), V(moved) or V(unchanged).
      type: str
  sample:
    - repo: generic-release-local
      path: agent/released/agent.txt
      sha256: d20bc21bb3c7736d8d03ade3ddb4c68b665cdfbca6f6df0f7fdd192f37f59060
      action: moved
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.transfer import artifact_copy


def main() -> None:
    run(artifact_copy.ArtifactCopyOptions, artifact_copy.ArtifactCopyOperation)


if __name__ == "__main__":
    main()
