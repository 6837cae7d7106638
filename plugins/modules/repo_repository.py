#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: repo_repository
short_description: Create, update or delete repositories
version_added: 1.0.0
description:
  - Manages local, remote, virtual and federated repositories, one by its options or many by O(entries). Only differences are sent.
  - The class and the package type of a repository cannot be changed.
  - The account must be an administrator, and the edition of the server must offer the interface, which free editions do not.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details: The server does not show passwords. With O(update_password=always), every run writes the password.
options:
  entries:
    description:
      - Many repositories in one task. They are compared with as few requests as possible, and created in batches if the server has these.
      - A repository that fails does not stop the others.
    type: list
    elements: dict
    suboptions: &entry
      key:
        description: Key of the repository.
        type: str
        required: true
      rclass:
        description: Class of the repository. Required to create it. A class that differs from that of an existing repository is a conflict.
        type: str
        choices: [local, remote, virtual, federated]
      package_type:
        description:
          - Package type as the server names it, such as V(maven) or V(docker).
          - Required to create it. A type that differs from that of an existing repository is a conflict.
        type: str
      description:
        description: Description. An empty string removes it.
        type: str
      notes:
        description: Internal notes. An empty string removes them.
        type: str
      includes:
        description: Patterns of the paths that the repository accepts. An empty list accepts all.
        type: list
        elements: str
      excludes:
        description: Patterns of the paths that the repository rejects. An empty list rejects none.
        type: list
        elements: str
      layout:
        description: Name of the layout.
        type: str
      project:
        description: Key of the project that the repository belongs to. An existing repository is assigned to it, an empty string releases it.
        type: str
      environments:
        description: Environments of the repository. They need a project. An empty list removes all.
        type: list
        elements: str
      remote_url:
        description: Address of the server behind a remote repository. Needed to create one.
        type: str
      remote_username:
        description: User for the server behind a remote repository. An empty string removes it.
        type: str
      remote_password:
        description: Password for the server behind a remote repository. Servers return it encrypted, so it cannot be compared.
        type: str
      update_password:
        description: V(on_create) sends the password to a new repository only. V(always) sends it every time, and is always a change.
        type: str
        choices: [on_create, always]
        default: on_create
      repositories:
        description: Members of a virtual repository, in the order of their resolution. Others are removed.
        type: list
        elements: str
      default_deployment_repo:
        description: Member of a virtual repository that receives deployments. An empty string removes it.
        type: str
      members:
        description: Members of a federated repository. Others are removed.
        type: list
        elements: dict
        suboptions:
          url:
            description: Address of the member, with its key.
            type: str
            required: true
          enabled:
            description: Whether the member is enabled.
            type: bool
            default: true
      settings:
        description:
          - Further fields by the names of the server, such as C(xrayIndex) or C(maxUniqueTags).
          - Only these are compared and sent.
          - The types of the usual ones are checked.
          - A field that the server does not keep fails the task.
        type: dict
      state:
        description: V(present) creates or updates the repository, V(absent) deletes it with its content.
        type: str
        choices: [present, absent]
        default: present
      force:
        description:
          - Whether to delete a repository that holds files.
          - "The files are lost: they do not go to the trash."
        type: bool
        default: false
  key:
    description: Key of the repository. Give either it or O(entries).
    type: str
  <<: *entry
seealso:
  - module: delivery.toolchain.repo_info
  - module: delivery.toolchain.repo_export
"""

EXAMPLES = r"""
- name: Create a local repository
  delivery.toolchain.repo_repository:
    token: "{{ admin_token }}"
    key: docker-tools-local
    rclass: local
    package_type: docker
    description: Images of the build tools
    settings:
      maxUniqueTags: 20
  vars:
    admin_token: repo-admin-token-1234567890

- name: Manage a remote repository and a virtual one in front of it
  delivery.toolchain.repo_repository:
    token: "{{ admin_token }}"
    entries:
      - key: npm-remote
        rclass: remote
        package_type: npm
        remote_url: https://registry.example.org
        remote_username: reader
        remote_password: "{{ npm_password }}"
      - key: npm
        rclass: virtual
        package_type: npm
        repositories: [npm-remote]
  vars:
    admin_token: repo-admin-token-1234567890
    npm_password: npm-password-1234567890

- name: Delete a repository that must be empty
  delivery.toolchain.repo_repository:
    token: "{{ admin_token }}"
    key: docker-tools-local
    state: absent
  vars:
    admin_token: repo-admin-token-1234567890
"""

RETURN = r"""
repository:
  description:
    - Repository as the server returns it, without passwords. Null if it is absent.
    - In check mode, a repository that would be created has only the fields of the task.
  returned: success, without O(entries)
  type: dict
  sample:
    key: docker-tools-local
    rclass: local
    packageType: docker
    description: Images of the build tools
    maxUniqueTags: 20
results:
  description:
    - An item per entry, with C(name), C(action) (V(created), V(updated), V(deleted) or V(unchanged)), C(changes) (list of C(field),
      C(before) and C(after)), and the fields of the repository.
    - An entry that failed has C(error), with C(kind), C(status), C(method), C(url), C(detail) and C(msg).
  returned: with O(entries), also on failure
  type: list
  elements: dict
  sample:
    - name: npm-remote
      action: updated
      changes:
        - {field: remote_url, before: https://old.example.org, after: https://registry.example.org}
      key: npm-remote
      rclass: remote
unknown:
  description: Names of the fields that cannot be compared. Each item of RV(results) has this key too.
  returned: if something cannot be compared
  type: list
  elements: str
  sample: [remote_password]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.configuration import repo_repository


def main() -> None:
    run(repo_repository.RepoRepositoryOptions, repo_repository.RepoRepositoryOperation)


if __name__ == "__main__":
    main()
