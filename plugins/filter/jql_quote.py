# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: jql_quote
short_description: Quote a value for a JQL query
version_added: 1.0.0
description:
  - Quotes a value and escapes the characters that would end the string or break the query.
  - These are backslashes, quotation marks and control characters.
  - Characters with a meaning in a text search (C(~)), such as C(*), keep it.
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input
options:
  _input:
    description: A string, an integer or a boolean.
    type: raw
    required: true
seealso:
  - plugin: delivery.toolchain.jql
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Search for a summary from a variable
  delivery.toolchain.jql_search:
    jql: project = REL AND summary ~ {{ 'Ampersand in a "property"' | delivery.toolchain.jql_quote }}
"""

RETURN = r"""
_value:
  description: Quoted value for a query.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils._lib.core.errors import ToolchainError
from ..module_utils._lib.core.module.input_check import Place, text
from ..module_utils._lib.tracker.jql import quote

_VALUE = Place("the value to quote")


def jql_quote(value: Any) -> str:
    """Quote a value for a query; see the documentation of the filter."""
    try:
        word = str(value).lower() if isinstance(value, bool) else text(value, _VALUE, empty=True)
        return quote(word)
    except ToolchainError as error:
        raise AnsibleFilterError(f"jql_quote: {error.message}") from None


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"jql_quote": jql_quote}
