#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: repo_token
short_description: Issue, renew and revoke access tokens of the repository manager
version_added: 1.0.0
description:
  - Creates an access token if no valid token of this name exists, and revokes tokens by name. An unchanged token costs a single request.
  - The name is stored in the description of the token, as C(toolchain:NAME:MARK). Tokens with another description are never changed.
  - Only the task that creates a token gets its secret, for O(dest) or O(return_value).
  - If the response with the secret is lost, the task revokes the created token, and creates another token.
  - The token of the task's own login is not revoked, if the server identifies it. A warning names the token.
  - Needs the Access service (C(/access)) and a login with an access token. An administrator can create tokens for other users and with
    other scopes.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.token
  - delivery.toolchain.attributes
options:
  token_username:
    description:
      - User of the token. The default is the user of the login. O(username) is the login itself.
      - If another user has a valid token of this name, the task fails with C(conflict). With O(state=absent), only tokens of this user are
        revoked.
    type: str
  scopes:
    description:
      - Scopes of a new token, such as V(applied-permissions/user), V(applied-permissions/groups:readers) or V(applied-permissions/admin).
      - The server does not show the scopes of a token. They are not compared.
    type: list
    elements: str
  expires_in:
    description:
      - Lifetime of a new token, a number with C(w), C(d), C(h) or C(m), such as V(90d). V(0) is a token that never expires.
      - The default is that of the server. A lifetime below three hours adds a warning, because a server may not store such a token.
    type: str
  refreshable:
    description: Whether a new token can be refreshed. The refresh token is returned with the secret.
    type: bool
  project:
    description: Key of the project of a new token.
    type: str
  state:
    description: Whether a valid token exists. V(absent) revokes all tokens of this name. If several users have some, set O(token_username).
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: delivery.toolchain.repo_info
"""

EXAMPLES = r"""
- name: Issue a token for the CI server, and a new one two weeks before it expires
  delivery.toolchain.repo_token:
    name: ci-deployer
    token_username: deployer
    scopes: [applied-permissions/user]
    expires_in: 90d
    renew_before: 14d
    dest: ci-deployer.token

- name: Revoke all older tokens of this name
  delivery.toolchain.repo_token:
    name: ci-deployer
    revoke_older: true

- name: Revoke the tokens of a job that is gone
  delivery.toolchain.repo_token:
    name: nightly-scan
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
    refresh_token:
      description: Secret that refreshes the token.
      type: str
      returned: if the token was created with O(refreshable=true) and O(return_value=true)
  sample: {id: 1d2c3b4a-5968-4000-8000-00000000002a, name: ci-deployer, created: "2026-05-01T08:00:00.000Z", expires: "2026-07-30T08:00:00.000Z"}
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
from ..module_utils._lib.repo.access import repo_token


def main() -> None:
    run(repo_token.RepoTokenOptions, repo_token.RepoTokenOperation)


if __name__ == "__main__":
    main()
