# SPDX-License-Identifier: GPL-3.0-or-later
"""Translate the mentions of users in storage format.

A server names a user by `ri:username` or `ri:userkey`, the cloud by `ri:account-id`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping

ACCOUNT_ID, USER_KEY, _USERNAME = "account-id", "userkey", "username"
# A section or comment without an end includes the rest, so that no text is searched twice. The text
# of a code macro is no mention.
_MENTION = re.compile(
    r"<!\[CDATA\[(?:.*?\]\]>|.*)|<!--(?:.*?-->|.*)"
    r"|(?P<start><ri:user\b[^<>]*?\s)ri:(?P<attribute>account-id|username|userkey)\s*=\s*"
    r"(?:\"(?P<double>[^\"<>]*)\"|'(?P<single>[^'<>]*)')",
    re.DOTALL,
)


def translated(body: str, translate: Callable[[str], str], *, in_cloud: bool) -> str:
    """Return a body with its mentions translated. Everything else stays, byte for byte.

    :param in_cloud: the results of `translate` are account ids of the cloud
    """

    def replaced(found: re.Match[str]) -> str:
        attribute = found["attribute"]
        if attribute is None:
            return found[0]
        name = _name_in(found)
        account = translate(name)
        if account == name:
            return found[0]
        if in_cloud:
            attribute = ACCOUNT_ID
        elif attribute == ACCOUNT_ID:
            attribute = _USERNAME
        return f'{found["start"]}ri:{attribute}="{html.escape(account)}"'

    return _MENTION.sub(replaced, body)


def with_accounts(body: str, accounts: Mapping[str, str], *, in_cloud: bool) -> str:
    """Return a body that mentions the accounts of names. A name without an account stays."""
    return translated(body, lambda name: accounts.get(name, name), in_cloud=in_cloud)


def names(body: str) -> dict[str, str]:
    """Return the users that a body mentions, with the attribute that names each of them."""
    found = (match for match in _MENTION.finditer(body) if match["attribute"] is not None)
    return {_name_in(match): match["attribute"] for match in found}


def _name_in(found: re.Match[str]) -> str:
    return html.unescape(found["single"] if found["double"] is None else found["double"])
