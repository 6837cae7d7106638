#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: tracker_user_info
short_description: Find users of the issue tracker by name or email address
version_added: 1.0.0
description:
  - Finds users by their exact name, or by their exact email address. A display name never counts.
  - Jira Cloud hides the email address of users who do not share it, but finds their accounts. Such a match has no email address, and may be
    another user.
  - The account of the task requires the global permission Browse users and groups. Without it, a user who is not found is an error.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.attributes.info
options:
  users:
    description: Names or keys of users, on Jira Cloud account IDs. Needed without O(emails).
    type: list
    elements: str
  emails:
    description: Email addresses of users. Letter case is ignored.
    type: list
    elements: str
  parallel:
    description: Number of users to search in parallel.
    type: int
    default: 4
seealso:
  - module: delivery.toolchain.tracker_project_role
"""

EXAMPLES = r"""
- name: Find the account of a user in the cloud
  delivery.toolchain.tracker_user_info:
    emails: [alice@example.com]
  register: found
"""

RETURN = r"""
users:
  description: A row for each entry of O(users), then for each entry of O(emails).
  returned: success
  type: list
  elements: dict
  contains:
    user:
      description: The entry of O(users), or null.
      type: str
    email:
      description: The entry of O(emails), or null.
      type: str
    matches:
      description: Users as account (the name, on Jira Cloud the account ID), key, email (null if hidden), display_name and active. Empty
        if there is none.
      type: list
      elements: dict
  sample: [{user: alice, email: null, matches: [{account: alice, key: JIRAUSER10100, email: alice@example.com, display_name: Alice, active: true}]}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.tracker import tracker_user_info


def main() -> None:
    run(tracker_user_info.TrackerUserInfoOptions, tracker_user_info.TrackerUserInfoOperation)


if __name__ == "__main__":
    main()
