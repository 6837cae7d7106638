# SPDX-License-Identifier: GPL-3.0-or-later
"""SSH command interface of the CI server, through the system's OpenSSH client.

Sources: written interface [W4.4] (the commands `groovy` with the script on standard input, given as
`=`, and `list-plugins`); server facts [ci-17]: keys only, no shell, the exit codes, and
`X-SSH-Endpoint` on the login page. The settings of `~/.ssh/config` for the host apply as always.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlsplit

from ..core.errors import Kind, ToolchainError, invalid, shorten
from ..core.http.writes import OUTCOME_UNKNOWN
from ..core.module.task import Task
from ..core.module.typed_options import Option, PathText
from .client import server_of

#: Exit code of the client: no connection, or a lost one.
_NO_CONNECTION = 255
#: Server fact [ci-17]: exit codes of a command; all others are errors of the command itself.
_KINDS: dict[int, Kind] = {6: "permission", 7: "auth"}
#: Exit codes of a command that the server did not start: bad arguments, and those above.
_NOT_BEGUN = (2, *_KINDS)
_NAME = re.compile(r"(?!-)[^\s\"'`$\\;&<>|(){}/]+")
#: Error messages of the client with their kind and a hint; no command was sent.
_REFUSALS: tuple[tuple[str, Kind, str], ...] = (
    ("host key verification failed", "network", "the host is not in known_hosts: verify its key"),
    (
        "host identification has changed",
        "network",
        "the host's key differs from the one in known_hosts",
    ),
    ("permission denied (", "auth", "check ssh_user and ssh_key"),
    ("too many authentication failures", "auth", "set ssh_key to the key"),
    ("could not resolve hostname", "network", "check ssh_host"),
    ("connection refused", "network", "check ssh_host and ssh_port"),
    ("no route to host", "network", "check ssh_host"),
    ("timed out", "timeout", "check ssh_host and ssh_port"),
)


@dataclass(frozen=True, kw_only=True)
class SshOptions:
    """Options of modules that use HTTP or SSH."""

    transport: Literal["http", "ssh"] = "http"
    ssh_host: str | None = None
    ssh_port: int | None = None
    ssh_user: str | None = None
    ssh_key: Annotated[str, Option(type="path", secret=False)] | None = None
    ssh_known_hosts: PathText | None = None


@dataclass(frozen=True)
class SshEndpoint:
    """Address of the SSH interface, and the account."""

    host: str
    port: int
    user: str | None

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"ssh://{host}:{self.port}"


@dataclass(frozen=True)
class SshResult:
    """Output of a command, and the server that ran it."""

    purpose: str
    output: str
    endpoint: SshEndpoint

    def error(self, kind: Kind, message: str, detail: str | None = None) -> ToolchainError:
        """Return an error of this kind for the output."""
        return ToolchainError(
            kind, f"{self.purpose}: {message}", url=self.endpoint.url, detail=detail or None
        )


class SshCommands:
    """Sends commands; in check mode only reads."""

    def __init__(self, task: Task, options: SshOptions) -> None:
        self._task, self._options = task, options
        self._timeout = float(task.connection.settings["timeout"])
        self._endpoint: SshEndpoint | None = None
        for name, value in (("ssh_host", options.ssh_host), ("ssh_user", options.ssh_user)):
            if value is not None and _NAME.fullmatch(value) is None:
                raise invalid(f"{name} is {value!r}, which is not a name")
        files = {"ssh_key": options.ssh_key, "ssh_known_hosts": options.ssh_known_hosts}
        for name, file in files.items():
            if file is not None and not os.access(file, os.R_OK):
                raise invalid(f"{name}: {file} cannot be read")

    def run(self, purpose: str, command: str, *, reads: bool, stdin: str = "") -> SshResult:
        """Run a command with `stdin` on its standard input. Raises unless it succeeds."""
        if self._task.read_only and not reads:
            raise invalid(
                f"{purpose}: stopped, because a command that writes must not be sent in check mode"
            )
        endpoint = self._found()
        code, output, stderr = self._exchange(
            purpose, [*self._client(endpoint), command], reads, stdin
        )
        done = SshResult(purpose, output, endpoint)
        if code == _NO_CONNECTION:
            raise self._refusal(done, stderr, reads)
        if not reads and code not in _NOT_BEGUN:
            self._task.accounting.add(acknowledged=1)
        if code != 0:
            detail = f" {stderr}" if stderr else ""
            kind = _KINDS.get(code, "failed")
            raise done.error(kind, f"the command failed with exit code {code}:{detail}", stderr)
        return done

    def _found(self) -> SshEndpoint:
        if self._endpoint is None:
            connection, options = self._task.connection, self._options
            self._endpoint = SshEndpoint(
                options.ssh_host or urlsplit(connection.url).hostname or "",
                self._advertised() if options.ssh_port is None else options.ssh_port,
                options.ssh_user or connection.username,
            )
        return self._endpoint

    def _advertised(self) -> int:
        """Return the port from the server's login page, which needs no login."""
        purpose = "reading the SSH port"
        response = server_of(self._task).read(purpose, "login")
        port = response.headers.get("X-SSH-Endpoint", "").rpartition(":")[2].strip()
        if not port.isdecimal():
            raise response.error(
                "not_found",
                "the server does not report an SSH port: its SSH server is switched off; otherwise"
                " set ssh_port",
            )
        return int(port)

    def _client(self, endpoint: SshEndpoint) -> list[str]:
        """Return the command line of the client: it never prompts, and verifies the host key."""
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "ConnectTimeout": str(math.ceil(self._timeout)),
            "LogLevel": "ERROR",
        }
        known, key = self._options.ssh_known_hosts, self._options.ssh_key
        if known is not None:
            options["UserKnownHostsFile"] = f'"{_literal(known)}"'
        if key is not None:
            options["IdentityFile"] = f'"{_literal(key)}"'
            options["IdentitiesOnly"] = "yes"
        call = ["ssh", "-T", "-p", str(endpoint.port)]
        call += [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        if endpoint.user is not None:
            call += ["-l", endpoint.user]
        return [*call, "--", endpoint.host]

    def _exchange(
        self, purpose: str, call: list[str], reads: bool, stdin: str
    ) -> tuple[int, str, str]:
        """Run the client; return exit code, output and standard error."""
        try:
            # the run_command of modules has no timeout
            # pylint: disable-next=ansible-bad-function
            done = subprocess.run(  # noqa: S603 - the program is ours, and no shell reads the rest
                call,
                input=stdin.encode("utf-8"),
                capture_output=True,
                timeout=self._timeout,
                check=False,
            )
        except FileNotFoundError:
            raise invalid(
                "transport=ssh requires the program ssh: install the OpenSSH client"
            ) from None
        except subprocess.TimeoutExpired:
            lost = "" if reads else f"; {OUTCOME_UNKNOWN}"
            url = self._found().url
            raise ToolchainError(
                "timeout",
                f"{purpose}: not finished within {self._timeout:g} s{lost} ({url})",
                url=url,
                outcome_unknown=not reads,
            ) from None
        stderr = done.stderr.decode("utf-8", "replace")
        return done.returncode, done.stdout.decode("utf-8", "replace"), shorten(stderr)

    def _refusal(self, done: SshResult, stderr: str, reads: bool) -> ToolchainError:
        """Return the error for a connection that was not made, or was lost."""
        words = stderr.lower()
        for sign, kind, hint in _REFUSALS:
            if sign in words:
                return done.error(kind, f"{stderr} ({hint})", stderr)
        lost = "" if reads else f"; {OUTCOME_UNKNOWN}"
        error = done.error("network", f"the connection was lost ({stderr}){lost}", stderr)
        error.outcome_unknown = not reads
        return error


def _literal(path: str) -> str:
    """Return a path without client tokens, which begin with `%`."""
    return path.replace("%", "%%")
