# SPDX-License-Identifier: GPL-3.0-or-later
"""The services that issue the tokens of the role `login_rotation`, and their tokens as seen from
outside.
"""

from __future__ import annotations

import re
from typing import Any

import requests

from sandbox.client import Sandbox
from tests.helpers import connections, in_process

NAME = "ci-deployer"
#: The secrets of tokens that the sandbox issues.
SECRETS = re.compile(r"eyJ\.sandbox|\b[0-9a-f]{44}\b|\b11[0-9a-f]{32}\b")
#: By issuer: the list of its tokens (none for the CI server, which shows them to scripts only).
LISTS = {
    "repo": "access/api/v1/tokens",
    "tracker": "rest/pat/latest/tokens",
    "wiki": "rest/pat/latest/tokens",
    "ci": None,
}
CREDENTIALS = [
    {"id": "deployer", "login_username": "deployer"},
    {"id": "deployer-token", "folder": "delivery"},
]
_ADDRESSES = (
    "credentials/store/system/domain/_/credential/deployer",
    "job/delivery/credentials/store/folder/domain/_/credential/deployer-token",
)
_LOGINS = {"repo": {"token": "repo-admin-token-1234567890"}}
_VARIABLES = {"repo": {"login_rotation_username": "deployer"}}


class Issuer:
    """A service that issues tokens, and the CI server that uses them."""

    def __init__(self, sandbox: Sandbox, service: str, **login: str) -> None:
        self.service, self._sandbox, self._session = service, sandbox, requests.Session()
        self._session.trust_env = False
        chosen = {**_LOGINS.get(service, {}), **login}
        self._login = connections.connection(service, sandbox.urls[service], **chosen)
        #: The variables of the role.
        self.variables: dict[str, Any] = {
            "login_rotation_issuer": service,
            "login_rotation_name": NAME,
            "login_rotation_expires_in": "90d",
            "login_rotation_renew_before": "14d",
            "login_rotation_credentials": CREDENTIALS,
            "login_rotation_proof": {"job": "no-parameters"},
            **_VARIABLES.get(service, {}),
        }

    def prepare(self) -> None:
        """Let the sandbox, after a reset, simulate the first CI server whose tokens expire."""
        self._sandbox.settings("ci", version="2.548")

    def module_defaults(self, **options: Any) -> dict[str, dict[str, Any]]:
        """Return the connections of a run; `options` are further options of both."""
        login = connections.connection("ci", self._sandbox.urls["ci"])
        return {
            "group/delivery.toolchain.ci": {**login, **options},
            f"group/delivery.toolchain.{self.service}": {**self._login, **options},
        }

    def add(self, name: str = NAME, **options: str) -> dict[str, Any]:
        """Create a token; return its `id` and `value`. `options` are options of the module."""
        if user := self.variables.get("login_rotation_username"):
            options = {"token_username": user, **options}
        new = {"expires_in": "2d", "renew": True, "return_value": True}
        made = self._module(name, **{**new, **options})
        token: dict[str, Any] = made["token"]
        return token

    def revoke(self, name: str = NAME) -> None:
        """Revoke all tokens of a name."""
        self._module(name, state="absent")

    def _module(self, name: str, **options: Any) -> dict[str, Any]:
        arguments = {**self._login, "name": name, **options}
        result = in_process.run(f"{self.service}_token", arguments)
        assert not result.get("failed"), result["msg"]
        return result

    def tokens(self, name: str = NAME) -> list[str]:
        """Return the ids of the valid tokens of a name."""
        address = LISTS[self.service]
        if address is None:
            listed = self._module(name, renew=True, return_value=True, _ansible_check_mode=True)[
                "tokens"
            ]
            return [token["id"] for token in listed]
        url = f"{self._sandbox.urls[self.service]}/{address}"
        header = {"Authorization": f"Bearer {self._login['token']}"}
        response = self._session.get(url, headers=header, timeout=10)
        assert response.ok, response.text
        rows = response.json()
        return [
            str(row.get("token_id") or row["id"])
            for row in (rows["tokens"] if isinstance(rows, dict) else rows)
            if (row.get("description") or row["name"]).startswith(f"toolchain:{name}:")
        ]

    def held(self) -> list[str]:
        """Return the id of the token that each existing credential holds, from its description."""
        login = (connections.LOGINS["ci"]["username"], connections.LOGINS["ci"]["password"])
        found = []
        for address in _ADDRESSES:
            url = f"{self._sandbox.urls['ci']}/{address}/config.xml"
            response = self._session.get(url, auth=login, timeout=10)
            found += re.findall(r"\(token ([^()\s]+)\)", response.text) if response.ok else []
        return found

    def unsound(self) -> str | None:
        """Return what must never be the case, or None."""
        tokens = self.tokens()
        if not tokens:
            return "no token is valid"
        revoked = sorted(set(self.held()) - set(tokens))
        return f"credentials hold revoked tokens: {', '.join(revoked)}" if revoked else None

    def unfinished(self, old: str) -> str | None:
        """Return what is missing at the end of a rotation, or None."""
        tokens, held = self.tokens(), self.held()
        if len(tokens) == 1 and tokens != [old] and held == tokens * len(_ADDRESSES):
            return None
        return f"{', '.join(tokens)} are valid, credentials hold {', '.join(held)}"
