#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: artifact_deploy
short_description: Deploy files, folders and archives to the artifact repository manager
version_added: 1.0.0
description:
  - Makes sure that files are in a repository, with their content and their properties, or that an item is not there.
  - Content that the server has already is not sent. What is sent is streamed, so that memory does not grow with its size.
  - What the server stored is compared with what was sent, where the server tells.
  - A server that tells neither checksums nor properties gets everything again, and the task reports C(changed).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.repo
options:
  repo:
    description:
      - Key of the repository.
      - A virtual repository stands for its default deployment repository; without one the task fails.
      - What another member of a virtual repository holds does not count as deployed.
    type: str
    required: true
  path:
    description:
      - Path in the repository.
      - Empty or with a slash at its end it is a folder to deploy into, under the source's own name.
      - For a folder, a glob and with O(explode) it is always a folder.
    type: str
    default: ""
  src:
    description:
      - A file, a folder or a glob on the host that the task runs on.
      - Of C(dir/) is deployed what is in it, C(dir) keeps its name. Links are followed. Empty folders are left out.
      - What a glob matches keeps the folders below the part without wildcards; of a folder that matches all that is in it is
        deployed. With V(**) only files match.
      - One of O(src), O(content) and O(artifacts) is needed with O(state=present).
    type: path
  content:
    description: Text to deploy as one file, in UTF-8. A dictionary or a list is deployed as JSON.
    type: raw
  artifacts:
    description: Many files, folders or globs in one task.
    type: list
    elements: dict
    suboptions:
      src:
        description: As O(src).
        type: path
        required: true
      path:
        description: As O(path), and below it.
        type: str
        default: ""
      properties:
        description: Properties of these files, in addition to O(properties) and before them.
        type: dict
  explode:
    description:
      - O(src) is an archive (zip, tar.gz, tgz, tar) that the server expands below O(path), all or nothing.
      - The archive is sent only where one of its entries is not there. Afterwards the entries are looked for.
    type: bool
    default: false
  properties:
    description:
      - Properties to set on each deployed item; a value is a text or a list of texts.
      - Other properties of an item are not touched. An item that gets another content may lose them on the server.
    type: dict
  parallel:
    description: Transfers at once, each on a connection of its own.
    type: int
    default: 4
  checksum_deploy:
    description:
      - Ask the server first to take the content from what it has, by its checksum, and send bytes only where it has none.
      - Without it V(true) in the dialect V(jfrog), save that after ten files of less than 64 KiB in a row that the server does
        not know, it is asked for the 20th, 40th, 80th of that size and so on, until it knows one. The others are sent without
        asking, which would cost as much.
      - Not possible in the dialect V(generic), where a server may ignore the header and store an empty file, nor with O(explode).
    type: bool
  exclude:
    description:
      - Patterns of files that are left out, on the path below O(src), for a glob below its part without wildcards.
      - V(*) goes beyond slashes here, and a slash at the end means all that is below. One that leaves out nothing brings a warning.
    type: list
    elements: str
  flat:
    description: Deploy all files into O(path) itself. Two of the same name are refused.
    type: bool
    default: false
  overwrite:
    description:
      - Whether a file may replace other content at its path. With V(false) the task fails with the kind V(conflict) before anything is sent.
      - If the server shows no digest of a file, the file is downloaded and compared with V(false).
      - Properties of a file with the same content are set in both cases.
    type: bool
    default: true
  moved_to:
    description:
      - Repositories to which a promotion with C(copy=false) takes items out of O(repo).
      - A file that is missing in O(repo) and that one of them has at the same path with the same content was moved there; it is not deployed
        again, and its properties are compared there.
    type: list
    elements: str
  state:
    description:
      - V(present) deploys.
      - V(absent) deletes the item at O(path), a folder with all that is in it. A path with
        wildcards is refused, and a repository that is not there fails the task.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: With O(state=absent) and an empty O(path), delete everything in the repository.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.build_promote
"""

EXAMPLES = r"""
- name: Deploy a text
  delivery.toolchain.artifact_deploy:
    repo: generic-staging-local
    path: toolchain/1.0.0/VERSION
    content: "1.0.0\n"

- name: Deploy texts in a loop, over one connection, with properties
  delivery.toolchain.artifact_deploy:
    repo: generic
    path: "toolchain/1.0.0/{{ item }}.txt"
    content: "notes for {{ item }}\n"
    properties:
      build.name: toolchain
      build.number: "1"
      platform: [linux, windows]
  loop: [users, operators]

- name: Deploy a folder
  delivery.toolchain.artifact_deploy:
    repo: generic-staging-local
    path: toolchain/1.0.0/
    src: "{{ playbook_dir }}/dist/"

- name: Expand an archive
  delivery.toolchain.artifact_deploy:
    repo: generic-staging-local
    path: toolchain/1.0.0/docs
    src: "{{ playbook_dir }}/docs.tar.gz"
    explode: true

- name: Remove a file
  delivery.toolchain.artifact_deploy:
    repo: generic-staging-local
    path: toolchain/1.0.0/VERSION
    state: absent
"""

RETURN = r"""
artifacts:
  description: What is, or in check mode would be, in the repository.
  returned: always
  type: list
  elements: dict
  contains:
    repo:
      description: Key of the repository that holds the item.
      type: str
    path:
      description: Path in the repository.
      type: str
    size:
      description: Size in bytes; V(null) of a folder.
      type: int
    sha256:
      description: SHA-256 of the content; V(null) of a folder, and of a deleted item where the server does not tell.
      type: str
    action:
      description:
        - What was done, one of V(uploaded), V(exploded), V(checksum_deployed), V(unchanged), V(properties), V(deleted) and V(absent).
        - Check mode says V(uploaded) where a run may find that the server knows the content (V(checksum_deployed)).
      type: str
    url:
      description: Address of the item.
      type: str
  sample:
    - repo: generic-staging-local
      path: toolchain/1.0.0/VERSION
      size: 6
      sha256: 59854984853104df5c353e2f681a15fc7924742f9a2e468c29af248dce45ce03
      action: uploaded
      url: https://repo.example.org/artifactory/generic-staging-local/toolchain/1.0.0/VERSION
uploaded_bytes:
  description: Bytes of files and archives that were sent.
  returned: always
  type: int
  sample: 6
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
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.items import artifact_deploy


def main() -> None:
    runner.run(
        "repo", artifact_deploy.ArtifactDeployOptions, artifact_deploy.ArtifactDeployOperation
    )


if __name__ == "__main__":
    main()
