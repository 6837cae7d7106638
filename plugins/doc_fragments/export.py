# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that the exports share."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
requirements:
  - PyYAML on the host that executes this module
options:
  dest:
    description: Folder of the desired state on the host of the task. It is created if it does not exist.
    type: path
    required: true
  overwrite:
    description: Whether to replace files in O(dest) that the export did not write, or that were changed since.
    type: bool
    default: false
notes:
  - The playbook C(delivery.toolchain.export) exports several services into the same folder.
"""
