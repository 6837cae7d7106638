# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Load the callback `report` for the playbooks of the collection, without configuration: Ansible
loads callbacks from the folder next to a playbook.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ansible_collections.delivery.toolchain.plugins.callback.report import (
    CallbackModule as Report,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import (
    enforcement,
    role_variables,
)

DOCUMENTATION = r"""
name: toolchain_report
type: aggregate
short_description: The callback report of the collection, for its playbooks
description:
  - See the callback P(delivery.toolchain.report#callback).
author: delivery.toolchain contributors (@delivery-toolchain)
options: {}
"""


_PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
#: The roles and playbooks whose variables they check.
_OWNERS = ("drift", "enforce", *enforcement.ROLES)


class CallbackModule(Report):
    CALLBACK_NAME = "toolchain_report"
    CALLBACK_NEEDS_ENABLED = False

    def __init__(self) -> None:
        super().__init__()
        # Each task of each host runs in a fork of this process, and a template with one filter of
        # a collection loads all of them: forks need not compile what is loaded here.
        for name in [
            *(f"filter.{file.stem}" for file in (_PLUGINS / "filter").glob("*.py")),
            "action.bookkeeping",
            *(f"plugin_utils._lib.steps.{subject}" for subject in ("inputs", "folder", "reports")),
        ]:
            import_module(f"ansible_collections.delivery.toolchain.plugins.{name}")
        for owner in _OWNERS:
            role_variables.remember(owner)
