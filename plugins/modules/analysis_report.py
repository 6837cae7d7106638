#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_report
short_description: Get a report of the code analysis server
version_added: 1.0.0
description:
  - Counts issues by two dimensions, lists metrics, or shows how often files changed.
  - Warnings of the server become warnings of the task.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes.info
  - delivery.toolchain.attributes.analysis
options:
  kind:
    description:
      - V(report) counts issues and accepts O(project), O(build), O(x), O(y) and O(query).
      - V(metrics) lists metrics and accepts O(project) and O(query).
      - V(churns) counts changes of files and accepts O(component) and O(project).
    type: str
    choices: [report, metrics, churns]
    default: report
  project:
    description: Name of the project. Required for V(report) and V(metrics), and on real servers for V(churns).
    type: str
  build:
    description: Name of the build. By default, the server chooses the build, usually the newest.
    type: str
  x:
    description: Dimension of the columns, such as V(Severity), V(State), V(Status), V(Owner), V(Category), V(Module) or V(Error Code).
    type: str
  y:
    description: Dimension of the rows. See O(x).
    type: str
  query:
    description:
      - Query that limits the report or the list of metrics.
      - For V(report), it is the parameter C(filterQuery) of real servers. A server without this parameter rejects the report.
    type: str
  component:
    description: Name of the component whose files to count.
    type: str
seealso:
  - module: delivery.toolchain.analysis_issue_info
"""

EXAMPLES = r"""
- name: Count the issues of a build by severity and state
  delivery.toolchain.analysis_report:
    project: toolchain
    build: build_10
    x: Severity
    y: State
    query: code:ABV.GENERAL,NPD.FUNC.MUST
  register: counts

- name: List the metrics of some files
  delivery.toolchain.analysis_report:
    kind: metrics
    project: toolchain
    query: file:/src/core/*

- name: Count the changes of a component
  delivery.toolchain.analysis_report:
    kind: churns
    project: toolchain
    component: /src/ui
"""

RETURN = r"""
report:
  description:
    - For V(report) and V(churns), the unchanged report of the server, with C(rows) and C(columns) (with C(id) and C(name)) and C(data), a
      list of numbers per row.
    - For V(metrics), a list with C(filePath), C(entity), C(entity_id), C(tag) and C(metricValue).
  returned: success
  type: raw
  sample:
    rows: [{"id": 1, "name": "C and C++"}]
    columns: [{"id": -1, "name": "New"}]
    data: [[2]]
    warnings: []
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
    analysis_report,
)


def main() -> None:
    runner.run(
        "analysis", analysis_report.AnalysisReportOptions, analysis_report.AnalysisReportOperation
    )


if __name__ == "__main__":
    main()
