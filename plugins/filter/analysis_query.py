# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: analysis_query
short_description: Create a search query of the code analysis server from data
version_added: 1.0.0
description:
  - Converts a dictionary of keywords and values to a search query. Values are quoted if necessary.
  - Keywords are those of the server, such as C(build) (a part of a build name), C(state), C(status), C(severity), C(code), C(file),
    C(module) and C(owner).
  - In addition, C(build_exact) is the exact name of a build, and C(text) is a full-text search. Its words come
    first, because words after a keyword look like a part of its value.
  - All keywords must match. A list contains alternatives. Null is skipped. True and false become C(on) and C(off).
  - The filter rejects an empty query, more than one build, an empty value or list, a number with a fraction, and a value with both kinds of
    quotation marks, because no escape for it is known.
  - The server only warns about an unknown keyword. M(delivery.toolchain.analysis_issue_info) shows this warning.
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input
options:
  _input:
    description: Keywords and their values.
    type: dict
    required: true
seealso:
  - module: delivery.toolchain.analysis_issue_info
  - plugin: delivery.toolchain.analysis_query
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: "Search a build by its whole name (build:+'my build' state:New status:Analyze,Fix)"
  delivery.toolchain.analysis_issue_info:
    project: toolchain
    query: "{{ {'build_exact': build, 'state': 'New', 'status': ['Analyze', 'Fix']} | delivery.toolchain.analysis_query }}"
  vars:
    build: build_10
"""

RETURN = r"""
_value:
  description: Search query.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils._lib.analysis.issues import issue_search
from ..module_utils._lib.core.errors import ToolchainError


def analysis_query(value: Any) -> str:
    """Create a search query from keywords and values; see the documentation of the filter."""
    try:
        return issue_search.build(value)
    except ToolchainError as error:
        raise AnsibleFilterError(f"analysis_query: {error.message}") from None


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"analysis_query": analysis_query}
