#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: build_promote
short_description: Promote a build in the artifact repository manager
version_added: 1.0.0
description:
  - Gives a build a status, copies or moves its files to another repository, or both.
  - The promotions in the build record are read first. Nothing is sent if the newest one has the wanted status and target, and the
    target holds the content of every recorded artifact. Artifacts that it lacks are promoted again with O(copy=true); with O(copy=false)
    the task fails with the kind V(conflict).
  - Nothing is sent if the record has the wanted promotion before a later one with another status. Use O(force) to go back to an earlier status.
  - If the server does not let the account list the target, the files are not compared, and the task warns.
  - A server that does not show the promotions of a build is sent the promotion every time, and the task reports C(changed).
  - In check mode a server that has told that it speaks the dialect V(jfrog) is asked to try the promotion without doing it, so that what it
    would refuse fails there, too. Any other server is only read.
  - A promotion without O(status) leaves no trace in the build; in the dialect V(jfrog) the place of the build's files tells whether it is done.
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
  status:
    description: Status to give, as V(released). At least one of O(status) and O(target_repo) is needed.
    type: str
  comment:
    description: Comment of the promotion.
    type: str
  ci_user:
    description: The user of the CI server who asks for the promotion.
    type: str
  source_repo:
    description: Take files only from this repository.
    type: str
  target_repo:
    description: Repository that the files go to; a virtual one stands for its default deployment repository.
    type: str
  copy:
    description: Copy the files; V(false) moves them.
    type: bool
    default: true
  artifacts:
    description: Whether the artifacts of the build go to the target.
    type: bool
    default: true
  dependencies:
    description: Whether the dependencies of the build go to the target.
    type: bool
    default: false
  scopes:
    description: Only dependencies of these scopes.
    type: list
    elements: str
  properties:
    description:
      - Properties to set on the files; a value is a text or a list of texts.
      - They are part of a promotion that is sent; they are not compared with what is set already.
    type: dict
  fail_fast:
    description:
      - Whether the server stops at the first file that it cannot copy or move.
      - In the dialect V(generic) the server is told of V(false) only.
    type: bool
    default: true
  force:
    description: Promote even where the newest promotion is the same.
    type: bool
    default: false
  gate:
    description:
      - Have the server try the promotion first without doing it. Errors that it finds fail the task, in check mode too.
      - A server of which it is not known that it can do so is read afterwards. Where it has promoted all the same, the task fails and says so.
    type: bool
    default: false
  followed_by:
    description:
      - The promotions that come after this one in the same release; those of other builds do not count.
      - Where the newest promotion of the build is one of them, the build is past this one, and nothing is sent.
      - Two promotions of a build that its record cannot tell apart, as the same status twice with one target, are refused.
    type: list
    elements: dict
    suboptions:
      build_name:
        description: Name of the build.
        type: str
        required: true
      build_number:
        description: Number of the build; without one it is still to be made.
        type: str
      status:
        description: Status that it gives.
        type: str
      comment:
        description: Its comment; not looked at, as all that follows but O(followed_by[].target_repo).
        type: str
      ci_user:
        description: Its user of the CI server.
        type: str
      source_repo:
        description: Its source.
        type: str
      target_repo:
        description: Repository that the files go to.
        type: str
      copy:
        description: Whether it copies.
        type: bool
      artifacts:
        description: Whether it takes the artifacts.
        type: bool
      dependencies:
        description: Whether it takes the dependencies.
        type: bool
      scopes:
        description: Its scopes.
        type: list
        elements: str
      properties:
        description: Its properties.
        type: dict
seealso:
  - module: delivery.toolchain.artifact_deploy
  - module: delivery.toolchain.docker_promote
"""

EXAMPLES = r"""
- name: Release a build
  delivery.toolchain.build_promote:
    build_name: agent
    build_number: "12"
    status: released
    target_repo: generic-release-local
    comment: all tests passed
    properties:
      released: "true"

- name: Mark a build without touching its files
  delivery.toolchain.build_promote:
    build_name: agent
    build_number: "12"
    status: verified

- name: Move a build's files once the server has tried it
  delivery.toolchain.build_promote:
    build_name: agent
    build_number: "12"
    status: archived
    target_repo: generic-release-local
    copy: false
    gate: true
"""

RETURN = r"""
messages:
  description: What the server says about the promotion; empty in check mode and where nothing was sent.
  returned: always, on failure where the server gave messages
  type: list
  elements: dict
  contains:
    level:
      description: C(INFO), C(WARNING) or C(ERROR). A warning is a warning of the task, an error fails it.
      type: str
    message:
      description: The text.
      type: str
promotion:
  description: The newest promotion of the build, as the server has it or as it would be.
  returned: success
  type: dict
  contains:
    status:
      description: The status; V(null) where there is none.
      type: str
    repository:
      description: The repository that the files went to; V(null) where they stayed.
      type: str
    timestamp:
      description: When, as the server writes it; V(null) where it does not tell.
      type: str
    user:
      description: Who; V(null) where the server does not tell.
      type: str
  sample:
    status: released
    repository: generic-release-local
    timestamp: "2026-01-02T03:04:05.678+0000"
    user: deployer
missing_files:
  description:
    - Artifacts of the record whose content the target did not hold although the build was promoted there, by path or name. They are promoted
      again.
  returned: success
  type: list
  elements: str
promoted:
  description: Whether the build had been promoted like this, or is past it (see O(followed_by)), before the task.
  returned: success
  type: bool
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
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.builds import build_promote


def main() -> None:
    runner.run("repo", build_promote.BuildPromoteOptions, build_promote.BuildPromoteOperation)


if __name__ == "__main__":
    main()
