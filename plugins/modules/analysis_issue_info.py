#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_issue_info
short_description: Read issues of the code analysis server, and check thresholds
version_added: 1.0.0
description:
  - Reads the issues that match a query, or a single issue with its history.
  - The response of the server is read line by line. RV(complete) reports whether it contains all matches. Without O(limit), the task reads
    the remaining issues if the server returned only a part.
  - With O(thresholds), the task is a quality gate. If there are more issues of a kind than allowed, it fails and names the first issues. It
    also fails if the list may be truncated, because the missing issues are unknown.
  - A gate is only decided on a response of this server. If the summary is missing, the body is empty or of another program, or the list is
    as long as its limit, it fails.
  - On every server, a query with an unknown build finds nothing. The task then fails with C(not_found).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes.info
  - delivery.toolchain.analysis_search
options:
  project:
    description: Name of the project.
    type: str
    required: true
  query:
    description:
      - Search query, such as V(state:New severity:1-3). By default, all issues are returned. A keyword without a value is rejected.
      - The filter P(delivery.toolchain.analysis_query#filter) creates it from a dictionary.
    type: str
  id:
    description: ID of a single issue to read, with its history.
    type: int
  build:
    description: Exact name of the build to search. It is added to O(query). By default, the server chooses the build, usually the newest.
    type: str
  summary:
    description:
      - Whether to request the summary, which contains the number of matching issues.
      - Without the summary, a list counts as complete if it is shorter than its limit.
      - With O(thresholds) the summary is always requested. This option then only controls whether it is returned.
    type: bool
    default: true
  thresholds:
    description:
      - Maximum numbers of issues per kind. An issue may count for several thresholds.
      - O(query) must name a build exactly, as in V(build:+'my build'), or O(build) names it. Quote a value with blanks, and write other words
        before the first keyword.
      - A record that represents several merged issues counts with their number.
      - A severity, state or status that is neither built in nor used by an issue of the project is rejected. A code without a matching
        defect type in the project adds a warning.
    type: list
    elements: dict
    suboptions:
      severity:
        description: Names or numbers of severities, such as V(Critical) or V(1). The default is all.
        type: list
        elements: str
      state:
        description: States, such as V(New), V(Existing) or V(Fixed). The default is all.
        type: list
        elements: str
      status:
        description: Statuses, such as V(Analyze). The default is all.
        type: list
        elements: str
      code:
        description: Codes, such as V(ABV.*), with C(*) for any characters. The default is all.
        type: list
        elements: str
      max:
        description: Maximum number of issues.
        type: int
        default: 0
  max_offenders:
    description: Maximum number of issues in RV(offenders).
    type: int
    default: 20
seealso:
  - module: delivery.toolchain.analysis_issue
  - plugin: delivery.toolchain.analysis_query
    plugin_type: lookup
  - plugin: delivery.toolchain.analysis_query
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the new issues of a build
  delivery.toolchain.analysis_issue_info:
    project: toolchain
    build: build_10
    query: state:New
  register: new_issues

- name: Read an issue with its history
  delivery.toolchain.analysis_issue_info:
    project: toolchain
    id: 101

- name: Let no build pass with new critical issues or many others
  delivery.toolchain.analysis_issue_info:
    project: toolchain
    build: build_1
    thresholds:
      - severity: [Critical, Error]
        state: [New]
      - code: [MISRA.*]
        max: 50
"""

RETURN = r"""
issues:
  description: Unchanged issues of the server. If a gate fails, RV(offenders) is returned instead.
  returned: success
  type: list
  elements: dict
  sample: [{"id": 101, "code": "ABV.GENERAL", "severity": "Critical", "severityCode": 1, "state": "Existing", "status": "Analyze"}]
summary:
  description: Unchanged summary of the server, or null if there is no summary.
  returned: success, or if a gate fails
  type: dict
  sample: {"query": "state:New", "project": "toolchain", "view": "", "limit": 1000, "total": 1, "warnings": []}
complete:
  description:
    - Whether the issues are all matches. A list as long as its limit counts as truncated if the server does not report the number of
      matches.
  returned: success, or if a gate fails
  type: bool
thresholds:
  description: The thresholds of the task, with C(count) and C(exceeded).
  returned: if O(thresholds) is set
  type: list
  elements: dict
  sample: [{"severity": ["Critical", "Error"], "state": ["New"], "max": 0, "count": 1, "exceeded": true}]
offenders:
  description: First issues that exceed a threshold, with their links if the server returns them.
  returned: if O(thresholds) is set
  type: list
  elements: dict
  sample:
    - {"id": 102, "code": "NPD.FUNC.MUST", "severity": "Critical", "state": "New", "file": "/src/ui/tree.c", "url": "https://analysis.example.com/x"}
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.analysis.issues import analysis_issue_info


def main() -> None:
    run(
        analysis_issue_info.AnalysisIssueInfoOptions, analysis_issue_info.AnalysisIssueInfoOperation
    )


if __name__ == "__main__":
    main()
