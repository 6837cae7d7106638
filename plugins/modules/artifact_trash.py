#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: artifact_trash
short_description: Clean or empty the trash of the artifact repository manager
version_added: 1.0.0
description:
  - Permanently removes deleted items.
  - The trash lists only the keys of repositories. If the server does not return single items of the trash (dialect V(generic)), check mode
    reports C(changed) if the repository is listed.
  - With O(state=clean), the task fails if the repository is neither in the trash nor on the server.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
options:
  state:
    description:
      - V(empty) removes everything in the trash.
      - V(clean) removes O(path), which was deleted from O(repo).
      - V(builds_clean) removes the build records in the trash.
      - The server responds after the removal, which may take minutes. Set O(timeout) accordingly.
    type: str
    choices: [empty, clean, builds_clean]
    required: true
  repo:
    description: Key of the repository from which the item was deleted. Required with O(state=clean).
    type: str
  path:
    description: Former path of the file or folder in the repository.
    type: str
    default: ""
  project:
    description: Key of the project (JFrog Projects) whose build records O(state=builds_clean) removes. By default, those outside projects.
    type: str
  force:
    description: With O(state=clean) and an empty O(path), remove all items that were deleted from O(repo).
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.artifact_trash_info
  - module: delivery.toolchain.artifact_cleanup
"""

EXAMPLES = r"""
- name: Remove a deleted file permanently
  delivery.toolchain.artifact_trash:
    state: clean
    repo: generic-snapshot-local
    path: nightly/agent/0.txt

- name: Remove the build records in the trash
  delivery.toolchain.artifact_trash:
    state: builds_clean

- name: Empty the trash
  delivery.toolchain.artifact_trash:
    state: empty
    timeout: 600
"""

RETURN = r"""
children:
  description:
    - Keys of the repositories with items in the trash after the task.
    - In check mode with O(state=clean) or O(state=builds_clean), the repositories with items in the trash before the task.
  returned: success
  type: list
  elements: str
  sample: [generic-snapshot-local]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.cleanup import artifact_trash


def main() -> None:
    run(artifact_trash.ArtifactTrashOptions, artifact_trash.ArtifactTrashOperation)


if __name__ == "__main__":
    main()
