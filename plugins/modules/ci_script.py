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
  - Runs a script in the script console of the CI server, and fails when the script fails.
  - The way there is HTTP or the command C(groovy =) of the server's SSH interface; both give the same results.
  - The server itself answers with success and a stack trace as text when a script throws. The script is therefore
    evaluated by a small program around it, whose last line tells by a random marker how the script ended. This holds for
    scripts that do not compile, too. A comment of the program shows the script to those who read the server's logs.
  - An answer without that line comes from a server that did not run the program, as one that only stands in for a CI server.
    A stack trace in it is a failure, an empty answer or a web page an error; everything else is taken for output and value of
    the script, with a warning.
  - The script may have imports and classes, use C(return), and finds the packages that the script console imports.
  - A script is sent once. Where the answer does not tell what became of it, O(unless) is asked again; without it, and where it
    is not met, whether the script was carried out is not known.
  - A script that needs to be run only sometimes has an O(unless) script as its companion, or says itself what it changes.
  - "Who tells whether the task is changed, in this order: O(changed_when_output) where it is given; else the script, when its value
    is a map (or a text with a JSON object) with a boolean C(changed); else every run is a change."
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.ci
  - delivery.toolchain.ci_ssh
attributes:
  check_mode:
    description:
      - The script is not sent, and the task says changed, unless O(unless) is met.
      - With O(has_dry_run=true) the script itself tells what it would change.
    support: full
  idempotent:
    description: With O(unless), or a script that tells whether it changed something, a second run changes nothing.
    support: partial
options:
  script:
    description:
      - The script. Exactly one of O(script) and O(src) is needed.
      - It finds O(arguments) as C(args), C(check_mode) as a boolean, and prints to C(out).
    type: str
  src:
    description: A UTF-8 file with the script, on the machine where the module runs.
    type: path
  unless:
    description:
      - A script that runs first, in check mode too. When its value, or the last line that it prints, is V(true), there is nothing
        to do, and the task is unchanged.
      - It must change nothing on the server. It finds O(arguments) as C(args), and C(check_mode) as V(true).
    type: str
  arguments:
    description:
      - What the scripts find as C(args), with the types of JSON. It is handed over as data, so that nothing needs to be quoted.
      - Values whose names say that they are secret (C(password), C(db_pwd), C(api_token), C(private_key)) are masked in all output,
        very short ones only where the arguments are shown.
    type: dict
  changed_when_output:
    description:
      - A regular expression. The task is changed when it is found in what the script prints; C(^) and C($) match at each line.
      - It counts even where the script itself tells whether it changed something.
    type: str
  has_dry_run:
    description:
      - The script has a dry run of its own, as it promises to change nothing where C(check_mode) is V(true).
      - It is then sent with that first, in check mode and in a run, and tells what it would change. A run sends it once more to do
        so, unless there is nothing to change. So both modes say the same.
    type: bool
    default: false
notes:
  - The account needs the permission to administer the server.
  - A script that runs longer than the O(timeout) needs a longer one.
  - A call of C(System.exit) that is spelled out in the script fails the task in place of ending the server.
    A call in disguise (C(Runtime), a static import, reflection) is not caught and ends the server.
seealso:
  - module: delivery.toolchain.ci_job_build
"""

EXAMPLES = r"""
- name: Set the address of the administrator where it differs
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

- name: Set the system message, with a script that tells itself what it changes
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
  description: What the script printed, without the line break at its end. Empty where it was not run.
  returned: when the script was run, or was not needed
  type: str
  sample: administrator address set
output_lines:
  description: The lines of RV(output).
  returned: when the script was run, or was not needed
  type: list
  elements: str
  sample: [administrator address set]
result:
  description:
    - The value of the script, as JSON has it; what JSON does not have is its text.
    - A text that is a JSON object or array is decoded.
  returned: when the script was run, or was not needed
  type: raw
  sample: {plugins: 12}
http:
  description: Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).
  returned: always
  type: dict
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(failed) for a script that threw; C(detail) is the stack trace down to the script's own line.
  returned: on failure
  type: dict
"""

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import runner
from ansible_collections.delivery.toolchain.plugins.module_utils.ci.scripts import ci_script


def main() -> None:
    runner.run("ci", ci_script.CiScriptOptions, ci_script.CiScriptOperation)


if __name__ == "__main__":
    main()
