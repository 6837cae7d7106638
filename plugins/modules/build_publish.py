#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: build_publish
short_description: Publish a build record in the artifact repository manager
version_added: 1.0.0
description:
  - Makes sure that a build has a record with everything that is given, and that its files carry the marks of the build.
  - Digests of files in repositories are read from the server. Where one of them is not there, nothing is published.
  - A record that has all of this is left alone. One of the same number with another content fails the task as C(conflict),
    or is replaced with O(replace).
  - Marks that files have lost are set again.
  - Not possible on a server that knows the written interface alone (dialect V(generic)).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.repo
options:
  build_name:
    description: Name of the build.
    type: str
    required: true
  build_number:
    description: Number of the build.
    type: str
    required: true
  modules:
    description:
      - Modules of the build. One of O(modules) and O(artifacts) is needed.
      - A build whose modules name no file is refused; one module without files beside others is a warning.
    type: list
    elements: dict
    suboptions:
      id:
        description: Name of the module.
        type: str
        required: true
      type:
        description: Kind of the module; C(generic) without it.
        type: str
      artifacts:
        description:
          - Files that the build has made.
          - Each is an item (C(repo) and C(path)), or a C(name) with one or more digests.
        type: list
        elements: dict
        suboptions: &file
          repo:
            description: Key of the repository.
            type: str
          path:
            description: Path in the repository.
            type: str
          name:
            description: Name in the record; without it the last segment of the path.
            type: str
          type:
            description: Kind of the file; without it the end of its name.
            type: str
          sha1:
            description: SHA-1 of the content. For an item it is compared with that of the server, as the other digests are.
            type: str
          sha256:
            description: SHA-256 of the content.
            type: str
          md5:
            description: MD5 of the content.
            type: str
          size:
            description: Has no effect; as M(delivery.toolchain.artifact_deploy) returns it.
            type: int
          action:
            description: As M(delivery.toolchain.artifact_deploy) returns it. V(deleted) and V(absent) are refused.
            type: str
          url:
            description: Address of the file, as C(artifact_deploy) returns it; ignored.
            type: str
      dependencies:
        description: Files that the build has used, as C(artifacts).
        type: list
        elements: dict
        suboptions:
          <<: *file
          scopes:
            description: Scopes of the dependency, by which M(delivery.toolchain.build_promote) chooses.
            type: list
            elements: str
  artifacts:
    description:
      - Files of the only module, which has the name of the build.
      - What M(delivery.toolchain.artifact_deploy) returns as C(artifacts) is taken as it is.
    type: list
    elements: dict
    suboptions: *file
  started:
    description:
      - When the build began, as V(2026-01-02T03:04:05.678Z). Without it that of the record that is there, else now.
      - A record that is there with another one fails the task as C(conflict), with O(replace) too. The server would keep two.
    type: str
  ci_url:
    description: Address of the build on the CI server. User info in it is left out.
    type: str
  vcs:
    description:
      - Sources of the build, each with C(url), and where it is known with C(revision), C(branch) and C(message), the words of the
        newest change.
      - User info in C(url) is left out.
    type: list
    elements: dict
  issues:
    description: Issues that the build is about.
    type: list
    elements: dict
    suboptions:
      key:
        description: Key of the issue.
        type: str
        required: true
      summary:
        description: Summary of the issue.
        type: str
      url:
        description: Address of the issue.
        type: str
  environment:
    description:
      - Variables of the build.
      - Left out are those whose names say that they are secrets (C(password), C(psw), C(secret), C(token), C(key), C(credential),
        C(auth) and the like, without regard to case), and those with a secret of this task in their value. So is user info of
        addresses.
    type: dict
  environment_exclude:
    description: Patterns of further names of variables that are left out, without regard to case.
    type: list
    elements: str
  properties:
    description: Properties of the record, texts. A list is joined by commas.
    type: dict
  mark_artifacts:
    description:
      - Set C(build.name), C(build.number) and C(build.timestamp) on the artifacts that are items, by which promotion finds them.
      - An item in a virtual repository is marked in the one that holds it.
    type: bool
    default: true
  replace:
    description:
      - Replace a record of the same number with another content. What is not given, and the promotions, stay in it.
      - The server wants the permission to delete for it.
    type: bool
    default: false
  parallel:
    description: Requests at once.
    type: int
    default: 4
seealso:
  - module: delivery.toolchain.artifact_deploy
  - module: delivery.toolchain.build_promote
  - module: delivery.toolchain.build_record
"""

EXAMPLES = r"""
- name: Publish the record of a build
  delivery.toolchain.build_publish:
    build_name: toolchain
    build_number: "1"
    artifacts:
      - repo: generic-snapshot-local
        path: agent/1.0.0/agent.txt
    ci_url: https://ci.example.com/job/toolchain/1/
    vcs:
      - url: https://git.example.com/toolchain.git
        revision: 5f2c1e0d9b8a7c6d5e4f3a2b1c0d9e8f7a6b5c4d
        branch: main
    issues:
      - key: REL-2
        summary: Publish build records
    environment:
      RELEASE: "1.0.0"
"""

RETURN = r"""
build:
  description: The record, as M(delivery.toolchain.build_info) returns it; in check mode as it would be sent.
  returned: always
  type: dict
  sample:
    name: toolchain
    number: "1"
    started: "2026-01-02T03:04:05.678+0000"
    properties: {buildInfo.env.RELEASE: "1.0.0"}
    modules:
      - id: toolchain
        type: generic
        artifacts:
          - name: VERSION
            type: file
            path: toolchain/1.0.0/VERSION
            sha256: 59854984853104df5c353e2f681a15fc7924742f9a2e468c29af248dce45ce03
marked:
  description: Items whose marks were set, or in check mode would be, as repository and path.
  returned: always
  type: list
  elements: str
  sample: [generic-staging-local/toolchain/1.0.0/VERSION]
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
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.builds import build_publish


def main() -> None:
    runner.run("repo", build_publish.BuildPublishOptions, build_publish.BuildPublishOperation)


if __name__ == "__main__":
    main()
