#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wiki_export
short_description: Write trees of wiki pages as a desired state
version_added: 1.0.0
description:
  - Writes C(wiki.yml) of a folder that the role C(desired_state) and the playbooks C(enforce) and C(drift) read, and below C(wiki) a folder
    for each tree, which M(delivery.toolchain.wiki_tree) can read. Bodies are in storage format, as the server has them; title and labels
    stand in the front matter.
  - The trees are held without marks; C(mark) in C(wiki.yml) says so.
  - The attachments of a page lie beside its file, under names that are safe on every system; C(attachments) in the front matter tells the
    name of each on the page. One that is left out has V(null) there, so that it stays on the wiki as it is. No server tells a digest, so each
    export downloads them, and compares their sizes with what the server says.
  - What cannot be told, or may not be read, is left out and named, in RV(left_out) and in the head of the file; nothing is left out in silence.
  - Everything is read before anything is written. On the server nothing is changed.
  - Files that the export has not written, or that were changed since, are not replaced unless O(overwrite) is set. What it wrote earlier
    and what is gone from the server is removed from the folder.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.wiki
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.wiki
requirements:
  - PyYAML where the module runs
options:
  dest:
    description: The folder of the desired state, on the host that the task runs on. It is created where it is missing.
    type: path
    required: true
  overwrite:
    description: Whether files in O(dest) are replaced that are not as the export left them.
    type: bool
    default: false
  trees:
    description: The trees; each is a page with all that is below it.
    type: list
    elements: dict
    required: true
    suboptions:
      page_id:
        description: The id of the page; or O(trees[].space).
        type: str
      space:
        description: The key of the space.
        type: str
      title:
        description: The title of the page; without it the home page of the space.
        type: str
  attachments:
    description: Whether the attachments of the pages are exported. With V(false) they stay on the wiki, and drift does not look at them.
    type: bool
    default: true
  max_size:
    description: Attachments with more bytes than this are left out, and named.
    type: int
    default: 104857600
  parallel:
    description: How many pages are read at once.
    type: int
    default: 4
notes:
  - The playbook C(delivery.toolchain.export) runs the exports of several services into one folder.
seealso:
  - module: delivery.toolchain.wiki_tree
"""

EXAMPLES = r"""
- name: Write a handbook, and all below the home page of a space
  delivery.toolchain.wiki_export:
    dest: desired
    trees:
      - space: REL
        title: Handbook
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
      returned: always
    action:
      description: V(created), V(updated), V(deleted) or V(unchanged).
      type: str
      returned: always
  sample: [{path: wiki.yml, action: created}]
exported:
  description: How many objects of each list are in the file of the service.
  returned: success
  type: dict
  sample: {trees: 12}
left_out:
  description: Objects that are not in the folder, each with the reason.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: What it is.
      type: str
      returned: always
    name:
      description: The name of the object.
      type: str
      returned: always
    reason:
      description: Why it is not there.
      type: str
      returned: always
untold:
  description: What of the service no export has, as sentences.
  returned: success
  type: list
  elements: str
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
from ansible_collections.delivery.toolchain.plugins.module_utils.wiki.tree import wiki_export


def main() -> None:
    runner.run("wiki", wiki_export.WikiExportOptions, wiki_export.WikiExportOperation)


if __name__ == "__main__":
    main()
