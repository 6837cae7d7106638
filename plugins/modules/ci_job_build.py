#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_job_build
short_description: Build a job of the CI server and wait for the result
version_added: 1.0.0
description:
  - Starts a build of a job, waits in the queue and until it ends, and fails if the build fails.
  - A build is started with a single request. If its response is lost or unclear, the queue and the builds are checked. The request is
    repeated only if the server deferred it and shows that no build was started.
  - If the server restarts during a build, the task keeps waiting until O(wait_timeout).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details: Every run starts a build, unless O(trigger=unless_successful) or O(state=finished).
options:
  job:
    description:
      - Job as C(folder/job), as a list of names (a name per level, so a branch name may contain a slash), or as its URL.
      - A URL must belong to the server.
      - Set exactly one of O(job) and O(builds).
    type: raw
  state:
    description:
      - V(started) starts a build.
      - V(finished) starts nothing. It waits for the build that O(queue_id) or O(build) names, which an earlier task started with
        O(wait=false). If the build fails, the task fails, too. It never reports a change.
      - O(parameters), O(files), O(delay), O(trigger=unless_successful) and O(wait=false) cannot be combined with V(finished).
    type: str
    choices: [started, finished]
    default: started
  queue_id: &queue_id
    description:
      - Queue item of the build to wait for with O(state=finished), as RV(queue_id) of the task that started it.
      - An item that was cancelled fails the task. An item of another job is rejected.
      - In check mode, an earlier task returns no queue item. With O(state=finished) and neither O(queue_id) nor O(build), a task in check
        mode waits for the build that an earlier task of the same run would start.
    type: int
  build: &build
    description:
      - Build to wait for with O(state=finished), a number or a permalink such as V(lastBuild).
      - A build that waits in the queue is not yet V(lastBuild). Name it by O(queue_id).
    type: str
  parameters: &parameters
    description:
      - Parameters of the build. Other parameters use the defaults of the job.
      - A list is sent according to O(list_style). A boolean is sent as V(true) or V(false). A number with a fraction is rejected, because
        YAML reads C(1.10) as C(1.1). Quote such a value.
      - Values with names of secrets (C(password), C(db_pwd), C(api_token), C(private_key)) are masked in all output, very short values only
        in the parameters.
      - Unknown parameters, invalid choices, and parameters for a job without parameters are rejected before a build is started.
      - Set file parameters in O(files).
    type: dict
  files: &files
    description:
      - File parameters of the build, as a dictionary of parameter names and file paths. Files are sent in chunks.
      - A name that is not a file parameter of the job is rejected before a build is started.
      - The server does not show their content. With O(trigger=unless_successful), builds are compared without them, and a warning names
        them.
    type: dict
  builds:
    description:
      - Several builds, instead of O(job) and O(parameters). They are started in parallel and polled together, with a single request per job
        for all its builds.
      - If a build fails or cannot be started, the others continue. The task then fails and reports all errors.
      - With O(trigger=unless_successful), a build that is listed twice is started once.
    type: list
    elements: dict
    suboptions:
      job:
        description: As O(job).
        type: raw
        required: true
      state:
        description: See O(state), which is the default.
        type: str
        choices: [started, finished]
      queue_id: *queue_id
      build: *build
      parameters: *parameters
      files: *files
      list_style:
        description: See O(list_style), which is the default.
        type: str
        choices: [repeat, comma]
      trigger:
        description: See O(trigger), which is the default.
        type: str
        choices: [always, unless_successful]
      accept:
        description: See O(accept), which is the default.
        type: list
        elements: str
        choices: [SUCCESS, UNSTABLE, FAILURE, NOT_BUILT, ABORTED]
      delay:
        description: See O(delay), which is the default.
        type: int
  parallel:
    description: Number of parallel requests for O(builds), at most 10.
    type: int
    default: 4
  list_style:
    description:
      - Encoding of lists. V(repeat) sends the parameter once per value, V(comma) sends the values joined with commas.
      - On most servers, the built-in parameter types (string, text, choice, boolean, password) accept a single value and need V(comma). The
        task adds a warning before the server rejects the build.
    type: str
    choices: [repeat, comma]
    default: repeat
  trigger:
    description:
      - V(always) starts a build.
      - V(unless_successful) starts no build if a build among the newest O(lookback) builds has equal parameters and an accepted result. It
        waits for a running or queued build with equal parameters instead of starting a build, in check mode too.
      - Values of password parameters cannot be compared. A warning names them.
    type: str
    choices: [always, unless_successful]
    default: always
  lookback:
    description: Number of newest builds to compare with O(trigger=unless_successful).
    type: int
    default: 50
  wait:
    description: Whether to wait until the build has finished.
    type: bool
    default: true
  wait_timeout:
    description:
      - Seconds to wait for the build, or for all O(builds). Then the task fails and names the build or queue item, which continues unless
        O(stop_on_timeout) is set.
    type: float
    default: 3600
  stop_on_timeout:
    description:
      - Whether to stop a build, or cancel its queue item, if it has not ended after O(wait_timeout). This also applies to Ctrl-C and
        SIGTERM if the server responds within seconds.
      - Only a build that this task started is stopped.
    type: bool
    default: false
  on_input:
    description:
      - What happens if the build waits for an input of its pipeline. The build continues to wait in any case.
      - V(fail) ends the task immediately with the error kind V(waiting). V(wait) waits until M(delivery.toolchain.ci_build_input) or a user
        responds, and fails with V(waiting) after O(wait_timeout).
    type: str
    choices: [fail, wait]
    default: fail
  poll_interval:
    description:
      - Maximum polling interval in seconds. Polling starts at half a second.
      - While the task waits, it shows progress messages, at most one per interval.
    type: float
    default: 5
  accept:
    description: Results that count as success.
    type: list
    elements: str
    choices: [SUCCESS, UNSTABLE, FAILURE, NOT_BUILT, ABORTED]
    default: [SUCCESS]
  console_lines:
    description: Number of last lines of the console log to return. V(0) does not read the log.
    type: int
    default: 20
  delay:
    description: Quiet period in seconds, during which the build stays in the queue. The default is that of the job.
    type: int
notes:
  - If the task runs in the Ansible process, as with a local connection, an interrupted task (Ctrl-C, SIGTERM) reports which build or queue
    item continues. A separate process cannot report it. O(stop_on_timeout) works in both.
  - Waiting for an already running build is not a change. A build that the server merged into a queued build with the same parameters is a
    change.
seealso:
  - module: delivery.toolchain.ci_build_input
  - module: delivery.toolchain.ci_build_stop
  - module: delivery.toolchain.ci_job_info
  - module: delivery.toolchain.ci_script
"""

EXAMPLES = r"""
- name: Build version 1.2.0 once
  delivery.toolchain.ci_job_build:
    job: delivery/toolchain
    parameters:
      VERSION: 1.2.0
      PUBLISH: true
      CHANNEL: beta
    trigger: unless_successful
  register: release

- name: Build a branch with a slash in its name
  delivery.toolchain.ci_job_build:
    job: [delivery, service, feature/x]
    parameters:
      TARGET: staging

- name: Start a build and go on
  delivery.toolchain.ci_job_build:
    job: no-parameters
    wait: false

- name: Start a long build
  delivery.toolchain.ci_job_build:
    job: delivery/toolchain
    parameters:
      VERSION: 1.2.0
    wait: false
  register: started

- name: Wait for it after other tasks
  delivery.toolchain.ci_job_build:
    job: delivery/toolchain
    queue_id: "{{ started.queue_id | default(omit, true) }}"
    state: finished

- name: A build with failed tests is good enough
  delivery.toolchain.ci_job_build:
    job: unstable
    accept: [SUCCESS, UNSTABLE]
    console_lines: 5

- name: Build for two channels at once
  delivery.toolchain.ci_job_build:
    builds:
      - job: delivery/toolchain
        parameters: {VERSION: 1.3.0, CHANNEL: beta}
      - job: delivery/toolchain
        parameters: {VERSION: 1.3.0, CHANNEL: stable}
      - job: no-parameters
    trigger: unless_successful
    wait_timeout: 1800
    stop_on_timeout: true
  register: matrix
"""

RETURN = r"""
build:
  description: Build that was started or waited for. Unknown values are null.
  returned: with O(job), except when the build could not be started
  type: dict
  contains:
    number:
      description: Its number.
      type: int
    url:
      description: Its address.
      type: str
    result:
      description: Result of the build. Null while the build is running.
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
    input:
      description: Input that the build waits for, or null.
      type: dict
      contains:
        id:
          description: Its id, for O(delivery.toolchain.ci_build_input#module:input_id).
          type: str
        message:
          description: Its message.
          type: str
        ok:
          description: Caption of the button to approve.
          type: str
        submitter:
          description: Users and groups that may respond, separated by commas. Null for all users that may build the job.
          type: str
        parameters:
          description: Its parameters, each with C(name) and C(type).
          type: list
          elements: dict
  sample:
    number: 7
    url: https://ci.example.com/job/delivery/job/toolchain/7/
    result: SUCCESS
    duration: 72.4
    timestamp: "2026-03-01T09:30:00.000Z"
    parameters: {VERSION: 1.2.0, PUBLISH: true, CHANNEL: beta}
    queue_id: 14
    input: null
queue_id:
  description: Queue item of the build.
  returned: with O(job), except when the build could not be started
  type: int
  sample: 14
console:
  description: Last lines of the console log, at most O(console_lines). Empty if the task does not wait.
  returned: with O(job), except when the build could not be started
  type: list
  elements: str
  sample: ["Running the tests", "Finished: SUCCESS"]
joined:
  description: Whether the build was already running or queued before the task.
  returned: with O(job), except when the build could not be started
  type: bool
  sample: false
builds:
  description: Results of O(builds) in the same order, on failure too.
  returned: with O(builds)
  type: list
  elements: dict
  contains:
    job:
      description: Name of the job.
      type: str
    build:
      description: As RV(build).
      type: dict
    queue_id:
      description: As RV(queue_id).
      type: int
    joined:
      description: As RV(joined).
      type: bool
    console:
      description: As RV(console).
      type: list
      elements: str
    ok:
      description: Whether the build succeeded, as far as known.
      type: bool
    msg:
      description: Error message, or null if the build succeeded.
      type: str
    error:
      description: Details of the error as in RV(error), or null if the build succeeded.
      type: dict
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(failed) for a build that ended badly, and V(timeout) when O(wait_timeout) is over.
  returned: on failure
  type: dict
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.builds import ci_job_build


def main() -> None:
    run(ci_job_build.CiJobBuildOptions, ci_job_build.CiJobBuildOperation)


if __name__ == "__main__":
    main()
