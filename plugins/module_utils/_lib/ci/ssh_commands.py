# SPDX-License-Identifier: GPL-3.0-or-later
"""Run commands of the CI server over SSH, with the OpenSSH client of the system.

The interface description [W4.4] names the commands `groovy =`, which reads a script from standard
input, and `list-plugins`. Server facts [ci-17]: the server accepts only SSH keys, has no shell, and
sends the address of its SSH server as `X-SSH-Endpoint` with the login page.

The user's `~/.ssh/config` applies.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal
from urllib.parse import urlsplit

from ..core.errors import Kind, ToolchainError, excerpt, invalid, shorten
from ..core.http.writes import OUTCOME_UNKNOWN
from ..core.module.task import Task
from ..core.module.typed_options import Option, PathText
from .client import server_of

#: Exit code of the OpenSSH client if it cannot connect or loses the connection.
_NO_CONNECTION = 255
#: Server fact [ci-17]: exit codes of rejected commands. Other codes come from the command itself.
_KINDS: dict[int, Kind] = {6: "permission", 7: "auth"}
#: Exit codes of commands that the server did not start; 2 means invalid arguments.
_NOT_STARTED = (2, *_KINDS)
_NAME = re.compile(r"(?!-)[^\s\"'`$\\;&<>|(){}/]+")
#: Parts of the client's error messages if no command was sent, with error kind and hint.
_CLIENT_ERRORS: tuple[tuple[str, Kind, str], ...] = (
    ("host key verification failed", "network", "the host is not in known_hosts: verify its key"),
    ("host identification has changed", "network", "its key differs from the one in known_hosts"),
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
class SshResult:
    """Output of a command, and the address of the SSH interface."""

    purpose: str
    output: str
    url: str

    def error(self, kind: Kind, message: str, detail: str | None = None) -> ToolchainError:
        """Return an error that names the command's purpose and address."""
        text = f"{self.purpose}: {message}"
        return ToolchainError(kind, text, url=self.url, detail=detail or None)


class SshCommands:
    """Runs commands over SSH. In check mode it runs only commands that read."""

    def __init__(self, task: Task, options: SshOptions) -> None:
        self._task, self._options = task, options
        self._timeout = float(task.connection.settings["timeout"])
        self._host = options.ssh_host or urlsplit(task.connection.url).hostname or ""
        for name in ("ssh_host", "ssh_user"):
            value = getattr(options, name)
            if value is not None and _NAME.fullmatch(value) is None:
                raise invalid(
                    f"{name} is {excerpt(value)}: it must not contain blanks or shell characters,"
                    " or begin with '-'"
                )
        for name in ("ssh_key", "ssh_known_hosts"):
            file = getattr(options, name)
            if file is not None and not os.access(file, os.R_OK):
                raise invalid(f"{name}: {file} cannot be read")

    def run(self, purpose: str, command: str, *, reads: bool, stdin: str = "") -> SshResult:
        """Run a command. Raises an error unless the exit code is 0.

        :param reads: whether the command only reads; other commands are rejected in check mode
        :param stdin: text for the standard input
        """
        if self._task.read_only and not reads:
            raise invalid(
                f"{purpose}: not sent, because the command writes and the task is in check mode"
            )
        code, output, stderr = self._exchange(purpose, command, reads, stdin)
        done = SshResult(purpose, output, self._url)
        if code == _NO_CONNECTION:
            lowered = stderr.lower()
            for sign, kind, hint in _CLIENT_ERRORS:
                if sign in lowered:
                    raise done.error(kind, f"{stderr} ({hint})", stderr)
            lost = "" if reads else f"; {OUTCOME_UNKNOWN}"
            error = done.error("network", f"the connection was lost ({stderr}){lost}", stderr)
            error.outcome_unknown = not reads
            raise error
        if not reads and code not in _NOT_STARTED:
            self._task.accounting.add(acknowledged=1)
        if code != 0:
            detail = f" {stderr}" if stderr else ""
            kind = _KINDS.get(code, "failed")
            raise done.error(kind, f"the command failed with exit code {code}:{detail}", stderr)
        return done

    @property
    def _url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"ssh://{host}:{self._port}"

    @cached_property
    def _port(self) -> int:
        """Return the SSH port, if needed from the login page, which needs no login."""
        if self._options.ssh_port is not None:
            return self._options.ssh_port
        purpose = "reading the SSH port"
        response = server_of(self._task).read(purpose, "login")
        port = response.headers.get("X-SSH-Endpoint", "").rpartition(":")[2].strip()
        if not port.isdecimal():
            raise response.error(
                "not_found",
                "the server does not report an SSH port. Enable its SSH server, or set ssh_port",
            )
        return int(port)

    @property
    def _client(self) -> list[str]:
        """Return the command line of the client, which never prompts and verifies the host key."""
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "ConnectTimeout": str(math.ceil(self._timeout)),
            "LogLevel": "ERROR",
        }
        # `%` begins a token of the client
        known, key = (
            file and f'"{file.replace("%", "%%")}"'
            for file in (self._options.ssh_known_hosts, self._options.ssh_key)
        )
        if known is not None:
            options["UserKnownHostsFile"] = known
        if key is not None:
            options |= {"IdentityFile": key, "IdentitiesOnly": "yes"}
        user = self._options.ssh_user or self._task.connection.username
        call = ["ssh", "-T", "-p", str(self._port)]
        call += [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        call += [] if user is None else ["-l", user]
        return [*call, "--", self._host]

    def _exchange(
        self, purpose: str, command: str, reads: bool, stdin: str
    ) -> tuple[int, str, str]:
        """Run the client. Return its exit code, standard output and standard error."""
        try:
            # run_command of AnsibleModule has no timeout
            # pylint: disable-next=ansible-bad-function
            done = subprocess.run(  # noqa: S603 - a fixed program, without a shell
                [*self._client, command],
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
            raise ToolchainError(
                "timeout",
                f"{purpose}: not finished within {self._timeout:g} s{lost} ({self._url})",
                url=self._url,
                outcome_unknown=not reads,
            ) from None
        stderr = done.stderr.decode("utf-8", "replace")
        return done.returncode, done.stdout.decode("utf-8", "replace"), shorten(stderr)
