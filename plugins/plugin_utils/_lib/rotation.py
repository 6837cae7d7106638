# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide which steps of the rotation of a login are due, and what its credentials contain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ...module_utils._lib.core.operations.named_tokens import TokenOptions

#: A value that differs from the secret of every credential. The result of a comparison shows
#: whether the secret of a credential was recorded.
_PLACEHOLDER = "no-secret-of-a-token"
_PLACE = ("id", "folder", "domain")
_TOKEN = re.compile(r"(.+) \(token ([^()\s]+)\)")


def check_lifetimes(issuer: str, expires_in: Any, renew_before: Any) -> None:
    """Raise `invalid` for lifetimes that the module of the issuer rejects."""
    lifetime, margin = (None if each is None else str(each) for each in (expires_in, renew_before))
    options = TokenOptions("a", expires_in=lifetime, renew_before=margin)
    options.check()
    if issuer != "repo":
        options.require_whole_days()


def entries(
    credentials: Sequence[Mapping[str, Any]], name: str, token: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return entries of `ci_credential` for the credentials of a login.

    The description contains the name of the login and the id of the token, so that a later run sees
    which token a credential holds. Without a token the entries only compare: they differ from each
    credential that does not exist, or has another user.

    :param token: `id` and `value` of the token
    """
    return [_entry(credential, name, token) for credential in credentials]


def _entry(
    credential: Mapping[str, Any], name: str, token: Mapping[str, Any] | None
) -> dict[str, Any]:
    secret = _PLACEHOLDER if token is None else token["value"]
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
    return {**entry, **login, "description": f"{name} (token {token['id'] or 'new'})"}


def steps(
    results: Sequence[Mapping[str, Any]],
    tokens: Sequence[Mapping[str, Any]],
    name: str,
    *,
    due: bool = False,
    proof: bool = False,
    builds: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the steps that are due, so that an interrupted rotation continues where it stopped.

    A token is created if none is good long enough, or if a credential cannot be proved to hold the
    newest token. The newest token is proved if it is new, if older tokens are still valid, or if no
    build has succeeded since its creation.

    :param results: return value of `ci_credential` for the entries without a token, in check mode
    :param tokens: tokens of the login, newest first
    :param due: whether the newest token is not good for long enough
    :param proof: whether a job proves the token
    :param builds: newest successful builds of this job
    :return: `create`, `prove` and `revoke` as booleans; `token`, the id of the newest token;
        `held`, the ids of the tokens in credentials; `everywhere`, whether each credential holds
        the newest token; `revoked`, the ids in credentials whose tokens are not valid any more
    """
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
    recorded, which `different` from the placeholder of `entries` shows.
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
