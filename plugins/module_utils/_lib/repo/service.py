# SPDX-License-Identifier: GPL-3.0-or-later
"""Options and logins of the repository manager: API keys, and identity tokens that it exchanges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from ..core.connection.auth import secret_of
from ..core.connection.connection import Connection, Exchange
from ..core.connection.service import BASIC, NETRC, NO_SECRET, SECRET, Credential, Service, Spec
from ..core.errors import invalid

_OIDC: dict[str, Spec] = {
    "oidc_provider": {"type": "str"},
    "oidc_token": SECRET,
    "oidc_token_file": {"type": "path", "no_log": False},
    "oidc_project_key": NO_SECRET,
    "oidc_identity_mapping_name": {"type": "str"},
}
#: Matches the message of a 403 about a rejected API key. Any other 403 is about one object.
_ABOUT_KEY = re.compile(r"api.?key|token|credential|login|log in|authenticat", re.I)
_PERMISSION = re.compile(r"permi(?:ssion|tted)|privilege|not allowed|unauthori[sz]ed to", re.I)
_KEYS_ENDED = "newer servers accept API keys only if configured to do so: use a token instead"


def platform_of(url: str, settings: Mapping[str, Any]) -> str:
    """Return the base address of the platform for the address of the repository manager [C1.2]."""
    named = settings.get("platform_url")
    return url.removesuffix("/artifactory") if named is None else str(named)


class RepoService(Service):
    """The repository manager."""

    name = "repo"
    interface_path = re.compile(r"(?<=/artifactory)/api(/.*)?$")
    settings: ClassVar[Mapping[str, Spec]] = {
        "dialect": {"type": "str", "choices": ["auto", "generic", "jfrog"], "default": "auto"},
        "vendor": {"type": "str", "default": "Vendor"},
        "platform_url": {"type": "str"},
    }
    bases: ClassVar = {"platform_url": re.compile(r"/access(/api(/.*)?)?$")}
    credentials: ClassVar[Mapping[str, Spec]] = {
        **BASIC,
        "token": SECRET,
        "api_key": SECRET,
        **NETRC,
        **_OIDC,
    }
    kinds: ClassVar = {
        **{name: (name,) for name in ("password", "token", "api_key")},
        "oidc_provider": tuple(_OIDC),
    }
    headers = ("X-JFrog-Version", "X-Artifactory-Id")

    def credential(
        self, kind: str, url: str, named: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> Credential:
        if kind != "oidc_provider":
            return super().credential(kind, url, named, settings)
        self.refuse_username(kind, named)
        exchange = self._exchange(kind, url, named, settings)
        return Credential({"exchange": exchange}, "an access token of a short-lived login")

    def _exchange(
        self, kind: str, url: str, named: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> Exchange:
        """Return the exchange of an identity token of OpenID Connect [repo-44]."""
        tokens = [name for name in ("oidc_token", "oidc_token_file") if name in named]
        if len(tokens) > 1:
            raise invalid("oidc_token and oidc_token_file are both set: set only one of them")
        required = tokens or ["oidc_token or oidc_token_file"]
        self.require(kind, named, "oidc_provider", *required)
        token = tokens[0]
        fields = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "provider_name": str(named["oidc_provider"]),
            "project_key": named.get("oidc_project_key"),
            "identity_mapping_name": named.get("oidc_identity_mapping_name"),
        }
        base = platform_of(url, settings)
        self.require_encrypted("platform_url", base, url)
        is_file = token == "oidc_token_file"
        return Exchange(
            url=base,
            path="access/api/v1/oidc/token",
            fields=tuple((name, str(value)) for name, value in fields.items() if value is not None),
            member="subject_token",
            option=token,
            secret=None if is_file else secret_of(self.name, token, str(named[token])),
            file=str(named[token]) if is_file else None,
            remedy=f"check {token}, oidc_provider, its identity mappings, and platform_url",
        )

    def rejected_login(self, connection: Connection, status: int, detail: str) -> str:
        """Return a remedy if the server accepts no passwords, or no longer API keys [repo-3].

        It returns 401 or 403 for an API key. A 403 that does not mention the login is about an
        object.
        """
        about_key = _ABOUT_KEY.search(detail) and not _PERMISSION.search(detail)
        if connection.api_key is not None and (status == 401 or about_key):
            return _KEYS_ENDED
        return super().rejected_login(connection, status, detail)


SERVICE = RepoService()
