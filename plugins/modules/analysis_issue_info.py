#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_issue_info
short_description: Read issues of the code analysis server, and judge them
version_added: 1.0.0
description:
  - Reads the issues that a search finds, or one issue with its history.
  - The answer of the server is read line by line, and RV(complete) tells whether it is every match. Without O(limit) the task asks
    again for what a server left out.
  - With O(thresholds) the task is a quality gate. It fails where there are more issues of a kind than may be, and names the first.
    It fails too where the list may be cut, because nobody knows then what is missing.
  - A search by a build that the project does not have finds nothing on any server. The task fails then as C(not_found).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes.info
  - delivery.toolchain.attributes.analysis
  - delivery.toolchain.analysis_search
options:
  project:
    description: Name of the project.
    type: str
    required: true
  query:
    description:
      - Search text, as V(state:New severity:1-3). Not given means all issues.
      - The filter P(delivery.toolchain.analysis_query#filter) makes it from a dict.
    type: str
  id:
    description: Id of the one issue to read, with its history.
    type: int
  build:
    description: Exact name of the build that is searched; it is added to O(query). Not given means what the server takes, mostly the newest.
    type: str
  summary:
    description:
      - Whether to ask for the summary, which tells how many issues match.
      - Without it a list counts as complete when it is shorter than its limit.
    type: bool
    default: true
  thresholds:
    description:
      - How many issues of which kind there may be. An issue may count for several.
      - A record in which the server folds several issues together counts as so many.
      - A severity, state or status that servers do not have by themselves and that no issue of the project shows is refused; a code
        that no defect type of the project has is warned of.
    type: list
    elements: dict
    suboptions:
      severity:
        description: Names or numbers of severities, as V(Critical) or V(1). Not given means all.
        type: list
        elements: str
      state:
        description: States, as V(New), V(Existing) or V(Fixed). Not given means all.
        type: list
        elements: str
      status:
        description: Statuses, as V(Analyze). Not given means all.
        type: list
        elements: str
      code:
        description: Codes, with C(*) for any characters, as V(ABV.*). Not given means all.
        type: list
        elements: str
      max:
        description: Most issues that there may be.
        type: int
        default: 0
  max_offenders:
    description: Most issues in RV(offenders).
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

- name: Read one issue with its history
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
  description: The issues as the server gives them. A gate that was not passed gives RV(offenders) instead.
  returned: success
  type: list
  elements: dict
  sample: [{"id": 101, "code": "ABV.GENERAL", "severity": "Critical", "severityCode": 1, "state": "Existing", "status": "Analyze"}]
summary:
  description: The summary as the server gives it; null where it gives none.
  returned: success, and where a gate was not passed
  type: dict
  sample: {"query": "state:New", "project": "toolchain", "view": "", "limit": 1000, "total": 1, "warnings": []}
complete:
  description: Whether the issues are every match. A list as long as its limit, of which the server does not say how many match, counts as cut.
  returned: success, and where a gate was not passed
  type: bool
thresholds:
  description: The thresholds as they were given, each with C(count) and C(exceeded).
  returned: when O(thresholds) is given
  type: list
  elements: dict
  sample: [{"severity": ["Critical", "Error"], "state": ["New"], "max": 0, "count": 1, "exceeded": true}]
offenders:
  description: The first issues of the kinds that there are too many of, with their links where the server gives them.
  returned: when O(thresholds) is given
  type: list
  elements: dict
  sample:
    - {"id": 102, "code": "NPD.FUNC.MUST", "severity": "Critical", "state": "New", "file": "/src/ui/tree.c", "url": "https://analysis.example.com/x"}
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
    analysis_issue_info,
)


def main() -> None:
    runner.run(
        "analysis",
        analysis_issue_info.AnalysisIssueInfoOptions,
        analysis_issue_info.AnalysisIssueInfoOperation,
    )


if __name__ == "__main__":
    main()
