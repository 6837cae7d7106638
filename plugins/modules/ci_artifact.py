#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_artifact
short_description: Download the artifacts and the console log of a build
version_added: 1.0.0
description:
  - Downloads the artifacts of a build into a folder, and its complete console log into a file.
  - An existing file with the same content is not downloaded again. Files are compared by the fingerprint of the server. If the job records
    no fingerprints, files of equal size count as equal.
  - A file is written only if it is complete. File names from the server cannot lead outside O(dest).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
options:
  job:
    description: Job as C(folder/job), as a list of names (a name per level), or as its URL on the server.
    type: raw
    required: true
  build:
    description:
      - Number of the build, or a permalink such as V(lastBuild).
      - A permalink is resolved once, so all files come from the same build.
    type: str
    default: lastSuccessfulBuild
  patterns:
    description:
      - Patterns for the paths of artifacts in the build. By default, all artifacts are downloaded.
      - V(*) and V(?) match within a segment, V(**) matches across segments, and a trailing slash matches the content of the folder.
      - A pattern without a match adds a warning.
    type: list
    elements: str
  dest:
    description: Folder for the artifacts. It is created if it does not exist.
    type: path
  flat:
    description: Write all files directly into O(dest). Files with the same name are rejected. By default, the folders of the build are kept.
    type: bool
    default: false
  console:
    description: File for the complete console log. It is compared with the log byte by byte, since the server provides no digest.
    type: path
  parallel:
    description: Number of parallel transfers. Every transfer uses its own connection.
    type: int
    default: 4
  allow_empty:
    description: Succeed if the build has no matching artifact.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.ci_job_build
  - module: delivery.toolchain.artifact_deploy
"""

EXAMPLES = r"""
- name: Fetch the log of a build
  delivery.toolchain.ci_artifact:
    job: long-history
    build: 120
    console: fetched/long-history-120.log

- name: Download the artifacts of the newest successful build, if any
  delivery.toolchain.ci_artifact:
    job: long-history
    patterns: ["dist/**/*.txt"]
    dest: fetched/package
    allow_empty: true
"""

RETURN = r"""
build:
  description: Build of the files, as returned by M(delivery.toolchain.ci_build_stop).
  returned: success
  type: dict
  sample:
    number: 7
    url: https://ci.example.com/job/delivery/job/package/7/
    result: SUCCESS
    duration: 12.4
    timestamp: "2026-03-01T09:30:00.000Z"
    parameters: {VERSION: 2.0.0}
    queue_id: 14
files:
  description: Files in the folder, or the expected files in check mode.
  returned: always
  type: list
  elements: dict
  contains:
    path:
      description: Path in the build.
      type: str
    dest:
      description: Path of the file.
      type: str
    size:
      description: Size in bytes, or V(null) in check mode for a file that would be downloaded.
      type: int
    sha256:
      description: SHA-256 of the content, or V(null) in check mode for a file that would be downloaded.
      type: str
    action:
      description: Action on the file, V(downloaded) or V(unchanged).
      type: str
  sample:
    - path: dist/app-2.0.0.txt
      dest: fetched/package/dist/app-2.0.0.txt
      size: 10
      sha256: 7d2f1bf3b4dd06c0a2f1fbfc4b5b2e2e1c3fbb3b1a3b27e5f1bd5bd6b6bb4c0e
      action: downloaded
console:
  description: File of the console log with C(dest), C(size), C(sha256) and C(action), or null without O(console).
  returned: always
  type: dict
downloaded_bytes:
  description: Bytes of the downloaded files.
  returned: always
  type: int
  sample: 10
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(not_found) if the build does not exist or no artifact matches, V(rejected) for a file name that leads outside
      O(dest), and V(protocol) if the content does not match the fingerprint.
  returned: on failure
  type: dict
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.builds import ci_artifact


def main() -> None:
    run(ci_artifact.CiArtifactOptions, ci_artifact.CiArtifactOperation)


if __name__ == "__main__":
    main()
