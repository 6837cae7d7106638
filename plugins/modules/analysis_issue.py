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
  - Sets the status and the owner of issues, and adds comments. Options that are not set are not managed.
  - Only issues that differ are written, up to 100 per request, and read again to verify the change. If the server did not store a value,
    the task fails.
  - A comment is added together with another change. Without another change, it is added unless it is already the newest comment of the
    issue.
  - Nothing is written if the query finds more issues than O(max_issues), if the server truncates the list, or if the server does not
    support a part of the query.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details:
      - If the server does not show the history of issues, every run adds O(comment). If it does not show the bug of an issue, every run
        writes O(bug_tracker_id).
options:
  project:
    description: Name of the project.
    type: str
    required: true
  ids:
    description: IDs of the issues. If an issue does not exist in the project, the task fails before it writes.
    type: list
    elements: int
  query:
    description:
      - Query that selects the issues, such as V(build:+build_10 code:ABV.GENERAL).
      - The filter P(delivery.toolchain.analysis_query#filter) creates it from a dictionary.
    type: str
  status:
    description:
      - Status to set, as V(Fix) or V(Not a Problem).
      - The server does not list the statuses that it knows. If a status is neither documented nor used by an issue of the
        project, the task warns, in check mode too, and the server may reject it.
    type: str
  comment:
    description: Comment to make.
    type: str
  owner:
    description: Name of the owner of the issues. V(unowned) removes the owner.
    type: str
  bug_tracker_id:
    description:
      - ID of a bug of your bug tracker, which the issues then refer to.
      - The server shows it only in searches, and older servers not at all. If it is not shown, as for issues that the newest build no longer
        has, it is written in every run.
    type: str
  max_issues:
    description: Maximum number of issues to change. If there are more, the task fails before it writes.
    type: int
    default: 500
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

- name: Ignore issues in third-party code
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
    - Issues that were changed, or would be changed in check mode, with C(id), C(code), C(status), C(owner), C(bug_tracker_id) and the newest
      C(comment), as far as the server shows them.
    - If a later request fails, the issues that were changed before.
  returned: always
  type: list
  elements: dict
  sample: [{"id": 102, "code": "NPD.FUNC.MUST", "status": "Fix", "owner": "bob", "comment": "To be fixed before the release"}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.analysis.issues import analysis_issue


def main() -> None:
    run(analysis_issue.AnalysisIssueOptions, analysis_issue.AnalysisIssueOperation)


if __name__ == "__main__":
    main()
