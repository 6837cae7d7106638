# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: jql
short_description: Create a JQL query from data
version_added: 1.0.0
description:
  - Converts a dictionary or a list of clauses to a query. Every value is quoted.
  - A dictionary maps fields to values. A key is a field such as C(project), or a field with an operator, such as C(created >=) or C(status
    not in).
  - Operators are C(=) (the default), C(!=), C(<), C(<=), C(>), C(>=), C(~), C(!~), C(in), C(not in), C(is) and C(is not).
  - A list value becomes C(in (...)), or C(not in (...)) with C(!=). Null becomes C(is EMPTY), or C(is not EMPTY) with C(!=).
  - An empty query, or an empty part of a query, is an error, because it would match everything.
  - Strings, dates and booleans are quoted, integers are not. A number with a fraction is an error, because YAML reads 1.10 as 1.1. Quote
    it. A time with a UTC offset is an error, because the query language uses the time zone of the account. A dictionary with
    C(function) and C(arguments) becomes a call, such as C(currentUser()).
  - The keys C(and), C(or) and C(not) contain nested clauses.
  - A list contains dictionaries, dictionaries with C(field), C(operator) and C(value), and strings, which are used unchanged.
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input
options:
  _input:
    description: Clauses.
    type: raw
    required: true
  join:
    description: Operator that joins clauses of the same level.
    type: str
    choices: [and, or]
    default: and
  order_by:
    description: Fields to order by, optionally followed by C(ASC) or C(DESC).
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
  description: JQL query.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils._lib.core.errors import ToolchainError
from ..module_utils._lib.tracker.jql import build


def jql(value: Any, join: str = "and", order_by: Any = None) -> str:
    """Create a query from clauses; see the documentation of the filter."""
    try:
        return build(value, join=join, order_by=order_by)
    except ToolchainError as error:
        raise AnsibleFilterError(f"jql: {error.message}") from None


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"jql": jql}
