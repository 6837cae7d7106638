# SPDX-License-Identifier: GPL-3.0-or-later
"""The address of a service and its login, which only the server of the credentials gets [C1.2]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlsplit

from ..address import origin
from ..errors import invalid
from ..secret import Secret, clean_url


@dataclass(frozen=True)
class OAuth:
    """An OAuth 1.0a access token that has been authorized already, and the key for signatures."""

    consumer_key: str
    private_key: Secret
    access_token: Secret
    access_token_secret: Secret
    signature_method: str


@dataclass(frozen=True)
class Exchange:
    """A login that a token service exchanges for an access token."""

    #: Base address of the token service, and the path of the request below it.
    url: str
    path: str
    #: Members of the JSON body, and the name of the member with the secret.
    fields: tuple[tuple[str, str], ...]
    member: str
    #: The option with the secret; its value, or the file that contains it.
    option: str
    secret: Secret | None
    file: str | None
    #: What to check if the exchange fails.
    remedy: str


@dataclass(frozen=True)
class Connection:
    """The address of a service and its login, with credentials of at most one kind."""

    service: str
    url: str
    username: str | None = None
    password: Secret | None = None
    token: Secret | None = None
    api_key: Secret | None = None
    ltoken: Secret | None = None
    oauth: OAuth | None = None
    exchange: Exchange | None = None
    #: Description of the credentials and their source, for messages.
    login: str = field(default="", compare=False)
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    #: Base address of links for people if requests go to a gateway.
    site: str = ""
    #: Whether the environment has the address of another server.
    other_server: bool = field(default=False, compare=False)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        oauth = self.oauth
        keys = (oauth.private_key, oauth.access_token, oauth.access_token_secret) if oauth else ()
        single = (self.password, self.token, self.api_key, self.ltoken)
        exchanged = self.exchange.secret if self.exchange else None
        return tuple(s for s in (*single, *keys, exchanged) if s)

    @property
    def has_credentials(self) -> bool:
        return bool(self.secrets) or self.exchange is not None

    @property
    def sends_token(self) -> bool:
        """Return whether requests have a bearer token."""
        return self.token is not None or self.exchange is not None

    @property
    def without_login(self) -> Connection:
        """Return the connection without its credentials."""
        bare = Connection(self.service, self.url, settings=self.settings, site=self.site)
        return replace(bare, other_server=self.other_server)

    @property
    def platform(self) -> str:
        """Return the base address of the platform of the repository manager [C1.2]."""
        return platform_of(self.url, self.settings)


def platform_of(url: str, settings: Mapping[str, Any]) -> str:
    """Return the base address of the platform for the address of the repository manager."""
    named = settings.get("platform_url")
    return url.removesuffix("/artifactory") if named is None else str(named)


def is_other_server(own: Any, address: str) -> bool:
    """Return whether `own`, an address if it is set, is that of another server than `address`."""
    return bool(own) and origin(str(own)) != origin(address)


def require_own_server(place: str, name: str, own: Any, address: str, option: str = "url") -> None:
    """Raise `invalid` if another server than that of the credentials would receive them.

    :param place: the place of the credentials, for the message
    :param name: the variable with the address of that place
    :param own: its value, if any
    :param address: the address of the connection
    :param option: the option with that address
    """
    if is_other_server(own, address):
        raise invalid(
            f"the credentials in {place} belong to {clean_url(str(own), whole=True)} ({name}), and"
            f" are not sent to {clean_url(address, whole=True)}: set the credentials of that server"
            f" next to its {option}, or use the address of {name}"
        )


#: Value of the option `cloud_id` that makes the client read the id from the site.
AUTO = "auto"
GATEWAY = "https://api.atlassian.com"
GATEWAY_HOST = "api.atlassian.com"
#: Token service of the cloud.
TOKENS = "https://auth.atlassian.com"
_SITE_HOST = re.compile(r".+\.(?:atlassian\.net|atlassian-us-gov-mod\.net|jira\.com)")
_CLOUD_ID = re.compile(r"[A-Za-z0-9-]+")
_PRODUCTS = {"tracker": "jira", "wiki": "confluence"}
#: Path of the wiki on a site, and below its product at the gateway.
_WIKI = "/wiki"
_ABOVE_WIKI = re.compile(r"(?:/ex/confluence/[^/]+)?")


def is_cloud(connection: Connection) -> bool:
    """Return whether the server is in the cloud, according to its address and `cloud_id`."""
    return connection.settings.get("cloud_id") is not None or is_cloud_host(connection.url)


def is_cloud_host(url: str) -> bool:
    host = origin(url)[1]
    return host == GATEWAY_HOST or _SITE_HOST.fullmatch(host) is not None


def is_cloud_id(value: Any) -> bool:
    """Return whether a value can be the id of a site, which becomes a part of the address."""
    return isinstance(value, str) and _CLOUD_ID.fullmatch(value) is not None


def check(service: str, url: str, settings: Mapping[str, Any]) -> None:
    """Raise `invalid` for an invalid `cloud_id`, or for a cloud wiki address without `/wiki`."""
    cloud_id = settings.get("cloud_id")
    if cloud_id is not None:
        if not is_cloud_id(str(cloud_id)):
            message = "use the id from /_edge/tenant_info of the site, or auto"
            raise invalid(f"cloud_id of the {service} service is not the id of a site: {message}")
        if settings.get("dialect") == "server":
            raise invalid(
                f"cloud_id of the {service} service is only for the cloud, but dialect is server:"
                " omit one of them"
            )
        return
    cloud = is_cloud_host(url) or str(settings.get("dialect")).startswith("cloud_")
    if service == "wiki" and cloud and _ABOVE_WIKI.fullmatch(urlsplit(url).path):
        raise invalid(f"the cloud wiki is not at {url}: set url to {url}{_WIKI}")


def site_of(connection: Connection) -> str:
    """Return the configured address without its path."""
    parts = urlsplit(connection.url)
    return f"{parts.scheme}://{parts.netloc}"


def at_gateway(connection: Connection, cloud_id: str) -> Connection:
    """Return the connection for requests to the gateway. Links for people stay on the site."""
    gateway = str(connection.settings.get("cloud_gateway") or GATEWAY)
    product, below = _PRODUCTS[connection.service], _WIKI if connection.service == "wiki" else ""
    url = f"{gateway}/ex/{product}/{quote(cloud_id, safe='')}{below}"
    return replace(connection, url=url, site=f"{site_of(connection)}{below}")
