#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: artifact_download
short_description: Download files from the artifact repository manager
version_added: 1.0.0
description:
  - Ensures that files of a repository or of a build exist in a local folder with the content on the server.
  - A local file with the SHA-256 of the server is not downloaded again.
  - A file is written only if it is complete and verified. File names from the server and symbolic links cannot lead outside O(dest).
  - If the server reports no digests, existing files are compared with the content from the server.
  - If the server redirects to another host (an object store), that host receives no credentials.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
options:
  repo:
    description:
      - Key of the repository. With O(build_name), only files in this repository are downloaded. With O(artifacts), it is the default of the
        entries.
    type: str
  path:
    description:
      - Path of a file or of a folder (with a trailing slash) in the repository, or a pattern with wildcards.
      - V(*) and V(?) match within a path segment, V(**) matches across folders.
      - Set exactly one of O(path), O(build_name) and O(artifacts).
    type: str
  build_name:
    description:
      - Name of a build whose files are downloaded. These are the files with the properties C(build.name) and C(build.number), and other
        files with the content of a file in the build record.
      - Without O(repo) and O(properties), all files of the build record must exist. Files with the same content are counted.
      - Not supported if queries cannot use properties, as in the dialect V(generic).
    type: str
  build_number:
    description: Number of the build.
    type: str
  project:
    description:
      - Key of the project (JFrog Projects) that has the build of O(build_name). By default, the builds outside projects are used.
      - With a project, only files with recorded content are downloaded, because the properties of a file do not name its project.
    type: str
  aggregated:
    description:
      - What to do if the build of O(build_name) refers to other builds, as an aggregated build does. Its record has modules of the type
        C(build).
      - V(fail) fails with the kind V(conflict) and names these builds.
      - V(follow) also downloads the files of these builds, each by its own record. It follows up to ten references in a row. A loop is an
        error.
      - V(ignore) downloads only the files of the build itself.
      - A referenced build has the project of the referring build, unless its module has the key C(project).
    type: str
    choices: [fail, follow, ignore]
    default: fail
  artifacts:
    description: List of files, folders or patterns.
    type: list
    elements: dict
    suboptions:
      path:
        description: See O(path).
        type: str
        required: true
      repo:
        description: Key of the repository. The default is O(repo).
        type: str
      dest:
        description: See O(dest), which is the default.
        type: path
  properties:
    description: Download only files with all values of these properties. A value is a string or a list of strings.
    type: dict
  exclude:
    description:
      - Patterns of files to skip. They are matched against the path below the requested path and against the full path in the repository.
      - V(*.md5) skips files of the folder itself, and V(**/*.md5) those of all folders. A pattern without a match adds a warning.
    type: list
    elements: str
  dest:
    description:
      - Folder for the files. It is created if it does not exist.
      - If O(path) is a single file, and O(dest) neither ends with a slash nor is a folder, O(dest) is the path of the file.
    type: path
  flat:
    description:
      - Write all files directly into O(dest). Files with the same name are rejected.
      - By default, folders below the fixed part of O(path) are kept. The files of a build keep their full path.
    type: bool
    default: false
  newest:
    description:
      - Download only this number of files of each path, the newest by O(sort_by). All other conditions apply first.
      - With O(build_name), of the files of the build.
    type: int
  sort_by:
    description: Order for O(newest). With V(name), the last file names are the newest.
    type: str
    choices: [created, modified, name]
    default: created
  sync:
    description:
      - Delete files below O(dest) that are not among the selected files, after all downloads have succeeded.
      - Symbolic links are neither followed nor deleted, and folders stay.
    type: bool
    default: false
  max_deletions:
    description: Maximum number of files that O(sync) may delete. If there are more, the task fails and changes nothing.
    type: int
    default: 0
  parallel:
    description: Number of parallel transfers. Every transfer uses its own connection.
    type: int
    default: 4
  mode:
    description: Permissions of the files as octal digits in quotes, V('0644'). By default, the system sets them.
    type: str
  allow_empty:
    description: Succeed if no file matches.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.artifact_deploy
  - module: delivery.toolchain.artifact_info
"""

EXAMPLES = r"""
- name: Keep the two newest nightly files in a folder, and nothing else
  delivery.toolchain.artifact_download:
    repo: generic-snapshot-local
    path: nightly/agent/*.txt
    dest: fetched/newest/
    newest: 2
    sync: true
    max_deletions: 5

- name: Download a folder
  delivery.toolchain.artifact_download:
    repo: generic-snapshot-local
    path: nightly/agent/
    dest: fetched/nightly/

- name: Download files by a pattern, with the folders below the fixed part
  delivery.toolchain.artifact_download:
    repo: generic-snapshot-local
    path: agent/**/*.txt
    dest: fetched/agent/
    mode: "0644"

- name: Download a file under another name
  delivery.toolchain.artifact_download:
    repo: generic-snapshot-local
    path: agent/1.0.0/agent.txt
    dest: fetched/agent.txt
"""

RETURN = r"""
files:
  description: Files in the folder, or the expected files in check mode.
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
      description: Path of the local file.
      type: str
    size:
      description: Size in bytes, or V(null) in check mode if the server does not report it.
      type: int
    sha256:
      description: SHA-256 of the content, or V(null) in check mode if the server does not report it.
      type: str
    action:
      description: Action on the file, V(downloaded), V(unchanged), or V(mode) if only the permissions differed.
      type: str
  sample:
    - repo: generic-snapshot-local
      path: agent/1.0.0/agent.txt
      dest: fetched/agent.txt
      size: 6
      sha256: d20bc21bb3c7736d8d03ade3ddb4c68b665cdfbca6f6df0f7fdd192f37f59060
      action: downloaded
aggregated:
  description: The builds to which the build refers. Empty unless O(aggregated=follow).
  returned: success, with O(build_name)
  type: list
  elements: dict
  contains:
    build_name:
      description: Name of the build.
      type: str
    build_number:
      description: Number of the build.
      type: str
    changed:
      description: Whether the task changes a local file of the build.
      type: bool
  sample: []
deleted:
  description: Local files that O(sync) deletes.
  returned: success, with O(sync)
  type: list
  elements: str
  sample: []
downloaded_bytes:
  description: Bytes of the downloaded files.
  returned: always
  type: int
  sample: 6
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.transfer import artifact_download


def main() -> None:
    run(artifact_download.ArtifactDownloadOptions, artifact_download.ArtifactDownloadOperation)


if __name__ == "__main__":
    main()
