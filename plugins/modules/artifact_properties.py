#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: artifact_properties
short_description: Set or remove properties of an item in the artifact repository manager
version_added: 1.0.0
description:
  - Sets or removes properties of an existing file or folder in a repository.
  - Other properties of the item are kept.
  - In the dialect V(jfrog), properties are read before and after the change. If the server drops a property, the task fails.
  - If the server does not return properties, they are set in every run, and the task reports C(changed).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.repo
options:
  repo:
    description: Key of the repository.
    type: str
    required: true
  path:
    description: Path of the item in the repository. A trailing slash has no effect.
    type: str
    required: true
  properties:
    description:
      - Names and values. A value is a string or a list of strings in any order. It replaces all values of the property.
      - A property without a value (V(null)) is not managed. With O(state=absent), only the names are used.
      - Values may contain any character, including the separators of the server (C(,), C(=), C(|), C(;) and a backslash).
    type: dict
    required: true
  recursive:
    description: Whether to apply the change to all items in the folder as well.
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
seealso:
  - module: delivery.toolchain.artifact_deploy
  - module: delivery.toolchain.artifact_query
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
  returned: always
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
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.items import (
    artifact_properties,
)


def main() -> None:
    runner.run(
        "repo",
        artifact_properties.ArtifactPropertiesOptions,
        artifact_properties.ArtifactPropertiesOperation,
    )


if __name__ == "__main__":
    main()
