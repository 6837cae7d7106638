#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wiki_space
short_description: Create, change or delete a space of the wiki
version_added: 1.0.0
description:
  - Manages a space and, on Data Center 9.1 or newer and Confluence Cloud, its permissions. Only differences are sent.
  - A space with blog posts, or other pages than its home page, is only deleted with O(force).
  - The task fails if its account, its groups included, would no longer administer the space, unless O(force) is set.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.wiki
  - delivery.toolchain.attributes
options:
  entries:
    description: Manages many spaces with the other options. If an entry fails, the others are still processed.
    type: list
    elements: dict
    suboptions: &entry
      key:
        description: Key of the space.
        type: str
        required: true
      name:
        description: Name of the space. A new space needs it.
        type: str
      description:
        description: Description of the space, as plain text. An empty string removes it.
        type: str
      home_page:
        description: Title of the page that is the home page. A new space gets it in the next run, when the page exists.
        type: str
      permissions:
        description:
          - Permissions of groups, users and of anonymous access. Data Center 9.1 or newer, or Confluence Cloud with version 2 of the interface.
          - In the cloud users are account IDs, every subject needs C(space:read), and there is no C(space:delete_mail). Roles are left alone.
            Apps cannot change permissions.
        type: list
        elements: dict
        suboptions:
          group:
            description: Name of a group. Set exactly one of O(permissions[].group), O(permissions[].user) and O(permissions[].anonymous).
            type: str
          user:
            description: Name of a user.
            type: str
          anonymous:
            description: Whether the operations are those of anonymous access.
            type: bool
            default: false
          operations:
            description: Operations, such as V(page:create), V(space:read) or V(space:administer).
            type: list
            elements: str
            default: []
      permissions_mode:
        description: V(exact) also removes the permissions of other groups and users. V(add) only adds operations, V(remove) only removes them.
        type: str
        choices: [exact, add, remove]
        default: exact
      force:
        description: Whether a space with pages may be deleted, and whether the account of the task may lose the permission to administer it.
        type: bool
        default: false
      state:
        description: V(absent) deletes the space with its pages.
        type: str
        choices: [present, absent]
        default: present
  key:
    description: Key of the space.
    type: str
  unsupported:
    description:
      - What to do about O(permissions) that the server cannot hold, because it has no interface for them or no such operation.
      - V(fail) is an error. V(report) leaves them alone, with a warning and RV(unsupported). The role C(desired_state) sets V(report).
    type: str
    choices: [fail, report]
    default: fail
  <<: *entry
seealso:
  - module: delivery.toolchain.wiki_page
  - module: delivery.toolchain.wiki_restriction
"""

EXAMPLES = r"""
- name: Create a space
  delivery.toolchain.wiki_space:
    key: DOC
    name: Documentation
    description: What users read

- name: Let a group write in a space, and keep all other permissions
  delivery.toolchain.wiki_space:
    key: REL
    permissions:
      - group: writers
        operations: [space:read, page:create, attachment:create]
    permissions_mode: add
"""

RETURN = r"""
space:
  description:
    - Space as id, key, name, description and home_page. Null if it is absent. A space that would be created has no ID.
    - With O(permissions) also C(permissions), a mapping of C(group:NAME), C(user:NAME) or C(anonymous) to operations.
  returned: success, without O(entries)
  type: dict
  sample: {id: "98305", key: DOC, name: Documentation, description: What users read, home_page: Documentation Home}
results:
  description: With O(entries), an item for each entry, with the keys of RV(space), C(name), C(action), C(changes), and C(error) if it failed.
  returned: success, with O(entries)
  type: list
  elements: dict
  sample: [{name: DOC, action: created, changes: []}]
unsupported:
  description: Sentences about permissions that the server cannot hold. Each item of RV(results) has this key too.
  returned: if there are any, with O(unsupported=report)
  type: list
  elements: str
  sample: ["Confluence Cloud has no operation space:delete_mail"]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.wiki.pages import wiki_space


def main() -> None:
    run(wiki_space.WikiSpaceOptions, wiki_space.WikiSpaceOperation)


if __name__ == "__main__":
    main()
