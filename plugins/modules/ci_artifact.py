#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_artifact
short_description: Fetch the artifacts and the console log of a build
version_added: 1.0.0
description:
  - Fetches the artifacts of a build of the CI server into a folder, and its whole console log into a file.
  - A file that is there already with the same content is not fetched again. The server's fingerprint tells that; where the job
    records none, equal sizes count as equal files.
  - Each file is whole, or not there. No name that the server gives leads out of O(dest).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.ci
options:
  job:
    description: The job, as C(folder/job), as a list of names (one for each level), or as its URL on the server.
    type: raw
    required: true
  build:
    description:
      - The build, as its number or as a permalink such as V(lastBuild).
      - What a permalink stands for is looked up once, so that all files are of one build.
    type: str
    default: lastSuccessfulBuild
  patterns:
    description:
      - Patterns of artifacts, on their path in the build. All of them without.
      - V(*) goes beyond slashes, C(**/) is any number of folders, none too, and a slash at the end means all that is below.
      - One that fits nothing brings a warning.
    type: list
    elements: str
  dest:
    description: The folder for the artifacts, which is made where it is missing.
    type: path
  flat:
    description: Put all files into O(dest) itself. Two of the same name are refused. Without it the folders of the build are kept.
    type: bool
    default: false
  console:
    description: The file for the whole console log. It is compared with the log byte by byte, since the server tells nothing of it.
    type: path
  parallel:
    description: Transfers at once, each on a connection of its own.
    type: int
    default: 4
  allow_empty:
    description: A build without an artifact that is meant is no failure.
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

- name: Fetch what the newest good build has made, if it has
  delivery.toolchain.ci_artifact:
    job: long-history
    patterns: ["dist/**/*.txt"]
    dest: fetched/package
    allow_empty: true
"""

RETURN = r"""
build:
  description: The build that the files are of, as M(delivery.toolchain.ci_build_stop) returns it.
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
  description: What is, or in check mode would be, in the folder.
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
      description: Size in bytes; in check mode V(null) for a file that would be fetched.
      type: int
    sha256:
      description: SHA-256 of the content; in check mode V(null) for a file that would be fetched.
      type: str
    action:
      description: What was done, V(downloaded) or V(unchanged).
      type: str
  sample:
    - path: dist/app-2.0.0.txt
      dest: fetched/package/dist/app-2.0.0.txt
      size: 10
      sha256: 7d2f1bf3b4dd06c0a2f1fbfc4b5b2e2e1c3fbb3b1a3b27e5f1bd5bd6b6bb4c0e
      action: downloaded
console:
  description: The file of the console log with C(dest), C(size), C(sha256) and C(action); null without O(console).
  returned: always
  type: dict
downloaded_bytes:
  description: Bytes of the files that were fetched.
  returned: always
  type: int
  sample: 10
http:
  description: Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).
  returned: always
  type: dict
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(not_found) where there is no such build, or no artifact that is meant, V(rejected) for a name that leads out of
      O(dest), and V(protocol) for bytes that are not those of the fingerprint.
  returned: on failure
  type: dict
"""

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import runner
from ansible_collections.delivery.toolchain.plugins.module_utils.ci.artifacts import ci_artifact


def main() -> None:
    runner.run("ci", ci_artifact.CiArtifactOptions, ci_artifact.CiArtifactOperation)


if __name__ == "__main__":
    main()
