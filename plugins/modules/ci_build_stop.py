#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_build_stop
short_description: Stop a running build of the CI server, or cancel one that waits
version_added: 1.0.0
description:
  - Stops a build and waits until it has ended. A build that does not run any more is left as it is.
  - With O(queue_id) it cancels an item that waits in the queue, and stops nothing. One that has left the queue is left as it is.
  - The server forgets a cancelled item after five minutes. Then it fails as V(not_found), as a number that was never there.
  - Each request that stops is sent once. When its answer is lost, the build is looked at.
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
      - What a permalink stands for is looked up once, so that no later build is stopped.
      - Exactly one of this and O(queue_id).
    type: str
  queue_id:
    description: The queue item of the job to cancel, as M(delivery.toolchain.ci_job_build) returns it.
    type: int
  method:
    description:
      - How it is stopped. V(stop) interrupts it; a pipeline still cleans up.
      - V(term) ends a pipeline that does not stop, V(kill) one that does not even end then; the server has both for pipelines
        only.
    type: str
    choices: [stop, term, kill]
    default: stop
  escalate:
    description: Whether the harder methods follow, with O(grace) between them, as long as the build goes on. Needs O(wait).
    type: bool
    default: false
  grace:
    description: Seconds that each method has, with O(escalate), before the next one is tried.
    type: float
    default: 30
  wait:
    description: Whether to wait until the build has ended.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait for the end, over all methods. After that the task fails.
    type: float
    default: 300
  poll_interval:
    description: Longest time between two looks at the build, in seconds. The first looks come faster, from half a second on.
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

- name: Stop a build, whatever it takes
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
  description: The build as it is then; null for an item that is cancelled. What is not known is null.
  returned: when there is such a build or item
  type: dict
  contains:
    number:
      description: Its number.
      type: int
    url:
      description: Its address.
      type: str
    result:
      description: Its result, C(ABORTED) after a stop as a rule; null while it runs.
      type: str
    duration:
      description: How long it took, in seconds.
      type: float
    timestamp:
      description: When it began, in ISO 8601 and UTC.
      type: str
    parameters:
      description: Its parameters as the server shows them; passwords are masked.
      type: dict
    queue_id:
      description: The queue item that it came from.
      type: int
  sample:
    number: 7
    url: https://ci.example.com/job/slow/7/
    result: ABORTED
    duration: 12.4
    timestamp: "2026-03-01T09:30:00.000Z"
    parameters: {}
    queue_id: 14
http:
  description: Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).
  returned: always
  type: dict
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(not_found) where there is no such build, V(timeout) when it goes on after O(wait_timeout), and V(rejected) when the
      server does not have O(method) for it.
  returned: on failure
  type: dict
"""

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import runner
from ansible_collections.delivery.toolchain.plugins.module_utils.ci.builds import ci_build_stop


def main() -> None:
    runner.run("ci", ci_build_stop.CiBuildStopOptions, ci_build_stop.CiBuildStopOperation)


if __name__ == "__main__":
    main()
