# SPDX-License-Identifier: GPL-3.0-or-later
"""Send nothing more to a server that refused the login or the connection in this run [C9].

A run with hundreds of tasks would otherwise send a wrong password hundreds of times, which locks
accounts, and would wait for a dead server in each task. The state is in the temporary folder of the
run, which all workers share and Ansible removes at the end.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible import constants

from ...module_utils._lib.core.connection.options import environment_name
from ...module_utils._lib.core.secret import without_user_info
from .services import SERVICES

#: Variable of the tasks that take part.
VARIABLE = "toolchain_fail_fast"
#: Kinds of errors that concern all requests to a server. A `timeout` does so only if it happened
#: while the module was connecting.
_KINDS = ("auth", "network")
_NO_CONNECTION = "no connection"
_SHORT = {"the connection was refused": "connection refused"}


def refusal_of(error: Any) -> str:
    """Return why the server refused the login or the connection, or "" for other errors.

    :param error: return value `error` of a module
    """
    if not isinstance(error, Mapping):
        return ""
    kind, detail = error.get("kind"), str(error.get("detail") or "")
    if kind == "auth":
        return f"login refused ({error.get('status') or detail or 'no status'})"
    if kind not in _KINDS and not (kind == "timeout" and detail.startswith(_NO_CONNECTION)):
        return ""
    reason = detail.partition(":")[0] or "no connection"
    return _SHORT.get(reason, reason)


class Server:
    """A server and an account, with their state in this run.

    :param arguments: arguments of the module, including connection options from variables
    :param environment: environment of the task
    """

    def __init__(
        self, service: str, arguments: Mapping[str, Any], environment: Mapping[str, str]
    ) -> None:
        def option(name: str) -> str:
            return str(
                arguments.get(name) or environment.get(environment_name(service, name)) or ""
            )

        address = option("url")
        self.url = without_user_info(address).split("?")[0].rstrip("/")
        # of an account with a password all passwords count, because the account may be locked
        account = [option("username") or arguments.get("user") or ""]
        if not account[0]:
            account = [address, *map(option, SERVICES[service].credentials)]
        folder = Path(constants.DEFAULT_LOCAL_TMP) / "toolchain-servers"
        self._lock = folder / _digest(service, self.url)
        self._file = folder / _digest(service, self.url, *account)

    @contextmanager
    def alone_at_first(self) -> Iterator[None]:
        """Let other tasks wait until the server has responded to the first task."""
        self._lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._file.exists():
            yield
            return
        handle = os.open(self._lock.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def error(self) -> Mapping[str, Any] | None:
        """Return the error of the task that the server refused, or `None`."""
        for file in (self._lock, self._file):
            with contextlib.suppress(OSError, ValueError):
                found = json.loads(file.read_text("utf-8"))
                if found:
                    return dict(found)
        return None

    def note(self, result: Mapping[str, Any]) -> None:
        """Store whether the server has refused a task, from the result of its module."""
        error = result.get("error") or {}
        if refusal_of(error):
            refused = self._lock.with_suffix(".refused")
            # a connection fails for all accounts, and so may the second login
            if error["kind"] != "auth" or refused.exists():
                _store(self._lock, json.dumps(error))
            else:
                refused.touch()
                _store(self._file, json.dumps(error))
        elif (result.get("http") or {}).get("requests") and not self._file.exists():
            _store(self._file, "{}")


def _store(file: Path, text: str) -> None:
    new = file.with_suffix(f".{os.getpid()}")
    new.write_text(text, "utf-8")
    os.replace(new, file)


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()
