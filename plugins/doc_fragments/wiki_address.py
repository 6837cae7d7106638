# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a page that is read is named, for the module and the lookup."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  page_id:
    description:
      - The id of the page.
      - Looking up a title is no part of the written interface of the wiki. Real servers can do it; on others only the id works.
    type: str
  space:
    description: The key of the space. With O(page_id) it only counts where the server does not show it.
    type: str
  title:
    description: The title, in O(space). Neither letter case nor blanks around it count.
    type: str
"""
