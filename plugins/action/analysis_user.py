# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action of the module: that of all modules.

The routing in meta/runtime.yml would do to find it, but then every worker imports it anew. By its
name the process that forks the workers loads it, once.
"""

from __future__ import annotations

from ansible_collections.delivery.toolchain.plugins.action.in_process import ActionModule

__all__ = ["ActionModule"]
