#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_export
short_description: Export the state of the CI server as a desired state
version_added: 1.0.0
description:
  - Writes C(ci.yml) into a folder that the role C(desired_state) and the playbooks C(enforce) and C(drift) read, and the configurations of
    jobs, nodes and views as files below C(ci).
  - Values that the server encrypts, and passwords in URLs, do not leave the server. They are replaced with C(kept by the server) in
    parentheses. For this placeholder, M(delivery.toolchain.ci_job) keeps the existing secret of the job. What the server stores as plain
    text, such as the token of a trigger or a secret inside a script, is exported unchanged.
  - Credentials are exported without their secrets. Such an entry finds a credential unchanged, and never empties it. Only a change, or a
    new credential, needs the secret.
  - The exported configuration as code has no secrets and no parts that the server could not export. Credentials, nodes and views are not
    in it either, because they have lists of their own.
  - Objects that the server generates, such as the jobs of branches, are skipped.
  - Objects that cannot be expressed, or that the account may not read, are listed in RV(left_out) and at the start of the file. No object
    is skipped silently.
  - Everything is read before anything is written. If the response for an object is damaged, the task fails, names the object, and changes
    no file. The server is not changed.
  - Files that the export did not write, or that were changed since, are only replaced with O(overwrite). Files of earlier exports are
    removed if the object no longer exists on the server. A file of an earlier export is kept if the server has only rewritten its content
    without changing its meaning.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.export
  - delivery.toolchain.attributes
options:
  jobs:
    description:
      - Patterns for the names of jobs and folders. V(*) and V(?) match within a segment, V(**) matches across segments. A folder includes its
        content.
      - By default, all jobs that are visible to the account are exported. An empty list exports none.
      - Credentials and views of a folder are exported if the folder is.
    type: list
    elements: str
  exclude:
    description: Patterns for jobs and folders to skip.
    type: list
    elements: str
    default: []
  plugins:
    description: Whether to export the plugins. The exported version is a minimum version.
    type: bool
    default: true
  configuration:
    description:
      - Whether to export the configuration as code of the server, which needs the plugin C(configuration-as-code).
      - By default, it is exported. If the plugin or the permission is missing, RV(left_out) lists it; with V(true) the task fails.
    type: bool
  credentials:
    description:
      - Whether to export the credentials of the system and of the exported folders, without their secrets.
      - By default, they are exported. If a permission is missing, RV(left_out) lists it; with V(true) the task fails.
    type: bool
  nodes:
    description:
      - Whether to export the nodes, and whether each is offline by hand.
      - By default, they are exported. If a permission is missing, RV(left_out) lists it; with V(true) the task fails.
    type: bool
  views:
    description:
      - Whether to export the views of the server and of the exported folders.
      - By default, they are exported. If a permission is missing, RV(left_out) lists it; with V(true) the task fails.
    type: bool
  parallel:
    description: Number of objects to read in parallel.
    type: int
    default: 4
seealso:
  - module: delivery.toolchain.ci_configuration
  - module: delivery.toolchain.ci_credential
  - module: delivery.toolchain.ci_job
  - module: delivery.toolchain.ci_node
  - module: delivery.toolchain.ci_view
  - module: delivery.toolchain.ci_plugin_info
"""

EXAMPLES = r"""
- name: Export the jobs of a folder, and the plugins
  delivery.toolchain.ci_export:
    dest: desired
    jobs: [delivery]
    exclude: ["delivery/sandbox-*"]

- name: Export the nodes only, and fail without the permission
  delivery.toolchain.ci_export:
    dest: desired
    jobs: []
    plugins: false
    configuration: false
    credentials: false
    nodes: true
    views: false
"""

RETURN = r"""
files:
  description: The files, by their paths in O(dest).
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The path of the file.
      type: str
    action:
      description: V(created), V(updated), V(deleted) or V(unchanged).
      type: str
  sample: [{path: ci.yml, action: created}]
exported:
  description: Number of objects per list in the file of the service.
  returned: success
  type: dict
  sample: {jobs: 12}
left_out:
  description: Objects that were not exported, with the reason.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the object.
      type: str
    name:
      description: The name of the object.
      type: str
    reason:
      description: Reason why the object was not exported.
      type: str
    unread:
      description: V(true) if the account may not read the object, so the server may have more than the export.
      type: bool
      returned: if the object was not read
not_exported:
  description: What this module never exports, a sentence for each kind of data.
  returned: success
  type: list
  elements: str
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.server import ci_export


def main() -> None:
    run(ci_export.CiExportOptions, ci_export.CiExportOperation)


if __name__ == "__main__":
    main()
