# SPDX-License-Identifier: GPL-3.0-or-later
"""Add hints about login and address to error messages."""

from __future__ import annotations

from ..connection.connection import Connection
from ..errors import ToolchainError, append_clause

_CHECK = "check url"


def message_with_hint(error: ToolchainError, connection: Connection) -> str:
    """Return the message of an error, with a hint that helps to correct the connection.

    The hint for a rejected login describes the login and its source. The hint for a 404 names the
    program that responded instead of the service, if any.
    """
    if error.kind == "auth" and error.status is not None:
        login = connection.login
        missing = "set one in the task, the group defaults, a variable or the environment"
        hint = f"the task sent {login}" if login else f"the task sent no login: {missing}"
        return append_clause(str(error), hint)
    if error.status == 404 and error.kind == "not_found" and _CHECK not in str(error):
        return append_clause(str(error), _address_hint(error, connection))
    return str(error)


def _address_hint(error: ToolchainError, connection: Connection) -> str:
    if error.other_server is None:
        return f"if it exists, {_CHECK} ({connection.url})"
    responder = f" ({error.other_server} responded)" if error.other_server else ""
    service = f"{connection.url} is the {connection.service} service"
    return f"it is uncertain whether {service}{responder}: {_CHECK}"
