# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: artifact_query
short_description: Items and builds in the artifact repository manager
version_added: 1.0.0
description:
  - Returns the results of all given queries, in the order of the queries.
  - Use C(query) to always get a list, even of a single result.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo_plugin
  - delivery.toolchain.lookup_cache
options:
  _terms:
    description:
      - Queries in the query language, which start like V(items.find(\)), or patterns C(repository:path) with the wildcards V(*) and V(?).
      - Users without administration rights must include C(repo), C(path) and C(name) in a query.
    type: list
    elements: str
    required: true
seealso:
  - module: delivery.toolchain.artifact_info
"""

EXAMPLES = r"""
- name: Show the files of a version
  ansible.builtin.debug:
    msg: "{{ files | map(attribute='name') }}"
  vars:
    version: {repo: generic-snapshot-local, path: agent/1.0.0}
    search: items.find({{ version | to_json }}).include("repo", "path", "name")
    files: "{{ query('delivery.toolchain.artifact_query', search) }}"

- name: Show the paths of text files
  ansible.builtin.debug:
    msg: "{{ query('delivery.toolchain.artifact_query', 'generic-snapshot-local:**/*.txt', dialect='jfrog') }}"
"""

RETURN = r"""
_list:
  description: Unchanged rows of the server. For a pattern, a dictionary with C(path) per file.
  type: list
  elements: dict
"""

from typing import Any

from ..module_utils._lib.repo.items.artifact_info import (
    ArtifactInfoOperation,
    ArtifactInfoOptions,
    option_of,
)
from ..plugin_utils._lib import lookups


class LookupModule(lookups.QueryLookup):
    service, wanted = "repo", "an item query or a pattern"

    def rows(self, term: Any) -> list[Any]:
        values = {option_of(term): term}
        options = lookups.parsed(ArtifactInfoOptions, values)
        return self.ask(values, lambda task: ArtifactInfoOperation(task, options).rows())
