# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: analysis_query
short_description: Issues of the code analysis server
version_added: 1.0.0
description:
  - Returns the issues of all given projects, in the order of the projects.
  - If the list does not contain all matches, the lookup adds a warning. An unknown build in the query is an error.
  - Use C(query) to always get a list, even of a single issue.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis_plugin
  - delivery.toolchain.lookup_cache
  - delivery.toolchain.analysis_search
options:
  _terms:
    description: Names of projects.
    type: list
    elements: str
    required: true
  query:
    description:
      - Search query, such as V(state:New severity:1-3). By default, all issues are returned.
      - The filter P(delivery.toolchain.analysis_query#filter) creates it from a dictionary.
    type: str
seealso:
  - module: delivery.toolchain.analysis_issue_info
  - plugin: delivery.toolchain.analysis_query
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the files with new issues
  ansible.builtin.debug:
    msg: "{{ issues | map(attribute='file') | unique }}"
  vars:
    new: "{{ {'build_exact': 'build_10', 'state': 'New'} | delivery.toolchain.analysis_query }}"
    issues: "{{ query('delivery.toolchain.analysis_query', 'toolchain', query=new) }}"
"""

RETURN = r"""
_list:
  description: Unchanged issues of the server.
  type: list
  elements: dict
"""

from functools import partial
from typing import Any

from ..module_utils._lib.analysis.issues.issue_search import SearchOptions, issues
from ..plugin_utils._lib import lookups


class LookupModule(lookups.QueryLookup):
    service, wanted = "analysis", "the name of a project"

    def rows(self, term: Any) -> list[Any]:
        options = lookups.parsed(SearchOptions, {**self.get_options(), "project": term})
        return self.ask(vars(options), partial(issues, options=options))
