# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that identify a page, for the module and the lookup."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  page_id:
    description:
      - ID of the page.
      - The documented interface of the wiki has no lookup by title. Real servers support it. On other servers, use the ID.
    type: str
  space:
    description: Key of the space. With O(page_id), it is used only if the server does not return the space.
    type: str
  title:
    description: Title of the page in O(space). Letter case and surrounding whitespace are ignored.
    type: str
"""
