# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the exchange of a short-lived login from its options [repo-44, tracker-42]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any

from ..address import origin
from ..errors import invalid
from ..secret import Secret
from .auth import HEADER_VALUE
from .connection import GATEWAY_HOST, TOKENS, Exchange, is_cloud_host, platform_of


def secret_of(service: str, option: str, text: str) -> Secret:
    """Return the value of an option as a secret for a header.

    Raises `invalid` for an invalid value. Otherwise the HTTP library would print it in its error.
    """
    if HEADER_VALUE.fullmatch(text) is None:
        raise invalid(
            f"the {option} for the {service} service is empty, or contains a space, a line break or"
            " a non-ASCII character"
        )
    return Secret(text)


def _oidc(
    service: str, url: str, named: Mapping[str, Any], settings: Mapping[str, Any]
) -> Exchange:
    """Return the exchange of an identity token of OpenID Connect [repo-44]."""
    tokens = [name for name in ("oidc_token", "oidc_token_file") if name in named]
    if len(tokens) > 1:
        raise invalid("oidc_token and oidc_token_file are both set: set only one of them")
    _require(service, named, "oidc_provider", *(tokens or ["oidc_token or oidc_token_file"]))
    token = tokens[0]
    fields = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "provider_name": str(named["oidc_provider"]),
        "project_key": named.get("oidc_project_key"),
        "identity_mapping_name": named.get("oidc_identity_mapping_name"),
    }
    base = platform_of(url, settings)
    _require_encrypted(service, "platform_url", base, url)
    is_file = token == "oidc_token_file"
    return Exchange(
        url=base,
        path="access/api/v1/oidc/token",
        fields=tuple((name, str(value)) for name, value in fields.items() if value is not None),
        member="subject_token",
        option=token,
        secret=None if is_file else secret_of(service, token, str(named[token])),
        file=str(named[token]) if is_file else None,
        remedy=f"check {token}, oidc_provider, its identity mappings, and platform_url",
    )


def _client_credentials(
    service: str, url: str, named: Mapping[str, Any], settings: Mapping[str, Any]
) -> Exchange:
    """Return the exchange of client credentials for the cloud [tracker-42]."""
    _require(service, named, "oauth2_client_id", "oauth2_client_secret")
    is_site = is_cloud_host(url) and origin(url)[1] != GATEWAY_HOST
    if is_site and settings.get("cloud_id") is None:
        raise invalid(
            f"oauth2_client_id of the {service} service works only at the gateway: set cloud_id to"
            " the id of the site, or to auto"
        )
    base = str(settings.get("oauth2_url") or TOKENS)
    _require_encrypted(service, "oauth2_url", base, url)
    client = str(named["oauth2_client_id"])
    return Exchange(
        url=base,
        path="oauth/token",
        fields=(("grant_type", "client_credentials"), ("client_id", client)),
        member="client_secret",
        option="oauth2_client_secret",
        secret=secret_of(service, "oauth2_client_secret", str(named["oauth2_client_secret"])),
        file=None,
        remedy="check oauth2_client_id, oauth2_client_secret and oauth2_url",
    )


#: By the option that names the login: returns its exchange.
KINDS: dict[str, Callable[[str, str, Mapping[str, Any], Mapping[str, Any]], Exchange]] = {
    "oidc_provider": _oidc,
    "oauth2_client_id": _client_credentials,
}


def _require(service: str, named: Mapping[str, Any], *required: str) -> None:
    """Raise `invalid` if one of the options is missing, or any option is blank."""
    missing = [name for name in required if name not in named]
    if missing:
        known = ", ".join(name for name in named if name in required or name.startswith("oidc_"))
        raise invalid(
            f"{known} without {', '.join(missing)} for the {service} service: set them in the same"
            " place (the environment is only read if the task has no credential)"
        )
    for name, value in named.items():
        if not str(value).strip():
            raise invalid(f"{name} of the {service} service is empty: set it, or omit the option")


def _require_encrypted(service: str, option: str, base: str, url: str) -> None:
    """Raise `invalid` if the secret would be sent without TLS, unless `url` has none either."""
    scheme, host, _port = origin(base)
    if scheme == "http" and origin(url)[0] == "https" and not _is_loopback(host):
        raise invalid(
            f"{option} of the {service} service begins with http://, so the login would be sent"
            " unencrypted: use https://"
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
