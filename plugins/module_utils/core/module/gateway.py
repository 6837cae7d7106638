# SPDX-License-Identifier: GPL-3.0-or-later
"""The gateway of the cloud, and the address of a site there [tracker-40]."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..connection.auth import Anonymous
from ..connection.cloud import AUTO, at_gateway, site_of
from ..errors import ToolchainError
from ..http.messages import json_or_none, unexpected_body
from ..http.transport import Transport

if TYPE_CHECKING:
    from ..accounting import Accounting
    from ..connection.options import Connection
    from ..http.sessions import Proxies

_TENANT = "_edge/tenant_info"
_ID = "cloud.id"


def server_of(connection: Connection, accounting: Accounting, proxies: Proxies) -> Connection:
    """Return the connection that requests are sent to: with `cloud_id` that to the gateway."""
    cloud_id = connection.settings.get("cloud_id")
    if cloud_id is None:
        return connection
    if cloud_id == AUTO:
        cloud_id = _id_of(connection, accounting, proxies)
    return at_gateway(connection, cloud_id)


def _id_of(connection: Connection, accounting: Accounting, proxies: Proxies) -> str:
    """Read the id of the site, without the login: once per server and process."""
    site = replace(
        connection,
        url=site_of(connection),
        username=None,
        password=None,
        token=None,
        oauth=None,
    )
    transport = Transport(site, Anonymous(), read_only=True, accounting=accounting, proxies=proxies)
    if _ID not in transport.memory:
        what = f"reading the id of the site {site.url}"
        try:
            response = transport.read(what, _TENANT, headers={"Accept": "application/json"})
        except ToolchainError as error:
            raise error.with_hint("give the id in cloud_id instead of auto") from None
        told = json_or_none(response.body)
        found = told.get("cloudId") if isinstance(told, dict) else None
        if not isinstance(found, str) or not found.strip():
            raise unexpected_body(response, "the id of a site")
        transport.memory[_ID] = found
    return str(transport.memory[_ID])
