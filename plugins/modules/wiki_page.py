#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wiki_page
short_description: Create, update, move or remove pages of the wiki
version_added: 1.0.0
description:
  - Writes a page only if something changed that a reader can see.
  - Changes that the server makes on save (IDs of macros, order of parameters, formatting of the XML) are not differences. See
    RV(ignored_differences).
  - Never overwrites the edit of another user. See O(on_conflict) and O(expected_version).
  - A body must be well-formed. This is checked before anything is sent.
  - With O(pages), the task manages several pages in parallel.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.wiki
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details: With O(compare=exact), every run writes a body that the server changes on save.
options:
  page_id:
    description:
      - ID of the page. Without an ID, the page is found by O(space) and O(title), and created if it does not exist.
      - The documented interface of the wiki cannot find pages by title or create pages. Real servers support both. On other servers, use
        O(page_id).
    type: str
  space:
    description: Key of the space. With O(page_id), a page in another space is a conflict.
    type: str
  title:
    description: Title of the page. With O(page_id), a page with another title is renamed. Surrounding whitespace is ignored.
    type: str
  parent_id:
    description:
      - ID of the parent page. A page with another parent is moved. If the server does not return the parent, the page is moved only
        together with another change.
      - Without this option and O(parent_title), a new page is created at the top level of the space.
    type: str
  parent_title:
    description:
      - Title of the parent page in the same space. It must exist, unless an earlier entry of O(pages) creates it. Use it instead of
        O(parent_id).
    type: str
  body:
    description:
      - Body in storage format. HTML entities are supported. C(ac:) and C(ri:) need no declaration.
      - Without O(body) and O(src), the body is not changed.
    type: str
  src:
    description: File with the body in UTF-8.
    type: path
  section:
    description:
      - Text of a heading. Only the content below it is managed, up to the next element that is, or contains, a heading of the same or a
        higher level. A macro, a table or a layout is never cut.
      - The rest of the page is kept unchanged, byte for byte. The heading must exist exactly once. Rejected with O(state=absent), which
        removes the whole page.
    type: str
  must_keep:
    description:
      - Regular expression of Python. Text that it matches in the body on the server, or in the O(section), must be in the new body too.
        Otherwise the task is a conflict, in check mode too.
      - If the new body has no such text at all, the task warns.
    type: str
  compare:
    description:
      - V(normalized) ignores changes that the server makes on save.
      - V(exact) compares the strings. If the server changes the body on save, every run is a change.
    type: str
    choices: [normalized, exact]
    default: normalized
  on_conflict:
    description:
      - Action if another user saves the page between the read and the write.
      - V(fail) fails. V(retry) saves again if the body on the server is still the same, and fails otherwise.
      - If the server reports a lock but the page has not changed, both values wait for the lock.
      - With O(expected_version), a save by another user is always a conflict.
    type: str
    choices: [fail, retry]
    default: fail
  expected_version:
    description: Fail unless the page has this version.
    type: int
  version_comment:
    description: Comment of the new version.
    type: str
  minor_edit:
    description: Whether to save the version without notifying watchers. Version 2 of the interface of Atlassian Cloud ignores it.
    type: bool
    default: false
  allow_orphaned_comments:
    description:
      - An inline comment of a reader stays if the new body still has the text that it refers to. V(true) lets a new body remove the text of
        comments; otherwise that is a conflict, in check mode too.
      - Comments refer to C(ac:inline-comment-marker) elements in the stored body. Resolved comments have such elements too.
    type: bool
    default: false
  follow_renames:
    description:
      - Whether the page stays the same page when somebody renames it. The task marks the page with O(title), and finds it by the mark if the
        space has no page with the title. The page then gets its title again.
      - The mark is a content property of the page, which readers do not see. A copy of the page is not taken for it.
      - A search reads the list of pages of the space, once for all O(pages). On Atlassian Cloud it has only the 250 pages that were changed
        last.
      - With O(page_id) and with O(state=absent) the option has no effect.
    type: bool
    default: false
  restrictions: &restrictions
    description:
      - Who may read and change the page. An operation that is not set is not managed.
      - They are set before the content is saved. A new page is created empty, restricted and then written, so that nobody else can read
        its content in between. Its content is then version 2.
      - The task fails if its account would lose a permission, its groups included. O(force) allows that if the content is not saved.
      - Servers before Confluence 8.8 have no interface for this. The task then fails with C(rejected), and a new page stays empty.
    type: dict
    suboptions:
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
  labels:
    description:
      - Complete list of labels of the page. An empty list removes all labels. By default, labels are not managed.
      - Labels that are visible only to a person or a team are ignored. The server stores labels in lower case.
    type: list
    elements: str
  attachments: &attachments
    description:
      - Files to attach to the page. Other attachments are kept.
      - Servers report no digests. An upload stores a digest and the new version number in the comment of the attachment. While the
        attachment has this version, a file with this digest is not uploaded again. Otherwise a file of the same size is downloaded and
        compared.
      - A body refers to an attachment with C(<ri:attachment ri:filename="plan.txt" />).
      - Attachments are uploaded after the page is saved, and do not create a version of the page.
    type: list
    elements: dict
    suboptions:
      src:
        description: File on the host of the task.
        type: path
        required: true
      name:
        description:
          - Name of the attachment on the page. The default is the name of the file.
          - The names of a page differ without regard to case.
        type: str
      comment:
        description: Comment of an upload, at most 160 characters. If only the comment changes, nothing is uploaded.
        type: str
  state:
    description: V(absent) moves the page to the trash. Options that describe the content are then ignored.
    type: str
    choices: [present, absent]
    default: present
  force:
    description:
      - Whether O(state=absent) may remove the home page of a space, or a page with child pages.
      - Whether O(restrictions) may lock the account of the task out of the page.
    type: bool
    default: false
  accounts:
    description:
      - Accounts to mention instead of the users that the body mentions, by name. Other mentions stay as they are.
      - On Confluence Cloud, a mention gets the attribute C(ri:account-id). Other servers keep C(ri:username) and C(ri:userkey).
    type: dict
  pages:
    description:
      - Several pages. Options of the task are the defaults of the entries.
      - Pages are independent. If a page fails, the others are still written. The task then fails, and RV(pages) contains the result of
        every page.
      - If any entry is invalid, for example has a malformed body, nothing is sent. Nothing is written if two entries give a page the same
        title, if an entry takes the title of a page that another entry renames or removes, or if an entry removes the parent of another.
      - An entry cannot contain connection options.
    type: list
    elements: dict
    suboptions:
      page_id: {description: As O(page_id)., type: str}
      space: {description: As O(space)., type: str}
      title: {description: As O(title)., type: str}
      parent_id: {description: As O(parent_id)., type: str}
      parent_title: {description: As O(parent_title)., type: str}
      body: {description: As O(body)., type: str}
      src: {description: As O(src)., type: path}
      section: {description: As O(section)., type: str}
      must_keep: {description: As O(must_keep)., type: str}
      compare: {description: As O(compare)., type: str, choices: [normalized, exact]}
      on_conflict: {description: As O(on_conflict)., type: str, choices: [fail, retry]}
      expected_version: {description: As O(expected_version)., type: int}
      version_comment: {description: As O(version_comment)., type: str}
      minor_edit: {description: As O(minor_edit)., type: bool}
      allow_orphaned_comments: {description: As O(allow_orphaned_comments)., type: bool}
      follow_renames: {description: As O(follow_renames)., type: bool}
      restrictions: *restrictions
      labels: {description: As O(labels)., type: list, elements: str}
      attachments: *attachments
      accounts: {description: As O(accounts)., type: dict}
      state: {description: As O(state)., type: str, choices: [present, absent]}
      force: {description: As O(force)., type: bool}
  parallel:
    description: Number of pages in O(pages) to read or write in parallel.
    type: int
    default: 4
seealso:
  - module: delivery.toolchain.wiki_page_info
  - plugin: delivery.toolchain.wiki_page
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: Publish a page below the release notes
  delivery.toolchain.wiki_page:
    space: REL
    title: Release 1.0.0
    parent_id: "1003"
    body: <h1>Changes</h1><p>Folders are deployed in one task.</p>
    version_comment: Written by the release playbook

- name: Manage a section of a page that users also edit
  delivery.toolchain.wiki_page:
    page_id: "1002"
    section: After a release
    body: <p>Announce it on the release channel.</p>

- name: Publish two pages at once, with a label
  delivery.toolchain.wiki_page:
    space: REL
    parent_id: "1003"
    labels: [release]
    pages:
      - title: Known problems
        body: <p>None.</p>
      - title: Installation
        body: <p>See <ac:link><ri:attachment ri:filename="install.txt" /></ac:link>.</p>
        attachments:
          - src: "{{ playbook_dir }}/install.txt"
            comment: Steps

- name: Create a page that only its authors can read
  delivery.toolchain.wiki_page:
    space: REL
    title: Embargoed release
    body: <p>Not yet public.</p>
    restrictions:
      read:
        groups: [writers]
      update:
        groups: [writers]

- name: Remove the page
  delivery.toolchain.wiki_page:
    space: REL
    title: Release 1.0.0
    state: absent
"""

RETURN = r"""
page:
  description:
    - Page after the task, or before its removal. Null if there was no page to remove.
    - Not returned with O(pages).
    - A page that would be created in check mode has no ID and no URL.
  returned: success
  type: dict
  contains:
    id:
      description: Its id.
      type: str
      sample: "1002"
    title:
      description: Its title.
      type: str
      sample: Handbook
    space:
      description: Key of the space.
      type: str
      sample: REL
    version:
      description: Its version.
      type: int
      sample: 4
    url:
      description: URL of the page for a browser.
      type: str
      sample: https://wiki.example/display/REL/Handbook
ignored_differences:
  description: Differences between the page and O(body) that readers cannot see, with the number of places.
  returned: success, without O(pages)
  type: list
  elements: str
  sample: [attribute ac:macro-id (1), entities (2)]
labels:
  description: Labels of the page after the task.
  returned: if O(labels) is set
  type: list
  elements: str
  sample: [release]
mark:
  description: Title by which the page is found again after somebody renamed it.
  returned: if O(follow_renames) is set, without O(page_id)
  type: str
  sample: Release 1.0.0
restrictions:
  description: Restrictions of the page after the task, as C(read) and C(update), each with C(users) and C(groups).
  returned: if O(restrictions) is set
  type: dict
  sample:
    read: {users: [], groups: [writers]}
    update: {users: [], groups: [writers]}
attachments:
  description: Files of O(attachments), with C(name), C(size) in bytes, C(sha256) and C(action).
  returned: if O(attachments) is set
  type: list
  elements: dict
  sample: [{"name": "install.txt", "size": 8, "sha256": "6cd3556deb0da54bca060b4c39479839e4099838ac4b1b47b0e7d6a2b3b4b5b5", "action": "uploaded"}]
unsupported:
  description: Sentences about macros and user keys in the body that Confluence Cloud cannot hold. Each item of RV(pages) has this key too.
  returned: if there are any, on Confluence Cloud
  type: list
  elements: str
  sample: ["Confluence Cloud has no macro gallery: write the images in the page"]
pages:
  description: Results of O(pages) in the same order.
  returned: if O(pages) is set
  type: list
  elements: dict
  contains:
    ok:
      description: Whether the page has the requested state.
      type: bool
    changed:
      description: Whether the page was changed, or would be.
      type: bool
    page:
      description: As RV(page).
      type: dict
    ignored_differences:
      description: As RV(ignored_differences).
      type: list
      elements: str
    labels:
      description: As RV(labels).
      type: list
      elements: str
      returned: if labels are set
    restrictions:
      description: As RV(restrictions).
      type: dict
      returned: if restrictions are set
    attachments:
      description: See RV(attachments).
      type: list
      elements: dict
      returned: if attachments are set
    msg:
      description: Error message.
      type: str
      returned: on failure
    error:
      description: Details of the error as in RV(error), or null if the page succeeded.
      type: dict
  sample:
    - ok: true
      changed: true
      page: {"id": "2001", "title": "Known problems", "space": "REL", "version": 1, "url": "https://wiki.example/display/REL/Known+problems"}
      ignored_differences: []
      error: null
comments:
  description:
    - Numbers of inline comments of readers in the body that the task saves. A comment is C(kept) if the commented text is still in the
      body, otherwise C(lost).
  returned: success
  type: dict
  sample: {kept: 2, lost: 0}
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.wiki.pages import wiki_page


def main() -> None:
    run(wiki_page.WikiPageOptions, wiki_page.WikiPageOperation)


if __name__ == "__main__":
    main()
