# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: rotation_steps
short_description: Decide which steps of the rotation of a login are due
version_added: 1.0.0
description:
  - Reads the state of the servers, so that an interrupted rotation continues where it stopped.
  - A token is created if none is good long enough, or if a credential cannot be proved to hold the newest token.
  - The newest token is proved if it is new, if older tokens are still valid, or if no build has succeeded since its creation.
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input, tokens, name
options:
  _input:
    description: RV(delivery.toolchain.ci_credential#module:results) for the entries of P(delivery.toolchain.rotation_entries#filter) in check mode.
    type: list
    elements: dict
    required: true
  tokens:
    description: RV(delivery.toolchain.repo_token#module:tokens).
    type: list
    elements: dict
    required: true
  name:
    description: Name of the login. A credential whose description has another name does not hold a token of this login.
    type: str
    required: true
  due:
    description: Whether the newest token is not good for long enough.
    type: bool
    default: false
  proof:
    description: Whether a job proves the token.
    type: bool
    default: false
  builds:
    description: Newest successful builds of the job, with C(timestamp) in milliseconds.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Show what is due without any token
  ansible.builtin.debug:
    msg: "{{ [] | delivery.toolchain.rotation_steps([], 'ci-deployer', proof=true) }}"
"""

RETURN = r"""
_value:
  description:
    - The steps C(create), C(prove) and C(revoke) as booleans, the id of the newest C(token), and the ids of the tokens that credentials
      hold, C(held).
    - C(everywhere) is whether each credential holds the newest token.
    - C(revoked) are the ids of the tokens that a credential holds although they are not valid any more.
  type: dict
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from ansible.errors import AnsibleFilterError

_TOKEN = re.compile(r"(.+) \(token ([^()\s]+)\)")


def rotation_steps(
    results: Any,
    tokens: Any,
    name: str,
    *,
    due: bool = False,
    proof: bool = False,
    builds: Any = (),
) -> dict[str, Any]:
    """Return the steps that are due; see the documentation of the filter."""
    if not isinstance(results, list) or not isinstance(tokens, list):
        raise AnsibleFilterError(
            "rotation_steps expects the results of ci_credential and a list of tokens"
        )
    newest = tokens[0] if tokens else None
    places = [_held(result, name) for result in results]
    held = {token for token in places if token is not None}
    everywhere = newest is not None and all(token == newest["id"] for token in places)
    create = due or not everywhere
    several = len(tokens) > 1
    return {
        "create": create,
        "prove": proof and (create or several or not _is_proved(newest, builds)),
        "revoke": create or several,
        "token": newest["id"] if newest else None,
        "held": sorted(held),
        "everywhere": everywhere,
        "revoked": sorted(held.difference(token["id"] for token in tokens)),
    }


def _held(result: Any, name: str) -> str | None:
    """Return the id of the token that a credential contains, or `None` if that is not certain.

    The id is in the description. It is certain only for the same `name`, and if the secret was
    recorded, which `different` from the placeholder of `rotation_entries` shows.
    """
    if result.get("action") != "unchanged" or result.get("secret") != "different":
        return None
    found = _TOKEN.fullmatch(str(result.get("description") or ""))
    return found[2] if found and found[1] == str(name) else None


def _is_proved(newest: Any, builds: Any) -> bool:
    """Return whether a build has succeeded since the creation of the token."""
    try:
        created = datetime.fromisoformat(str(newest["created"]).replace("Z", "+00:00"))
    except ValueError:
        return False
    last = max((int(build.get("timestamp") or 0) for build in builds or ()), default=0)
    return last >= created.timestamp() * 1000


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"rotation_steps": rotation_steps}
