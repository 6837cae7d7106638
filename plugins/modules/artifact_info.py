#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: artifact_info
short_description: Find items and builds in the artifact repository manager
version_added: 1.0.0
description:
  - Queries the server in its query language, by a pattern, or lists a folder.
  - If the server limits the result, the task adds a warning.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes.info
options:
  aql:
    description:
      - 'Query in the query language for items or builds, such as V(items.find({"repo": "generic"}\)).'
      - Write your own values as JSON, for example with the filter P(ansible.builtin.to_json#filter).
      - Users without administration rights must include C(repo), C(path) and C(name), and may not see builds.
      - Set exactly one of O(aql), O(aql_file), O(pattern) and O(list).
    type: str
  aql_file:
    description: File with a query in UTF-8, on the host of the task.
    type: path
  pattern:
    description: Pattern C(repository:path) with the wildcards V(*) and V(?), such as V(generic-local:agent/*/*.jar).
    type: str
  list:
    description: List a folder.
    type: dict
    suboptions:
      repo:
        description: Key of the repository.
        type: str
        required: true
      path:
        description: Path of the folder. The default is the root of the repository.
        type: str
        default: ""
      deep:
        description: Whether to list subfolders recursively.
        type: bool
        default: false
      depth:
        description: Maximum depth of the recursion. Implies O(list.deep).
        type: int
      list_folders:
        description: Whether to list folders in addition to files.
        type: bool
        default: false
      md_timestamps:
        description: Whether to return the time of the last change of the properties.
        type: bool
        default: false
      include_root_path:
        description: Whether to list the folder itself.
        type: bool
        default: false
notes:
  - In a loop, the registered variable has its own list C(results). Its entries contain the RV(results) of the loop items.
seealso:
  - plugin: delivery.toolchain.artifact_query
    plugin_type: lookup
  - module: delivery.toolchain.artifact_cleanup
"""

EXAMPLES = r"""
- name: Find the files of the agent
  delivery.toolchain.artifact_info:
    aql: |
      items.find({"repo": {{ repo | to_json }}, "path": {"$match": "agent/*"}})
        .include("repo", "path", "name", "size", "created")
  vars:
    repo: generic-snapshot-local
  register: agent

- name: Find the files again by their paths
  delivery.toolchain.artifact_info:
    pattern: "{{ item.repo }}:{{ item.path }}/{{ item.name }}"
  loop: "{{ agent.results }}"
  loop_control:
    label: "{{ item.path }}/{{ item.name }}"

- name: List the versions
  delivery.toolchain.artifact_info:
    list:
      repo: generic-snapshot-local
      path: agent
      list_folders: true
"""

RETURN = r"""
results:
  description:
    - Result of the query.
    - For O(aql) and O(aql_file), the unchanged rows of the response.
    - For O(pattern), a dictionary per file with C(path), the path in the repository, sorted alphabetically.
    - For O(list), the entries of the response with C(uri) and other members, and C(name), the first segment of C(uri).
  returned: success
  type: list
  elements: dict
  sample:
    - repo: generic-snapshot-local
      path: agent/1.0.0
      name: agent.txt
total:
  description: Number of RV(results).
  returned: success
  type: int
  sample: 1
complete:
  description: Whether the result is complete. If the server reports an incomplete result, the task adds a warning.
  returned: success
  type: bool
  sample: true
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.items import artifact_info


def main() -> None:
    run(artifact_info.ArtifactInfoOptions, artifact_info.ArtifactInfoOperation)


if __name__ == "__main__":
    main()
