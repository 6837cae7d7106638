# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes of all modules: check mode, diff, idempotence, action group."""

from __future__ import annotations

_GROUP = """
attributes:
  action_group:
    description: Use C(group/delivery.toolchain.{service}) in C(module_defaults) to set the connection of all modules of this service.
    support: full
    membership:
      - delivery.toolchain.{service}
"""


class ModuleDocFragment:
    # The yamllint check of ansible-test requires literals in plain assignments; it skips annotated assignments.
    DOCUMENTATION = """
requirements:
  - python >= 3.10
attributes:
  check_mode:
    description: Reports the changes without sending requests that change the server.
    support: full
  diff_mode:
    description: Shows the changes with masked secrets, in check mode too.
    support: full
  idempotent:
    description: A second run with the same options changes nothing.
    support: full
"""

    # For modules that only read.
    INFO = """
requirements:
  - python >= 3.10
attributes:
  check_mode:
    description: Changes nothing, so check mode makes no difference.
    support: full
  diff_mode:
    description: Changes nothing, so there is no diff.
    support: N/A
  idempotent:
    description: Changes nothing.
    support: full
"""

    REPO: str = _GROUP.replace("{service}", "repo")
    TRACKER: str = _GROUP.replace("{service}", "tracker")
    WIKI: str = _GROUP.replace("{service}", "wiki")
    CI: str = _GROUP.replace("{service}", "ci")
    ANALYSIS: str = _GROUP.replace("{service}", "analysis")
