# SPDX-License-Identifier: GPL-3.0-or-later
"""What a failure says beyond the server's words, for those who use a connection the first time."""

from __future__ import annotations

from ..connection.options import Connection
from ..errors import ToolchainError

_CHECK = "check url"


def advised(error: ToolchainError, connection: Connection) -> str:
    """The message of an error, with the login that was refused and where it came from, or with what
    answers at an address where the service does not.
    """
    if error.kind == "auth" and error.status is not None:
        return f"{error}; {_login(connection)}"
    if error.kind == "not_found" and error.stranger is not None and _CHECK not in str(error):
        stranger = f" ({error.stranger} answered)" if error.stranger else ""
        return (
            f"{error}; nothing shows that {connection.url} is the {connection.service}"
            f" service{stranger}: {_CHECK}"
        )
    return str(error)


def _login(connection: Connection) -> str:
    if connection.login:
        return f"sent was {connection.login}"
    return (
        "no login was sent: name one in the task, the group defaults, a variable or the environment"
    )
