# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: wiki_page
short_description: Pages of the wiki with their bodies
version_added: 1.0.0
description:
  - Returns pages with their bodies in storage format as stored on the server.
  - If a page does not exist, is in the trash, is a draft, or is not visible to the login, the lookup fails.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.wiki_plugin
  - delivery.toolchain.lookup_cache
  - delivery.toolchain.wiki_address
options:
  _terms:
    description: IDs of pages, or titles of pages in O(space). Not required with O(page_id) or O(title).
    type: list
    elements: str
seealso:
  - module: delivery.toolchain.wiki_page
  - module: delivery.toolchain.wiki_page_info
"""

EXAMPLES = r"""
- name: Show a page by its id
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.wiki_page', '1002').body }}"

- name: Show a page by its title
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.wiki_page', space='REL', title='Handbook').url }}"

- name: Show the versions of two pages by their titles
  ansible.builtin.debug:
    msg: "{{ query('delivery.toolchain.wiki_page', 'Handbook', 'Release notes', space='REL') | map(attribute='version') }}"
"""

RETURN = r"""
_list:
  description: Pages with C(id), C(title), C(space), C(version), C(url), C(parent_id) and C(body).
  type: list
  elements: dict
"""

from dataclasses import asdict, replace
from functools import partial
from typing import Any

from ansible.plugins.lookup import LookupBase

from ..module_utils._lib.core.module.task import Task
from ..module_utils._lib.wiki.pages.wiki_page_info import WikiPageInfoOperation, WikiPageInfoOptions
from ..plugin_utils._lib import lookups


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        lookups.set_options(self, "wiki", variables, kwargs)
        named = lookups.parsed(WikiPageInfoOptions, self.get_options())
        by = "page_id" if named.space is None else "title"
        pages = [replace(named, **{by: term}) for term in lookups.string_terms(terms)]
        if not terms or named.page_id is not None or named.title is not None:
            pages.append(named)
        return [
            found
            for page in pages
            for found in lookups.cached(self, asdict(page), partial(self._page, page))
        ]

    def _page(self, options: WikiPageInfoOptions) -> list[dict[str, Any]]:
        def read(task: Task) -> dict[str, Any]:
            return WikiPageInfoOperation(task, options).page()

        found: dict[str, Any] = lookups.run_query("wiki", self.get_option, asdict(options), read)
        return [found]
