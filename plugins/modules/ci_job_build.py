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
  - Starts one build of a job, follows it from the queue to its end, and fails when the build fails.
  - A build is started by one request. When its answer is lost or does not tell, the build is looked for in the queue and among
    the builds; the request is sent again only after the server has put it off and shows that it started nothing.
  - The server may be restarted while a build is waited for; the waiting goes on until O(wait_timeout).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.ci
attributes:
  idempotent:
    description: With O(trigger=unless_successful) a second run starts no build; otherwise each run does.
    support: partial
options:
  job:
    description:
      - The job, as C(folder/job), as a list of names (one for each level; a branch name with a slash is one of them), or as its URL.
      - A URL must be on the server.
      - Either this or O(builds) is needed.
    type: raw
  parameters:
    description:
      - Parameters of the build. Those that are left out have the job's defaults.
      - A list is sent as O(list_style) says. A boolean is sent as V(true) or V(false). A number with a fraction is refused, as YAML
        reads C(1.10) as C(1.1); put it into quotation marks.
      - Values whose names say that they are secret (C(password), C(db_pwd), C(api_token), C(private_key)) are masked in all output,
        very short ones only where the parameters are shown.
      - A parameter that the job does not have, a choice that is none of its choices, and parameters for a job that takes none are
        refused before a build is started.
      - File parameters are given in O(files).
    type: dict
  files:
    description:
      - File parameters of the build, as a dict of the name of the parameter and the path of the file, which is sent piece by piece.
      - A name that is no file parameter of the job is refused before a build is started.
      - The server shows nothing of their content. With O(trigger=unless_successful) builds are compared without them, and a warning
        names them.
    type: dict
  builds:
    description:
      - Many builds at once, in place of O(job) and O(parameters). They are started side by side and waited for together, with one
        request for each job, however many of its builds are waited for.
      - What is wrong with one of them does not keep the others from being built; the task fails in the end, with all that went
        wrong.
      - With O(trigger=unless_successful) a build that is listed twice is started once.
    type: list
    elements: dict
    suboptions:
      job:
        description: As O(job).
        type: raw
        required: true
      parameters:
        description: As O(parameters).
        type: dict
      files:
        description: As O(files).
        type: dict
      list_style:
        description: As O(list_style), which counts where this is not given.
        type: str
        choices: [repeat, comma]
      trigger:
        description: As O(trigger), which counts where this is not given.
        type: str
        choices: [always, unless_successful]
      accept:
        description: As O(accept), which counts where this is not given.
        type: list
        elements: str
        choices: [SUCCESS, UNSTABLE, FAILURE, NOT_BUILT, ABORTED]
      delay:
        description: As O(delay), which counts where this is not given.
        type: int
  parallel:
    description: How many requests are sent at once for O(builds), at most 10 of them.
    type: int
    default: 4
  list_style:
    description:
      - How a list is sent. V(repeat) sends the parameter once for each value, V(comma) sends the values joined by commas.
      - The server's own parameter types (string, text, choice, boolean, password) take one value only on most servers, and need
        V(comma); a warning says so before the server refuses the build.
    type: str
    choices: [repeat, comma]
    default: repeat
  trigger:
    description:
      - V(always) starts a build.
      - V(unless_successful) starts none when one of the newest O(lookback) builds has finished with an accepted result and equal
        parameters. A running or queued build with equal parameters is waited for in place of a new one, in check mode too.
      - Values of password parameters cannot be compared; a warning names them.
    type: str
    choices: [always, unless_successful]
    default: always
  lookback:
    description: How many of the newest builds O(trigger=unless_successful) looks at.
    type: int
    default: 50
  wait:
    description: Whether to wait until the build has finished.
    type: bool
    default: true
  wait_timeout:
    description:
      - Seconds to wait for the build, or for all of O(builds). After that the task fails and names the build or the queue item,
        which goes on unless O(stop_on_timeout) is set.
    type: float
    default: 3600
  stop_on_timeout:
    description:
      - Whether a build that has not ended after O(wait_timeout) is stopped, or taken out of the queue. It is on Ctrl-C and
        SIGTERM, too, if the server answers within seconds.
      - Only a build that this task has started is stopped, never one that was there already.
    type: bool
    default: false
  poll_interval:
    description:
      - Longest time between two looks at the build, in seconds. The first looks come faster, from half a second on.
      - While the task waits, lines tell what goes on, at most one in this time.
    type: float
    default: 5
  accept:
    description: Results that count as success.
    type: list
    elements: str
    choices: [SUCCESS, UNSTABLE, FAILURE, NOT_BUILT, ABORTED]
    default: [SUCCESS]
  console_lines:
    description: How many of the last lines of the console log to return; V(0) does not read the log.
    type: int
    default: 20
  delay:
    description: Quiet period in seconds, in which the build stays in the queue. Where it is not given, that of the job.
    type: int
notes:
  - A task that is interrupted (Ctrl-C, SIGTERM) says which build or queue item goes on, when it runs in the process of Ansible, as it
    does on a local connection; a process of its own has nobody to tell it to. O(stop_on_timeout) works in both.
  - A running build that is waited for in place of a new one is not a change. A build that the server folded into a waiting one
    with the same parameters is.
seealso:
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

- name: Build a branch whose name has a slash
  delivery.toolchain.ci_job_build:
    job: [delivery, service, feature/x]
    parameters:
      TARGET: staging

- name: Start a build and go on
  delivery.toolchain.ci_job_build:
    job: no-parameters
    wait: false

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
  description: The build. What is not known yet is null.
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
      description: Its result, null while it runs.
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
    url: https://ci.example.com/job/delivery/job/toolchain/7/
    result: SUCCESS
    duration: 72.4
    timestamp: "2026-03-01T09:30:00.000Z"
    parameters: {VERSION: 1.2.0, PUBLISH: true, CHANNEL: beta}
    queue_id: 14
queue_id:
  description: The queue item of the build.
  returned: with O(job), except when the build could not be started
  type: int
  sample: 14
console:
  description: The last lines of the console log, at most O(console_lines); empty where the build is not waited for.
  returned: with O(job), except when the build could not be started
  type: list
  elements: str
  sample: ["Running the tests", "Finished: SUCCESS"]
joined:
  description: Whether the build was there already, running or waiting in the queue.
  returned: with O(job), except when the build could not be started
  type: bool
  sample: false
builds:
  description: What O(builds) asked for, in its order, on failure too.
  returned: with O(builds)
  type: list
  elements: dict
  contains:
    job:
      description: The name of the job.
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
      description: Whether nothing went wrong with it, as far as is known.
      type: bool
    msg:
      description: What went wrong, in words; null where nothing did.
      type: str
    error:
      description: What went wrong, as RV(error); null where nothing did.
      type: dict
http:
  description: Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).
  returned: always
  type: dict
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(failed) for a build that ended badly, and V(timeout) when O(wait_timeout) is over.
  returned: on failure
  type: dict
"""

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import runner
from ansible_collections.delivery.toolchain.plugins.module_utils.ci.builds import ci_job_build


def main() -> None:
    runner.run("ci", ci_job_build.CiJobBuildOptions, ci_job_build.CiJobBuildOperation)


if __name__ == "__main__":
    main()
