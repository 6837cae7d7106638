#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_report_info
short_description: Get a report of the code analysis server
version_added: 1.0.0
description:
  - Counts issues by two dimensions, lists metrics, or shows how often files changed.
  - Warnings of the server become warnings of the task.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes.info
options:
  kind:
    description:
      - V(report) counts issues and accepts O(project), O(build), O(view), O(x), O(x_drilldown), O(y), O(y_drilldown), O(group_issues) and
        O(query).
      - V(metrics) lists metrics and accepts O(project), O(query), O(view), O(limit), O(aggregate) and O(exclude_system_files).
      - V(churns) counts changes of files and accepts O(component), O(project), O(view), O(view_creator) and O(latest_builds).
    type: str
    choices: [report, metrics, churns]
    default: report
  project:
    description: Name of the project. Required for V(report) and V(metrics), and on real servers for V(churns).
    type: str
  build:
    description: Name of the build. By default, the server chooses the build, usually the newest.
    type: str
  view:
    description: Name of the view whose query limits the report.
    type: str
  x:
    description: Dimension of the columns, such as V(Severity), V(State), V(Status), V(Owner), V(Category), V(Module) or V(Error Code).
    type: str
  x_drilldown:
    description: The C(id) of a column, whose lower level the columns show. An C(id) of -1 has no lower level.
    type: int
  y:
    description: Dimension of the rows. See O(x).
    type: str
  y_drilldown:
    description: The C(id) of a row, whose lower level the rows show. See O(x_drilldown).
    type: int
  group_issues:
    description: Whether a group of issues counts as a single issue. By default, the server decides.
    type: bool
  query:
    description:
      - Query that limits the report or the list of metrics.
      - For V(report), it is the parameter C(filterQuery) of real servers. A server without this parameter rejects the report.
    type: str
  limit:
    description: Maximum number of metrics. By default, the server decides. A list of this length adds a warning, because it may be incomplete.
    type: int
  aggregate:
    description: Whether to return statistics per metric instead of a metric per file or function. By default, the server decides.
    type: bool
  exclude_system_files:
    description: Whether to leave out metrics of system files. By default, the server decides.
    type: bool
  component:
    description: Name of the component whose files to count.
    type: str
  view_creator:
    description: Name of the user who created the O(view).
    type: str
  latest_builds:
    description: Number of the latest builds to show.
    type: int
seealso:
  - module: delivery.toolchain.analysis_issue_info
"""

EXAMPLES = r"""
- name: Count the issues of a build by severity and state
  delivery.toolchain.analysis_report_info:
    project: toolchain
    build: build_10
    x: Severity
    y: State
    query: code:ABV.GENERAL,NPD.FUNC.MUST
  register: counts

- name: List the metrics of some files
  delivery.toolchain.analysis_report_info:
    kind: metrics
    project: toolchain
    query: file:/src/core/*
    aggregate: true
    exclude_system_files: true

- name: Count the changes of a component
  delivery.toolchain.analysis_report_info:
    kind: churns
    project: toolchain
    component: /src/ui
"""

RETURN = r"""
report:
  description:
    - For V(report) and V(churns), the unchanged report of the server, with C(rows) and C(columns) (with C(id) and C(name)) and C(data), a
      list of numbers per row.
    - For V(metrics), a list with C(filePath), C(entity), C(entity_id), C(tag) and C(metricValue), or with O(aggregate) a list with C(tag),
      C(sum), C(min), C(max) and C(entries).
  returned: success
  type: raw
  sample:
    rows: [{"id": 1, "name": "C and C++"}]
    columns: [{"id": -1, "name": "New"}]
    data: [[2]]
    warnings: []
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.analysis.issues import analysis_report_info


def main() -> None:
    run(
        analysis_report_info.AnalysisReportInfoOptions,
        analysis_report_info.AnalysisReportInfoOperation,
    )


if __name__ == "__main__":
    main()
