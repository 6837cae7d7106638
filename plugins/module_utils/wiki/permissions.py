# SPDX-License-Identifier: GPL-3.0-or-later
"""Permissions of the task's account on a page [wiki-18]."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ..core.errors import ToolchainError
from ..core.json_text import member
from .page import Page


def require(purpose: str, page: Page, operation: Literal["update", "delete"]) -> None:
    """Raise `permission` if the server's list of operations lacks the required operation.

    A list without `read` is incomplete, since the page was just read, and is ignored.
    """
    reported = member(page.content, "operations")
    entries = reported if isinstance(reported, list) else []
    known = [
        member(entry, "operation") for entry in entries if member(entry, "targetType") == page.type
    ]
    if "read" in known and operation not in known:
        reason = f"the account is not allowed to {operation} the page '{page.title}' ({page.id})"
        raise ToolchainError("permission", f"{purpose}: {reason}")


def of_the_page(fields: Iterable[str]) -> bool:
    """Return whether changes of these fields require the permission to update the page.

    Attachments have a separate permission.
    """
    return any(field != "attachments" for field in fields)
