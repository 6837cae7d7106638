#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_build_stop
short_description: Stop a running build of the CI server, or cancel a queue item
version_added: 1.0.0
description:
  - Stops a build and waits until it has ended. A build that is not running is unchanged.
  - With O(queue_id), it cancels an item in the queue and stops no build. An item that has left the queue is unchanged.
  - The server forgets a cancelled item after five minutes. The task then fails with V(not_found), as for a number that never existed.
  - A stop request is sent only once. If its response is lost, the state of the build is checked.
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
      - A permalink is resolved once, so no later build is stopped. A build that waits in the queue is not yet V(lastBuild).
      - Set exactly one of O(build) and O(queue_id).
    type: str
  queue_id:
    description: Queue item of the job to cancel, as returned by M(delivery.toolchain.ci_job_build).
    type: int
  method:
    description:
      - Method to stop the build. V(stop) interrupts it. A pipeline can still clean up.
      - V(term) terminates a pipeline that does not stop, V(kill) a pipeline that does not terminate. The server supports both for pipelines
        only.
    type: str
    choices: [stop, term, kill]
    default: stop
  escalate:
    description: Whether to use the harder methods after O(grace) while the build is still running. Requires O(wait).
    type: bool
    default: false
  grace:
    description: With O(escalate), seconds to wait before the next method is used.
    type: float
    default: 30
  wait:
    description: Whether to wait until the build has ended.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait for the end of the build, including all methods. Then the task fails.
    type: float
    default: 300
  poll_interval:
    description: Maximum polling interval in seconds. Polling starts at half a second.
    type: float
    default: 2
seealso:
  - module: delivery.toolchain.ci_job_build
"""

EXAMPLES = r"""
- name: Stop the newest build of a job, if it still runs
  delivery.toolchain.ci_build_stop:
    job: long-history
    build: lastBuild

- name: Stop a build with escalation
  delivery.toolchain.ci_build_stop:
    job: long-history
    build: 120
    escalate: true
    grace: 60

- name: Take a build out of the queue that waits there
  delivery.toolchain.ci_build_stop:
    job: long-history
    queue_id: 119
"""

RETURN = r"""
build:
  description: Build after the task. Null for a cancelled item. Unknown values are null.
  returned: if the build or item exists
  type: dict
  contains:
    number:
      description: Its number.
      type: int
    url:
      description: Its address.
      type: str
    result:
      description: Result of the build, usually C(ABORTED) after a stop. Null while the build is running.
      type: str
    duration:
      description: Duration in seconds.
      type: float
    timestamp:
      description: Start time in ISO 8601 and UTC.
      type: str
    parameters:
      description: Parameters as shown by the server. Passwords are masked.
      type: dict
    queue_id:
      description: Queue item of the build.
      type: int
  sample:
    number: 7
    url: https://ci.example.com/job/slow/7/
    result: ABORTED
    duration: 12.4
    timestamp: "2026-03-01T09:30:00.000Z"
    parameters: {}
    queue_id: 14
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(not_found) if the build does not exist, V(timeout) if it is still running after O(wait_timeout), and V(rejected) if
      the server does not support O(method) for it.
  returned: on failure
  type: dict
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.builds import ci_build_stop


def main() -> None:
    run(ci_build_stop.CiBuildStopOptions, ci_build_stop.CiBuildStopOperation)


if __name__ == "__main__":
    main()
