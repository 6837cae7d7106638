#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_build_input
short_description: Approve or abort a pipeline of the CI server that waits for input
version_added: 1.0.0
description:
  - Responds to an input step that a build waits for. The build then continues, or ends with the result C(ABORTED).
  - The response is sent only once. If its result is lost, the build is read.
  - The account must be one of the submitters of the input. If the input names none, it needs the permission to build the job.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details: With O(missing_ok=false), a second run fails, because the build no longer waits for the input.
options:
  job:
    description: Job as C(folder/job), as a list of names (a name per level), or as its URL on the server.
    type: raw
    required: true
  build:
    description: Number of the build, or a permalink such as V(lastBuild).
    type: str
    required: true
  input_id:
    description: Id of the input. Not needed if the build waits for a single input.
    type: str
  action:
    description:
      - V(proceed) approves the input, V(abort) rejects it.
      - V(proceed) needs the permission Job/Build, V(abort) needs Job/Build or Job/Cancel. If the input has a submitter, the account must be
        one of the users or in one of the groups that the submitter names. For V(abort) Job/Cancel is enough.
    type: str
    choices: [proceed, abort]
    default: proceed
  parameters:
    description:
      - Values of the parameters of the input. Every parameter needs a value. An unknown or missing parameter is an error before anything is
        sent.
      - Only for O(action=proceed).
    type: dict
  missing_ok:
    description: Whether the task is unchanged if the build does not wait for the input. Otherwise this is an error, V(not_found).
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.ci_job_build
"""

EXAMPLES = r"""
- name: Approve the deployment, unless that was done before
  delivery.toolchain.ci_build_input:
    job: long-history
    build: lastBuild
    parameters:
      TARGET: staging
    missing_ok: true

- name: Abort the deployment if it still waits
  delivery.toolchain.ci_build_input:
    job: long-history
    build: lastBuild
    input_id: Deploy
    action: abort
    missing_ok: true
"""

RETURN = r"""
input:
  description: The input. Null with O(missing_ok) if the build does not wait for it.
  returned: success
  type: dict
  contains:
    id:
      description: Its id.
      type: str
    message:
      description: Its message.
      type: str
    action:
      description: The response that was sent, as O(action).
      type: str
  sample: {id: Deploy, message: "Deploy?", action: proceed}
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(not_found) if the build does not exist or does not wait for the input.
  returned: on failure
  type: dict
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.builds import ci_build_input


def main() -> None:
    run(ci_build_input.CiBuildInputOptions, ci_build_input.CiBuildInputOperation)


if __name__ == "__main__":
    main()
