# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the role `login_rotation` with a fault at every request, and with a second run at the same
time.

    python -m tests.faults.rotation                 all cells
    python -m tests.faults.rotation wiki-renewal    the cells of the named groups

A group is an issuer of tokens with a kind of cells: `first` and `renewal` have a fault at every
request of a rotation, `two-runs` has two runs at the same time.

The expectation is the same for every cell: a token is always valid, no credential holds a revoked
token, soon exactly one token is left, which all credentials hold, and no run prints a secret. The
program exits with 1 if a cell fails.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.client import Sandbox
from tests.faults import cell_runs
from tests.helpers import forked_role, issuers

ISSUERS = tuple(issuers.LISTS)
FIRST, RENEWAL, TWO_RUNS = ("first", "renewal", "two-runs")
GROUPS = [f"{issuer}-{each}" for issuer in ISSUERS for each in (FIRST, RENEWAL, TWO_RUNS)]
KINDS = ("lost before", "lost after", "killed")
_RERUNS = 2
_WRITE = " (write)"
#: The writes that create and revoke tokens.
_TOKEN_WRITE = re.compile(r"(/tokens|ApiTokenProperty).*" + re.escape(_WRITE))


class Servers:
    """The issuer of the tokens, the server that uses them, and runs of the role."""

    def __init__(self, sandbox: Sandbox, issuer: str) -> None:
        self.sandbox, self.issuer = sandbox, issuers.Issuer(sandbox, issuer)
        self._runs: list[forked_role.Run] = []
        #: The requests of a rotation by group; they are the same in every run.
        self.recorded: dict[str, list[str]] = {}

    def start(self, group: str) -> str:
        """Restore the state before a rotation; return the id of the token that expires soon.

        Before the first rotation no credential exists, before a renewal all hold the token.
        """
        self._runs = []
        self.sandbox.reset()
        self.issuer.prepare()
        # a build without a duration needs the same requests in every run
        self.sandbox.seed({"ci": {"jobs": {"no-parameters": {"build_seconds": 0}}}})
        if group == FIRST:
            return str(self.issuer.add()["id"])
        short = {"login_rotation_expires_in": "2d", "login_rotation_renew_before": "1d"}
        assert self.run(**short).finish() == ""
        (token,) = self.issuer.tokens()
        return token

    def run(self, **changes: str) -> forked_role.Run:
        """Start a run; a request without a response is not repeated."""
        role = {"role": "delivery.toolchain.login_rotation"}
        defaults = self.issuer.module_defaults(retries=0)
        variables = {**self.issuer.variables, **changes}
        run = forked_role.Run({"module_defaults": defaults, "roles": [role], "vars": variables})
        self._runs.append(run)
        return run

    def unsound(self) -> str | None:
        """Return what must never be the case, or None."""
        if any(issuers.SECRETS.search(run.printed) for run in self._runs):
            return "a run has printed a secret"
        return self.issuer.unsound()

    def unsound_until_end(self, run: forked_role.Run) -> str | None:
        """Let a run continue; return what must never be the case after a write, or None.

        Before a pending fault no request is sent, which would meet it.
        """
        begin = self.sandbox.mark()
        while run.advance():
            if (
                self.sandbox.requests(since=begin, writes=True)
                and not self.sandbox.pending_faults()
            ):
                if reason := self.unsound():
                    return reason
                begin = self.sandbox.mark()
        return self.unsound()


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
            reason = servers.unsound_until_end(servers.run())
            if reason or servers.sandbox.pending_faults():
                return reason or "no request has met the fault"
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
        if reason or not servers.issuer.unfinished(old):
            return reason
        run = servers.run()
        reason = servers.unsound_until_end(run)
        if run.failure:
            return f"the next run has failed: {run.failure}"
    return reason or servers.issuer.unfinished(old)


def requests_of(servers: Servers, group: str) -> list[str]:
    """Return the requests of a rotation. `N` replaces the numbers that differ between rotations."""
    if group not in servers.recorded:
        servers.recorded[group] = _record(servers, group)
    return servers.recorded[group]


def _record(servers: Servers, group: str) -> list[str]:
    """Record the requests of a rotation; the state must be sound after each response."""
    servers.start(group)
    begin, run = servers.sandbox.mark(), servers.run()
    found = []
    while run.advance():
        request = servers.sandbox.requests(since=begin)[0]
        path = re.sub(r"/\d+", "/N", request["path"])
        write = _WRITE if request["write"] else ""
        found.append(f"{request['service']} {request['method']} {path}{write}")
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
        if any(request.endswith(_WRITE) for request in requests_[max(second - 1, 0) : second + 1])
    ]


def sample(servers: Servers) -> list[Cell]:
    """Return the faults of all kinds for the writes of tokens, those of changing kinds for each other
    request that differs from the earlier ones, and two runs that stop before each write.

    A renewal contributes only the requests that a first rotation lacks. Each issuer but the first
    contributes the writes of its tokens, of all kinds.
    """
    first = faults(servers, FIRST)
    if servers.issuer.service != ISSUERS[0]:
        return [cell for cell in first if _TOKEN_WRITE.search(cell.request)]
    renewal = faults(servers, RENEWAL)
    known = {cell.request for cell in first}
    further = [cell for cell in renewal if cell.request not in known]
    writes = {cell.number for cell in renewal if cell.request.endswith(_WRITE)}
    return [*_in_turn(first + further), *(TwoRuns(number, number) for number in sorted(writes))]


def _in_turn(faults_: Sequence[Fault]) -> list[Fault]:
    first: dict[str, int] = {}
    return [
        cell
        for cell in faults_
        if _TOKEN_WRITE.search(cell.request)
        or (
            first.setdefault(cell.request, cell.number) == cell.number
            and cell.kind == KINDS[cell.number % len(KINDS)]
        )
    ]


def cells(servers: Servers, group: str) -> Sequence[Cell]:
    """Return all cells of a group."""
    return two_runs(servers) if group == TWO_RUNS else faults(servers, group)


def group_run(_folder: Path, sandbox: Sandbox, group: str) -> list[tuple[Cell, str | None]]:
    """Run all cells of a group; return each with the reason why it is wrong, or None."""
    issuer, _, kind = group.partition("-")
    servers = Servers(sandbox, issuer)
    return [(cell, cell.wrong(servers)) for cell in cells(servers, kind)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cells of the groups on the command line."""
    return cell_runs.print_all("tests.faults.rotation", GROUPS, group_run, arguments)


if __name__ == "__main__":
    sys.exit(main())
