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
  - Writes a page only where something that a reader would see has changed.
  - What the server rewrites on save (ids of macros, order of parameters, spelling of the XML) is no difference; see RV(ignored_differences).
  - Never writes over somebody else's edit; see O(on_conflict) and O(expected_version).
  - A body is checked for well-formedness before anything is sent.
  - With O(pages) one task manages many pages, several at once.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.wiki
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.wiki
options:
  page_id:
    description:
      - The id of the page. Without it, the page is found by O(space) and O(title), and created where it is missing.
      - Finding pages by their title and creating them is no part of the written interface of the wiki. Real servers can do both;
        on others only O(page_id) works.
    type: str
  space:
    description: The key of the space. With O(page_id), a page of another space is a conflict.
    type: str
  title:
    description: The title; with O(page_id), a page of another title is renamed. Blanks around it do not count.
    type: str
  parent_id:
    description:
      - The id of the page above. A page that stands elsewhere is moved; where the server does not show where a page stands, only with
        another change.
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
  allow_orphaned_comments:
    description:
      - Whether a new body may take the place in the text from inline comments of readers. Otherwise that is a conflict, in check mode too.
      - Comments hang on marks in the stored body, C(ac:inline-comment-marker). A body that has these marks keeps them.
      - Resolved comments have marks, too.
    type: bool
    default: false
  labels:
    description:
      - The labels of the page, and no others; an empty list takes all of them. Not given, labels are left alone.
      - Labels that only one person or team sees do not count. The server writes labels in lower case.
    type: list
    elements: str
  attachments:
    description:
      - Files that shall be attached to the page. Other attachments are left alone.
      - No server shows a digest. An upload leaves one in the comment of the attachment, with the version that it made; while that is the
        version on the server, a file with this digest is not uploaded again. Otherwise a file of the same size is downloaded and compared.
      - A body names an attachment as C(<ri:attachment ri:filename="plan.txt" />).
      - They are uploaded after the page has been saved, and make no version of the page.
    type: list
    elements: dict
    suboptions:
      src:
        description: The file on the host that the task runs on.
        type: path
        required: true
      name:
        description: Its name on the page. Not given, its own name.
        type: str
      comment:
        description: Comment of an upload, at most 160 characters. A change of it alone uploads nothing.
        type: str
  state:
    description: V(absent) moves the page to the trash; options that describe a page do not count then.
    type: str
    choices: [present, absent]
    default: present
  force:
    description:
      - Whether O(state=absent) may remove the home page of a space, and a page that has pages below it.
    type: bool
    default: false
  pages:
    description:
      - Many pages in one task. An option of the task that an entry does not have holds for that entry, too.
      - Each page is a matter of its own. One that fails does not keep the others from being done; the task fails in the end and says
        in RV(pages) what became of each.
      - Nothing is sent where an entry makes no sense, such as one with a malformed body.
      - An entry cannot have the options of a connection.
    type: list
    elements: dict
    suboptions:
      page_id: {description: As O(page_id)., type: str}
      space: {description: As O(space)., type: str}
      title: {description: As O(title)., type: str}
      parent_id: {description: As O(parent_id)., type: str}
      body: {description: As O(body)., type: str}
      src: {description: As O(src)., type: path}
      section: {description: As O(section)., type: str}
      compare: {description: As O(compare)., type: str, choices: [normalized, exact]}
      on_conflict: {description: As O(on_conflict)., type: str, choices: [fail, retry]}
      expected_version: {description: As O(expected_version)., type: int}
      version_comment: {description: As O(version_comment)., type: str}
      minor_edit: {description: As O(minor_edit)., type: bool}
      allow_orphaned_comments: {description: As O(allow_orphaned_comments)., type: bool}
      labels: {description: As O(labels)., type: list, elements: str}
      attachments:
        description: As O(attachments).
        type: list
        elements: dict
        suboptions:
          src: {description: "As O(attachments[].src).", type: path, required: true}
          name: {description: "As O(attachments[].name).", type: str}
          comment: {description: "As O(attachments[].comment).", type: str}
      state: {description: As O(state)., type: str, choices: [present, absent]}
      force: {description: As O(force)., type: bool}
  parallel:
    description: How many pages of O(pages) are read or written at once.
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

- name: Manage one section of a page that people edit, too
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
    - Not returned with O(pages).
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
  returned: success, without O(pages)
  type: list
  elements: str
  sample: [attribute ac:macro-id (1), entities (2)]
labels:
  description: The labels of the page after the task.
  returned: when O(labels) is given
  type: list
  elements: str
  sample: [release]
attachments:
  description: The files of O(attachments), each with C(name), C(size) in bytes, C(sha256) and C(action).
  returned: when O(attachments) is given
  type: list
  elements: dict
  sample: [{"name": "install.txt", "size": 8, "sha256": "6cd3556deb0da54bca060b4c39479839e4099838ac4b1b47b0e7d6a2b3b4b5b5", "action": "uploaded"}]
pages:
  description: What became of each entry of O(pages), in their order.
  returned: when O(pages) is given
  type: list
  elements: dict
  contains:
    ok:
      description: Whether the page is as wanted.
      type: bool
      returned: always
    changed:
      description: Whether the page was changed, or would be.
      type: bool
      returned: always
    page:
      description: As RV(page).
      type: dict
      returned: always
    ignored_differences:
      description: As RV(ignored_differences).
      type: list
      elements: str
      returned: success
    labels:
      description: As RV(labels).
      type: list
      elements: str
      returned: when labels are given
    attachments:
      description: As RV(attachments).
      type: list
      elements: dict
      returned: when attachments are given
    msg:
      description: What went wrong, in words.
      type: str
      returned: failure
    error:
      description: As RV(error), null where nothing went wrong.
      type: dict
      returned: always
  sample:
    - ok: true
      changed: true
      page: {"id": "2001", "title": "Known problems", "space": "REL", "version": 1, "url": "https://wiki.example/display/REL/Known+problems"}
      ignored_differences: []
      error: null
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
from ansible_collections.delivery.toolchain.plugins.module_utils.wiki.pages import wiki_page


def main() -> None:
    runner.run("wiki", wiki_page.WikiPageOptions, wiki_page.WikiPageOperation)


if __name__ == "__main__":
    main()
