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
  - Creates a job from its configuration or as a copy of another job, updates its configuration, and enables, disables or deletes the job.
  - Configurations are compared by meaning, as with O(delivery.toolchain.ci_job_info#module:expected_config). Differences in the order of
    attributes and object members, in line breaks around text, in plugin versions, and members with default values are ignored. The order
    of lists is significant.
  - Values that the server encrypts are not compared, because it encrypts them again at each save. A warning names them. O(update_secrets)
    sends them again. All other values are compared, whatever their names are; the diff masks those that have the name of a secret.
  - A configuration of a freestyle, matrix or Maven job without C(canRoam) pins the job to the built-in node. A warning says
    so if the job is new, or was not pinned before.
  - The saved configuration is verified. The server silently drops unknown elements. The task then fails with the kind V(rejected) and names
    them. If the configuration is the same as before the save, the task is unchanged, with a warning that names them.
  - The credentials and views in the configuration of a folder are neither compared nor removed, because M(delivery.toolchain.ci_credential)
    and M(delivery.toolchain.ci_view) manage them. A new folder gets those of its configuration.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details: The server encrypts secrets again at each save. With O(update_secrets=always), every run writes them.
options:
  job:
    description:
      - Job as C(folder/job), as a list of names (a name per level), or as its URL on the server.
      - The parent folder must exist.
      - Names that differ only in letter case are one job. The task fails if the server spells the name in another way.
    type: raw
    required: true
  config:
    description:
      - Configuration as XML. Unless it disables the job, the job is enabled.
      - XML with a document type is rejected. Asterisks instead of a secret are also rejected, because the server would store them as the
        secret.
      - The placeholder C(kept by the server) in parentheses keeps the existing secret of the job. M(delivery.toolchain.ci_export) writes
        it. If the job has no such secret, or it is ambiguous, the task fails.
    type: str
  src:
    description: File with the configuration.
    type: path
  copy_from:
    description:
      - Job to copy. It is only used to create the job. The copy can be built immediately. Copying a folder copies its content.
      - A copied job that was never saved, for example after an interruption, is saved.
    type: raw
  folder:
    description: Whether the object is a folder. A folder without O(config) is created empty.
    type: bool
    default: false
  enabled:
    description:
      - Whether the job can be built. The default is the state in O(config), else the current state.
      - A disabled multibranch project or organization folder has no scans, and its branches cannot be built. Plain folders cannot be
        disabled.
    type: bool
  update_secrets:
    description:
      - What happens to the secrets in O(config) or O(src) if the job exists. The server encrypts them again at each save, so they cannot be
        compared.
      - V(never) keeps the secrets of the server, also if other parts change, and adds a warning. Only a new element, or an element of
        another class, gets its secret. If a list has several entries of a class, an entry is new if it differs from all entries on the
        server.
      - V(always) sends the secrets, and every run is a change. Use it for the run that changes a secret.
    type: str
    choices: [never, always]
    default: never
  state:
    description: V(absent) deletes the job with all its builds, and a folder with its content.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Whether to allow deleting a job with builds, or a folder with jobs.
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
      description: Name of the job, including its folders.
      type: str
    url:
      description: Its address.
      type: str
  sample: {"name": "tools/nightly", "url": "https://ci.example.com/job/tools/job/nightly/"}
differences:
  description: Paths in the XML at which the configuration on the server differed. Empty for a job that is created or deleted.
  returned: success
  type: list
  elements: str
  sample: ["description", "builders/hudson.tasks.Shell[2]/command"]
unknown:
  description: Paths of the secrets that cannot be compared, because the server encrypts them again with each save.
  returned: if something cannot be compared
  type: list
  elements: str
  sample: [publishers.notifier.password]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(not_found) if the folder or O(copy_from) does not exist, V(conflict) for a job of another type, and V(rejected) if
      the server dropped a part of the configuration.
  returned: on failure
  type: dict
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.jobs import ci_job


def main() -> None:
    run(ci_job.CiJobOptions, ci_job.CiJobOperation)


if __name__ == "__main__":
    main()
