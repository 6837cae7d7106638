#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: tracker_issue
short_description: Edit, transition or create issues
version_added: 1.0.0
description:
  - Manages one issue by its key, many by a query, or one that is created where none matches.
  - Only what differs is written, in the order fields, links, attachments, comment, status. Everything is planned before anything is written, so
    that an issue that cannot become what is wanted leaves the others as they are.
  - An issue that fails while it is written does not keep the others from being done. The task fails in the end and says in RV(issues) what was
    done; the next run does the rest.
  - A creation is never sent twice. Where its answer is lost, O(match) is asked several times whether the issue is there.
  - In the cloud texts are written as paragraphs and lines, and nothing in them is markup.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.tracker
options:
  issue:
    description: Key of the issue. One of O(issue), O(jql) and O(match) is needed.
    type: str
  jql:
    description: A query; all issues that it finds are managed. One that finds none changes nothing.
    type: str
  match:
    description:
      - A query that finds the issue, once it is there. Where it finds none, the issue is created with O(project), O(type) and O(summary);
        where it finds several, the task fails.
      - It has to find what the task creates, such as by a label in O(labels); otherwise each run creates another issue.
    type: str
  max_issues:
    description: Maximum number of issues that O(jql) may find. If there are more, the task fails before it writes.
    type: int
    default: 100
  project:
    description: Key of the project of a new issue.
    type: str
  type:
    description: Issue type of a new issue.
    type: str
  summary:
    description: The summary, one line.
    type: str
  description:
    description: The description; an empty one removes it.
    type: str
  fields:
    description:
      - Further fields, by name or id. An unknown name, and one that several fields have, is refused.
      - A text becomes what its field wants, such as a number, or the option, version or account of that name; a mapping or list is sent as it is.
        V(null) empties a field.
    type: dict
  labels:
    description: Complete list of labels. An empty list removes all labels.
    type: list
    elements: str
  fix_versions:
    description: Complete list of the names of fix versions.
    type: list
    elements: str
  components:
    description: Complete list of the names of components.
    type: list
    elements: str
  add:
    description: Labels, versions and components to add. Existing entries are kept.
    type: dict
    suboptions:
      labels: {description: Labels to add., type: list, elements: str}
      fix_versions: {description: Names of versions to add., type: list, elements: str}
      components: {description: Names of components to add., type: list, elements: str}
  assignee:
    description:
      - Name of the account that gets the issue; in the cloud its account id, display name or address.
      - To assign the issue to nobody, give V(null) for V(assignee) in O(fields).
    type: str
  priority:
    description: Name of the priority.
    type: str
  status:
    description: Name of the status that the issue gets by one of the transitions that are offered. One that cannot be reached fails, and says which can.
    type: str
  transition:
    description: Name or id of the transition to O(status), where several lead there.
    type: str
  transition_fields:
    description: Values for the transition screen. See O(fields).
    type: dict
  comment:
    description: A comment; it is written unless the same account has written this text to the issue before.
    type: str
  links:
    description: Links to other issues; those that are there besides stay.
    type: list
    elements: dict
    suboptions:
      type:
        description:
          - Name of the type of link, as V(Blocks), and then this issue is its subject - this blocks that.
          - Or one of its two phrases, as V(is blocked by), which says the direction.
        type: str
        required: true
      issue:
        description: Key of the other issue.
        type: str
        required: true
  attachments:
    description:
      - Files to attach. A file is uploaded unless the issue has an attachment with its name and content.
      - Trackers keep no digests. To compare content, the task downloads the attachments that have the name and the size of the file.
    type: list
    elements: path
  replace:
    description:
      - Whether older attachments with the name of a file in O(attachments) are deleted. The file is uploaded first.
      - If the account may not delete an older attachment, the task fails, and both stay.
    type: bool
    default: true
  compare_max:
    description:
      - Most bytes of an attachment that is downloaded in order to compare it. Larger files with the same name and size count as unchanged,
        with a warning.
    type: int
    default: 67108864
  parallel:
    description: Maximum number of issues to edit in parallel.
    type: int
    default: 4
seealso:
  - module: delivery.toolchain.jql_search
  - module: delivery.toolchain.tracker_attachment
  - module: delivery.toolchain.tracker_version
"""

EXAMPLES = r"""
- name: Close what is in the release
  delivery.toolchain.tracker_issue:
    jql: "{{ {'project': 'REL', 'fixVersion': '1.1.0', 'status': 'In Progress'} | delivery.toolchain.jql }}"
    status: Done
    transition_fields:
      resolution: Done
    comment: Released with 1.1.0.
    add:
      labels: [released]

- name: Ask for the change, once
  delivery.toolchain.tracker_issue:
    match: "{{ {'project': 'OPS', 'labels': 'change-1.1.0'} | delivery.toolchain.jql }}"
    project: OPS
    type: Task
    summary: Install 1.1.0 on production
    labels: [change-1.1.0]
    fields:
      Due date: "2026-06-01"
    links:
      - {type: is blocked by, issue: REL-24}

- name: Move one issue, by the way that is named
  delivery.toolchain.tracker_issue:
    issue: REL-24
    status: Done
    transition: Close
    transition_fields:
      resolution: Fixed
"""

RETURN = r"""
issues:
  description:
    - All issues that were found, and the one that was created, as key, action and changes.
    - The action is V(created), V(updated) or V(unchanged); changes is a list of field, before and after.
    - If the task fails while it writes, the changes that were made, with C(error) for those that failed.
  returned: success, or failure of a write
  type: list
  elements: dict
  sample:
    - {"key": "REL-24", "action": "updated", "changes": [{"field": "status", "before": "In Progress", "after": "Done"}]}
uncompared:
  description: Files in O(attachments) that count as unchanged by name and size alone, each as key of the issue and name; a warning names each.
  returned: success
  type: list
  elements: str
  sample: ["REL-24: disk.img"]
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
from ansible_collections.delivery.toolchain.plugins.module_utils.tracker.editing import (
    tracker_issue,
)


def main() -> None:
    runner.run(
        "tracker",
        tracker_issue.TrackerIssueOptions,
        tracker_issue.TrackerIssueOperation,
    )


if __name__ == "__main__":
    main()
