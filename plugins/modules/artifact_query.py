#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: artifact_query
short_description: Find items and builds in the artifact repository manager
version_added: 1.0.0
description:
  - Asks the server in its query language, by a pattern, or for the listing of a folder.
  - What the server leaves out because of a limit of its own becomes a warning.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes.info
  - delivery.toolchain.attributes.repo
options:
  aql:
    description:
      - 'A text in the query language, as V(items.find({"repo": "generic"}\)), over items or builds.'
      - Values of your own have to be written as JSON, for which the filter P(ansible.builtin.to_json#filter) serves.
      - Users who are no administrators must include C(repo), C(path) and C(name), and may see no builds at all.
      - One of O(aql), O(aql_file), O(pattern) and O(list) is needed.
    type: str
  aql_file:
    description: A file with such a text, in UTF-8, on the host that the task runs on.
    type: path
  pattern:
    description: A pattern C(repository:path) with the wildcards V(*) and V(?), as V(generic-local:agent/*/*.jar).
    type: str
  list:
    description: Lists a folder.
    type: dict
    suboptions:
      repo:
        description: Key of the repository.
        type: str
        required: true
      path:
        description: Path of the folder; the root of the repository where it is not given.
        type: str
        default: ""
      deep:
        description: Whether folders in the folder are looked into.
        type: bool
        default: false
      depth:
        description: How many levels deep they are looked into; implies O(list.deep).
        type: int
      list_folders:
        description: Whether folders are listed, too, and not only files.
        type: bool
        default: false
      md_timestamps:
        description: Whether the time of the last change of the properties is told.
        type: bool
        default: false
      include_root_path:
        description: Whether the folder itself is listed.
        type: bool
        default: false
notes:
  - In a loop the variable of C(register) has a list C(results) of its own, whose entries have the RV(results) of one item each.
seealso:
  - plugin: delivery.toolchain.artifact_query
    plugin_type: lookup
  - module: delivery.toolchain.artifact_cleanup
"""

EXAMPLES = r"""
- name: Which files of the agent are there?
  delivery.toolchain.artifact_query:
    aql: |
      items.find({"repo": {{ repo | to_json }}, "path": {"$match": "agent/*"}})
        .include("repo", "path", "name", "size", "created")
  vars:
    repo: generic-snapshot-local
  register: agent

- name: Show their paths
  delivery.toolchain.artifact_query:
    pattern: "{{ item.repo }}:{{ item.path }}/{{ item.name }}"
  loop: "{{ agent.results }}"
  loop_control:
    label: "{{ item.path }}/{{ item.name }}"

- name: Which versions are there?
  delivery.toolchain.artifact_query:
    list:
      repo: generic-snapshot-local
      path: agent
      list_folders: true
"""

RETURN = r"""
results:
  description:
    - What was found.
    - For O(aql) and O(aql_file) the rows as the server gives them.
    - For O(pattern) a dict with C(path), the path in the repository, for each file, in alphabetical order.
    - For O(list) the entries as the server gives them, with C(uri) and what else it tells, and C(name), the first segment of C(uri).
  returned: success
  type: list
  elements: dict
  sample:
    - repo: generic-snapshot-local
      path: agent/1.0.0
      name: agent.txt
total:
  description: How many there are in RV(results).
  returned: success
  type: int
  sample: 1
complete:
  description: Whether the server gave all that it found. Where it says that it did not, there is a warning.
  returned: success
  type: bool
  sample: true
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
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.items import artifact_query


def main() -> None:
    runner.run("repo", artifact_query.ArtifactQueryOptions, artifact_query.ArtifactQueryOperation)


if __name__ == "__main__":
    main()
