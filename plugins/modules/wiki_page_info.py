#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wiki_page_info
short_description: Read a page of the wiki
version_added: 1.0.0
description:
  - Reads a page with its body in storage format as stored on the server.
  - If the page does not exist, is in the trash, is a draft, or is not visible to the login, the task fails with the kind C(not_found).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.wiki
  - delivery.toolchain.attributes.info
  - delivery.toolchain.wiki_address
options: {}
seealso:
  - module: delivery.toolchain.wiki_page
  - plugin: delivery.toolchain.wiki_page
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: Read a page by its id
  delivery.toolchain.wiki_page_info:
    page_id: "1002"
  register: handbook

- name: Read a page by its title
  delivery.toolchain.wiki_page_info:
    space: REL
    title: Handbook
"""

RETURN = r"""
page:
  description: The page.
  returned: success
  type: dict
  contains:
    id:
      description: Its id.
      type: str
      sample: "1002"
    title:
      description: Its title.
      type: str
      sample: Handbook
    space:
      description: The key of its space.
      type: str
      sample: REL
    version:
      description: Its version.
      type: int
      sample: 3
    url:
      description: Its address for a browser.
      type: str
      sample: https://wiki.example/display/REL/Handbook
    parent_id:
      description: ID of the parent page. Null at the top level of the space, or if the server does not return it.
      type: str
      sample: "1001"
    body:
      description: Body in storage format.
      type: str
      sample: <h1>Before a release</h1>
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.wiki.pages import wiki_page_info


def main() -> None:
    run(wiki_page_info.WikiPageInfoOptions, wiki_page_info.WikiPageInfoOperation)


if __name__ == "__main__":
    main()
