# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep credentials at the server whose address is set in the same place [C1.2]."""

from __future__ import annotations

from typing import Any

from ..address import origin
from ..errors import invalid
from ..secret import clean_url


def is_other_server(own: Any, address: str) -> bool:
    """Return whether `own`, an address if it is set, is that of another server than `address`."""
    return bool(own) and origin(str(own)) != origin(address)


def require_own_server(place: str, name: str, own: Any, address: str, option: str = "url") -> None:
    """Raise `invalid` if another server than that of the credentials would receive them.

    :param place: the place of the credentials, for the message
    :param name: the variable with the address of that place
    :param own: its value, if any
    :param address: the address of the connection
    :param option: the option with that address
    """
    if is_other_server(own, address):
        raise invalid(
            f"the credentials in {place} belong to {clean_url(str(own), whole=True)} ({name}), and"
            f" are not sent to {clean_url(address, whole=True)}: set the credentials of that server"
            f" next to its {option}, or use the address of {name}"
        )
