# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes of all modules: check mode, diff, idempotence."""

from __future__ import annotations


class ModuleDocFragment:
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
