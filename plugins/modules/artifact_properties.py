#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: artifact_properties
short_description: Set or remove properties of items in the artifact repository manager
version_added: 1.0.0
description:
  - Sets or removes properties of an existing file or folder in a repository, or of all files that a pattern or a list selects.
  - Other properties of the item are kept.
  - In the dialect V(jfrog), properties are read before and after the change. If the server drops a property, the task fails.
  - If the server does not return properties, they are set in every run, and the task reports C(changed).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details: If the server does not return properties, every run sets them.
options:
  repo:
    description: Key of the repository.
    type: str
  path:
    description:
      - Path of the item in the repository. A trailing slash has no effect on a single item.
      - In a pattern, V(*) and V(?) match within a segment, and V(**) matches across segments. It selects files. A pattern without a match fails.
      - With O(match_properties) or O(exclude), the path of a folder ends with a slash and means its files.
    type: str
  artifacts:
    description:
      - Files, folders (with a slash at their end, which means their files) and patterns to change together, instead of O(path).
      - If one of them has no file, nothing is changed.
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
  match_properties:
    description:
      - Change only files that have these properties. A file must have all values of a list.
      - If no file has them, an earlier run may have changed the files already. The task is then unchanged if a file of the path is in the
        state that O(properties) describes. Otherwise it fails.
    type: dict
  exclude:
    description:
      - Patterns of paths that are not changed, compared with the path below the folder and with the path in the repository.
      - V(*.md5) excludes files of the folder itself, and V(**/*.md5) those of all folders. A pattern with a trailing slash excludes the content
        of a folder.
    type: list
    elements: str
  properties:
    description:
      - Names and values. A value is a string or a list of strings in any order. It replaces all values of the property.
      - A property without a value (V(null)) is not managed. With O(state=absent), only the names are used.
      - Values may contain any character, including the separators of the server (C(,), C(=), C(|), C(;) and a backslash).
    type: dict
    required: true
  recursive:
    description: Whether to apply the change to all items in the folder as well. It requires a single item.
    type: bool
    default: false
  state:
    description:
      - V(present) sets the properties.
      - V(absent) removes the properties. The dialect V(generic) cannot remove properties and rejects this state.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Allows an empty O(path), which is the root of the repository.
    type: bool
    default: false
  max_items:
    description: Maximum number of files that may be selected. If there are more, nothing is changed.
    type: int
    default: 1000
  parallel:
    description: Number of parallel requests.
    type: int
    default: 4
seealso:
  - module: delivery.toolchain.artifact_copy
  - module: delivery.toolchain.artifact_deploy
  - module: delivery.toolchain.artifact_info
"""

EXAMPLES = r"""
- name: Mark a file as tested
  delivery.toolchain.artifact_properties:
    repo: generic-snapshot-local
    path: agent/1.0.0/agent.txt
    properties:
      qa.status: passed
      qa.platforms: [linux, windows]

- name: Mark all files of a version
  delivery.toolchain.artifact_properties:
    repo: generic-snapshot-local
    path: agent/1.0.0
    properties:
      qa.reviewers: "Doe, Jane; Roe, Richard"
    recursive: true

- name: Release the packages that passed the tests
  delivery.toolchain.artifact_properties:
    repo: generic-snapshot-local
    path: agent/**/*.txt
    match_properties:
      qa.status: passed
    exclude: ["**/debug/"]
    properties:
      released: "yes"
    max_items: 20

- name: Remove the property
  delivery.toolchain.artifact_properties:
    repo: generic-snapshot-local
    path: agent/1.0.0/agent.txt
    properties:
      qa.status: null
    state: absent
"""

RETURN = r"""
properties:
  description: Properties of the item itself.
  returned: unless files are selected
  type: dict
  contains:
    before:
      description: Properties before the task, or V(null) if the server does not return them.
      type: dict
    after:
      description:
        - Properties after the task, or the expected properties in check mode.
        - If the server does not return properties, the properties that were set.
      type: dict
  sample:
    before: {}
    after:
      qa.status: [passed]
artifacts:
  description: The selected files, or the item and the differing items in its folder.
  returned: success
  type: list
  elements: dict
  contains:
    repo:
      description: Key of the repository.
      type: str
    path:
      description: Path in the repository.
      type: str
    before:
      description: Properties before the task, or V(null) if the server does not return them.
      type: dict
    after:
      description: Properties after the task.
      type: dict
    action:
      description: Action on the item, V(updated) or V(unchanged).
      type: str
  sample:
    - repo: generic-snapshot-local
      path: agent/1.0.0/agent.txt
      before: {qa.status: [passed]}
      after: {qa.status: [passed], released: ["yes"]}
      action: updated
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.transfer import artifact_properties


def main() -> None:
    run(
        artifact_properties.ArtifactPropertiesOptions,
        artifact_properties.ArtifactPropertiesOperation,
    )


if __name__ == "__main__":
    main()
