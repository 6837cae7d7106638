# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: rotation_entries
short_description: Turn the credentials of a login into entries of ci_credential
version_added: 1.0.0
description:
  - Returns O(delivery.toolchain.ci_credential#module:entries) for the role C(login_rotation).
  - A credential with a C(login_username) holds the token as its password, a credential without one as its secret text.
  - The description names the login and the id of the token, so that a later run sees which token the credential holds.
  - Without O(secret), the entries only compare. They find a difference in each credential that does not exist, or has another user.
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input, name
options:
  _input:
    description: Credentials with C(id), and optionally C(folder), C(domain) and C(login_username).
    type: list
    elements: dict
    required: true
  name:
    description: Name of the login.
    type: str
    required: true
  token:
    description: Id of the token.
    type: str
  secret:
    description: Secret of the token. Required with O(token).
    type: str
"""

EXAMPLES = r"""
- name: Show the entries that read a credential
  ansible.builtin.debug:
    msg: "{{ [{'id': 'deployer', 'login_username': 'deployer'}] | delivery.toolchain.rotation_entries('ci-deployer') }}"
"""

RETURN = r"""
_value:
  description: Entries of M(delivery.toolchain.ci_credential).
  type: list
  elements: dict
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

#: A value that differs from the secret of every credential. The result of a comparison shows
#: whether the secret of a credential was recorded.
PLACEHOLDER = "no-secret-of-a-token"
_PLACE = ("id", "folder", "domain")


def rotation_entries(
    credentials: Any, name: str, token: str | None = None, secret: str | None = None
) -> list[dict[str, Any]]:
    """Return entries for `ci_credential`; see the documentation of the filter."""
    if not isinstance(credentials, list) or not all(
        isinstance(credential, dict) for credential in credentials
    ):
        raise AnsibleFilterError("rotation_entries expects a list of credentials")
    if token is not None and not secret:
        raise AnsibleFilterError(f"rotation_entries: the token {token} has no secret: set secret")
    return [_entry(credential, name, token, secret or PLACEHOLDER) for credential in credentials]


def _entry(credential: dict[str, Any], name: str, token: str | None, secret: str) -> dict[str, Any]:
    entry = {key: credential[key] for key in _PLACE if credential.get(key)}
    if credential.get("login_username"):
        login = {
            "kind": "username_password",
            "login_username": credential["login_username"],
            "login_password": secret,
        }
    else:
        login = {"kind": "secret_text", "secret": secret}
    if token is None:
        return {**entry, **login, "update_secret": "on_create"}
    return {**entry, **login, "description": f"{name} (token {token})"}


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"rotation_entries": rotation_entries}
