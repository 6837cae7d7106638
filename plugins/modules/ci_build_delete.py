#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_build_delete
short_description: Delete builds of a job of the CI server
version_added: 1.0.0
description:
  - Deletes builds with their logs and artifacts, by number, by count or by age.
  - Running builds, builds that are kept forever, and the last successful build stay, with a warning, unless O(force) is set.
  - After the deletion, the list of builds is read again. A build that does not exist is unchanged.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
options:
  job:
    description: Job as C(folder/job), as a list of names (a name per level), or as its URL on the server.
    type: raw
    required: true
  builds:
    description:
      - Numbers of the builds to delete. A range is a list too, as in the example.
      - Set exactly one of O(builds), O(keep_last) and O(older_than).
    type: list
    elements: int
  keep_last:
    description: Number of newest builds of the job to keep. All others are deleted.
    type: int
  older_than:
    description: Age of the builds to delete, since their start, for example V(30d). Units are V(s), V(m), V(h), V(d) and V(w).
    type: str
  results:
    description: Delete only selected builds with these results. O(keep_last) counts builds with any result.
    type: list
    elements: str
    choices: [SUCCESS, UNSTABLE, FAILURE, NOT_BUILT, ABORTED]
  max_deletions:
    description: Maximum number of builds to delete. If more are selected, the task fails and deletes nothing.
    type: int
    default: 100
  force:
    description:
      - Whether to delete running and kept builds and the last successful build too.
      - A running build is stopped, and a kept build is released first.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.ci_build_stop
  - module: delivery.toolchain.ci_job_info
"""

EXAMPLES = r"""
- name: Keep the newest 50 builds
  delivery.toolchain.ci_build_delete:
    job: long-history
    keep_last: 50

- name: Delete failed builds of last year
  delivery.toolchain.ci_build_delete:
    job: long-history
    older_than: 365d
    results: [FAILURE, ABORTED]

- name: Delete builds 20 to 29
  delivery.toolchain.ci_build_delete:
    job: long-history
    builds: "{{ range(20, 30) | list }}"

- name: Delete a build, even if it is kept
  delivery.toolchain.ci_build_delete:
    job: long-history
    builds: [107]
    force: true
"""

RETURN = r"""
builds:
  description: The selected builds, newest first. On failure, those that were processed.
  returned: success
  type: list
  elements: dict
  contains:
    number:
      description: Its number.
      type: int
    result:
      description: Its result. Null while it is running.
      type: str
    action:
      description: V(deleted), or V(kept) for a build that stays without O(force). If the task fails, V(stopped) or V(released) for a build
        that it has stopped or released, but not deleted.
      type: str
  sample:
    - {number: 7, result: FAILURE, action: deleted}
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(invalid) if more than O(max_deletions) builds are selected, and V(failed) if the server did not delete a build.
  returned: on failure
  type: dict
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.builds import ci_build_delete


def main() -> None:
    run(ci_build_delete.CiBuildDeleteOptions, ci_build_delete.CiBuildDeleteOperation)


if __name__ == "__main__":
    main()
