# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of a JQL search, for the module and the lookup."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  fields:
    description:
      - Fields to return, such as V(summary), V(*all) or V(-comment). The default is the navigable fields.
      - If the list is empty, only the keys of the issues are returned.
    type: list
    elements: str
  expand:
    description: Parts to expand in the issues, such as V(changelog).
    type: list
    elements: str
  properties:
    description: Keys of issue properties to return.
    type: list
    elements: str
  fields_by_keys:
    description: Whether O(fields) contains keys of fields instead of IDs.
    type: bool
  validate_query:
    description:
      - Strictness of the query validation. The default is that of the server.
      - Older servers accept V(true) and V(false), newer servers V(strict), V(warn) and V(none).
      - Jira Cloud always validates strictly.
    type: str
    choices: [strict, warn, none, 'true', 'false']
  max_results:
    description: Maximum number of issues to return (per query). By default, all issues are returned. V(0) returns none.
    type: int
  start_at:
    description: Number of issues to skip at the start.
    type: int
    default: 0
  page_size:
    description: Number of issues per request. The server may return fewer.
    type: int
    default: 100
  parallel:
    description: Maximum number of pages to read in parallel.
    type: int
    default: 4
"""
