#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_script
short_description: Run a Groovy script on the CI server
version_added: 1.0.0
description:
  - Runs a script in the script console of the CI server, and fails if the script fails.
  - The transport is HTTP or the command C(groovy =) of the SSH interface. Both return the same results.
  - If a script throws an exception, the server returns success and a stack trace. The module therefore wraps the script in a small program.
    The last line of its output contains a random marker and reports how the script ended. Scripts that do not compile are detected too. A
    comment in the program shows the script in the logs of the server.
  - A response without this line comes from a server that did not run the program, such as a substitute for a CI server. A stack trace is
    then a failure, and an empty response or a web page is an error. Any other response is used as output and value of the script, with a
    warning.
  - The script may contain imports and classes, may use C(return), and has the default imports of the script console.
  - A script is sent once. If the response does not show the result, O(unless) is evaluated again. If it is not met, or without O(unless),
    it is unknown whether the script was run.
  - If a script need not run every time, add an O(unless) script, or return from the script whether it changed anything.
  - The task is changed if O(changed_when_output) matches. Without O(changed_when_output), the boolean C(changed) in the value of the script
    is used, if the value is a map or a string with a JSON object. Otherwise every run is a change.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
  - delivery.toolchain.ci_ssh
attributes:
  check_mode:
    description:
      - The script is not sent, and the task reports a change, unless O(unless) is met.
      - With O(has_dry_run=true), the script itself reports the expected changes.
    support: full
  idempotent:
    support: partial
    details:
      - The module does not know what a script changes. Every run sends it and reports a change, unless O(unless) is met, or
        O(changed_when_output) or the value of the script reports no change.
options:
  script:
    description:
      - The script. Set exactly one of O(script) and O(src).
      - It receives O(arguments) as C(args), C(check_mode) as a boolean, and prints to C(out).
    type: str
  src:
    description: File with the script in UTF-8, on the host of the task.
    type: path
  unless:
    description:
      - Script that runs first, in check mode too. If its value or its last line of output is V(true), the task is unchanged.
      - It must not change the server. It receives O(arguments) as C(args), and C(check_mode) as V(true).
    type: str
  arguments:
    description:
      - Arguments, available to the scripts as C(args) with JSON types. They are passed as data and need no quoting.
      - Values with names of secrets (C(password), C(db_pwd), C(api_token), C(private_key)) are masked in all output, very short values only
        in the arguments.
    type: dict
  changed_when_output:
    description:
      - Regular expression. The task is changed if it matches in the output of the script. C(^) and C($) match at line boundaries.
      - It takes precedence over a value in which the script returns whether it changed anything.
    type: str
  has_dry_run:
    description:
      - The script supports a dry run. It must not change anything if C(check_mode) is V(true).
      - The script is then sent with C(check_mode) first, in check mode and in a run, to get the expected changes. A run sends it again to
        apply them, unless there are no changes. Both modes therefore report the same changes.
    type: bool
    default: false
notes:
  - The account needs the permission to administer the server.
  - Increase O(timeout) for a script that runs longer.
  - A literal call of C(System.exit) in the script fails the task and does not end the server. Indirect calls (C(Runtime), a static import,
    reflection) are not detected and end the server.
seealso:
  - module: delivery.toolchain.ci_job_build
"""

EXAMPLES = r"""
- name: Set the address of the administrator if it differs
  delivery.toolchain.ci_script:
    unless: |
      import jenkins.model.JenkinsLocationConfiguration
      JenkinsLocationConfiguration.get().adminAddress == args.address
    script: |
      import jenkins.model.JenkinsLocationConfiguration
      def configuration = JenkinsLocationConfiguration.get()
      configuration.setAdminAddress(args.address)
      configuration.save()
      println 'administrator address set'
    arguments:
      address: admins@example.com

- name: Set the system message with a script that returns its changes
  delivery.toolchain.ci_script:
    script: |
      def before = Jenkins.get().systemMessage
      def differs = before != args.message
      if (differs && !check_mode) {
        Jenkins.get().setSystemMessage(args.message)
      }
      return [changed: differs, before: before]
    has_dry_run: true
    arguments:
      message: Delivery

- name: List the plugins; this changes nothing
  delivery.toolchain.ci_script:
    script: |
      Jenkins.get().pluginManager.plugins.each { println it.shortName }
    changed_when_output: ^changed
  register: plugins

- name: Read values, in check mode too
  delivery.toolchain.ci_script:
    script: "[changed: false, java: System.getProperty('java.specification.version'), release: Jenkins.VERSION]"
    has_dry_run: true
  register: runtime
"""

RETURN = r"""
output:
  description: Output of the script without the trailing line break. Empty if the script was not run.
  returned: if the script was run or not needed
  type: str
  sample: administrator address set
output_lines:
  description: The lines of RV(output).
  returned: if the script was run or not needed
  type: list
  elements: str
  sample: [administrator address set]
result:
  description:
    - Value of the script as JSON. Values without a JSON type are converted to strings.
    - A string with a JSON object or array is decoded.
  returned: if the script was run or not needed
  type: raw
  sample: {plugins: 12}
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(failed) for a script that threw; C(detail) is the stack trace down to the script's own line.
  returned: on failure
  type: dict
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.server import ci_script


def main() -> None:
    run(ci_script.CiScriptOptions, ci_script.CiScriptOperation)


if __name__ == "__main__":
    main()
