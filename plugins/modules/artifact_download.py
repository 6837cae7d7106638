#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: artifact_download
short_description: Fetch files from the artifact repository manager
version_added: 1.0.0
description:
  - Makes sure that files of a repository, or of a build, are in a folder with the content that the server has.
  - A file that is there with the SHA-256 of the server is not fetched again.
  - Each file is whole and verified, or not there. Names from the server cannot leave O(dest), nor can symbolic links in it.
  - A server that tells no digests is asked for the bytes of files that are there already, to compare them.
  - Where the server leads to another host (an object store), that host gets no credentials.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.repo
options:
  repo:
    description:
      - Key of the repository. With O(build_name) only files in it are meant; with O(artifacts) it is that of entries without one.
    type: str
  path:
    description:
      - Path in the repository, of a file, of a folder (with a slash at its end) or with wildcards.
      - V(*) and V(?) stay within a segment of the path, V(**) goes through folders.
      - One of O(path), O(build_name) and O(artifacts) is needed.
    type: str
  build_name:
    description:
      - Name of a build whose files are fetched. Those that carry the properties C(build.name) and C(build.number) are meant,
        and what else the record of the build names, by its content.
      - Without O(repo) and O(properties) all files that the record names have to be there.
      - Not possible where queries do not know properties, as in the dialect V(generic).
    type: str
  build_number:
    description: Number of the build.
    type: str
  artifacts:
    description: Many files, folders or patterns in one task.
    type: list
    elements: dict
    suboptions:
      path:
        description: As O(path).
        type: str
        required: true
      repo:
        description: Key of the repository, where it is not O(repo).
        type: str
      dest:
        description: As O(dest), where it is another one.
        type: path
  properties:
    description: Only files that have these properties, with all their values; a value is a text or a list of texts.
    type: dict
  exclude:
    description:
      - Patterns of files that are left out, on the path below what was asked for, and on the whole path in the repository.
      - V(*) goes beyond slashes here. One that leaves out nothing brings a warning.
    type: list
    elements: str
  dest:
    description:
      - A folder, which is made where it is missing.
      - The file itself where O(path) names one file and O(dest) has no slash at its end and is no folder.
    type: path
  flat:
    description:
      - Put all files into O(dest) itself. Two of the same name are refused.
      - Without it the folders below the fixed part of O(path) are kept, for the files of a build all folders of their path.
    type: bool
    default: false
  parallel:
    description: Transfers at once, each on a connection of its own.
    type: int
    default: 4
  mode:
    description: Permissions of the files, as octal digits in quotes, V('0644'). Without it they are as the system makes them.
    type: str
  allow_empty:
    description: Nothing that is meant is no failure.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.artifact_deploy
  - module: delivery.toolchain.artifact_query
"""

EXAMPLES = r"""
- name: Fetch a folder
  delivery.toolchain.artifact_download:
    repo: generic-snapshot-local
    path: nightly/agent/
    dest: fetched/nightly/

- name: Fetch what fits a pattern, with the folders below the fixed part
  delivery.toolchain.artifact_download:
    repo: generic-snapshot-local
    path: agent/**/*.txt
    dest: fetched/agent/
    mode: "0644"

- name: Fetch one file under another name
  delivery.toolchain.artifact_download:
    repo: generic-snapshot-local
    path: agent/1.0.0/agent.txt
    dest: fetched/agent.txt
"""

RETURN = r"""
files:
  description: What is, or in check mode would be, in the folder.
  returned: always
  type: list
  elements: dict
  contains:
    repo:
      description: Key of the repository.
      type: str
    path:
      description: Path in the repository.
      type: str
    dest:
      description: Path of the file.
      type: str
    size:
      description: Size in bytes; in check mode V(null) where the server does not tell.
      type: int
    sha256:
      description: SHA-256 of the content; in check mode V(null) where the server does not tell.
      type: str
    action:
      description: What was done, V(downloaded), V(unchanged), or V(mode) where only the permissions differed.
      type: str
  sample:
    - repo: generic-snapshot-local
      path: agent/1.0.0/agent.txt
      dest: fetched/agent.txt
      size: 6
      sha256: d20bc21bb3c7736d8d03ade3ddb4c68b665cdfbca6f6df0f7fdd192f37f59060
      action: downloaded
downloaded_bytes:
  description: Bytes of the files that were fetched.
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
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.transfer import (
    artifact_download,
)


def main() -> None:
    runner.run(
        "repo",
        artifact_download.ArtifactDownloadOptions,
        artifact_download.ArtifactDownloadOperation,
    )


if __name__ == "__main__":
    main()
