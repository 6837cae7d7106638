# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of an issue search, for the module and the lookup."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  view:
    description: Name of a view of the project. The search query of the view applies in addition to the query of the task.
    type: str
  limit:
    description: Maximum number of issues to return. By default, all issues are returned.
    type: int
"""
