# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the role `login_rotation` with a fault at every request, and with a second run at the same
time.

    python -m tests.faults.rotation                 all cells
    python -m tests.faults.rotation renewal         the cells of the named groups

The expectation is the same for every cell: a token is always valid, no credential holds a revoked
token, and soon exactly one token is left, which all credentials hold. The program exits with 1 if a
cell fails.
"""

from __future__ import annotations

import re
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from sandbox.client import Sandbox
from tests.faults import cell_runs
from tests.helpers import connections, forked_role

FIRST, RENEWAL, TWO_RUNS = GROUPS = ("first", "renewal", "two-runs")
KINDS = ("lost before", "lost after", "killed")
_ADMIN = "repo-admin-token-1234567890"
_CREDENTIALS = [
    {"id": "deployer", "username": "deployer"},
    {"id": "deployer-token", "folder": "delivery"},
]
_ADDRESSES = (
    "credentials/store/system/domain/_/credential/deployer",
    "job/delivery/credentials/store/folder/domain/_/credential/deployer-token",
)
_CI_LOGIN = connections.LOGINS["ci"]
_RERUNS = 2


class Servers:
    """The issuer of the tokens, the server that uses them, and runs of the role."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    def start(self, group: str) -> str:
        """Restore the state before a rotation; return the id of the token that expires soon.

        Before the first rotation no credential exists, before a renewal all hold the token.
        """
        self.sandbox.reset()
        # a build without a duration needs the same requests in every run
        self.sandbox.seed({"ci": {"jobs": {"no-parameters": {"build_seconds": 0}}}})
        if group == FIRST:
            body = {"username": "deployer", "expires_in": 2 * 86_400}
            body["description"] = f"toolchain:ci-deployer:{uuid.uuid4()}"
            return str(self._request("POST", json=body).json()["token_id"])
        short = {"login_rotation_expires_in": "2d", "login_rotation_renew_before": "1d"}
        assert self.run(**short).finish() == ""
        (token,) = self.tokens()
        return token

    def run(self, **changes: str) -> forked_role.Run:
        """Start a run; a request without a response is not repeated."""
        login = {"repo": {"token": _ADMIN}, "ci": {}}
        defaults = {
            f"group/delivery.toolchain.{service}": connections.connection(
                service, self.sandbox.urls[service], retries=0, **options
            )
            for service, options in login.items()
        }
        variables = {
            "login_rotation_name": "ci-deployer",
            "login_rotation_username": "deployer",
            "login_rotation_expires_in": "90d",
            "login_rotation_renew_before": "14d",
            "login_rotation_credentials": _CREDENTIALS,
            "login_rotation_proof": {"job": "no-parameters"},
            **changes,
        }
        role = {"role": "delivery.toolchain.login_rotation"}
        return forked_role.Run({"module_defaults": defaults, "roles": [role], "vars": variables})

    def _request(self, method: str, below: str = "", **sent: Any) -> requests.Response:
        header = {"Authorization": f"Bearer {_ADMIN}"}
        address = f"{self.sandbox.urls['repo']}/access/api/v1/tokens{below}"
        response = requests.request(method, address, headers=header, timeout=10, **sent)
        assert response.ok, response.text
        return response

    def tokens(self) -> list[str]:
        """Return the ids of the valid tokens of the login."""
        listed = self._request("GET", params={"description": "toolchain:ci-deployer:*"})
        return [token["token_id"] for token in listed.json()["tokens"]]

    def revoke(self, token: str) -> None:
        self._request("DELETE", f"/{token}")

    def held(self) -> list[str]:
        """Return the id of the token that each existing credential holds, from its description."""
        found = []
        for address in _ADDRESSES:
            url = f"{self.sandbox.urls['ci']}/{address}/config.xml"
            login = (_CI_LOGIN["username"], _CI_LOGIN["password"])
            response = requests.get(url, auth=login, timeout=10)
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


@dataclass(frozen=True)
class Fault:
    """A fault at a request of a rotation. `number` is the position of the request."""

    group: str
    number: int
    request: str
    kind: str
    skip: int

    def __str__(self) -> str:
        return f"{self.group}, request {self.number} ({self.request}) {self.kind}"

    def wrong(self, servers: Servers) -> str | None:
        """Run the cell; return the reason why the outcome is wrong, or None."""
        old = servers.start(self.group)
        if self.kind == "killed":
            run = servers.run()
            for _response in range(self.number + 1):
                run.advance()
            run.kill()
        else:
            service, after = self.request.partition(" ")[0], self.kind == "lost after"
            servers.sandbox.fault(service=service, skip=self.skip, cut=True, after=after)
            servers.run().finish()
            if servers.sandbox.pending_faults():
                return "no request has met the fault"
        return _ended(servers, old, _RERUNS)


@dataclass(frozen=True)
class TwoRuns:
    """Two runs: the first stops after some responses, the second after others; both continue."""

    first: int
    second: int

    def __str__(self) -> str:
        return f"{TWO_RUNS}, after {self.first} and {self.second} responses"

    def wrong(self, servers: Servers) -> str | None:
        old = servers.start(RENEWAL)
        runs = [servers.run(), servers.run()]
        for run, responses in zip(runs, (self.first, self.second), strict=True):
            for _response in range(responses):
                run.advance()
        for run in runs:
            run.finish()
        return _ended(servers, old, 1)


Cell = Fault | TwoRuns


def _ended(servers: Servers, old: str, reruns: int) -> str | None:
    """Return why the servers are not in the state that the next runs must reach, or None."""
    reason = servers.unsound()
    for _run in range(reruns):
        if reason or not servers.unfinished(old):
            return reason
        failure = servers.run().finish()
        reason = f"the next run has failed: {failure}" if failure else servers.unsound()
    return reason or servers.unfinished(old)


def requests_of(servers: Servers, group: str) -> list[str]:
    """Record the requests of a rotation; the state must be sound after each response.

    `N` replaces the numbers that differ between rotations.
    """
    servers.start(group)
    begin, run = servers.sandbox.mark(), servers.run()
    found = []
    while run.advance():
        request = servers.sandbox.requests(since=begin)[0]
        path = re.sub(r"/\d+", "/N", request["path"])
        found.append(f"{request['service']} {request['method']} {path}")
        reason = servers.unsound()
        assert reason is None, f"{reason} after {found[-1]}"
        begin = servers.sandbox.mark()
    assert run.failure == ""
    return found


def faults(servers: Servers, group: str) -> list[Fault]:
    """Return the cells of all requests of a rotation, ordered by request."""
    requests_ = requests_of(servers, group)
    services = [request.partition(" ")[0] for request in requests_]
    return [
        Fault(group, number, request, kind, services[:number].count(services[number]))
        for number, request in enumerate(requests_)
        for kind in KINDS
    ]


def two_runs(servers: Servers) -> list[TwoRuns]:
    """Return the cells of two runs: the first stops anywhere, the second next to a write."""
    requests_ = requests_of(servers, RENEWAL)
    return [
        TwoRuns(first, second)
        for first in range(1, len(requests_) + 1)
        for second in range(len(requests_) + 1)
        if any(" GET " not in request for request in requests_[max(second - 1, 0) : second + 1])
    ]


def sample(servers: Servers) -> list[Cell]:
    """Return a fault for each request, of changing kinds, and two runs that stop before each write.

    A renewal contributes only the requests that a first rotation lacks.
    """
    first, renewal = faults(servers, FIRST), faults(servers, RENEWAL)
    known = {cell.request for cell in first}
    further = [cell for cell in renewal if cell.request not in known]
    in_turn = [cell for cell in first + further if cell.kind == KINDS[cell.number % len(KINDS)]]
    writes = {cell.number for cell in renewal if " GET " not in cell.request}
    return [*in_turn, *(TwoRuns(number, number) for number in sorted(writes))]


def cells(servers: Servers, group: str) -> Sequence[Cell]:
    """Return all cells of a group."""
    return two_runs(servers) if group == TWO_RUNS else faults(servers, group)


def group_run(_folder: Path, sandbox: Sandbox, group: str) -> list[tuple[Cell, str | None]]:
    """Run all cells of a group; return each with the reason why it is wrong, or None."""
    servers = Servers(sandbox)
    return [(cell, cell.wrong(servers)) for cell in cells(servers, group)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cells of the groups on the command line."""
    return cell_runs.print_all("tests.faults.rotation", GROUPS, group_run, arguments)


if __name__ == "__main__":
    sys.exit(main())
