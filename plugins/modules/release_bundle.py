#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: release_bundle
short_description: Create or delete a version of a release bundle
version_added: 1.0.0
description:
  - Creates a version of a release bundle (version 2) from builds, artifacts, a query or other release bundles.
  - A version does not change after its creation. A completed version is compared with O(sources) by checksum. If the content differs,
    the task fails with V(conflict), unless O(replace) is set.
  - If the version is still being created, also by someone else, the task waits and is unchanged.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.release_bundle
  - delivery.toolchain.attributes
options:
  sources:
    description: The content of the release bundle. Required for O(state=present), with at least one of the suboptions.
    type: dict
    suboptions:
      builds:
        description: Builds whose artifacts are added.
        type: list
        elements: dict
        suboptions:
          build_name:
            description: Name of the build.
            type: str
            required: true
          build_number:
            description: Number of the build.
            type: str
            required: true
          project:
            description: Project of the build. The default is O(project).
            type: str
          build_repository:
            description: Repository of the build record. The default follows from the project.
            type: str
          include_dependencies:
            description: Whether to add the dependencies of the build.
            type: bool
            default: false
      artifacts:
        description: Files that are added.
        type: list
        elements: dict
        suboptions:
          repo:
            description: Repository of the file.
            type: str
            required: true
          path:
            description: Path of the file in the repository.
            type: str
            required: true
          sha256:
            description: SHA-256 that the file must have. If it has another, the task fails before it writes.
            type: str
      aql:
        description:
          - Query (AQL) whose files are added.
          - Its result is not compared with an existing version, because it may change at any time.
        type: str
      bundles:
        description: Other release bundles whose content is added.
        type: list
        elements: dict
        suboptions:
          name:
            description: Name of the release bundle.
            type: str
            required: true
          version:
            description: Version of the release bundle.
            type: str
            required: true
          project:
            description: Project of the release bundle. The default is O(project).
            type: str
  skip_docker_manifest_resolution:
    description: Whether only the manifests of container images are added, without their layers.
    type: bool
    default: false
  signing_key:
    description: Name of the key pair that signs. The default is the key of the platform.
    type: str
  state:
    description: Whether the version exists.
    type: str
    choices: [present, absent]
    default: present
  replace:
    description: Whether to delete and create a version that has other content, or whose creation failed.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.release_bundle_promote
  - module: delivery.toolchain.release_bundle_distribute
  - module: delivery.toolchain.release_bundle_info
  - module: delivery.toolchain.build_publish
"""

EXAMPLES = r"""
- name: Create a release bundle from a build
  delivery.toolchain.release_bundle:
    name: agent
    version: 1.11.0
    sources:
      builds:
        - build_name: agent
          build_number: "12"

- name: Create a release bundle from files and another release bundle
  delivery.toolchain.release_bundle:
    name: suite
    version: 1.10.1
    signing_key: release-key
    sources:
      artifacts:
        - repo: generic-snapshot-local
          path: agent/1.0.0/agent.txt
      bundles:
        - name: agent
          version: 1.10.1

- name: Delete a release bundle
  delivery.toolchain.release_bundle:
    name: agent
    version: 1.11.0
    state: absent
"""

RETURN = r"""
bundle:
  description: The release bundle. In check mode, values that only the creation gives are null.
  returned: success
  type: dict
  contains:
    name:
      description: Name.
      type: str
    version:
      description: Version.
      type: str
    project:
      description: The option O(project).
      type: str
    repository_key:
      description: Repository of the release bundle.
      type: str
    status:
      description: Status of the server, such as V(COMPLETED); null if the version does not exist.
      type: str
    created:
      description: Time of the creation.
      type: str
    created_by:
      description: Account that created it.
      type: str
    artifacts:
      description: Number of artifacts.
      type: int
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.bundles import release_bundle


def main() -> None:
    run(release_bundle.ReleaseBundleOptions, release_bundle.ReleaseBundleOperation)


if __name__ == "__main__":
    main()
