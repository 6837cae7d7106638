# SPDX-License-Identifier: GPL-3.0-or-later
"""Logins of the tests for the sandbox, and the secrets that must therefore appear nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LTOKEN = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

#: One login per service, known to the default seeds of the sandbox.
LOGINS: dict[str, dict[str, str]] = {
    "repo": {"token": "repo-token-1234567890"},
    "tracker": {"token": "tracker-token-1234567890"},
    "wiki": {"token": "wiki-token-1234567890"},
    "ci": {"username": "builder", "password": "builder-api-token-1234567890"},
    "analysis": {"username": "analyst", "ltoken": LTOKEN},
}


#: The services with short-lived logins.
SHORT_LIVED = ("repo", "tracker", "wiki")
_SECRET_OPTIONS = ("token", "password", "ltoken")
#: Logins of a valid form that no service knows.
WRONG_LOGINS: dict[str, dict[str, str]] = {
    service: {
        name: f"wrong-{value}" if name in _SECRET_OPTIONS else value
        for name, value in login.items()
    }
    for service, login in LOGINS.items()
}


def secrets(login: Mapping[str, str]) -> list[str]:
    """Return the secret values of a login."""
    return [value for name, value in login.items() if name in _SECRET_OPTIONS]


def short_lived(service: str, url: str, token: str) -> dict[str, str]:
    """Return the short-lived login of the account that has a token.

    :param url: address of the service, at which the sandbox also has its token service
    """
    if service != "repo":
        secret = f"{service}-client-secret-1234567890"
        login = {"oauth2_client_id": "toolchain", "oauth2_client_secret": secret}
        return {**login, "oauth2_url": url}
    identity = "admin-identity-token" if "admin" in token else "identity-token"
    return {"oidc_provider": "gitlab", "oidc_token": f"eyJ.{identity}.1234567890"}


def connection(service: str, url: str, **options: Any) -> dict[str, Any]:
    """Return the connection options of a service. `options` add to or replace them (None: omit)."""
    chosen = {"url": url, **LOGINS[service], **options}
    return {name: value for name, value in chosen.items() if value is not None}


def module_defaults(urls: Mapping[str, str], **options: Any) -> dict[str, dict[str, Any]]:
    """Return the group defaults for all five services; `options` are `{service:
    {option: value}}`.
    """
    return {
        f"group/delivery.toolchain.{service}": connection(
            service, urls[service], **options.get(service, {})
        )
        for service in LOGINS
    }
