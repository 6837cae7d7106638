# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: field_text
short_description: Show the value of a field of an issue as text
version_added: 1.0.0
description:
  - Shows a value that M(delivery.toolchain.jql_search) returns, for templates of release notes.
  - People are shown by full name, issues and links by the key of the other issue, documents by their text, a cascading select by both levels,
    numbers without C(.0), times in the form of ISO 8601, other objects by their name. Lists are separated by commas.
  - A value that cannot be shown becomes an empty string, with a warning.
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input
options:
  _input:
    description: The value of a field.
    type: raw
    required: true
  field:
    description: Name of the field, for the warning.
    type: str
    default: ""
seealso:
  - module: delivery.toolchain.jql_search
"""

EXAMPLES = r"""
- name: Show the sub-tasks of the issues
  ansible.builtin.debug:
    msg: "{{ issue.key }}: {{ issue.fields.subtasks | default([]) | delivery.toolchain.field_text('subtasks') }}"
  loop: "{{ query('delivery.toolchain.jql_search', 'project = REL', fields=['subtasks']) }}"
  loop_control:
    loop_var: issue
"""

RETURN = r"""
_value:
  description: The text.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ansible.utils.display import Display

from ..module_utils._lib.tracker.issues import field_text as texts


def field_text(value: Any, field: str = "") -> str:
    """Show the value of a field; see the documentation of the filter."""
    found = texts.field_text(value)
    if found is None:
        Display().warning(f"field_text: a value of the field {field} cannot be shown".rstrip())
    return found or ""


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"field_text": field_text}
