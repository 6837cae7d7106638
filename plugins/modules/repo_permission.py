#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: repo_permission
short_description: Manage permissions of the repository manager
version_added: 1.0.0
description:
  - Creates, changes and deletes permissions, one or many in a task. Resources, and parts of a resource, that are not listed are not
    changed.
  - Uses the interface of Access. If the server does not have it, or does not accept the login there, the older interface is used.
  - Access changes a single resource. In the older interface, all resources are sent, so that none is lost.
  - Single repositories that the server lists next to V(ANY LOCAL), with the same patterns, are not a difference.
  - Unknown users, groups and repositories are C(not_found), in check mode too.
  - An unchanged permission costs a single request. With O(entries), one more request reads the list of all permissions.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
options:
  entries:
    description:
      - Many permissions, each with the other options. A permission that fails does not stop the others.
      - The task returns RV(results) instead of RV(permission).
    type: list
    elements: dict
    suboptions: &entry
      name:
        description: Name of the permission.
        type: str
        required: true
      resources:
        description:
          - What is permitted to whom, by type.
          - Actions are C(read), C(write), C(annotate), C(delete), C(manage), C(scan) and C(execute).
        type: dict
        suboptions:
          artifact:
            description: Permissions for the content of repositories.
            type: dict
            suboptions: &artifact
              targets:
                description: Repositories of the resource, or a special target such as V(ANY LOCAL), V(ANY REMOTE) or V(ANY DISTRIBUTION).
                type: list
                elements: dict
                suboptions:
                  repo:
                    description: Key of a repository, or a special target.
                    type: str
                    required: true
                  includes:
                    description: Patterns of paths. The default is all paths.
                    type: list
                    elements: str
                  excludes:
                    description: Patterns of paths that are excluded.
                    type: list
                    elements: str
              users:
                description: Names of users, each with a list of actions.
                type: dict
              groups:
                description: Names of groups, each with a list of actions.
                type: dict
          build:
            description: Permissions for build records. The target is C(artifactory-build-info), with patterns such as C(app/**).
            type: dict
            suboptions: *artifact
          release_bundle:
            description: Permissions for release bundles. Needs an edition that has them.
            type: dict
            suboptions: *artifact
      mode:
        description:
          - V(exact) replaces the targets, users and groups that are listed.
          - V(add) adds targets and actions. V(remove) removes only the listed targets and actions.
        type: str
        choices: [exact, add, remove]
        default: exact
      state:
        description: Whether the permission should exist.
        type: str
        choices: [present, absent]
        default: present
  name:
    description: Name of the permission. Either O(name) or O(entries) is required.
    type: str
  <<: *entry
seealso:
  - module: delivery.toolchain.repo_group
  - module: delivery.toolchain.repo_user
"""

EXAMPLES = r"""
- name: Developers deploy candidates
  delivery.toolchain.repo_permission:
    name: candidates
    resources:
      artifact:
        targets:
          - repo: generic-staging-local
            includes: ["agent/**"]
        users:
          deployer: [read, write, annotate]
        groups:
          developers: [read]

- name: Add a repository to a permission of others
  delivery.toolchain.repo_permission:
    name: releases
    mode: add
    resources:
      artifact:
        targets:
          - repo: docker-release-local

- name: Delete a permission
  delivery.toolchain.repo_permission:
    name: contractors
    state: absent
"""

RETURN = r"""
permission:
  description: Permission after the task, or null after O(state=absent).
  returned: without O(entries)
  type: dict
  contains:
    name:
      description: Name of the permission.
      type: str
    resources:
      description: Its resources, in the form of O(resources).
      type: dict
  sample:
    name: releases
    resources:
      artifact:
        targets: [{repo: generic-release-local, includes: ["**"], excludes: []}]
        users: {deployer: [annotate, read, write]}
        groups: {developers: [read]}
results:
  description:
    - A result for each of the O(entries), with C(name), C(action) (C(created), C(updated), C(deleted) or C(unchanged)), C(changes),
      C(resources), and C(error) if it failed.
  returned: with O(entries)
  type: list
  elements: dict
  sample: [{name: contractors, action: unchanged, changes: []}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.access import repo_permission


def main() -> None:
    run(repo_permission.RepoPermissionOptions, repo_permission.RepoPermissionOperation)


if __name__ == "__main__":
    main()
