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
  - Makes sure that an item that is in a repository already, a file or a folder, has the named properties, or has them no longer.
  - Other properties of the item are not touched.
  - In the dialect V(jfrog) properties are read before and after the change. One that the server drops makes the task fail.
  - A server that does not show properties gets them in every run, and the task reports C(changed).
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
    description: Path of the item in the repository. A slash at its end makes no difference.
    type: str
    required: true
  properties:
    description:
      - Names and values; a value is a text or a list of texts, in any order. The named properties get these values and no other.
      - A property without a value (V(null)) is not managed. With O(state=absent) only the names count.
      - Values may have any character, also those with which the server separates values (C(,), C(=), C(|), C(;) and a backslash).
    type: dict
    required: true
  recursive:
    description: Whether all that is in the folder gets the properties, or loses them, too.
    type: bool
    default: false
  state:
    description:
      - V(present) sets properties.
      - V(absent) removes the named ones. In the dialect V(generic) there is no way to remove properties, so that this is refused.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Allows an empty O(path), which means the root of the repository.
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

- name: Mark all that belongs to a version
  delivery.toolchain.artifact_properties:
    repo: generic-snapshot-local
    path: agent/1.0.0
    properties:
      qa.reviewers: "Doe, Jane; Roe, Richard"
    recursive: true

- name: Take the mark away
  delivery.toolchain.artifact_properties:
    repo: generic-snapshot-local
    path: agent/1.0.0/agent.txt
    properties:
      qa.status: null
    state: absent
"""

RETURN = r"""
properties:
  description: The properties of the item itself.
  returned: always
  type: dict
  contains:
    before:
      description: What it had; V(null) where the server does not tell.
      type: dict
    after:
      description: What it has, or in check mode would have; where the server does not tell, what was set.
      type: dict
  sample:
    before: {}
    after:
      qa.status: [passed]
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
