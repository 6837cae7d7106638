#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_view
short_description: Create, change or delete a view of jobs
version_added: 1.0.0
description:
  - Manages views of the server or of a folder. Only differences are sent.
  - The primary view is not deleted.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
options:
  entries:
    description: Manages many objects with the other options.
    type: list
    elements: dict
    suboptions: &entry
      name:
        description: Name of the view.
        type: str
        required: true
      folder:
        description: Folder with the view. Without it, a view of the server.
        type: str
      jobs:
        description: All jobs that the view lists by name, relative to the folder. The order has no meaning.
        type: list
        elements: str
      regex:
        description: Regular expression for names of further jobs. An empty string removes it.
        type: str
      description:
        description: Description. An empty string removes it.
        type: str
      config:
        description:
          - Whole configuration as XML, for columns, filters and other kinds of views.
          - C(columns), C(properties), and inner views of a nested view that it does not name, are not compared, and stay.
        type: str
      src:
        description: File with the configuration, instead of O(config). C(ci_export) writes such files.
        type: path
      state:
        description: V(absent) deletes the view.
        type: str
        choices: [present, absent]
        default: present
  name:
    description: Name of the view.
    type: str
  <<: *entry
seealso:
  - module: delivery.toolchain.ci_job
"""

EXAMPLES = r"""
- name: Show the jobs of a release
  delivery.toolchain.ci_view:
    name: Release
    jobs: [no-parameters]
    regex: release-.*

- name: Keep views in a folder
  delivery.toolchain.ci_view:
    entries:
      - {folder: delivery, name: Nightly, regex: nightly.*}
      - {folder: delivery, name: Old, state: absent}
"""

RETURN = r"""
view:
  description: View. Null if it is absent.
  returned: success, without O(entries)
  type: dict
  sample: {name: Release, folder: "", description: "", jobs: [no-parameters], regex: release-.*}
results:
  description: With O(entries), an item for each entry, with the keys of the single return value, C(name), C(action), C(changes), and C(error) if it failed.
  returned: success, with O(entries)
  type: list
  elements: dict
  sample: [{name: example, action: created, changes: []}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.jobs import ci_view


def main() -> None:
    run(ci_view.CiViewOptions, ci_view.CiViewOperation)


if __name__ == "__main__":
    main()
