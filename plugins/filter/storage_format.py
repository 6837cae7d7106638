# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: storage_format
short_description: Convert Markdown to the storage format of the wiki
version_added: 1.0.0
description:
  - Converts CommonMark with tables, task lists and strikethrough. The output is escaped and well-formed.
  - Code becomes the code macro. A quote that starts with C([!NOTE]), C([!TIP]), C([!IMPORTANT]), C([!WARNING]) or C([!CAUTION]) becomes the
    macro C(info), C(tip), C(note) or C(warning).
  - An image with a path instead of a URL becomes an attachment of the page, with its file name. If another image has that file name, it is
    the path with C(_) instead of C(/), as in C(guide_logo.png). Links keep their URLs. A link to a heading or to an C(id) leads there.
  - Raw HTML becomes storage format, including its images and links. For an element without an equivalent, only the text is kept, with a
    warning. Comments are left out. Addresses such as C(https://wiki.example) become links.
  - A block of code with the language C(storage), and a code span that is followed by C({=storage}), are passages in storage format, and
    inserted unchanged.
  - Front matter is removed. The first heading stays. Syntax of site generators, such as C({{< note >}}), stays text, with a warning.
  - M(delivery.toolchain.wiki_tree) converts in the same way, but knows all files and creates links between pages.
author: delivery.toolchain contributors (@delivery-toolchain)
requirements:
  - markdown-it-py >= 3.0 on the controller
positional: _input
options:
  _input:
    description: Markdown string.
    type: str
    required: true
seealso:
  - module: delivery.toolchain.wiki_page
  - module: delivery.toolchain.wiki_tree
"""

EXAMPLES = r"""
- name: Publish the change log as a page
  delivery.toolchain.wiki_page:
    space: REL
    title: Changes
    body: "{{ changes | delivery.toolchain.storage_format }}"
  vars:
    changes: |
      # Version 1.0.0

      - The first one
"""

RETURN = r"""
_value:
  description: Body of a page in storage format.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display

from ..module_utils._lib.core.errors import ToolchainError, excerpt
from ..module_utils._lib.wiki.formats import converter


def storage_format(value: Any) -> str:
    """Convert Markdown to storage format; see the documentation of the filter."""
    if not isinstance(value, str):
        raise AnsibleFilterError(
            f"storage_format: the Markdown must be a string, not {excerpt(value)}"
        )
    try:
        return converter.storage_format(value, _warn)
    except ToolchainError as error:
        raise AnsibleFilterError(f"storage_format: {error.message}") from None


def _warn(text: str) -> None:
    Display().warning(f"storage_format: {text}")


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"storage_format": storage_format}
