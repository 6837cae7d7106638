# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Caching of lookup results."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  cache:
    description:
      - Whether to cache the response until the play ends. Identical queries (same URL, login and options) are then sent once.
      - A module of this collection that writes to any service clears the cache.
      - Set this option to V(false) in a task that waits for a change (C(until)). It then always queries the server.
    type: bool
    default: true
"""
