#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: tracker_issue_info
short_description: Read issues of the issue tracker by their keys
version_added: 1.0.0
description:
  - Reads issues, several in parallel, and returns them as the server does.
  - If issues do not exist or are not visible to the account, the task fails and names all of these issues.
  - A moved issue can be read by its former key. The result has the new key.
  - For issues that match a query, or for hundreds of issues, M(delivery.toolchain.jql_search) needs fewer requests.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.attributes.info
options:
  issue:
    description: Key or ID of an issue. Set either O(issue) or O(issues).
    type: str
  issues:
    description: Keys or IDs of several issues. Duplicates are read once.
    type: list
    elements: str
    aliases: [keys]
  fields:
    description:
      - Fields to return, such as V(summary), V(*navigable) or V(-comment). The default is all fields.
      - If the list is empty, only the keys of the issues are returned.
    type: list
    elements: str
  expand:
    description: Parts to expand in the issues, such as V(changelog).
    type: list
    elements: str
  parallel:
    description: Maximum number of issues to read in parallel.
    type: int
    default: 4
seealso:
  - module: delivery.toolchain.jql_search
  - module: delivery.toolchain.tracker_attachment
"""

EXAMPLES = r"""
- name: Read an issue
  delivery.toolchain.tracker_issue_info:
    issue: REL-2
    fields: [summary, status]
  register: found

- name: Read two issues with their names of fields
  delivery.toolchain.tracker_issue_info:
    issues: [REL-1, REL-3]
    expand: [names]
"""

RETURN = r"""
issues:
  description:
    - Unchanged issues of the server, in the requested order, with the member C(requested). It lists the requested keys that lead to the
      issue.
    - Several keys may lead to one issue, such as its key before it was moved. The issue is returned once.
  returned: success
  type: list
  elements: dict
  sample: [{"id": "10001", "key": "REL-1", "fields": {"summary": "Deploy a folder of files in one task"}, "requested": ["REL-1"]}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.tracker.issues import tracker_issue_info


def main() -> None:
    run(tracker_issue_info.TrackerIssueInfoOptions, tracker_issue_info.TrackerIssueInfoOperation)


if __name__ == "__main__":
    main()
