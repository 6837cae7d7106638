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
  - Reads all issues that match a query, in the order of the server, each one once.
  - The result is complete, or it says that it is not. A server that refuses to page further is an error.
  - Where the server says how many issues match, pages are read in parallel.
  - On a server without the old search (Jira Cloud), its successor with page tokens is used.
  - A query that is too long for an address is sent in the body of a POST request.
  - What the server warns of becomes warnings of the task. So does a field that no issue has.
  - With O(dest) the issues go into a file while they are read, and the task returns counts only. That is the way for many thousands of issues, of
    which Ansible would make several copies.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.tracker
  - delivery.toolchain.jql_search
options:
  jql:
    description:
      - The query.
      - Where its order is not unique, C(key) becomes the last order term; the query's own order comes first.
      - The filters P(delivery.toolchain.jql#filter) and P(delivery.toolchain.jql_quote#filter) help to put values into it.
    type: str
    required: true
  dest:
    description:
      - A file for the issues, on the host that the task runs on. Its folder is made where it is missing.
      - With the ending V(.jsonl) or V(.ndjson) each line is an issue as JSON, as the server gives it. With V(.csv) it is the key and O(fields), in
        this order, below a line with their names.
      - The file appears whole or not at all, and is left as it is where it holds the same issues already.
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

- name: Count what is still open
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
  description: The issues as the server gives them, in its order, without duplicates.
  returned: success, without O(dest)
  type: list
  elements: dict
  sample: [{"id": "10001", "key": "REL-1", "fields": {"summary": "Deploy a folder of files in one task"}}]
issue_keys:
  description: The keys of the issues, in the same order.
  returned: success, without O(dest)
  type: list
  elements: str
  sample: [REL-1, REL-2]
total:
  description: How many issues match, as the server says; null where it does not say it.
  returned: success
  type: int
  sample: 25
complete:
  description: Whether every match from O(start_at) on is in RV(issues), or in the file.
  returned: success
  type: bool
  sample: true
count:
  description: How many issues the file has.
  returned: success, with O(dest)
  type: int
  sample: 50000
dest:
  description: The file.
  returned: success, with O(dest)
  type: str
  sample: reports/ops.csv
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
from ansible_collections.delivery.toolchain.plugins.module_utils.tracker.search import jql_search


def main() -> None:
    runner.run("tracker", jql_search.JqlSearchOptions, jql_search.JqlSearchOperation)


if __name__ == "__main__":
    main()
