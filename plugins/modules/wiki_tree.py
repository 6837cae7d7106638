#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wiki_tree
short_description: Publish a folder of Markdown as a tree of wiki pages
version_added: 1.0.0
description:
  - Each C(.md) file, and each C(.xml) file in storage format, becomes a page; folders become pages above those of their files.
  - C(index.md) or C(README.md) is the page of its folder. A folder with neither gets a page of its name that lists its children.
  - The title is C(title) of the front matter, else the first heading, else the name of the file. C(labels) may stand in the front
    matter, too, and C(attachments), names of attachments with the path of their file from that of the page; one with V(null) stays as it is
    on the wiki.
  - Links between files become links between pages, images and links to other files become attachments. Code, notes such as
    C([!NOTE]), tables and task lists become those of the wiki. Of raw HTML the text stays.
  - Two files with one title, a link to nothing, an image that is not there and whatever else is wrong with the files is named with file
    and line, all of it, before anything is written.
  - A mark on each page, a content property, names its tree and its file. So a file whose title changed renames its page, a file that
    was moved moves it, and pages of others are never touched.
  - Files and folders whose names begin with a dot are left out. Links that lead out of the folder are refused.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.wiki
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.wiki
requirements:
  - markdown-it-py >= 3.0 where the module runs, for Markdown
options:
  src:
    description: The folder, on the host that the task runs on. It is the root of the tree, and a page, too.
    type: path
    required: true
  space:
    description: The key of the space.
    type: str
    required: true
  parent_id:
    description: The id of the page above the root of the tree. Without it, the root comes at the top of the space, and stays where it is.
    type: str
  title_prefix:
    description: What stands before every title, as V(Release 2:). A blank follows it where one ends the text.
    type: str
    default: ""
  exclude:
    description: Patterns of the paths below O(src) that are left out, with V(*) for any characters. A folder goes with all that is in it.
    type: list
    elements: str
    default: []
  labels:
    description:
      - The labels of every page, beside those of its front matter, and no others.
      - Not given, labels of pages without some in their front matter are left alone.
    type: list
    elements: str
  prune:
    description:
      - Whether pages that this tree wrote and whose file is gone are moved to the trash.
      - One that has pages of others below it stays, with a warning.
    type: bool
    default: false
  max_deletions:
    description: The most pages that O(prune) may move to the trash; with more of them nothing is written.
    type: int
    default: 10
  adopt:
    description:
      - Whether a page of the same title that this tree did not write is taken over where it stands below the tree. Otherwise, and
        wherever else in the space it is, that is a conflict.
    type: bool
    default: false
  allow_orphaned_comments:
    description: Whether a new body may take the place in the text from inline comments of readers. Otherwise that is a conflict.
    type: bool
    default: false
  mark:
    description:
      - Whether each page gets the mark by which this tree knows it again. With V(false) the pages below the tree are known by their
        titles alone, as if O(adopt) were set, so that pages which people made are held as they are. None is renamed or pruned then.
      - The playbook C(delivery.toolchain.export) writes trees for V(false).
    type: bool
    default: true
  attachments:
    description: Whether files that pages name become their attachments. With V(false) the attachments of the wiki are left as they are.
    type: bool
    default: true
  parallel:
    description: How many pages are read or written at once.
    type: int
    default: 4
notes:
  - An unchanged tree costs at most one request a page, and four beside.
  - The root page is known by its title, or, where that has changed, by the pages below it. A tree that consists of one page gets a new one
    when its title changes.
seealso:
  - module: delivery.toolchain.wiki_page
  - plugin: delivery.toolchain.storage_format
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Publish the documentation
  delivery.toolchain.wiki_tree:
    src: docs/
    space: REL
    parent_id: "1001"
    labels: [handbook]
    exclude: ["drafts", "*.draft.md"]
    prune: true
"""

RETURN = r"""
pages:
  description:
    - The pages of the tree, those above first, and those that were moved to the trash. After a failure, those that were done.
    - A page that check mode would create has neither id nor url.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The file below O(src); of a folder without a page of its own, its path with a slash behind it.
      type: str
      returned: always
    id:
      description: The id of the page.
      type: str
      returned: always
    title:
      description: The title of the page.
      type: str
      returned: always
    version:
      description: The version of the page.
      type: int
      returned: always
    url:
      description: The address of the page for a browser.
      type: str
      returned: always
    action:
      description: V(created), V(adopted), V(moved), V(renamed), V(updated), V(unchanged) or V(deleted).
      type: str
      returned: always
    changes:
      description: What differs, as dicts with C(field), C(before) and C(after).
      type: list
      elements: dict
      returned: with C(--diff)
  sample:
    - path: index.md
      id: "2001"
      title: Handbook
      version: 4
      url: https://wiki.example/display/REL/Handbook
      action: unchanged
problems:
  description: All that is wrong with the files, each with file and line.
  returned: when the files cannot become pages
  type: list
  elements: str
  sample: ["guide/install.md:12: the link to 'setup.md' leads to nothing"]
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
from ansible_collections.delivery.toolchain.plugins.module_utils.wiki.tree import wiki_tree


def main() -> None:
    runner.run("wiki", wiki_tree.WikiTreeOptions, wiki_tree.WikiTreeOperation)


if __name__ == "__main__":
    main()
