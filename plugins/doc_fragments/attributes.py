# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The attributes of all modules: check mode, diff, idempotence, action group."""

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
    # ansible-test's yamllint wants literals in plain assignments; annotated ones it passes over.
    DOCUMENTATION = """
attributes:
  check_mode:
    description: Says what would be done without a request that changes the server.
    support: full
  diff_mode:
    description: Shows what is changed, with secrets masked; check mode shows the same.
    support: full
  idempotent:
    description: A second run with the same options changes nothing.
    support: full
"""

    # for a module that reads only
    INFO = """
attributes:
  check_mode:
    description: Changes nothing, so that check mode makes no difference.
    support: full
  diff_mode:
    description: Changes nothing, so that there is no diff.
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
