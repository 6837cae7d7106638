# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of what lists images and tags, for the module and the lookups."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  page_size:
    description:
      - Names to ask for in one request; the server may give fewer, or all of them.
      - All pages are read, whatever it is.
    type: int
    default: 1000
"""
