#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wiki_page
short_description: Create, update, move or remove a page of the wiki
version_added: 0.1.0
description:
  - Writes a page only where something that a reader would see has changed.
  - What the server rewrites on save (ids of macros, order of parameters, spelling of the XML) is no difference; see RV(ignored_differences).
  - Never writes over somebody else's edit; see O(on_conflict) and O(expected_version).
  - A body is checked for well-formedness before anything is sent.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.wiki
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.wiki
options:
  page_id:
    description: The id of the page. Without it, the page is found by O(space) and O(title), and created where it is missing.
    type: str
  space:
    description: The key of the space. With O(page_id), a page of another space is a conflict.
    type: str
  title:
    description: The title; with O(page_id), a page of another title is renamed. Blanks around it do not count.
    type: str
  parent_id:
    description:
      - The id of the page above. A page that stands elsewhere is moved.
      - A new page without it comes at the top of the space.
    type: str
  body:
    description:
      - The body in storage format. Entities of HTML are known; C(ac:) and C(ri:) need no declaration.
      - Without O(body) and O(src) the body stays as it is.
    type: str
  src:
    description: A file (UTF-8) with the body.
    type: path
  section:
    description:
      - The text of a heading. Only what stands under it is managed, up to the next heading of its level or higher.
      - The rest of the page is left as it is, byte for byte. The heading has to be there, once.
    type: str
  compare:
    description:
      - V(normalized) ignores what the server rewrites on save.
      - V(exact) compares the text; where the server rewrites it, every run is a change.
    type: str
    choices: [normalized, exact]
    default: normalized
  on_conflict:
    description:
      - What to do when another writer saves the page between the read and the write.
      - V(fail) fails. V(retry) saves anew if the body that was read is still the body on the server, and fails otherwise.
      - A lock inside of the server, while the page itself has not changed, is waited for in both.
      - With O(expected_version), another writer's save is a conflict in any case.
    type: str
    choices: [fail, retry]
    default: fail
  expected_version:
    description: Fail unless the page has this version.
    type: int
  version_comment:
    description: The comment of the new version.
    type: str
  minor_edit:
    description: Whether watchers are not told of the new version.
    type: bool
    default: false
  state:
    description: V(absent) moves the page to the trash; options that describe a page do not count then.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Publish a page below the release notes
  delivery.toolchain.wiki_page:
    space: REL
    title: Release 1.0.0
    parent_id: "1003"
    body: <h1>Changes</h1><p>Folders are deployed in one task.</p>
    version_comment: Written by the release playbook

- name: Manage one section of a page that people edit, too
  delivery.toolchain.wiki_page:
    page_id: "1002"
    section: After a release
    body: <p>Announce it on the release channel.</p>

- name: Remove the page
  delivery.toolchain.wiki_page:
    space: REL
    title: Release 1.0.0
    state: absent
"""

RETURN = r"""
page:
  description:
    - The page as it is after the task, or was before it has been removed; null where there was none to remove.
    - A page that check mode would create has neither id nor url.
  returned: success
  type: dict
  contains:
    id:
      description: Its id.
      type: str
      returned: success
      sample: "1002"
    title:
      description: Its title.
      type: str
      returned: success
      sample: Handbook
    space:
      description: The key of its space.
      type: str
      returned: success
      sample: REL
    version:
      description: Its version.
      type: int
      returned: success
      sample: 4
    url:
      description: Its address for a browser.
      type: str
      returned: success
      sample: https://wiki.example/display/REL/Handbook
ignored_differences:
  description: What differs between the page and O(body), but is no difference to a reader, with the number of places.
  returned: success
  type: list
  elements: str
  sample: [attribute ac:macro-id (1), entities (2)]
http:
  description: What the task cost, as requests, writes, retries, bytes_sent, bytes_received and seconds.
  returned: always
  type: dict
  sample: {"requests": 2, "writes": 1, "retries": 0, "bytes_sent": 310, "bytes_received": 2040, "seconds": 0.031}
error:
  description: What went wrong, as kind, status, method, url and detail.
  returned: failure
  type: dict
  sample:
    kind: conflict
    status: 409
    method: PUT
    url: https://wiki.example/rest/api/content/1002
    detail: "Version must be incremented on update. Current version is: 4"
"""

from typing import Any

from ansible_collections.delivery.toolchain.plugins.module_utils.core import host
from ansible_collections.delivery.toolchain.plugins.module_utils.wiki import page

OPTIONS: dict[str, dict[str, Any]] = {
    "page_id": {"type": "str"},
    "space": {"type": "str"},
    "title": {"type": "str"},
    "parent_id": {"type": "str"},
    "body": {"type": "str"},
    "src": {"type": "path"},
    "section": {"type": "str"},
    "compare": {"type": "str", "choices": ["normalized", "exact"], "default": "normalized"},
    "on_conflict": {"type": "str", "choices": ["fail", "retry"], "default": "fail"},
    "expected_version": {"type": "int"},
    "version_comment": {"type": "str"},
    "minor_edit": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def main() -> None:
    host.run(
        "wiki",
        OPTIONS,
        page.PageOperation,
        required_one_of=[["page_id", "space"]],
        mutually_exclusive=[["body", "src"]],
    )


if __name__ == "__main__":
    main()
