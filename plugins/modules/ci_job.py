#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_job
short_description: Manage a job or a folder of the CI server
version_added: 1.0.0
description:
  - Creates a job from its configuration or as a copy of another job, brings its configuration into line, enables, disables and
    deletes it.
  - Configurations are compared by what they mean, as M(delivery.toolchain.ci_job_info) does with its
    O(delivery.toolchain.ci_job_info#module:expected_config). The order of attributes and of an object's members, white space
    around texts, the versions of plugins, and members that are there with their defaults make no difference; the order in lists does.
  - Secrets that the server has encrypted are not compared, since it encrypts them anew at each save; a warning names them. They are
    sent with every other change.
  - What is saved is read back. The server drops what it does not know without a word; then the task fails with the kind
    V(rejected) and names it.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.ci
options:
  job:
    description:
      - The job, as C(folder/job), as a list of names (one for each level), or as its URL on the server.
      - The folder that it is in has to be there.
    type: raw
    required: true
  config:
    description:
      - The configuration, as XML. One that does not say that the job is disabled is that of an enabled job.
      - XML with a document type is refused, and so are stars in place of a secret, which the server would take for the secret.
      - The words C(kept by the server) in parentheses in place of a secret leave the job the one that it has; M(delivery.toolchain.ci_export)
        writes configurations so. Where there is none, or it cannot be told which one is meant, the task fails.
    type: str
  src:
    description: A file with the configuration.
    type: path
  copy_from:
    description:
      - The job that the new one is a copy of. It counts for the creation only. The copy can be built at once; what a folder holds is
        copied with it.
      - A job that was copied and then never saved, as after an interruption, is saved.
    type: raw
  folder:
    description: Whether it is a folder. A folder without O(config) is created empty.
    type: bool
    default: false
  enabled:
    description: Whether the job can be built; left out, O(config) says so, or it stays as it is. Folders cannot be disabled.
    type: bool
  state:
    description: V(absent) deletes it with all its builds, and a folder with all that is in it.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Whether a job that has builds, or a folder that has jobs, may be deleted.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.ci_job_info
  - module: delivery.toolchain.ci_job_build
"""

EXAMPLES = r"""
- name: Make a folder
  delivery.toolchain.ci_job:
    job: tools
    folder: true

- name: Bring a job into line with its configuration
  delivery.toolchain.ci_job:
    job: tools/nightly
    config: |
      <project>
        <description>Builds every night</description>
        <triggers>
          <hudson.triggers.TimerTrigger><spec>H 3 * * *</spec></hudson.triggers.TimerTrigger>
        </triggers>
        <builders>
          <hudson.tasks.Shell><command>make all</command></hudson.tasks.Shell>
        </builders>
      </project>

- name: Copy a job, and leave it disabled for now
  delivery.toolchain.ci_job:
    job: tools/weekly
    copy_from: tools/nightly
    enabled: false

- name: Delete a folder with everything in it
  delivery.toolchain.ci_job:
    job: tools
    folder: true
    state: absent
    force: true
"""

RETURN = r"""
job:
  description: The job.
  returned: success
  type: dict
  contains:
    name:
      description: Its name with those of its folders.
      type: str
    url:
      description: Its address.
      type: str
  sample: {"name": "tools/nightly", "url": "https://ci.example.com/job/tools/job/nightly/"}
differences:
  description: Where the configuration on the server differed, as paths in the XML; empty for a job that is created or deleted.
  returned: success
  type: list
  elements: str
  sample: ["description", "builders/hudson.tasks.Shell[2]/command"]
http:
  description: Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).
  returned: always
  type: dict
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(not_found) where the folder or O(copy_from) is not there, V(conflict) for a job of another kind, and V(rejected)
      when the server has dropped a part of the configuration.
  returned: on failure
  type: dict
"""

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import runner
from ansible_collections.delivery.toolchain.plugins.module_utils.ci.jobs import ci_job


def main() -> None:
    runner.run("ci", ci_job.CiJobOptions, ci_job.CiJobOperation)


if __name__ == "__main__":
    main()
