#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_issue
short_description: Change status, owner and comment of issues of the code analysis server
version_added: 1.0.0
description:
  - Sets the status and the owner of issues, and comments on them. What is not given is not managed.
  - Only issues that differ are written, up to 100 of them by one request, and read back afterwards. What the server did not
    keep fails the task.
  - A comment goes along with another change. Alone it is written unless it is the newest one of the issue already.
  - Nothing is written where the query finds more issues than O(max_issues), where the list of the server is cut, or where the
    server does not understand a part of the query.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.analysis
options:
  project:
    description: Name of the project.
    type: str
    required: true
  ids:
    description: Ids of the issues. One that the project does not have fails the task before anything is written.
    type: list
    elements: int
  query:
    description:
      - Search text that finds the issues, as V(build:+build_10 code:ABV.GENERAL).
      - The filter P(delivery.toolchain.analysis_query#filter) makes it from a dict.
    type: str
  status:
    description:
      - Status to set, as V(Fix) or V(Not a Problem).
      - The server does not list the statuses that it knows. If a status is neither a documented one nor that of an issue of the
        project, the task warns, in check mode too, and the server may reject it.
    type: str
  comment:
    description: Comment to make.
    type: str
  owner:
    description: Name of the user who is to own the issues; V(unowned) stands for nobody.
    type: str
  max_issues:
    description: Most issues that the query may find, or that may be named. With more of them the task fails before anything is written.
    type: int
    default: 500
notes:
  - A server that does not show the history of issues gives nothing to compare a comment with. There a comment is written each time.
seealso:
  - module: delivery.toolchain.analysis_issue_info
  - plugin: delivery.toolchain.analysis_query
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Assign an issue
  delivery.toolchain.analysis_issue:
    project: toolchain
    ids: [102]
    owner: bob
    status: Fix
    comment: To be fixed before the release

- name: Set aside what is found in foreign code
  delivery.toolchain.analysis_issue:
    project: toolchain
    query: "{{ {'file': '/src/web/*', 'status': ['Analyze', 'Fix']} | delivery.toolchain.analysis_query }}"
    status: Ignore
    comment: Foreign code
    max_issues: 100
"""

RETURN = r"""
issues:
  description:
    - The issues that were changed, in check mode those that would be, each with C(id), C(code), C(status), C(owner) and its newest
      C(comment), as far as the server shows them.
    - When a later request fails, those that were changed before.
  returned: always
  type: list
  elements: dict
  sample: [{"id": 102, "code": "NPD.FUNC.MUST", "status": "Fix", "owner": "bob", "comment": "To be fixed before the release"}]
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
from ansible_collections.delivery.toolchain.plugins.module_utils.analysis.issues import (
    analysis_issue,
)


def main() -> None:
    runner.run(
        "analysis", analysis_issue.AnalysisIssueOptions, analysis_issue.AnalysisIssueOperation
    )


if __name__ == "__main__":
    main()
