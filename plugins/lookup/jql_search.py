# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: jql_search
short_description: Issues that match a JQL query
version_added: 1.0.0
description:
  - Returns all issues that match the given queries, in the order of the queries and of the server.
  - Use C(query) to always get a list, even of a single issue.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker_plugin
  - delivery.toolchain.lookup_cache
  - delivery.toolchain.jql_search
options:
  _terms:
    description:
      - Queries.
      - If the order of a query is not unique, C(key) is added as its last order term.
    type: list
    elements: str
    required: true
seealso:
  - module: delivery.toolchain.jql_search
"""

EXAMPLES = r"""
- name: Show the keys of a release
  ansible.builtin.debug:
    msg: "{{ issues | map(attribute='key') }}"
  vars:
    search: project = REL AND fixVersion = "1.0.0"
    issues: "{{ query('delivery.toolchain.jql_search', search, fields=['summary']) }}"
"""

RETURN = r"""
_list:
  description: Unchanged issues of the server.
  type: list
  elements: dict
"""

from dataclasses import asdict
from typing import Any

from ..module_utils._lib.tracker.issues.jql_search import JqlSearchOperation, JqlSearchOptions
from ..plugin_utils._lib import lookups


class LookupModule(lookups.QueryLookup):
    service, wanted = "tracker", "a query"

    def rows(self, term: Any) -> list[Any]:
        options = lookups.parsed(JqlSearchOptions, {**self.get_options(), "jql": term})
        return self.ask(
            asdict(options), lambda task: JqlSearchOperation(task, options).search().issues
        )
