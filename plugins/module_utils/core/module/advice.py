# SPDX-License-Identifier: GPL-3.0-or-later
"""What a failure says beyond the server's words, for those who use a connection the first time."""

from __future__ import annotations

from ..connection.options import Connection
from ..errors import ToolchainError, append_clause

_CHECK = "check url"


def advised(error: ToolchainError, connection: Connection) -> str:
    """The message of an error, with the login that was refused and where it came from, or with what
    answers at an address where the service does not.
    """
    if error.kind == "auth" and error.status is not None:
        return append_clause(str(error), _login(connection))
    if error.status == 404 and error.kind == "not_found" and _CHECK not in str(error):
        return append_clause(str(error), _place(error, connection))
    return str(error)


def _place(error: ToolchainError, connection: Connection) -> str:
    """Where was asked; a service below a wrong path of its own says nothing of that."""
    if error.other_server is None:
        return f"if it is there, {_CHECK} ({connection.url})"
    stranger = f" ({error.other_server} answered)" if error.other_server else ""
    service = f"{connection.url} is the {connection.service} service"
    return f"nothing shows that {service}{stranger}: {_CHECK}"


def _login(connection: Connection) -> str:
    if connection.login:
        return f"sent was {connection.login}"
    return (
        "no login was sent: name one in the task, the group defaults, a variable or the environment"
    )
