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
  accounts:
    description: Names to write instead of the accounts of the server. The playbook C(delivery.toolchain.export) sets this option from
      C(desired_state_accounts).
    type: dict
    suboptions:
      names:
        description: The account of each name. An account with two names is an error, as is an account without a name whose own name is
          that of another account.
        type: dict
        default: {}
      preferred:
        description: Names that go before others of the same account.
        type: list
        elements: str
        default: []
      places:
        description: Where the accounts of an entry are, by list, such as C(users[]). V([]) are the items of a list, V({}) the keys of
          a mapping, V(*) its values, and V(:) is the text after the last colon.
        type: dict
        default: {}
      required:
        description: Whether an account without a name is an error.
        type: bool
        default: false
notes:
  - The playbook C(delivery.toolchain.export) exports several services into the same folder.
"""
