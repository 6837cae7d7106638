# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: analysis_query
short_description: Make a search text of the code analysis server from data
version_added: 1.0.0
description:
  - Turns a dict of keywords and values into a search text, with quotation marks where a value needs them.
  - "Keywords are those of the server, as C(build) (a part of a build's name), C(state), C(status), C(severity), C(code), C(file), C(module)
    and C(owner)."
  - Besides these, C(build_exact) is the whole name of a build, and C(text) is searched for in all that is written.
  - Different keywords must all hold. A list as a value holds alternatives. Null is left out. True and false become C(on) and C(off).
  - "These are errors: nothing to search for, more than one build, an empty value or list, a number with a fraction, and a value
    with both kinds of quotation marks, for which no escape is known."
  - A server only warns of a keyword that it does not know; M(delivery.toolchain.analysis_issue_info) shows such a warning.
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input
options:
  _input:
    description: The keywords with their values.
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
  description: The search text.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.delivery.toolchain.plugins.module_utils.analysis import search_text
from ansible_collections.delivery.toolchain.plugins.module_utils.core.errors import ToolchainError


def analysis_query(value: Any) -> str:
    """A search text from keywords and values; see the documentation of the filter."""
    try:
        return search_text.build(value)
    except ToolchainError as error:
        raise AnsibleFilterError(f"analysis_query: {error.message}") from None


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"analysis_query": analysis_query}
