# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that the modules for tokens share."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
attributes:
  idempotent:
    support: partial
    details: With O(renew=true), every run creates a token.
options:
  name:
    description: Name of the token. At most 200 characters, without C(*), line breaks, and blanks at its ends.
    type: str
    required: true
  renew_before:
    description:
      - Create a new token if the newest one expires within this time, such as V(14d). Must be shorter than O(expires_in).
      - By default, a new token is created only if the newest one is not valid. The clock of the server decides.
    type: str
  dest:
    description:
      - File for the secret, written with the mode C(0600).
      - If the file is missing, a new token is created. If it cannot be written, no token is created.
    type: path
  return_value:
    description:
      - Whether the task that creates a token returns its secret. Use C(no_log) for the task.
      - A task that would create a token fails without O(dest) and O(return_value=true), because nobody would get the secret.
    type: bool
    default: false
  revoke_older:
    description:
      - Whether to revoke all other tokens of this name. They are revoked after the new secret is stored.
      - If that fails after a creation, a warning names the token that is still valid.
    type: bool
    default: false
  in_use:
    description: Ids of tokens that O(revoke_older) leaves, because something still uses them.
    type: list
    elements: str
  renew:
    description: Whether to create a new token even if one is valid. Every run then creates a token.
    type: bool
    default: false
"""
