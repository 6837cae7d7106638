#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wiki_restriction
short_description: Restrict who may read and change a wiki page
version_added: 1.0.0
description:
  - Sets the users and groups that may read or change a page. An operation that is not listed is not changed.
  - A restriction to read also hides the pages below.
  - The task fails if its account would lose a permission, its groups included, unless O(force) is set.
  - Servers before Confluence 8.8 cannot set restrictions with this interface. The task then fails with C(rejected).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.wiki
  - delivery.toolchain.attributes
options:
  entries:
    description: Manages the restrictions of many pages with the other options. If an entry fails, the others are still processed.
    type: list
    elements: dict
    suboptions: &entry
      page_id:
        description: ID of the page. Alternatively O(space) and O(title).
        type: str
      space:
        description: Key of the space.
        type: str
      title:
        description: Title of the page.
        type: str
      read:
        description: Who may read the page, as a complete list. An empty mapping lets everybody read it who may see the space.
        type: dict
        suboptions: &read
          users:
            description: User names. On Confluence Cloud account IDs.
            type: list
            elements: str
            default: []
          groups:
            description: Names of groups.
            type: list
            elements: str
            default: []
      update:
        description: Who may change the page, as a complete list. An empty mapping lets everybody change it who may see the space.
        type: dict
        suboptions: *read
      force:
        description: Whether the account of the task may lose the permission to read or change the page.
        type: bool
        default: false
      state:
        description: V(absent) removes both restrictions.
        type: str
        choices: [present, absent]
        default: present
  <<: *entry
seealso:
  - module: delivery.toolchain.wiki_page
"""

EXAMPLES = r"""
- name: Let a group change a page, and everybody read it
  delivery.toolchain.wiki_restriction:
    space: REL
    title: Handbook
    read: {}
    update:
      groups: [writers]

- name: Remove all restrictions of a page
  delivery.toolchain.wiki_restriction:
    page_id: "1002"
    state: absent
"""

RETURN = r"""
restriction:
  description: Restrictions of the page, as C(read) and C(update), each with C(users) and C(groups).
  returned: success, without O(entries)
  type: dict
  sample:
    read: {users: [], groups: []}
    update: {users: [], groups: [writers]}
page:
  description: The page, as C(id), C(title), C(space), C(version) and C(url).
  returned: success, without O(entries)
  type: dict
  sample: {id: "1002", title: Handbook, space: REL, version: 3, url: "https://wiki.example.com/pages/viewpage.action?pageId=1002"}
results:
  description: With O(entries), an item for each entry, with C(read), C(update), C(name), C(action), C(changes), and C(error) if it failed.
  returned: success, with O(entries)
  type: list
  elements: dict
  sample: [{name: REL/Handbook, action: updated, changes: []}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.wiki.pages import wiki_restriction


def main() -> None:
    run(wiki_restriction.WikiRestrictionOptions, wiki_restriction.WikiRestrictionOperation)


if __name__ == "__main__":
    main()
