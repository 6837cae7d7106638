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
  - Ensures that files exist in a repository with their content and properties, or that an item does not exist.
  - Content that the server already has is not sent. Uploads are streamed, so memory use does not depend on the file size.
  - The stored checksums are compared with those of the sent files, if the server reports them.
  - Files that the server computes are left out, with a warning that gives their number. They are C(maven-metadata.xml), the index files of
    Conan, Debian, Helm, npm, PyPI and RPM repositories, and a checksum file (C(X.md5), C(.sha1), C(.sha256), C(.sha512)) if the task or
    the server has C(X). A file that O(src) or O(artifacts[].src) names exactly is sent. In an archive, such files are sent but not compared.
  - The server may store a file under another name. A Maven snapshot C(A-V-SNAPSHOT.jar) is unchanged if the newest stored snapshot of the
    same artifact, version, classifier and extension has the same content. RV(artifacts) has the path that the server reports, and the
    properties are set there.
  - Before it replaces a file that belongs to a promoted build, the task adds a warning that names the build. In the dialect V(jfrog), one
    query finds such builds, if the account may use it.
  - If the server reports neither checksums nor properties, all files are sent in every run, and the task reports C(changed).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details: If the server reports neither checksums nor properties, every run sends all files.
options:
  repo:
    description:
      - Key of the repository.
      - A virtual repository resolves to its default deployment repository. If it has none, the task fails.
      - Files in other members of a virtual repository do not count as deployed.
    type: str
    required: true
  path:
    description:
      - Path in the repository.
      - If the path is empty or ends with a slash, it is a folder, and the source keeps its name in this folder.
      - For a folder, a pattern and with O(explode), the path is always a folder.
    type: str
    default: ""
  src:
    description:
      - A file, a folder or a pattern on the host of the task.
      - In a pattern, V(*) and V(?) match within a segment, and V(**) matches across segments. Hidden files have to be named.
      - C(dir/) deploys the content of the folder, C(dir) includes the folder name. Links are followed. Empty folders are skipped.
      - A file that matches a pattern keeps the folders below the part without wildcards. If a folder matches, its whole content is deployed.
        With V(**), only files match.
      - Set exactly one of O(src), O(content) and O(artifacts) with O(state=present).
    type: path
  content:
    description: Text to deploy as a file, in UTF-8. A dictionary or a list is deployed as JSON.
    type: raw
  artifacts:
    description: List of files, folders or patterns.
    type: list
    elements: dict
    suboptions:
      src:
        description: See O(src).
        type: path
        required: true
      path:
        description: Path of these files below the folder O(path) of the task, by the same rules.
        type: str
        default: ""
      properties:
        description: Properties of these files, in addition to O(properties). They override O(properties).
        type: dict
  explode:
    description:
      - O(src) is an archive (zip, tar.gz, tgz, tar) that the server extracts below O(path), completely or not at all.
      - The archive is sent only if an entry is missing. Afterwards, the task verifies that the entries exist.
      - In the dialect V(generic), which accepts no tar without compression, the task sends a compressed copy.
    type: bool
    default: false
  properties:
    description:
      - Properties to set on the deployed items. A value is a string or a list of strings.
      - Other properties of an item are not changed. The server may remove them if the content of the item changes.
    type: dict
  parallel:
    description: Number of parallel transfers. Every transfer uses its own connection.
    type: int
    default: 4
  checksum_deploy:
    description:
      - Ask the server to deploy content that it already has by its checksum. Send the bytes only if the server does not have the content.
      - The default is V(true) in the dialect V(jfrog). To save requests, the task tries fewer small files (below 64 KiB) by checksum if the
        server had none of the last ten. It then tries the 20th, 40th, 80th such file and so on, and sends the others directly. If the
        server has a file again, the task tries every file again.
      - Not supported with O(explode), or in the dialect V(generic), because a server may ignore the header and store an empty file.
    type: bool
  exclude:
    description:
      - Patterns of files to skip. They are matched against the path below O(src), or below the part of a pattern without wildcards.
      - V(*.md5) skips files of the folder itself, and V(**/*.md5) those of all folders. A trailing slash matches the whole content of the
        folder. A pattern without a match adds a warning.
    type: list
    elements: str
  flat:
    description: Deploy all files directly into O(path). Files with the same name are rejected.
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
      - Repositories to which a promotion with C(copy=false) moves items from O(repo).
      - A file that is missing in O(repo) counts as moved if such a repository has the same content at the same path. The file is not
        deployed again, and its properties are compared there.
    type: list
    elements: str
  state:
    description:
      - V(present) deploys.
      - V(absent) deletes the item at O(path), including the content of a folder. A path with wildcards is rejected. If the repository does
        not exist, the task fails.
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
- name: Deploy a string
  delivery.toolchain.artifact_deploy:
    repo: generic-staging-local
    path: toolchain/1.0.0/VERSION
    content: "1.0.0\n"

- name: Deploy strings with properties in a loop over the same connection
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

- name: Extract an archive
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
  description: Items in the repository, or the expected items in check mode.
  returned: always
  type: list
  elements: dict
  contains:
    repo:
      description: Key of the repository that contains the item.
      type: str
    path:
      description: Path in the repository.
      type: str
    size:
      description: Size in bytes, or V(null) for a folder.
      type: int
    sha256:
      description: SHA-256 of the content. V(null) for a folder, and for a deleted item if the server does not report it.
      type: str
    action:
      description:
        - Action on the item, V(uploaded), V(exploded), V(checksum_deployed), V(unchanged), V(properties), V(deleted) or V(absent).
        - Check mode reports V(uploaded) even if a run may find the content on the server (V(checksum_deployed)).
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
  description: Bytes of the files and archives that were sent.
  returned: always
  type: int
  sample: 6
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.items import artifact_deploy


def main() -> None:
    run(artifact_deploy.ArtifactDeployOptions, artifact_deploy.ArtifactDeployOperation)


if __name__ == "__main__":
    main()
