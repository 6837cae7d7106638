# SPDX-License-Identifier: GPL-3.0-or-later
"""The address of a service and its login, which only the server of the credentials gets [C1.2]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..address import origin
from ..errors import invalid
from ..secret import Secret, clean_url

if TYPE_CHECKING:
    from .service import Service


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
    """The address of a service and its login, with credentials of at most one kind.

    :param password: the secret that belongs to the user name
    """

    service: Service
    url: str
    username: str | None = None
    password: Secret | None = None
    token: Secret | None = None
    api_key: Secret | None = None
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
        single = (self.password, self.token, self.api_key)
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
