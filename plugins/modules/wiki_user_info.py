#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wiki_user_info
short_description: Find the names of users of the wiki by their keys
version_added: 1.0.0
description:
  - Finds the names of users whom a Confluence Data Center mentions in its pages by C(ri:userkey).
  - Confluence Cloud has no user keys. There the task fails with the kind C(invalid).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.wiki
  - delivery.toolchain.attributes.info
options:
  keys:
    description: Keys of users.
    type: list
    elements: str
    required: true
  parallel:
    description: Number of users to read in parallel.
    type: int
    default: 4
seealso:
  - module: delivery.toolchain.tracker_user_info
"""

EXAMPLES = r"""
- name: Find the name of a user whom a page mentions
  delivery.toolchain.wiki_user_info:
    keys: [ff80808154f8d5d50154f8d6d1f80001]
  register: mentioned
"""

RETURN = r"""
users:
  description: A row for each key.
  returned: success
  type: list
  elements: dict
  contains:
    key: {description: "The key.", type: str, returned: always}
    account: {description: "The name of the user, null if there is no such user.", type: str, returned: always}
    display_name: {description: "The display name, null if there is no such user.", type: str, returned: always}
  sample: [{key: ff80808154f8d5d50154f8d6d1f80001, account: alice, display_name: Alice}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.wiki.pages import wiki_user_info


def main() -> None:
    run(wiki_user_info.WikiUserInfoOptions, wiki_user_info.WikiUserInfoOperation)


if __name__ == "__main__":
    main()
