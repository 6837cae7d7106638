#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_branch_scan
short_description: Scan a multibranch project or organization folder of the CI server
version_added: 1.0.0
description:
  - Starts a scan, waits until it ends, and returns the branches that it found and removed. In an organization folder, these are
    repositories.
  - The scan is followed by its log. If another scan is running, the new scan starts after it.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: none
    details: A scan looks for new and removed branches in the source repository. Every run starts one.
options:
  job:
    description: Project as C(folder/job), as a list of names (a name per level), or as its URL on the server.
    type: raw
    required: true
  wait:
    description: Whether to wait until the scan has ended.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait for the end of the scan. Then the task fails, and the scan continues.
    type: float
    default: 600
  poll_interval:
    description: Maximum polling interval in seconds. Polling starts at half a second.
    type: float
    default: 2
seealso:
  - module: delivery.toolchain.ci_job
  - module: delivery.toolchain.ci_job_build
"""

EXAMPLES = r"""
- name: Find the branch of a hotfix
  delivery.toolchain.ci_branch_scan:
    job: delivery/service

- name: Start a scan and continue
  delivery.toolchain.ci_branch_scan:
    job: [delivery, service]
    wait: false
"""

RETURN = r"""
scan:
  description: The scan. On failure too, if it was started.
  returned: success
  type: dict
  contains:
    result:
      description: Result, for example C(SUCCESS). Null if the task did not wait.
      type: str
    log:
      description: End of the log, at most 65536 characters.
      type: str
  sample: {result: SUCCESS, log: "Finished: SUCCESS"}
branches:
  description: Names of all branches after the scan, or before it if the task did not wait.
  returned: success
  type: list
  elements: str
  sample: [feature/x, main]
added:
  description: Branches that were found by the scan.
  returned: success
  type: list
  elements: str
  sample: [feature/x]
removed:
  description: Branches that were removed by the scan.
  returned: success
  type: list
  elements: str
  sample: []
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(rejected) for a job that cannot be scanned, V(conflict) for a disabled project, and V(failed) if the scan failed.
  returned: on failure
  type: dict
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.jobs import ci_branch_scan


def main() -> None:
    run(ci_branch_scan.CiBranchScanOptions, ci_branch_scan.CiBranchScanOperation)


if __name__ == "__main__":
    main()
