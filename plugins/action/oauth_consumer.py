# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action of the module: that of all modules.

The process that forks the workers loads it by its name, and with it the module: once, where otherwise every worker would
import both anew.
"""

from __future__ import annotations

from ansible_collections.delivery.toolchain.plugins.action.in_process import ActionModule
from ansible_collections.delivery.toolchain.plugins.modules import oauth_consumer

__all__ = ["ActionModule", "oauth_consumer"]
