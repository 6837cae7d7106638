# SPDX-License-Identifier: GPL-3.0-or-later
"""Permissions of a tracker or wiki account per project or space.

In the seed, `users: {name: password}` grants all permissions. `users: {name: {password,
permissions: {KEY: [permission]}}}` grants only the listed permissions in the project or space with
the key. `*` stands for all keys that are not listed.
"""

from __future__ import annotations

from typing import Any

EVERYWHERE = "*"


class Rights:
    """Permissions of an account. `user` None is anonymous and has no permissions."""

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
        """Return whether the account has a permission in any project or space."""
        if self.user is None or self._granted is None:
            return self.user is not None
        return any(permission in granted for granted in self._granted.values())


def password_of(known: Any) -> Any:
    """Return the password of a value in `users`."""
    return known.get("password") if isinstance(known, dict) else known
