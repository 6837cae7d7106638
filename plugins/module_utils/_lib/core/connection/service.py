# SPDX-License-Identifier: GPL-3.0-or-later
"""What the core must know about a service: its connection options, logins and headers.

The package of a service has a file `service.py` with the only instance, `SERVICE`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from ..address import origin
from ..errors import invalid
from ..files import open_regular
from ..secret import Secret
from .auth import Login, login_of, secret_of

if TYPE_CHECKING:
    from .connection import Connection

#: Matches the message of a server that accepts no passwords.
_NO_BASIC = re.compile(r"basic auth\w*(?: \w+){0,3} (?:disabled|deprecated)", re.I)
_USE_TOKEN = (
    "this server accepts no passwords: use a personal access token, or an API token in the cloud"
)
#: An option as in the argument spec of a module.
Spec: TypeAlias = dict[str, Any]

SECRET: Spec = {"type": "str", "no_log": True}
#: For an option that Ansible would take for a secret because of its name.
NO_SECRET: Spec = {"type": "str", "no_log": False}
BASIC: Mapping[str, Spec] = {"username": {"type": "str", "aliases": ["user"]}, "password": SECRET}
NETRC: Mapping[str, Spec] = {"credentials_file": {"type": "path"}}


class Credential(NamedTuple):
    """The login of a connection.

    :param fields: fields of the connection
    :param words: the credential for messages, such as `the token`; empty if it is only a name
    :param source: where it comes from, `None` if the option contains it
    """

    fields: Mapping[str, Any]
    words: str = ""
    source: str | None = None


class Service:
    """A service, with login by user and password. Subclasses add options and kinds of login."""

    name: ClassVar[str]
    #: Matches the end of an address that people copy from the documentation of the interface.
    #: Requests append it to the base address.
    interface_path: ClassVar[re.Pattern[str]]
    #: Options that are not credentials, in addition to those of all services.
    settings: ClassVar[Mapping[str, Spec]] = {}
    #: The options among them with further addresses to which the login is sent, each with the
    #: pattern for the end, like `interface_path`.
    bases: ClassVar[Mapping[str, re.Pattern[str]]] = {}
    credentials: ClassVar[Mapping[str, Spec]] = {**BASIC, **NETRC}
    #: Credential options that are no credential alone.
    accompanying: ClassVar[Collection[str]] = ()
    #: Kinds of login that exclude each other, with the options that show them.
    kinds: ClassVar[Mapping[str, Collection[str]]] = {"password": ("password",)}
    #: Option with the secret that an address may contain next to the user name.
    address_secret: ClassVar[str] = "password"
    #: Headers that identify the service, in error responses too.
    headers: ClassVar[Collection[str]] = ()

    def check(self, url: str, settings: Mapping[str, Any]) -> None:
        """Raise `invalid` for settings that contradict each other, or an address that lacks a
        path.
        """

    def is_credential(self, named: Collection[str]) -> bool:
        """Return whether the named options contain a credential."""
        return bool(set(named).difference(self.accompanying))

    def credential(
        self, kind: str, url: str, named: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> Credential:
        """Return the login. Raises `invalid` for an incomplete or invalid credential.

        :param kind: the kind of login that the options show, one of `kinds`, or ""
        :param named: the credential options with a value
        """
        if kind in ("token", "api_key"):
            self.refuse_username(kind, named)
            words = {"token": "the token", "api_key": "the API key"}[kind]
            return Credential({kind: secret_of(self.name, kind, str(named[kind]))}, words)
        if "username" in named or "password" in named:
            return self._basic(named)
        if "credentials_file" in named:
            return self._netrc(url, named["credentials_file"])
        return Credential({})

    def refuse_username(self, kind: str, named: Mapping[str, Any]) -> None:
        """Raise `invalid` for a user name next to a login of another kind."""
        if "username" in named:
            raise invalid(f"username cannot be combined with {kind}: omit one of them")

    def require(self, kind: str, named: Mapping[str, Any], *required: str) -> None:
        """Raise `invalid` if an option of an exchanged login is missing, or any option is blank."""
        missing = [name for name in required if name not in named]
        if missing:
            known = ", ".join(name for name in named if name in self.kinds[kind])
            raise invalid(
                f"{known} without {', '.join(missing)} for the {self.name} service: set them in the"
                " same place (the environment is only read if the task has no credential)"
            )
        for name, value in named.items():
            if not str(value).strip():
                raise invalid(
                    f"{name} of the {self.name} service is empty: set it, or omit the option"
                )

    def require_encrypted(self, option: str, base: str, url: str) -> None:
        """Raise `invalid` if an exchange would send the secret without TLS, unless `url` has none.

        :param base: address of the token service, from `option`
        """
        scheme, host, _port = origin(base)
        try:
            is_loopback = host == "localhost" or ip_address(host).is_loopback
        except ValueError:
            is_loopback = False
        if scheme == "http" and origin(url)[0] == "https" and not is_loopback:
            raise invalid(
                f"{option} of the {self.name} service begins with http://, so the login would be"
                " sent unencrypted: use https://"
            )

    def _basic(self, named: Mapping[str, Any]) -> Credential:
        for missing, known in (("username", "password"), ("password", "username")):
            if named.get(missing) is None:
                raise invalid(
                    f"{known} without {missing} for the {self.name} service: set both in the same"
                    " place (the environment is only read if the task has no credential)"
                )
        if not str(named["password"]).strip():
            raise invalid(
                f"the password for the {self.name} service is empty: set it, or omit the option"
            )
        username, password = str(named["username"]), Secret(str(named["password"]))
        return Credential({"username": username, "password": password}, "the password")

    def _netrc(self, url: str, file: Any) -> Credential:
        import netrc  # few logins are in a file

        host = urlsplit(url).hostname or ""
        path = os.path.abspath(os.path.expanduser(str(file)))
        try:
            with open(path, opener=open_regular):
                entry = netrc.netrc(path).authenticators(host)
        except OSError as error:
            raise invalid(f"cannot read the credentials file {path}: {error.strerror}") from None
        except netrc.NetrcParseError as error:
            raise invalid(
                f"the credentials file {path} is not in netrc format (line {error.lineno})"
            ) from None
        except UnicodeDecodeError:
            raise invalid(f"the credentials file {path} is not UTF-8 text") from None
        if entry is None or not entry[0] or not entry[2]:
            raise invalid(
                f"the credentials file {path} has no login and password for the machine {host}"
                f" of the {self.name} service"
            )
        fields = {"username": entry[0], "password": Secret(entry[2])}
        return Credential(fields, "the password", f"the credentials file {file}")

    def login(self, connection: Connection, *api_key_headers: str) -> Login:
        """Return the login method for the credentials of a connection.

        :param api_key_headers: names of the headers for an API key
        """
        return login_of(connection, *api_key_headers)

    def rejected_login(self, connection: Connection, status: int, detail: str) -> str:
        """Return a remedy if a 401 or 403 rejects the kind of login, else "".

        :param detail: the server's error message
        """
        refuses_passwords = connection.password is not None and _NO_BASIC.search(detail)
        return _USE_TOKEN if refuses_passwords else ""

    def server(self, connection: Connection, accounting: Any) -> Connection:
        """Return the connection for requests, which may lead to another address.

        :param accounting: counts the requests that this sends
        """
        return connection
