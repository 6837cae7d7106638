#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: release_bundle_promote
short_description: Promote a release bundle to an environment
version_added: 1.0.0
description:
  - Promotes a version of a release bundle (version 2) to an environment, such as V(PROD).
  - Unchanged if the newest promotion to this environment is completed and has the requested repositories. Promotions to other environments
    do not matter.
  - If a promotion is still running, also by someone else, the task waits and is unchanged.
  - A promotion is never sent twice. If its response is lost, the records of the server show whether it was accepted.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.release_bundle
  - delivery.toolchain.attributes
options:
  environment:
    description: Name of the environment. An environment of a project begins with the key of the project.
    type: str
    required: true
  included_repositories:
    description: Keys of the repositories that receive the artifacts, in any order. The default are all repositories of the environment.
    type: list
    elements: str
  excluded_repositories:
    description: Keys of repositories of the environment that receive nothing.
    type: list
    elements: str
  operation:
    description: Whether to copy or to move the artifacts.
    type: str
    choices: [copy, move]
    default: copy
  signing_key:
    description: Name of the key pair that signs. The default is the key of the platform.
    type: str
  soak:
    description:
      - Promote only what has been in another stage for a while. Otherwise the task fails with the kind V(waiting), and promotes nothing.
      - Completed promotions to that environment count. While one is running, the task fails with the kind V(waiting).
      - The time of the newest promotion to that stage and the clock of the server decide, in check mode too. Nothing is decided about what
        is promoted already.
      - Without such a promotion, the task fails with the kind V(not_found). It also fails if a time of the server cannot be read.
    type: dict
    suboptions:
      environment:
        description: Environment to which the version was promoted before, such as V(QA).
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
  - module: delivery.toolchain.release_bundle
  - module: delivery.toolchain.release_bundle_info
"""

EXAMPLES = r"""
- name: Promote a release bundle
  delivery.toolchain.release_bundle_promote:
    name: agent
    version: 1.10.1
    environment: PROD
    included_repositories: [generic-release-local]

- name: Promote a release bundle that has been in QA for two hours
  delivery.toolchain.release_bundle_promote:
    name: agent
    version: 1.10.0
    environment: PROD
    soak: {environment: QA, for: 2h}
"""

RETURN = r"""
promotion:
  description: The promotion. In check mode, values that only the promotion gives are null.
  returned: success
  type: dict
  contains:
    environment:
      description: Environment.
      type: str
    status:
      description: Status of the server, such as V(COMPLETED).
      type: str
    created:
      description: Time of the promotion.
      type: str
    created_millis:
      description: Time of the promotion in epoch milliseconds, by which the server identifies it.
      type: int
    included_repositories:
      description: Keys of the included repositories, if they were specified.
      type: list
      elements: str
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
    reason: "the release bundle 'agent' 1.10.1 must stay in 'QA' for 2h, since 2026-01-02T03:04:05.678Z"
    until: "2026-01-02T05:04:05.678Z"
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.bundles import release_bundle_promote


def main() -> None:
    run(
        release_bundle_promote.ReleaseBundlePromoteOptions,
        release_bundle_promote.ReleaseBundlePromoteOperation,
    )


if __name__ == "__main__":
    main()
