# SPDX-License-Identifier: GPL-3.0-or-later
"""Options and logins of the code analysis server: an ltoken, or the file in which `kwauth` stores
it [W4.5].
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, urlencode, urlsplit

from ..core import json_text
from ..core.connection.auth import Login, Outgoing
from ..core.connection.connection import Connection
from ..core.connection.service import SECRET, Credential, Service, Spec
from ..core.errors import invalid, listed
from ..core.files import open_regular
from ..core.secret import Secret

#: Maximum number of hosts of a token file in a message.
_MAX_NAMED = 5
_DEFAULT_PORTS = {"http": 80, "https": 443}
_PRINT = "kwauth --print-auth-info"
# Releases from 2024.3 on write the file only on request.
_HELP = (
    "log in with kwauth; releases from 2024.3 on do not write this file: set token_json to the"
    f" output of '{_PRINT}', or set username and ltoken"
)


def login_of_token_file(url: str, user: str | None, path: str | None) -> tuple[str, str | None]:
    """Return user and token for the server at `url`.

    The token is `None` if the default file has no line for the server and `user` is given, because
    a server without access control accepts any user without a token.

    :param path: token file, which must have a line for the server; `None` means the default file:
        `KLOCWORK_LTOKEN`, else `~/.klocwork/ltoken`
    """
    named = path or os.environ.get("KLOCWORK_LTOKEN") or "~/.klocwork/ltoken"
    file = Path(os.path.abspath(os.path.expanduser(named)))
    found, problem = _logins(file, url, user)
    if len(found) == 1:
        return found.pop()
    if not found and path is None and user is not None:
        return user, None
    raise invalid(f"the token file {file} {problem}")


def login_of_auth_info(output: str, user: str | None) -> tuple[str, str]:
    """Return user and ltoken from the output of `kwauth --print-auth-info`.

    The names of the JSON members are not documented, so both names that are known for each value
    are accepted [analysis-3].
    """
    try:
        found = json_text.loads(output)
    except ValueError:
        found = None
    if not isinstance(found, Mapping):
        raise invalid(f"token_json is not a JSON object: set it to the output of '{_PRINT}'")
    name = found.get("user") or found.get("username")
    token = found.get("ltoken") or found.get("token")
    if not all(isinstance(value, str) and value.strip() for value in (name, token)):
        raise invalid(
            f"token_json has no user and token: set it to the complete output of '{_PRINT}' (an"
            " application token cannot log in to the Web API)"
        )
    if user is not None and user != name:
        raise invalid(f"username is {user}, but token_json has the token of {name}: omit username")
    return str(name), str(token)


def _logins(file: Path, url: str, user: str | None) -> tuple[set[tuple[str, str]], str]:
    """Return the pairs of user and token for a server in a token file, and an error message.

    The message applies unless there is exactly one pair.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", str(parts.port or _DEFAULT_PORTS.get(parts.scheme, 80))
    try:
        with open(file, "rb", opener=open_regular) as stream:
            lines = list(_lines(_decoded(stream.read())))
    except OSError as error:
        return set(), f"cannot be read ({error.strerror}): {_HELP}"
    found = {
        (line[2], line[3])
        for line in lines
        if (line[0].lower(), line[1]) == (host, port) and user in (None, line[2])
    }
    if found:
        return found, f"has {len(found)} lines for {host}, port {port}: set username to select one"
    whose = f" and user {user}" if user is not None else ""
    known = sorted({f"{line[0].lower()}:{line[1]}" for line in lines})
    others = f" (it has {listed(known, _MAX_NAMED)})" if known else ""
    return found, f"has no line for {host}, port {port}{whose}{others}: {_HELP}"


def _decoded(data: bytes) -> str:
    """Decode a token file, which `kwauth` writes in the character set of its machine.

    Latin-1 is the fallback: only user names may contain characters outside ASCII.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _lines(text: str) -> Iterator[tuple[str, str, str, str]]:
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(";")]
        if len(parts) == 4 and all(parts):
            yield parts[0], parts[1], parts[2], parts[3]


class FormToken:
    """Login with the form parameters `user` and `ltoken`."""

    def __init__(self, username: str, ltoken: Secret | None) -> None:
        self._username, self._ltoken = username, ltoken

    def __call__(self, request: Outgoing) -> None:
        fields = {"user": self._username}
        if self._ltoken is not None:
            fields["ltoken"] = self._ltoken.reveal()
        text = request.body.decode("ascii") if isinstance(request.body, bytes) else ""
        request.body = "&".join(filter(None, [text, urlencode(fields, quote_via=quote)])).encode(
            "ascii"
        )


class AnalysisService(Service):
    """The code analysis server. The password of a connection is the ltoken."""

    name = "analysis"
    interface_path = re.compile(r"/review/api$")
    credentials: ClassVar[Mapping[str, Spec]] = {
        "username": {"type": "str", "aliases": ["user"]},
        "ltoken": SECRET,
        "ltoken_file": {"type": "path", "no_log": False},
        "token_json": {**SECRET, "values": "json"},
    }
    #: A user name alone selects a line of the token file.
    accompanying = ("username",)
    kinds: ClassVar = {name: (name,) for name in ("ltoken", "ltoken_file", "token_json")}
    address_secret = "ltoken"

    def credential(
        self, kind: str, url: str, named: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> Credential:
        user, source = named.get("username"), None
        token: str | None = named.get("ltoken")
        if token is not None:
            if not user:
                raise invalid("ltoken is set without username: the analysis server requires both")
        elif named.get("token_json") is not None:
            user, token = login_of_auth_info(str(named["token_json"]), user)
        else:
            user, token = login_of_token_file(url, user, named.get("ltoken_file"))
            source = "the token file"
        if token is None:
            return Credential({"username": user})
        fields = {"username": str(user), "password": Secret(str(token))}
        return Credential(fields, "the ltoken", source)

    def login(self, connection: Connection, *api_key_headers: str) -> Login:
        return FormToken(connection.username or "", connection.password)


SERVICE = AnalysisService()
