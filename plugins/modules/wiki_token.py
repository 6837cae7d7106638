#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wiki_token
short_description: Issue, renew and revoke personal access tokens of the wiki
version_added: 1.0.0
description:
  - Creates a personal access token if no valid token of this name exists, and revokes tokens by name. An unchanged token costs a single
    request.
  - The tokens belong to the account that is logged in. The name is stored in the name of the token, as C(toolchain:NAME:MARK). Tokens
    with another name are never changed.
  - Only the task that creates a token gets its secret, for O(dest) or O(return_value).
  - If the response with the secret is lost, the task revokes the created token, and creates another token.
  - Needs Confluence Data Center 7.9 or newer. A site in the cloud has no such interface.
  - The server does not show with which token a request is logged in. If the task itself logs in with a token of this name, put its id
    into O(in_use), so that O(revoke_older) leaves it.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.wiki
  - delivery.toolchain.token
  - delivery.toolchain.attributes
options:
  expires_in:
    description:
      - Lifetime of a new token in whole days, such as V(90d) or V(12w). V(0) is a token that never expires.
      - The default is a token that never expires, if the server accepts one.
    type: str
  state:
    description: Whether a valid token exists. V(absent) revokes all tokens of this name.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: delivery.toolchain.repo_token
"""

EXAMPLES = r"""
- name: Issue a token for a dashboard, and a new one two weeks before it expires
  delivery.toolchain.wiki_token:
    name: dashboard
    expires_in: 90d
    renew_before: 14d
    dest: dashboard.token

- name: Revoke all older tokens of this name
  delivery.toolchain.wiki_token:
    name: dashboard
    revoke_older: true

- name: Revoke the tokens of a program that is gone
  delivery.toolchain.wiki_token:
    name: nightly-report
    state: absent
"""

RETURN = r"""
token:
  description: Newest valid token, or null after O(state=absent). In check mode, the fields of a new token are null.
  returned: success
  type: dict
  contains:
    id:
      description: Id of the token.
      type: str
    name:
      description: Its name.
      type: str
    created:
      description: Time of its creation.
      type: str
    expires:
      description: Time at which it expires, or null.
      type: str
    value:
      description: The secret.
      type: str
      returned: if the token was created, with O(return_value=true)
  sample: {id: "42", name: dashboard, created: "2026-05-01T08:00:00.000Z", expires: "2026-07-30T08:00:00.000Z"}
tokens:
  description: Valid tokens of this name before the task, newest first, with C(id), C(name), C(created) and C(expires).
  returned: success
  type: list
  elements: dict
  sample: []
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.wiki import wiki_token


def main() -> None:
    run(wiki_token.WikiTokenOptions, wiki_token.WikiTokenOperation)


if __name__ == "__main__":
    main()
