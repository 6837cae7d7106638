#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_job_info
short_description: Read jobs of the CI server, their builds, parameters and configurations
version_added: 1.0.0
description:
  - Reads a job with its builds, or a build with its parameters. Without O(job), lists all jobs.
  - Optionally compares the configuration of a job with an expected configuration.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes.info
options:
  job:
    description:
      - Job as C(folder/job), as a list of names (a name per level), or as its URL on the server.
      - By default, RV(jobs) lists all jobs of the server that the account can see.
    type: raw
  build:
    description: Number of a build, or a permalink such as V(lastSuccessfulBuild). Only the build is then read, and not the job.
    type: str
  tree:
    description:
      - Fields to read, in the tree syntax of the server, such as V(builds[number,result]{0,5}) for the job, or V(result,artifacts[*]) for
        the build if O(build) is set.
      - The server ignores unknown fields.
    type: str
  depth:
    description: Number of nested levels to return. Values above 0 are expensive for the server. O(tree) is better.
    type: int
  all_builds:
    description: Whether RV(builds) contains all builds of the job. By default, the server lists the newest 100.
    type: bool
    default: false
  config:
    description: Whether to read the configuration of the job.
    type: bool
    default: false
  expected_config:
    description:
      - Expected configuration as XML. It is compared with the configuration on the server.
      - Differences in the order of attributes and object members, in whitespace around text, in plugin versions, and members with default
        values are ignored. The order of lists is significant.
      - Secrets are not compared. The server encrypts them again each time, or does not return them.
      - With C(--diff) the differences are shown, although the task changes nothing.
      - XML with a document type is rejected.
    type: str
  xpath:
    description:
      - Selects an element in the XML of O(build). Its text is returned as RV(value).
      - The server does not return text nodes. A trailing V(text(\)) and an enclosing V(string(\)) are therefore removed from the
        expression.
      - No match is an error of the kind V(not_found), several matches are an error of the kind V(rejected).
    type: str
seealso:
  - module: delivery.toolchain.ci_job_build
  - plugin: delivery.toolchain.ci_builds
    plugin_type: lookup
  - plugin: delivery.toolchain.ci_build_parameters
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: List the jobs of the server
  delivery.toolchain.ci_job_info:
  register: all_jobs

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

- name: Read a value of a build
  delivery.toolchain.ci_job_info:
    job: long-history
    build: 120
    xpath: //action/parameter[name='VERSION']/value

- name: Compare the configuration with a file
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
jobs:
  description:
    - All jobs, with those in folders, as dictionaries with C(name) (the path, such as C(folder/job)), C(folder) (whether it contains jobs),
      C(url), C(color) and C(_class), as far as the server returns them. The branches of multibranch projects are not listed.
  returned: without O(job)
  type: list
  elements: dict
  sample: [{"name": "delivery/toolchain", "folder": false, "url": "https://ci.example/job/delivery/job/toolchain/", "color": "blue"}]
job:
  description: Job with the field names of the server. Null with O(build).
  returned: success
  type: dict
  sample: {"name": "toolchain", "fullName": "delivery/toolchain", "color": "blue", "buildable": true}
builds:
  description:
    - Builds of the job, newest first, with the field names of the server. If O(tree) selects builds, its fields.
    - Null with O(build).
  returned: success
  type: list
  elements: dict
  sample: [{"number": 7, "result": "SUCCESS", "duration": 72400, "timestamp": 1772357400000, "queueId": 14}]
build:
  description: Build with the field names of the server. Null without O(build).
  returned: success
  type: dict
  sample: {"number": 7, "result": "SUCCESS", "building": false, "duration": 72400}
parameters:
  description: Parameters of the build by name, with masked passwords. Without O(build), the parameters of the job with their defaults.
  returned: success
  type: dict
  sample: {"VERSION": "1.2.0", "PUBLISH": true}
value:
  description: Text of the element selected by O(xpath), or null without O(xpath).
  returned: success
  type: str
  sample: 1.2.0
config_xml:
  description: Unchanged configuration of the job, or null without O(config). Ansible masks secrets in it.
  returned: success
  type: str
config_drift:
  description: Whether the configuration on the server differs from O(expected_config).
  returned: if O(expected_config) is set
  type: bool
  sample: false
diff:
  description: Configuration on the server (C(before)) and expected configuration (C(after)) in the normalized form in which they are compared.
  returned: if O(expected_config) is set
  type: dict
  contains:
    before:
      description: Configuration on the server, with masked secrets.
      type: str
    after:
      description: Expected configuration with masked secrets.
      type: str
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.jobs import ci_job_info


def main() -> None:
    run(ci_job_info.CiJobInfoOptions, ci_job_info.CiJobInfoOperation)


if __name__ == "__main__":
    main()
