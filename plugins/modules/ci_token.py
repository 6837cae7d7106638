#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_token
short_description: Issue, renew and revoke API tokens of the CI server
version_added: 1.0.0
description:
  - Creates an API token of a user if no valid token of this name exists, and revokes tokens by name. An unchanged token costs two
    requests.
  - The name is stored in the name of the token, as C(toolchain:NAME:MARK). Tokens with another name are never changed.
  - Only the task that creates a token gets its secret, for O(dest) or O(return_value).
  - If the response with the secret is lost, the task revokes the created token, and creates another token.
  - The token that the task itself is logged in with is never revoked. It stays, with a warning.
  - Needs Jenkins 2.129 or newer, and the permission C(Overall/Administer), because the server shows tokens only in its script console. A
    fixed script reads them.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.token
  - delivery.toolchain.attributes
options:
  token_username:
    description:
      - User of the token. The default is the user of the login. O(username) is the login itself.
      - A server lets only the user itself create tokens, unless its system property
        C(jenkins.security.ApiTokenProperty.adminCanGenerateNewTokens) is set. Administrators may revoke the tokens of other users.
    type: str
  expires_in:
    description:
      - Lifetime of a new token in whole days, such as V(90d) or V(12w). It is valid to the end of its last day at the server.
      - The default, and V(0), is a token that never expires.
      - Tokens never expire on Jenkins before 2.548. There, a token that is older than this lifetime is replaced, but it stays valid until
        it is revoked, as with O(revoke_older). A warning reports this when a token is created.
    type: str
  state:
    description: Whether a valid token exists. V(absent) revokes all valid tokens of this name.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: delivery.toolchain.ci_credential
  - module: delivery.toolchain.repo_token
"""

EXAMPLES = r"""
- name: Issue a token for the trigger of builds, and a new one two weeks before it expires
  delivery.toolchain.ci_token:
    name: build-trigger
    expires_in: 90d
    renew_before: 14d
    dest: build-trigger.token

- name: Revoke all older tokens of this name
  delivery.toolchain.ci_token:
    name: build-trigger
    revoke_older: true

- name: Revoke the tokens of a program that is gone
  delivery.toolchain.ci_token:
    name: nightly-report
    token_username: operator
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
  sample: {id: 1d2c3b4a-5968-4000-8000-00000000002a, name: app, created: "2026-05-01T08:00:00.000Z", expires: "2026-07-31T00:00:00.000Z"}
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
from ..module_utils._lib.ci.credentials import ci_token


def main() -> None:
    run(ci_token.CiTokenOptions, ci_token.CiTokenOperation)


if __name__ == "__main__":
    main()
