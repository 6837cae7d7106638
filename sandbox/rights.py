# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account of issue tracker or wiki may do in which project or space.

Credentials in the seed: `users: {name: password}` may do everything, `users: {name: {password,
permissions: {PLACE: [permission]}}}` only what is listed; `*` as a place stands for those that are
not named.
"""

from __future__ import annotations

from typing import Any

EVERYWHERE = "*"


class Rights:
    """The rights of `user`; None is anonymous, who may do nothing."""

    def __init__(self, credentials: dict[str, Any], user: str | None) -> None:
        self.user = user
        known = credentials.get("users", {}).get(user)
        self._granted: dict[str, list[str]] | None = None
        if isinstance(known, dict):
            self._granted = known.get("permissions")

    def may(self, permission: str, place: str = EVERYWHERE) -> bool:
        if self.user is None:
            return False
        if self._granted is None:
            return True
        return permission in self._granted.get(place, self._granted.get(EVERYWHERE, []))

    def may_anywhere(self, permission: str) -> bool:
        """Whether there is a place where the account has the permission."""
        if self.user is None or self._granted is None:
            return self.user is not None
        return any(permission in granted for granted in self._granted.values())


def password_of(known: Any) -> Any:
    """The password in an entry of `users`."""
    return known.get("password") if isinstance(known, dict) else known
