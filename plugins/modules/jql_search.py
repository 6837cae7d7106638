#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: jql_search
short_description: Search for issues with a JQL query
version_added: 1.0.0
description:
  - Reads all issues that match a query, in the order of the server, without duplicates.
  - The result is complete, or marked as incomplete. If a server refuses to return further pages, the task fails.
  - If the server returns the total number of issues, pages are read in parallel.
  - On a server without the old search (Jira Cloud), the new search with page tokens is used.
  - A query that is too long for a URL is sent in the body of a POST request.
  - Warnings of the server become warnings of the task. A field that no issue has also adds a warning.
  - With O(dest), issues are written to a file while they are read, and the task returns only counts. Use this for many thousands of issues,
    because Ansible copies results several times.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.attributes
  - delivery.toolchain.jql_search
options:
  jql:
    description:
      - The query.
      - If its order is not unique, C(key) is added as the last order term, after the order of the query.
      - Use the filters P(delivery.toolchain.jql#filter) and P(delivery.toolchain.jql_quote#filter) to insert values.
    type: str
    required: true
  dest:
    description:
      - File for the issues on the host of the task. Its folder is created if it does not exist.
      - With the extension V(.jsonl) or V(.ndjson), a line is the unchanged issue as JSON. With V(.csv), it contains the key and O(fields)
        in this order, with a header line.
      - The file is written only if it is complete. If it already contains the same issues, it is unchanged.
    type: path
seealso:
  - plugin: delivery.toolchain.jql_search
    plugin_type: lookup
  - plugin: delivery.toolchain.jql
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Find the issues of a release
  delivery.toolchain.jql_search:
    jql: project = REL AND fixVersion = "1.0.0" ORDER BY priority DESC
    fields: [summary, status, issuetype]
  register: release

- name: Count open issues
  delivery.toolchain.jql_search:
    jql: "{{ {'project': 'REL', 'status !=': 'Done'} | delivery.toolchain.jql }}"
    max_results: 0
  register: open_issues

- name: Write all issues of a project into a file
  delivery.toolchain.jql_search:
    jql: project = OPS
    fields: [summary, status, assignee, created]
    dest: reports/ops.csv

- name: Show the first ten
  delivery.toolchain.jql_search:
    jql: project = OPS ORDER BY created DESC
    max_results: 10
"""

RETURN = r"""
issues:
  description: Unchanged issues in the order of the server, without duplicates.
  returned: success, without O(dest)
  type: list
  elements: dict
  sample: [{"id": "10001", "key": "REL-1", "fields": {"summary": "Deploy a folder of files in one task"}}]
issue_keys:
  description: Keys of the issues, in the same order.
  returned: success, without O(dest)
  type: list
  elements: str
  sample: [REL-1, REL-2]
total:
  description: Number of matching issues as reported by the server, or null if it is not reported.
  returned: success
  type: int
  sample: 25
complete:
  description: Whether RV(issues) or the file contains all matches from O(start_at) on.
  returned: success
  type: bool
  sample: true
count:
  description: Number of issues in the file.
  returned: success, with O(dest)
  type: int
  sample: 50000
dest:
  description: The file.
  returned: success, with O(dest)
  type: str
  sample: reports/ops.csv
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.tracker.issues import jql_search


def main() -> None:
    run(jql_search.JqlSearchOptions, jql_search.JqlSearchOperation)


if __name__ == "__main__":
    main()
