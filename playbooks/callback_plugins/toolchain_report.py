# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible loads the callbacks that lie beside a playbook: so the playbooks of the collection write
their report without a line of configuration.
"""

from __future__ import annotations

from ansible_collections.delivery.toolchain.plugins.callback.report import (
    CallbackModule as Report,
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


class CallbackModule(Report):
    CALLBACK_NAME = "toolchain_report"
    CALLBACK_NEEDS_ENABLED = False
