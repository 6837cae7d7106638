#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_view
short_description: Manage a view of a project on the code analysis server
version_added: 1.0.0
description:
  - Creates, changes or deletes a view of a project. A view is a search query with a name.
  - Options that are not set are not managed. An unchanged view costs a single request.
  - After a change, the view is read again to verify it. If the server did not store a field, the task fails and names the field.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
options:
  project:
    description: Name of the project. It must be there.
    type: str
    required: true
  name:
    description: Name of the view.
    type: str
    required: true
  query:
    description:
      - Search query. Required to create a view.
      - A server with only the documented interface cannot change it. The task then fails with C(rejected), unless O(recreate=true).
    type: str
  tags:
    description: Complete list of tags of the view. An empty list removes all tags. The order is ignored.
    type: list
    elements: str
  recreate:
    description:
      - Delete and create the view if the server cannot change its O(query).
      - The view then belongs to the account of the task and has another number.
      - If the server rejects the new view, the old view is created again, and the task fails.
    type: bool
    default: false
  state:
    description: Whether the view should exist.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: delivery.toolchain.analysis_issue_info
"""

EXAMPLES = r"""
- name: Create a view of new critical issues
  delivery.toolchain.analysis_view:
    project: toolchain
    name: new and critical
    query: "state:New severity:1"
    tags: [gate]

- name: Change the query on any server
  delivery.toolchain.analysis_view:
    project: toolchain
    name: new and critical
    query: "state:New severity:1,2"
    recreate: true

- name: Remove it
  delivery.toolchain.analysis_view:
    project: toolchain
    name: new and critical
    state: absent
"""

RETURN = r"""
view:
  description: View after the task, or the expected view in check mode, as far as known.
  returned: if O(state=present)
  type: dict
  contains:
    project:
      description: Name of the project.
      type: str
    name:
      description: Name of the view.
      type: str
    query:
      description: Search query.
      type: str
      returned: if the server shows it
    tags:
      description: Tags of the view.
      type: list
      elements: str
      returned: if they are known
    is_public:
      description: Whether other users can see the view.
      type: bool
      returned: if the server reports it
    readonly:
      description: Whether the view is built in and cannot be changed.
      type: bool
      returned: if it is built in
  sample:
    project: toolchain
    name: new and critical
    query: "state:New severity:1"
    tags: [gate]
    is_public: false
unknown:
  description: Names of the options that cannot be compared.
  returned: if something cannot be compared
  type: list
  elements: str
  sample: [tags]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.analysis.resources import analysis_view


def main() -> None:
    run(analysis_view.AnalysisViewOptions, analysis_view.AnalysisViewOperation)


if __name__ == "__main__":
    main()
