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
  - Sets a status on a build, copies or moves its files to another repository, or both.
  - The promotions in the build record are read first. Nothing is sent if the newest promotion has the requested status and target, and the
    target contains all recorded artifacts. If artifacts are missing in the target, they are promoted again with O(copy=true). With
    O(copy=false), the task fails with the kind V(conflict).
  - Nothing is sent if the record has the requested promotion before a later promotion with another status. Use O(force) to return to an
    earlier status, and O(withdrawn) for a build that somebody has withdrawn.
  - Files are compared by path and content. Copies of the same content are counted, also those at other paths of the target. The target
    lacks a file if it has fewer copies than the record. Files that the server computes, as in M(delivery.toolchain.artifact_deploy), are not
    compared.
  - If the account may not list the target, the files are not compared, and the task adds a warning.
  - If the server does not show the promotions of a build, the promotion is sent every time, and the task reports C(changed).
  - In check mode, a server that reported the dialect V(jfrog) validates the promotion in a dry run, so errors are reported in check mode
    too. Other servers are only read.
  - A promotion without O(status) is not recorded in the build. In the dialect V(jfrog), the location of the files shows whether it was
    done. If the build has no files, the task is unchanged and adds a warning.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details:
      - With O(force=true), every run promotes the build.
      - If the server does not show the promotions of a build, every run promotes it.
      - Without O(status), every run promotes the build with O(dependencies=true), and in the dialect V(generic).
options:
  build_name:
    description: Name of the build.
    type: str
    required: true
  build_number:
    description: Number of the build.
    type: str
    required: true
  project:
    description: Key of the project (JFrog Projects) that has the build. By default, the builds outside projects are used.
    type: str
  status:
    description: Status to set, such as V(released). At least one of O(status) and O(target_repo) is required.
    type: str
  comment:
    description: Comment of the promotion.
    type: str
  ci_user:
    description: User of the CI server that requests the promotion.
    type: str
  source_repo:
    description: Promote only files from this repository.
    type: str
  target_repo:
    description: Repository to which the files are promoted. A virtual repository resolves to its default deployment repository.
    type: str
  copy:
    description: Copy the files. V(false) moves them.
    type: bool
    default: true
  artifacts:
    description: Whether to promote the artifacts of the build.
    type: bool
    default: true
  dependencies:
    description: Whether to promote the dependencies of the build.
    type: bool
    default: false
  scopes:
    description: Promote only dependencies of these scopes.
    type: list
    elements: str
  properties:
    description:
      - Properties to set on the files. A value is a string or a list of strings.
      - They are sent with a promotion. They are not compared with the current properties.
    type: dict
  fail_fast:
    description:
      - Whether the server stops at the first file that it cannot copy or move.
      - In the dialect V(generic), only V(false) is sent to the server.
    type: bool
    default: true
  force:
    description: Promote even if the newest promotion is the same.
    type: bool
    default: false
  aggregated:
    description:
      - What to do if the build refers to other builds, as an aggregated build does. Its record has modules of the type C(build), and the
        server promotes only the files of the record itself.
      - V(fail) fails with the kind V(conflict) and names these builds.
      - V(follow) also promotes these builds with the same options, each by its own record, before the build itself. It follows up to ten
        references in a row. A loop is an error.
      - V(ignore) promotes only the build itself.
      - A referenced build has the project of the referring build, unless its module has the key C(project).
    type: str
    choices: [fail, follow, ignore]
    default: fail
  gate:
    description:
      - Let the server validate the promotion in a dry run first. If it reports errors, the task fails, in check mode too.
      - If the server is not known to support a dry run, the build is read afterwards. If the server promoted the build anyway, the task
        fails and reports it.
    type: bool
    default: false
  withdrawn:
    description:
      - What to do with a build that was withdrawn. In the record of such a build a newer promotion follows the requested promotion, and the
        status of the newest promotion is neither O(status) nor in O(followed_by).
      - V(keep) leaves the build unchanged.
      - V(fail) fails with the kind V(conflict). With O(aggregated=follow), also for a withdrawn build to which the build refers.
      - V(check) fails in the same way, and promotes nothing. A build without a record passes. Use it in a task before the first write of
        a release.
      - V(promote) promotes the build again. A second run changes nothing.
      - Without O(status), an earlier promotion to O(target_repo) is the requested one.
    type: str
    choices: [keep, fail, check, promote]
    default: keep
  followed_by:
    description:
      - Later promotions of the same release. Promotions of other builds are ignored.
      - If the newest promotion of the build is in this list, the build has already passed this promotion, and nothing is sent.
      - Promotions of a build that its record cannot distinguish are rejected, such as the same status twice with the same target.
    type: list
    elements: dict
    suboptions:
      build_name:
        description: Name of the build.
        type: str
        required: true
      build_number:
        description: Number of the build. Omit it if the build does not exist yet.
        type: str
      project:
        description: Project of the build.
        type: str
      status:
        description: Status of the promotion.
        type: str
      target_repo:
        description: Target repository.
        type: str
  soak:
    description:
      - Promote only what has been in another stage for a while. Otherwise the task fails with the kind V(waiting), and promotes nothing.
      - With O(aggregated=follow), each build that the task promotes must have been in that stage. The result names the build that has to
        wait longest.
      - The time of the newest promotion to that stage and the clock of the server decide, in check mode too. Nothing is decided about what
        is promoted already.
      - Without such a promotion, the task fails with the kind V(not_found). It also fails if a time of the server cannot be read.
    type: dict
    suboptions:
      status:
        description: Status to which the build was promoted before, such as V(staged).
        type: str
        required: true
      for:
        description: Least time in that stage, as a number with C(w), C(d), C(h) or C(m), such as V(2h).
        type: str
        required: true
      check_only:
        description: Only decide, and promote nothing. Use it in a task before the first write of a release.
        type: bool
        default: false
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

- name: Release an aggregated build together with the builds to which it refers
  delivery.toolchain.build_promote:
    build_name: product
    build_number: "5"
    status: released
    target_repo: generic-release-local
    aggregated: follow

- name: End a release if somebody has withdrawn its build
  delivery.toolchain.build_promote:
    build_name: agent
    build_number: "12"
    status: released
    target_repo: generic-release-local
    withdrawn: check

- name: Release a build that has been in staging for two hours
  delivery.toolchain.build_promote:
    build_name: agent
    build_number: "13"
    status: released
    target_repo: generic-release-local
    soak: {status: staged, for: 2h}
  register: promoted
  failed_when: promoted is failed and promoted.error.kind != 'waiting'

- name: Set a status without changing the files
  delivery.toolchain.build_promote:
    build_name: agent
    build_number: "12"
    status: verified

- name: Move the files of a build after a dry run
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
  description: Messages of the server about the promotion. Empty in check mode and if nothing was sent.
  returned: always, on failure if the server returned messages
  type: list
  elements: dict
  contains:
    level:
      description: C(INFO), C(WARNING) or C(ERROR). A warning adds a warning to the task, an error fails the task.
      type: str
    message:
      description: Text of the message.
      type: str
aggregated:
  description: The builds to which the build refers, in the order of their promotion. Empty unless O(aggregated=follow).
  returned: success, on failure if a promotion was sent
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
      description: Whether the task promotes the build.
      type: bool
  sample: []
promotion:
  description: Newest promotion of the build on the server, or the expected promotion in check mode.
  returned: success
  type: dict
  contains:
    status:
      description: Status of the build, or V(null) if it has none.
      type: str
    repository:
      description: Target repository, or V(null) if the files were not copied or moved.
      type: str
    timestamp:
      description: Time of the promotion in the format of the server, or V(null) if the server does not report it.
      type: str
    user:
      description: User of the promotion, or V(null) if the server does not report it.
      type: str
  sample:
    status: released
    repository: generic-release-local
    timestamp: "2026-01-02T03:04:05.678+0000"
    user: deployer
missing_files:
  description:
    - Artifacts of the record whose content was missing in the target although the build was promoted there, by path or name. They are
      promoted again, with a warning. With O(aggregated=follow), those of all builds.
  returned: success
  type: list
  elements: str
promoted:
  description: Whether the build already had this promotion before the task, or has already passed it (see O(followed_by)).
  returned: success
  type: bool
waiting:
  description: Why the task waits. Run it again later; nothing has failed.
  returned: on failure, with the kind V(waiting)
  type: dict
  contains:
    reason:
      description: A sentence with the object, the stage, the time that it must stay there, and since when it does.
      type: str
    until:
      description: Earliest time at which the task can pass (ISO 8601, UTC), or V(null) if it is unknown.
      type: str
  sample:
    reason: "the build 'agent' #12 must stay in 'staged' for 2h, since 2026-01-02T03:04:05.678Z"
    until: "2026-01-02T05:04:05.678Z"
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.builds import build_promote


def main() -> None:
    run(build_promote.BuildPromoteOptions, build_promote.BuildPromoteOperation)


if __name__ == "__main__":
    main()
