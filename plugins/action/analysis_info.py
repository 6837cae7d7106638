# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This file is written by `python -m tools.generated`.
"""Action plugin of the module. ansible-lint reads the arguments from `main`."""

from __future__ import annotations

from ansible_collections.delivery.toolchain.plugins.modules.analysis_info import main
from ansible_collections.delivery.toolchain.plugins.plugin_utils.in_process import Action

__all__ = ["ActionModule", "main"]


class ActionModule(Action):
    service = "analysis"
