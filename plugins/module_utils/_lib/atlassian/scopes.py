# SPDX-License-Identifier: GPL-3.0-or-later
"""Scopes of tokens that requests to the cloud require [tracker-40]."""

from __future__ import annotations

import re
from collections.abc import Iterable


class ScopeTable:
    """The scopes of the requests of a service.

    :param rows: method, pattern of the path, and the scopes, separated by blanks; the first row
        that matches decides. The method `*` means any method. The scope that only this kind of
        request needs is the first
    """

    def __init__(self, rows: Iterable[tuple[str, str, str]]) -> None:
        self._rows = [(method, re.compile(path), scopes.split()) for method, path, scopes in rows]

    def of(self, method: str, path: str) -> tuple[str, ...]:
        """Return the scopes of a request."""
        for known, pattern, scopes in self._rows:
            if known in ("*", method) and pattern.search(path):
                return tuple(scopes)
        raise AssertionError(f"the last row matches {method} {path}")
