# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a JQL search, for the module and the lookup."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  fields:
    description:
      - Fields to return, as V(summary), V(*all) or V(-comment). Not given means the navigable fields.
      - An empty list returns no field but the key.
    type: list
    elements: str
  expand:
    description: What to expand in each issue, as V(changelog).
    type: list
    elements: str
  properties:
    description: Keys of issue properties to return.
    type: list
    elements: str
  fields_by_keys:
    description: Whether O(fields) names fields by their keys instead of their ids.
    type: bool
  validate_query:
    description:
      - How strictly the server checks the query; not given means as it does by default.
      - V(true) and V(false) are what older servers know, V(strict), V(warn) and V(none) what newer ones know.
      - Jira Cloud always validates strictly.
    type: str
    choices: [strict, warn, none, 'true', 'false']
  max_results:
    description: Most issues to return (of each query). Not given means every issue; V(0) returns none.
    type: int
  start_at:
    description: How many issues to leave out at the beginning.
    type: int
    default: 0
  page_size:
    description: Issues to ask for in one request; the server may give fewer.
    type: int
    default: 100
  parallel:
    description: Most pages to read at once.
    type: int
    default: 4
"""
