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
  - Removes deleted items for good, or tells of which repositories there are any.
  - The trash lists only the keys of repositories. Where the server does not show a single item in it (dialect V(generic)),
    check mode says C(changed) when the repository is listed.
  - With O(state=clean) a repository that is neither in the trash nor on the server fails the task.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.repo
options:
  state:
    description:
      - V(empty) removes everything in the trash.
      - V(clean) removes O(path), which was deleted from O(repo).
      - V(builds_clean) removes the build records in the trash.
      - V(listed) only lists.
      - Servers answer when they are done, which may take minutes; O(timeout) has to be as long.
    type: str
    choices: [empty, clean, builds_clean, listed]
    required: true
  repo:
    description: Key of the repository that the item was deleted from. Needed with O(state=clean).
    type: str
  path:
    description: Path that the item had in the repository, of a file or a folder.
    type: str
    default: ""
  force:
    description: With O(state=clean) and an empty O(path), remove all that was deleted from O(repo).
    type: bool
    default: false
notes:
  - A server with projects keeps their build records under other keys, as V(project-build-info), which O(state=clean) with O(force=true)
    removes.
seealso:
  - module: delivery.toolchain.artifact_cleanup
"""

EXAMPLES = r"""
- name: What is in the trash?
  delivery.toolchain.artifact_trash:
    state: listed

- name: Remove one file for good
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
    - Keys of the repositories that have something in the trash after the task.
    - In check mode with O(state=clean) and O(state=builds_clean) those that have something before it.
  returned: success
  type: list
  elements: str
  sample: [generic-snapshot-local]
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
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.cleanup import artifact_trash


def main() -> None:
    runner.run("repo", artifact_trash.ArtifactTrashOptions, artifact_trash.ArtifactTrashOperation)


if __name__ == "__main__":
    main()
