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
  - Creates a page for every C(.md), C(.markdown) or C(.mdx) file, and for every C(.xml) file in storage format. Folders become parent pages
    of their files.
  - The page of a folder is the first of C(index.md), C(_index.md), C(README.md), C(FOLDER/FOLDER.md), and C(FOLDER.md) next to the folder.
    Other files of this list are pages below it. C(FOLDER.md) next to a folder with an index is an error. A folder without these files gets
    a page with its name and a list of its children.
  - An C(.xml) file is a page if it has front matter, or if all of its root elements are elements of storage format. Any other
    C(.xml) file is treated like files of other types.
  - The title is C(title) in the front matter, else the first heading of level 1, else the first heading, else the file name. A heading
    that became the title is left out of the page, except for its images, as is a first heading that equals C(title). See O(title_heading).
  - The front matter is YAML between lines of C(---), or TOML between lines of C(+++), which requires Python 3.11. A page with C(draft=true)
    or C(published=false) is left out. See O(drafts).
  - The front matter may also contain C(labels), and C(attachments), which maps names of attachments to file paths relative to the page. An
    attachment with the value V(null) is kept unchanged on the wiki.
  - Links between files become links between pages. Images and links to other files become attachments. Code, notes such as C([!NOTE]),
    tables and task lists become wiki elements. Footnotes become a list at the end. Diagrams such as Mermaid are shown as source code, with
    a title that explains it.
  - Attachments of a page have names that differ without regard to case. If the name of a file is taken, the attachment gets another name,
    such as C(folder_logo.png), unless the front matter names the file.
  - Raw HTML becomes storage format, including its images and links, and C(details) an expand macro. For an element without an
    equivalent, only the text is kept, with a warning. Comments are left out. Addresses such as C(https://wiki.example) become links.
  - Headings and elements with an C(id) are targets of links, without regard to case. File names compare in Unicode NFC.
  - Lines of site generators, such as C({{< note >}}), C({% include x %}) or C({{ x }}), stay text outside of code and end the block before
    them, with a warning. Hugo's C(ref) and C(relref) become links. A line C(--8<-- "file") includes a file of O(src). Attributes such as
    C({#id width=300 align=right}) after an image, a link or a heading are applied or left out.
  - In C(.mdx) files, modules and comments are left out. A component becomes its content, with a warning.
  - What Markdown has no words for, such as macros, mentions and merged cells, can be a passage in storage format. This is a block of code
    with the language C(storage), or within a line a code span that is followed by C({=storage}). A passage that is not well-formed or not
    storage format is an error with file and line.
  - White space outside of code counts as one blank, so that the task writes no page of Markdown only because its lines are wrapped
    differently. Names of the same language of code are equal, such as C(py) and C(python), as are the forms of a link.
  - Errors in the files, such as duplicate titles, broken links or missing images, are all reported with file and line before anything is
    written.
  - A mark on the page, stored as a content property, identifies its tree and file. If the title in a file changes, the page is renamed. If
    a file is moved, the page is moved. Pages of others are never changed.
  - Files and folders that start with a dot are skipped. Links to files outside the folder are rejected.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.wiki
  - delivery.toolchain.attributes
requirements:
  - markdown-it-py >= 3.0 on the host that executes this module, for Markdown
options:
  src:
    description:
      - Folder on the host of the task. It is the root of the tree, and also a page.
      - Alternatively a single Markdown or C(.xml) file, which becomes a tree of one page. Files next to it that it refers to are attached.
    type: path
    required: true
  space:
    description: The key of the space.
    type: str
    required: true
  parent_id:
    description:
      - ID of the parent page of the root. By default, a new root is created at the top level of the space, and an existing root is not
        moved.
    type: str
  parent_title:
    description:
      - Title of the parent page of the root in the same space. It must exist. Use it instead of O(parent_id), which differs between servers.
    type: str
  unique_titles:
    description:
      - V(folder) adds the name of the folder to each title that several files have, as in C(Overview (server)). A space has no two pages
        with the same title.
      - Several files of a folder with the same title also get their file names, as in C(Overview (server/linux)).
      - Titles that are still equal are an error, as are all equal titles with V(none).
    type: str
    choices: [none, folder]
    default: none
  title_heading:
    description: Whether the heading that became the title is left out of the page. With V(keep), the page starts with it.
    type: str
    choices: [drop, keep]
    default: drop
  link_base:
    description:
      - Address of the root of the repository that contains O(src), such as C(https://git.example/team/app/blob/main). Links to its files that
        are no pages of the tree become absolute links. If O(src) is in no Git repository, it is the address of O(src).
      - Such files are outside O(src) or excluded, or their path starts with a slash. Files that are missing in O(src) stay broken links.
    type: str
  broken_links:
    description:
      - What to do about links and images without a target, including those that need O(link_base).
      - V(fail) lists them in an error before anything is written. V(warn) keeps their text, with a warning for each.
    type: str
    choices: [fail, warn]
    default: fail
  drafts:
    description:
      - What to do with drafts. With V(skip), a draft is treated like an excluded file, so O(prune) removes its page. V(publish) publishes
        drafts like other pages.
    type: str
    choices: [skip, publish]
    default: skip
  title_prefix:
    description: Prefix of every title, such as V(Release 2:). End it with a space to separate it from the title.
    type: str
    default: ""
  exclude:
    description: Patterns for paths below O(src) to skip. V(*) and V(?) match within a segment, V(**) across segments. A folder includes its content.
    type: list
    elements: str
    default: []
  labels:
    description:
      - Labels of every page, in addition to the labels in its front matter. Other labels are removed.
      - By default, the labels of pages without labels in the front matter are not managed.
    type: list
    elements: str
  accounts:
    description:
      - Accounts to mention instead of the users that the pages mention, by name. Other mentions stay as they are.
      - On Confluence Cloud, a mention gets the attribute C(ri:account-id). Other servers keep C(ri:username) and C(ri:userkey).
    type: dict
  prune:
    description:
      - Whether to move pages to the trash if this tree wrote them and their file no longer exists. Otherwise they stay, and one warning
        counts them.
      - A page that contains pages of others is kept, with a warning.
    type: bool
    default: false
  max_deletions:
    description: Maximum number of pages that O(prune) may move to the trash. If there are more, nothing is written.
    type: int
    default: 10
  adopt:
    description:
      - Whether to take over an existing page with the same title below the tree that this tree did not write. Otherwise, or if the page is
        elsewhere in the space, this is a conflict.
    type: bool
    default: false
  allow_orphaned_comments:
    description:
      - An inline comment of a reader stays if the new body still has the text that it refers to. V(true) lets a new body remove the text of
        comments on every page.
      - Otherwise a page that would lose comments is left as it is. The other pages are written, and the task then fails with C(conflict).
    type: bool
    default: false
  allow_orphaned_comments_in:
    description: Patterns as in O(exclude) for the paths of single pages that may lose the text of comments.
    type: list
    elements: str
  on_edit:
    description:
      - What to do with a page that somebody edited after the tree wrote it, and that differs from its file or has no file. The return
        value C(edited) names these pages.
      - V(overwrite) replaces the edit. V(warn) replaces it too, and names the page, the author and the time in a warning. With V(fail), the
        page is left as it is. The other pages are written, and the task then fails with C(conflict).
      - The mark of the page contains the version that the tree wrote, so V(warn) and V(fail) require O(mark=true).
    type: str
    choices: [overwrite, warn, fail]
    default: overwrite
  restrictions:
    description:
      - Who may read and change every page of the tree. An operation that is not set is not managed.
      - They are set before the content is saved. New pages are created empty, restricted and then written, so that nobody else can read
        their content in between.
      - The task fails if its account would lose a permission, its groups included. O(force) allows that for pages that are not saved.
      - A restriction to read a page also hides the pages below it. A restriction to update does not apply to them.
      - Servers before Confluence 8.8 have no interface for this. The task then fails with C(rejected).
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
  force:
    description: Whether O(restrictions) may lock the account of the task out of pages.
    type: bool
    default: false
  mark:
    description:
      - Whether to set a mark on the pages, which identifies them in later runs. With V(false), pages below the tree are identified only by
        title, as with O(adopt). Pages of users are then managed too. No page is renamed or pruned.
      - The playbook C(delivery.toolchain.export) writes trees for V(false).
    type: bool
    default: true
  attachments:
    description: Whether to attach files that the pages refer to. With V(false), the attachments on the wiki are not changed.
    type: bool
    default: true
  parallel:
    description: Number of pages to read or write in parallel.
    type: int
    default: 4
notes:
  - An unchanged tree costs at most a request per page and four additional requests.
  - The root page is identified by its title or, if the title has changed, by the pages below it. If the title of a tree with a single page
    changes, a new page is created.
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
    exclude: ["drafts", "**/*.draft.md"]
    prune: true
"""

RETURN = r"""
pages:
  description:
    - Pages of the tree, parents first, and pages that were moved to the trash. After a failure of the server, the pages that were
      processed.
    - A page that would be created in check mode has no ID and no URL.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: Path of the file below O(src). For a folder without its own file, the path with a trailing slash.
      type: str
    id:
      description: The id of the page.
      type: str
    title:
      description: The title of the page.
      type: str
    version:
      description: The version of the page.
      type: int
    url:
      description: URL of the page for a browser.
      type: str
    action:
      description: V(created), V(adopted), V(moved), V(renamed), V(updated), V(unchanged), V(deleted), or V(failed) for a page that is left
        as it is, although it differs.
      type: str
    changes:
      description: Differences, as dictionaries with C(field), C(before) and C(after).
      type: list
      elements: dict
      returned: with C(--diff), or with C(error)
    error:
      description: Why the page is left as it is, as C(error) of the task, with C(msg).
      type: dict
      returned: if C(action) is V(failed)
    unsupported:
      description: Sentences about macros and user keys in the body that Confluence Cloud cannot hold.
      type: list
      elements: str
      returned: if there are any, on Confluence Cloud
  sample:
    - path: index.md
      id: "2001"
      title: Handbook
      version: 4
      url: https://wiki.example/display/REL/Handbook
      action: unchanged
problems:
  description: Errors in the files, with file and line.
  returned: if the files have errors
  type: list
  elements: str
  sample: ["guide/install.md:12: the target of the link 'setup.md' does not exist in src"]
edited:
  description: Pages that somebody edited after the tree wrote them, and that differ from their files. See O(on_edit).
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: Path of the file below O(src).
      type: str
    id:
      description: The id of the page.
      type: str
    title:
      description: The title of the page.
      type: str
    author:
      description: Who saved the present version. Empty if the server does not tell.
      type: str
    time:
      description: When the present version was saved, in UTC. Empty if the server does not tell.
      type: str
  sample:
    - {path: guide/install.md, id: "2002", title: Install, author: jdoe, time: "2026-11-20T08:15:00Z"}
without_file:
  description: Pages that this tree wrote, and that have no file any more. With O(mark=false), all pages below its root that have no file.
  returned: success
  type: list
  elements: dict
  sample: [{id: "2003", title: Old news, url: "https://wiki.example/display/REL/Old+news"}]
drafts:
  description: Paths of the drafts that are left out.
  returned: success
  type: list
  elements: str
  sample: ["guide/next.md"]
unreferenced:
  description: The number of text files of O(src) that are not pages, and to which no page refers. Ansible shows it with C(-v).
  returned: if there are such files
  type: str
  sample: "2 text files of src are on no page: 1 .txt, 1 .rst"
comments:
  description:
    - Numbers of inline comments of readers in the pages that the task saves. A comment is C(kept) if the commented text is still in the
      page, otherwise C(lost).
  returned: success
  type: dict
  sample: {kept: 2, lost: 0}
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.wiki.tree import wiki_tree


def main() -> None:
    run(wiki_tree.WikiTreeOptions, wiki_tree.WikiTreeOperation)


if __name__ == "__main__":
    main()
