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
  - Creates, changes or deletes a view of a project, that is, a search with a name.
  - What is not given is not managed. A view that is as wanted costs one request.
  - After a change the view is read back; a field that the server did not keep fails the task by its name.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.analysis
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
      - The search text. Needed where the view is not there yet.
      - A server that has only the written interface cannot change it; the task then fails as C(rejected), unless
        O(recreate=true).
    type: str
  tags:
    description:
      - Tags of the view. The list replaces the present one, and an empty list empties it. The order has no meaning.
    type: list
    elements: str
  recreate:
    description:
      - Deletes and creates the view where the server does not change its O(query).
      - The view then belongs to the account of the task and has another number.
      - Where the server refuses the new view, the old one is created again, and the task fails.
    type: bool
    default: false
  state:
    description: Whether the view is to be there.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: delivery.toolchain.analysis_issue_info
"""

EXAMPLES = r"""
- name: What is new and bad
  delivery.toolchain.analysis_view:
    project: toolchain
    name: new and critical
    query: "state:New severity:1"
    tags: [gate]

- name: Change the search, whatever the server can
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
  description: The view as it is after the task (in check mode, as far as it is known before).
  returned: when O(state=present)
  type: dict
  contains:
    project:
      description: Name of the project.
      type: str
      returned: always
    name:
      description: Name of the view.
      type: str
      returned: always
    query:
      description: The search text.
      type: str
      returned: when the server shows it
    tags:
      description: Tags of the view.
      type: list
      elements: str
      returned: when they are known
    is_public:
      description: Whether others see the view.
      type: bool
      returned: when the server tells
    readonly:
      description: Whether the view is built in and cannot be changed.
      type: bool
      returned: when it is
  sample:
    project: toolchain
    name: new and critical
    query: "state:New severity:1"
    tags: [gate]
    is_public: false
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
from ansible_collections.delivery.toolchain.plugins.module_utils.analysis.resources import (
    analysis_view,
)


def main() -> None:
    runner.run("analysis", analysis_view.AnalysisViewOptions, analysis_view.AnalysisViewOperation)


if __name__ == "__main__":
    main()
