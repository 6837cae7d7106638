# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long lookups keep what they asked."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  cache:
    description:
      - Whether the answer is kept while the play runs. The same question (address, login and options included) is then sent once.
      - After a module of this collection wrote to any service, everything is asked anew.
      - V(false) asks anew in any case, which a task needs that waits for something (C(until)).
    type: bool
    default: true
"""
