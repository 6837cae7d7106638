# SPDX-License-Identifier: GPL-3.0-or-later
"""Options and logins of the tracker and the wiki, also in the cloud: OAuth, and the gateway."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from ..core.address import UnfitRequest, origin, prepared
from ..core.connection.auth import Anonymous, Login, Outgoing, secret_of
from ..core.connection.connection import Connection, Exchange, OAuth
from ..core.connection.service import BASIC, NETRC, NO_SECRET, SECRET, Credential, Service, Spec
from ..core.errors import ToolchainError, invalid
from ..core.files import open_regular
from ..core.http.messages import Accounting, json_or_none, unexpected_body
from ..core.http.transport import Transport
from ..core.secret import Secret

#: Value of the option `cloud_id` that makes the client read the id from the site.
_AUTO = "auto"
_GATEWAY = "https://api.atlassian.com"
_GATEWAY_HOST = "api.atlassian.com"
#: Token service of the cloud.
_TOKENS = "https://auth.atlassian.com"
_SITE_HOST = re.compile(r".+\.(?:atlassian\.net|atlassian-us-gov-mod\.net|jira\.com)")
_CLOUD_ID = re.compile(r"[A-Za-z0-9-]+")
#: Path that returns the id of a cloud site, and key of the id in the cache [tracker-40].
_TENANT, _ID = "_edge/tenant_info", "cloud.id"

CLOUD: dict[str, Spec] = {
    "cloud_id": {"type": "str"},
    "cloud_gateway": {"type": "str", "default": _GATEWAY},
    "oauth2_url": {"type": "str", "default": _TOKENS},
}
_OAUTH: dict[str, Spec] = {
    "oauth_consumer_key": NO_SECRET,
    "oauth_private_key": SECRET,
    "oauth_access_token": SECRET,
    "oauth_access_token_secret": SECRET,
    "oauth_signature_method": {**NO_SECRET, "choices": ["RSA-SHA1", "RSA-SHA256", "RSA-SHA512"]},
}
_OAUTH2: dict[str, Spec] = {"oauth2_client_id": {"type": "str"}, "oauth2_client_secret": SECRET}


def is_cloud(connection: Connection) -> bool:
    """Return whether the server is in the cloud, according to its address and `cloud_id`."""
    return connection.settings.get("cloud_id") is not None or is_cloud_host(connection.url)


def is_cloud_host(url: str) -> bool:
    host = origin(url)[1]
    return host == _GATEWAY_HOST or _SITE_HOST.fullmatch(host) is not None


def _is_cloud_id(value: Any) -> bool:
    """Return whether a value can be the id of a site, which becomes a part of the address."""
    return isinstance(value, str) and _CLOUD_ID.fullmatch(value) is not None


class AtlassianService(Service):
    """The tracker or the wiki."""

    #: Path of the product at the gateway, and path of the service below the product or a site.
    product: ClassVar[str]
    below: ClassVar[str] = ""

    bases: ClassVar = {
        "cloud_gateway": re.compile(r"/ex/(jira|confluence)(/.*)?$"),
        "oauth2_url": re.compile(r"/oauth/token$"),
    }
    credentials: ClassVar[Mapping[str, Spec]] = {
        **BASIC,
        "token": SECRET,
        **NETRC,
        **_OAUTH,
        **_OAUTH2,
    }
    accompanying = ("oauth_signature_method",)
    kinds: ClassVar = {
        "password": ("password",),
        "token": ("token",),
        "oauth": tuple(_OAUTH)[:4],
        "oauth2_client_id": tuple(_OAUTH2),
    }
    headers = ("X-AREQUESTID", "X-AUSERNAME")

    def check(self, url: str, settings: Mapping[str, Any]) -> None:
        cloud_id = settings.get("cloud_id")
        if cloud_id is None:
            return
        if not _is_cloud_id(str(cloud_id)):
            message = "use the id from /_edge/tenant_info of the site, or auto"
            raise invalid(f"cloud_id of the {self.name} service is not the id of a site: {message}")
        if settings.get("dialect") == "server":
            raise invalid(
                f"cloud_id of the {self.name} service is only for the cloud, but dialect is server:"
                " omit one of them"
            )

    def credential(
        self, kind: str, url: str, named: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> Credential:
        if kind == "oauth":
            return Credential({"oauth": self._oauth(named)}, "an OAuth access token")
        if kind != "oauth2_client_id":
            return super().credential(kind, url, named, settings)
        self.refuse_username(kind, named)
        exchange = self._exchange(kind, url, named, settings)
        return Credential({"exchange": exchange}, "an access token of a short-lived login")

    def _exchange(
        self, kind: str, url: str, named: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> Exchange:
        """Return the exchange of client credentials for the cloud [tracker-42]."""
        self.require(kind, named, "oauth2_client_id", "oauth2_client_secret")
        is_site = is_cloud_host(url) and origin(url)[1] != _GATEWAY_HOST
        if is_site and settings.get("cloud_id") is None:
            raise invalid(
                f"oauth2_client_id of the {self.name} service works only at the gateway: set"
                " cloud_id to the id of the site, or to auto"
            )
        base = str(settings.get("oauth2_url") or _TOKENS)
        self.require_encrypted("oauth2_url", base, url)
        secret = str(named["oauth2_client_secret"])
        client = str(named["oauth2_client_id"])
        return Exchange(
            url=base,
            path="oauth/token",
            fields=(("grant_type", "client_credentials"), ("client_id", client)),
            member="client_secret",
            option="oauth2_client_secret",
            secret=secret_of(self.name, "oauth2_client_secret", secret),
            file=None,
            remedy="check oauth2_client_id, oauth2_client_secret and oauth2_url",
        )

    def _oauth(self, named: Mapping[str, Any]) -> OAuth:
        missing = [name for name in tuple(_OAUTH)[:3] if not named.get(name)]
        if missing:
            raise invalid(f"OAuth for the {self.name} service also requires {', '.join(missing)}")
        key = str(named["oauth_private_key"])
        if "-----BEGIN" not in key:
            try:
                with open(os.path.expanduser(key), encoding="ascii", opener=open_regular) as file:
                    key = file.read()
            except (OSError, ValueError):
                where = "" if os.path.isabs(key) else f" (searched in {os.getcwd()})"
                raise invalid(
                    f"oauth_private_key is neither a PEM string nor a readable PEM file{where}"
                ) from None
        return OAuth(
            str(named["oauth_consumer_key"]),
            Secret(key),
            Secret(str(named["oauth_access_token"])),
            # optional, because RSA signatures do not use the token secret
            Secret(str(named.get("oauth_access_token_secret") or "")),
            str(named.get("oauth_signature_method") or "RSA-SHA1"),
        )

    def login(self, connection: Connection, *api_key_headers: str) -> Login:
        return oauth1(connection.oauth) if connection.oauth else super().login(connection)

    def server(self, connection: Connection, accounting: Accounting) -> Connection:
        """Return the connection for requests, which leads to the gateway if `cloud_id` is set.

        Links for people stay on the site.
        """
        cloud_id = connection.settings.get("cloud_id")
        if cloud_id is None:
            return connection
        parts = urlsplit(connection.url)
        site = f"{parts.scheme}://{parts.netloc}"
        if cloud_id == _AUTO:
            cloud_id = _id_of(replace(connection.without_login, url=site), accounting)
        gateway = str(connection.settings.get("cloud_gateway") or _GATEWAY)
        url = f"{gateway}/ex/{self.product}/{quote(cloud_id, safe='')}{self.below}"
        return replace(connection, url=url, site=f"{site}{self.below}")


def _id_of(site: Connection, accounting: Accounting) -> str:
    """Return the id of a cloud site. It is read without a login, once per server and process."""
    transport = Transport(site, Anonymous(), read_only=True, accounting=accounting)
    if _ID not in transport.memory:
        purpose = f"reading the id of the site {site.url}"
        try:
            response = transport.read(purpose, _TENANT, headers={"Accept": "application/json"})
            tenant = json_or_none(response.body)
            found = tenant.get("cloudId") if isinstance(tenant, dict) else None
            if not _is_cloud_id(found):
                raise unexpected_body(response, "the id of a site")
        except ToolchainError as error:
            raise error.with_hint("set cloud_id to the id instead of auto") from None
        transport.memory[_ID] = found
    return str(transport.memory[_ID])


def oauth1(oauth: OAuth) -> Login:
    """Return a login that signs requests with OAuth 1.0a and an RSA key.

    Raises `invalid` if an optional library is missing, or for a key other than an RSA private key.
    """
    try:
        import requests_oauthlib
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise invalid(
            "OAuth requires the Python libraries requests-oauthlib and oauthlib[signedtoken]"
        ) from None
    try:
        key = load_pem_private_key(oauth.private_key.reveal().encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey):
        raise invalid(
            "oauth_private_key must be an RSA private key in PEM format, without a password"
        )
    signer = requests_oauthlib.OAuth1(
        oauth.consumer_key,
        rsa_key=oauth.private_key.reveal(),
        resource_owner_key=oauth.access_token.reveal(),
        resource_owner_secret=oauth.access_token_secret.reveal(),
        signature_method=oauth.signature_method,
        client_secret=None,
    )
    return partial(_sign, signer)


def _sign(signer: Any, request: Outgoing) -> None:
    """Sign a request with the OAuth library, which expects a `PreparedRequest`."""
    from requests import RequestException

    ready = prepared(request.url)
    try:
        ready.prepare_method(request.method)
        ready.prepare_headers(request.headers)
        ready.prepare_body(request.body, None)
        signed = signer(ready)
    except RequestException as error:
        raise UnfitRequest(str(error)) from None
    request.headers = {_text(name): _text(value) for name, value in signed.headers.items()}
    request.body = signed.body


def _text(part: str | bytes) -> str:
    return part.decode("ascii") if isinstance(part, bytes) else part
