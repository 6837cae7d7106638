#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wiki_export
short_description: Export wiki pages, spaces and restrictions as a desired state
version_added: 1.0.0
description:
  - Writes C(wiki.yml) into a folder that the role C(desired_state) and the playbooks C(enforce) and C(drift) read, and below C(wiki) a
    folder per tree that M(delivery.toolchain.wiki_tree) can read. Bodies are unchanged and in storage format, with the title and the labels
    in the front matter, or Markdown. See O(format).
  - C(wiki.yml) also has the spaces of the trees, for M(delivery.toolchain.wiki_space), and the restrictions of every page, for
    M(delivery.toolchain.wiki_restriction). Pages without restrictions get empty lists, so that a restriction that somebody adds is drift.
  - The trees are managed without marks. C(mark) in C(wiki.yml) sets this.
  - The attachments of a page are stored next to its file, with names that are safe on every system. C(attachments) in the front matter maps
    them to their names on the page. A skipped attachment has the value V(null) there and is kept on the wiki. Servers report no digests, so
    every export downloads the attachments and verifies their sizes.
  - Objects that cannot be expressed or read are listed in RV(left_out) and at the start of the file. No object is skipped silently.
  - Everything is read before anything is written. The server is not changed.
  - Files that the export did not write, or that were changed since, are only replaced with O(overwrite). Files of earlier exports are
    removed if the object no longer exists on the server. A file of an earlier export is kept if the wiki has only rewritten its content
    without changing its meaning.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.wiki
  - delivery.toolchain.export
  - delivery.toolchain.attributes
options:
  trees:
    description: Trees to export. A tree is a page and all pages below it.
    type: list
    elements: dict
    required: true
    suboptions:
      page_id:
        description: ID of the page. Set either this option or O(trees[].space).
        type: str
      space:
        description: Key of the space.
        type: str
      title:
        description: Title of the page. The default is the home page of the space.
        type: str
      children:
        description: Whether to export the pages below it too.
        type: bool
        default: true
      missing_ok:
        description: Whether to skip a page that does not exist, or that the account cannot see. Otherwise the task fails.
        type: bool
        default: false
  format:
    description:
      - Form of the pages. V(storage) writes C(.xml) files with unchanged bodies. V(markdown) writes C(.md) files as a person would write
        them, with relative links, and front matter only for what the text does not show. It requires markdown-it-py >= 3.0 on the host
        where the module runs.
      - With V(markdown), every page is converted back and compared. Content that Markdown has no words for becomes a passage in storage
        format, see M(delivery.toolchain.wiki_tree). A page that Markdown cannot hold is written as C(.xml), and listed in RV(left_out) with
        the kind C(markdown).
    type: str
    choices: [storage, markdown]
    default: storage
  spaces:
    description:
      - Whether to export the spaces of the trees, with name, description and home page. Permissions are exported too, if the server shows
        them and the account administers the space.
    type: bool
    default: true
  restrictions:
    description:
      - Whether to export who may read and change each page. Confluence Cloud with version 2 of its interface needs a further request for
        each page.
    type: bool
    default: true
  attachments:
    description: Whether to export the attachments of the pages. With V(false), they are kept on the wiki, and drift does not check them.
    type: bool
    default: true
  published:
    description: Whether RV(published) contains the version of each page that M(delivery.toolchain.wiki_tree) saved last. The playbook C(adopt)
      uses it.
    type: bool
    default: false
  max_size:
    description: Maximum size of exported attachments in bytes. Larger attachments are skipped and reported.
    type: int
    default: 104857600
  parallel:
    description: Number of pages to read in parallel.
    type: int
    default: 4
seealso:
  - module: delivery.toolchain.wiki_tree
  - module: delivery.toolchain.wiki_space
  - module: delivery.toolchain.wiki_restriction
"""

EXAMPLES = r"""
- name: Write a handbook, and all below the home page of a space
  delivery.toolchain.wiki_export:
    dest: desired
    trees:
      - space: REL
        title: Handbook
      - space: ARC

- name: Write a space as Markdown, to edit it in Git from now on
  delivery.toolchain.wiki_export:
    dest: desired
    format: markdown
    trees:
      - space: ARC
"""

RETURN = r"""
files:
  description: The files, by their paths in O(dest).
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The path of the file.
      type: str
    action:
      description: V(created), V(updated), V(deleted) or V(unchanged).
      type: str
  sample: [{path: wiki.yml, action: created}]
exported:
  description: Number of objects per list in the file of the service.
  returned: success
  type: dict
  sample: {spaces: 1, trees: 12, restrictions: 240}
left_out:
  description: Objects that were not exported, with the reason.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the object.
      type: str
    name:
      description: The name of the object.
      type: str
    reason:
      description: Reason why the object was not exported.
      type: str
parents:
  description: IDs of the parents of the exported roots, by space and title. C(trees) names them by title. Missing if no root has a parent.
  returned: success
  type: dict
  sample: {REL/Handbook: "1001"}
published:
  description: What M(delivery.toolchain.wiki_tree) has saved last, for each page with a mark.
  returned: if O(published)
  type: list
  elements: dict
  contains:
    space: {description: Key of the space., type: str, returned: always}
    title: {description: Title of the page., type: str, returned: always}
    file: {description: Path of the file below the folder of the tree., type: str, returned: always}
    source: {description: SHA-256 of the file. Null if unknown., type: str, returned: always}
    saved_title: {description: Title of the saved version. Null if the wiki no longer has it., type: str, returned: always}
    body: {description: Body of the saved version. Null if the wiki no longer has it., type: str, returned: always}
    changed_by: {description: Account that saved the present version. Empty if unknown., type: str, returned: always}
not_exported:
  description: What this module never exports, a sentence for each kind of data.
  returned: success
  type: list
  elements: str
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.wiki.tree import wiki_export


def main() -> None:
    run(wiki_export.WikiExportOptions, wiki_export.WikiExportOperation)


if __name__ == "__main__":
    main()
