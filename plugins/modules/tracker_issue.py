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
  - Manages an issue by its key, all issues that match a query, or creates an issue if no issue matches.
  - Only differences are written, in the order fields, links, remote links, attachments, watchers, status, comment. All changes are planned before anything is
    written. If an issue cannot reach the requested state, no issue is changed.
  - If writing an issue fails, the others are still written. The task then fails and reports the changes in RV(issues). The next run
    completes them.
  - A creation is never sent twice. If its response is lost, O(match) is queried several times to find the issue.
  - In Jira Cloud, plain text is written as paragraphs and lines. See O(text_format) for markup.
requirements:
  - markdown-it-py >= 3.0 on the host that executes this module, for O(text_format=markdown)
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details: If O(match) does not find the issue that an earlier run created, every run creates another issue.
options:
  issue:
    description: Key of the issue. Set exactly one of O(issue), O(jql) and O(match).
    type: str
  jql:
    description: Query for the issues to manage. A query without results changes nothing.
    type: str
  match:
    description:
      - Query that finds the issue if it exists. If it finds none, the issue is created with O(project), O(type) and O(summary). If it finds
        several, the task fails.
      - It must find the created issue, for example by a label in O(labels). Otherwise every run creates another issue.
      - If an earlier task of the run or another host of the play has created an issue with the same query, the task reads this issue by its
        key, because the search may not find it yet.
    type: str
  search_lag:
    description:
      - Maximum number of seconds to repeat a search of O(match) that finds nothing, before the issue is created. At most 3600.
      - The search index of the server may be out of date. Set this option if another run may have created the issue a moment ago.
    type: float
    default: 0
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
    description: Summary, a single line.
    type: str
  description:
    description: Description. An empty string removes it.
    type: str
  text_format:
    description:
      - Format of O(description), of O(comment), and of texts with several lines in O(fields) and O(transition_fields), such as the environment.
      - V(plain) sends texts unchanged. Servers understand their wiki markup in it. Jira Cloud does not, so the task warns of markup.
      - V(markdown) converts Markdown to a document in Jira Cloud, and to wiki markup on servers. Texts are then compared by their form too.
    type: str
    choices: [plain, markdown]
    default: plain
  fields:
    description:
      - Other fields, by name or ID. Unknown and ambiguous names are rejected.
      - A string is converted to the type of the field, such as a number, or the option, version or account of that name. A mapping or list
        is sent unchanged. V(null) clears a field.
      - The field of a sprint takes the ID of the sprint. A time needs an offset, such as
        V(2026-01-05T09:00:00+01:00). A cascading select takes a mapping with C(value) and C(child). C(timetracking) takes a mapping with
        C(originalEstimate) and C(remainingEstimate), such as V(2d 4h).
      - A string for a list of components, versions, accounts or choices has an entry in each line. Other strings are also split at their commas.
      - Accounts are named as in O(assignee). A document for Jira Cloud, given as a mapping, is compared by its nodes, marks and attributes. A
        string is compared by its text.
    type: dict
  labels:
    description: Complete list of labels. An empty list removes all labels.
    type: list
    elements: str
  fix_versions:
    description: Complete list of the names of fix versions. Each line of a string is a name.
    type: list
    elements: str
  components:
    description: Complete list of the names of components. Each line of a string is a name.
    type: list
    elements: str
  add:
    description: Labels, versions and components to add. Existing entries are kept.
    type: dict
    suboptions:
      labels: {description: Labels to add., type: list, elements: str}
      fix_versions: {description: Names of versions to add., type: list, elements: str}
      components: {description: Names of components to add., type: list, elements: str}
  remove:
    description:
      - Labels, versions, components and watchers to remove. Other entries are kept. An entry that the issue does not have is not an error.
      - An entry must not be in O(add) too.
    type: dict
    suboptions:
      labels: {description: Labels to remove., type: list, elements: str}
      fix_versions: {description: Names of fix versions to remove., type: list, elements: str}
      affects_versions: {description: Names of affected versions to remove., type: list, elements: str}
      components: {description: Names of components to remove., type: list, elements: str}
      watchers: {description: 'Accounts that no longer watch the issue, as in O(assignee).', type: list, elements: str}
  assignee:
    description:
      - Name of the assignee. An empty string removes the assignee.
      - In Jira Cloud, an account ID, an email address or a display name. A single account must match exactly. If the server hides email
        addresses, the task accepts the only account that a search for the address finds, and warns.
    type: str
  priority:
    description: Name of the priority.
    type: str
  parent:
    description: Key of the parent, such as the epic. To remove it, set C(parent) in O(fields) to null.
    type: str
  status:
    description:
      - Name of the target status. The issue must offer a transition to this status. Otherwise the task fails and lists the available
        statuses.
    type: str
  transition:
    description: Name or ID of the transition to O(status), if several transitions lead to it.
    type: str
  transition_fields:
    description: Values for the transition screen. See O(fields).
    type: dict
  comment:
    description:
      - Comment. It is added unless the same account has already added a comment with this text.
      - If the task also changes O(status), it sends the comment with the transition, because a transition may require a comment.
    type: str
  comment_find:
    description:
      - Part of an earlier comment of the same account. The newest such comment gets the text O(comment). If there is none, the comment is
        added.
      - With O(comment_state=absent), all comments of the account that contain it are deleted.
    type: str
  comment_state:
    description: V(absent) deletes the comments of the same account that have the text O(comment), or contain O(comment_find).
    type: str
    choices: [present, absent]
    default: present
  comment_visibility:
    description: Role or group that can see O(comment). An existing comment with the text gets this visibility.
    type: dict
    suboptions:
      type: {description: Whether O(comment_visibility.value) is a project role or a group., type: str, choices: [role, group], required: true}
      value: {description: Name of the role or group., type: str, required: true}
  comment_internal:
    description: Whether O(comment) is internal, so that customers of a service project cannot see it.
    type: bool
  watchers:
    description: Accounts that watch the issue, as in O(assignee). Other watchers are kept. Each line of a string is an account.
    type: list
    elements: str
  links:
    description: Links to other issues. Other existing links are kept.
    type: list
    elements: dict
    suboptions:
      type:
        description:
          - Name of the link type, such as V(Blocks). This issue is then the subject, so it blocks the other issue.
          - Alternatively a phrase of the link type, such as V(is blocked by), which sets the direction.
        type: str
        required: true
      issue:
        description: Key of the other issue.
        type: str
        required: true
  remote_links:
    description:
      - Links to pages of other servers, such as a build. Other remote links are kept.
      - The link with the O(remote_links[].global_id), or the one with its O(remote_links[].url) and without a global ID, is changed. Suboptions
        that are not set are kept.
    type: list
    elements: dict
    suboptions:
      url: {description: Absolute address of the page., type: str, required: true}
      global_id: {description: 'Identifier of the link, by default its address. Set it if the address may change.', type: str}
      title: {description: 'Title of the link. By default, a new link shows its address.', type: str}
      summary: {description: Text behind the title. An empty string removes it., type: str}
      relationship: {description: 'Heading of the link in the issue, such as V(built by). An empty string removes it.', type: str}
      state: {description: Whether the link exists., type: str, choices: [present, absent], default: present}
  attachments:
    description:
      - Files to attach. A file is uploaded unless the issue has an attachment with its name and content.
      - Trackers provide no digests. To compare the content, the task downloads attachments with the name and size of the file.
    type: list
    elements: path
  replace:
    description:
      - Whether to delete older attachments with the name of a file in O(attachments). The file is uploaded first.
      - If the account may not delete an older attachment, the task fails, and both attachments are kept.
    type: bool
    default: true
  compare_max:
    description:
      - Maximum size in bytes of attachments to download for a comparison. Larger files with the same name and size count as unchanged, with
        a warning.
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
- name: Close the issues of the release
  delivery.toolchain.tracker_issue:
    jql: "{{ {'project': 'REL', 'fixVersion': '1.1.0', 'status': 'In Progress'} | delivery.toolchain.jql }}"
    status: Done
    transition_fields:
      resolution: Done
    text_format: markdown
    comment: |
      Released with **1.1.0**. See the [notes](https://wiki.example.com/notes).
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
    remote_links:
      - url: https://ci.example.com/job/release/17/
        title: Build 17
        relationship: built by

- name: Change the status of an issue with a specific transition
  delivery.toolchain.tracker_issue:
    issue: REL-24
    status: Done
    transition: Close
    transition_fields:
      resolution: Fixed

- name: Keep one comment about the newest build, and take a label away
  delivery.toolchain.tracker_issue:
    issue: REL-23
    comment: "The newest build is 1.2.0-{{ build_number | default(17) }}."
    comment_find: The newest build is
    watchers: [alice]
    remove:
      labels: [waits-for-build]
"""

RETURN = r"""
issues:
  description:
    - All issues that were found or created, as key, action and changes.
    - The action is V(created), V(updated) or V(unchanged). Changes is a list of field, before and after.
    - If the task fails while it writes, the changes that were made, with C(error) for failed changes.
  returned: success, or failure of a write
  type: list
  elements: dict
  sample:
    - {"key": "REL-24", "action": "updated", "changes": [{"field": "status", "before": "In Progress", "after": "Done"}]}
unknown:
  description: Files in O(attachments) that count as unchanged only by name and size, as issue key and file name. A warning names them.
  returned: if something cannot be compared
  type: list
  elements: str
  sample: ["REL-24: disk.img"]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.tracker.editing import tracker_issue


def main() -> None:
    run(tracker_issue.TrackerIssueOptions, tracker_issue.TrackerIssueOperation)


if __name__ == "__main__":
    main()
