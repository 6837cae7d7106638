#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_job_info
short_description: Read a job of the CI server, its builds, parameters and configuration
version_added: 1.0.0
description:
  - Reads a job with its builds, or one build with its parameters.
  - Compares the configuration of a job with one that is expected.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes.info
  - delivery.toolchain.attributes.ci
options:
  job:
    description: The job, as C(folder/job), as a list of names (one for each level), or as its URL on the server.
    type: raw
    required: true
  build:
    description: A build, as its number or as a permalink such as V(lastSuccessfulBuild). Then only that is read, and not the job.
    type: str
  tree:
    description:
      - The fields to read, in the server's own language, as V(builds[number,result]{0,5}) for the job, or V(result,artifacts[*]) for
        the build where O(build) is given.
      - The server passes over fields that it does not have.
    type: str
  depth:
    description: How many levels of what is nested are shown. The server works hard for more than 0; O(tree) is better.
    type: int
  all_builds:
    description: Whether RV(builds) are all builds of the job. The server lists the newest 100 without.
    type: bool
    default: false
  config:
    description: Whether to read the configuration of the job.
    type: bool
    default: false
  expected_config:
    description:
      - The configuration that is expected, as XML. The one of the server is compared with it.
      - Neither the order of attributes and of an object's members, nor white space around texts, nor the versions of plugins, nor
        members that are there with their defaults make a difference; the order in lists does.
      - Secrets are not compared; the server encrypts them anew each time, or does not show them.
      - XML with a document type is not read.
    type: str
  xpath:
    description:
      - Selects one element in the XML of O(build); its text is RV(value).
      - The server does not give texts; a V(text(\)) at the end, and V(string(\)) around the expression, are left out for it.
      - No match is an error with the kind V(not_found), several are one with the kind V(rejected).
    type: str
seealso:
  - module: delivery.toolchain.ci_job_build
  - plugin: delivery.toolchain.ci_builds
    plugin_type: lookup
  - plugin: delivery.toolchain.ci_build_parameters
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: Read a job and its newest builds
  delivery.toolchain.ci_job_info:
    job: delivery/toolchain
  register: toolchain

- name: Read a few fields of all builds
  delivery.toolchain.ci_job_info:
    job: long-history
    tree: allBuilds[number,result,timestamp]
    all_builds: true

- name: Read the parameters of the newest build that did not fail
  delivery.toolchain.ci_job_info:
    job: long-history
    build: lastSuccessfulBuild
  register: good

- name: Read one value of a build
  delivery.toolchain.ci_job_info:
    job: long-history
    build: 120
    xpath: //action/parameter[name='VERSION']/value

- name: Say whether the configuration is as written down
  delivery.toolchain.ci_job_info:
    job: no-parameters
    expected_config: |
      <project>
        <description>Takes no parameters</description>
        <keepDependencies>false</keepDependencies>
        <properties/>
        <disabled>false</disabled>
        <concurrentBuild>false</concurrentBuild>
      </project>
  register: configuration
"""

RETURN = r"""
job:
  description: The job, with the server's own names of fields; null with O(build).
  returned: success
  type: dict
  sample: {"name": "toolchain", "fullName": "delivery/toolchain", "color": "blue", "buildable": true}
builds:
  description:
    - Its builds, newest first, with the server's own names of fields; those that O(tree) names, where it names builds.
    - Null with O(build).
  returned: success
  type: list
  elements: dict
  sample: [{"number": 7, "result": "SUCCESS", "duration": 72400, "timestamp": 1772357400000, "queueId": 14}]
build:
  description: The build, with the server's own names of fields; null without O(build).
  returned: success
  type: dict
  sample: {"number": 7, "result": "SUCCESS", "building": false, "duration": 72400}
parameters:
  description: The parameters of the build by name, passwords masked; without O(build) those of the job, with their defaults.
  returned: success
  type: dict
  sample: {"VERSION": "1.2.0", "PUBLISH": true}
value:
  description: The text of the element that O(xpath) selects; null without.
  returned: success
  type: str
  sample: 1.2.0
config_xml:
  description: The configuration of the job as the server gives it, null without O(config); Ansible masks secrets in it.
  returned: success
  type: str
config_drift:
  description: Whether the configuration of the server differs from O(expected_config).
  returned: when O(expected_config) is given
  type: bool
  sample: false
diff:
  description: The configuration of the server (C(before)) and the expected one (C(after)) in the form in which they are compared.
  returned: when O(expected_config) is given
  type: dict
  contains:
    before:
      description: That of the server, secrets masked.
      type: str
    after:
      description: The expected one, secrets masked.
      type: str
http:
  description: Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).
  returned: always
  type: dict
error:
  description: Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
  returned: on failure
  type: dict
"""

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import runner
from ansible_collections.delivery.toolchain.plugins.module_utils.ci.jobs import ci_job_info


def main() -> None:
    runner.run("ci", ci_job_info.CiJobInfoOptions, ci_job_info.CiJobInfoOperation)


if __name__ == "__main__":
    main()
