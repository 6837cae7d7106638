# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: jql
short_description: Make a JQL query from data
version_added: 1.0.0
description:
  - Turns a dict or a list of clauses into a query, with every value quoted.
  - "A dict holds fields and values: C(project), or a field with an operator behind it, as C(created >=) or C(status not in)."
  - "Operators are C(=) (where none is given), C(!=), C(<), C(<=), C(>), C(>=), C(~), C(!~), C(in), C(not in), C(is) and C(is not)."
  - A list as a value becomes C(in (...)), or C(not in (...)) with C(!=); null becomes C(is EMPTY), or C(is not EMPTY) with C(!=).
  - An empty query, and an empty part of one, is an error, as it would find everything.
  - Texts, dates and booleans are quoted, whole numbers are not. A number with a fraction is an error, as YAML reads 1.10 as 1.1.
    Give it in quotation marks. A dict with C(function) and C(arguments) becomes a call, as C(currentUser()).
  - The fields C(and), C(or) and C(not) hold clauses of their own.
  - A list holds dicts, dicts with C(field), C(operator) and C(value), and texts that are taken as they are.
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input
options:
  _input:
    description: The clauses.
    type: raw
    required: true
  join:
    description: How clauses that stand side by side go together.
    type: str
    choices: [and, or]
    default: and
  order_by:
    description: Fields to order by, each with C(ASC) or C(DESC) behind it if wanted.
    type: list
    elements: str
seealso:
  - plugin: delivery.toolchain.jql_quote
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Find the unassigned issues of a release (project = "REL" AND status in ("Open", "In Progress") AND assignee is EMPTY)
  delivery.toolchain.jql_search:
    jql: "{{ {'project': 'REL', 'status': ['Open', 'In Progress'], 'assignee': none} | delivery.toolchain.jql }}"

- name: Find my issues of the last week (updated >= "-1w" AND assignee = currentUser() ORDER BY updated DESC)
  delivery.toolchain.jql_search:
    jql: "{{ {'updated >=': '-1w', 'assignee': {'function': 'currentUser'}} | delivery.toolchain.jql(order_by='updated DESC') }}"
"""

RETURN = r"""
_value:
  description: The query.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.delivery.toolchain.plugins.module_utils.core.errors import ToolchainError
from ansible_collections.delivery.toolchain.plugins.module_utils.tracker import jql_clauses


def jql(value: Any, join: str = "and", order_by: Any = None) -> str:
    """A query from clauses; see the documentation of the filter."""
    try:
        return jql_clauses.build(value, join=join, order_by=order_by)
    except ToolchainError as error:
        raise AnsibleFilterError(f"jql: {error.message}") from None


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"jql": jql}
