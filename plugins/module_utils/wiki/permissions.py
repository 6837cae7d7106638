# SPDX-License-Identifier: GPL-3.0-or-later
"""What the account of a task may do with a page [wiki-18]."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ..core.errors import ToolchainError
from .page import Page, member


def require(what: str, page: Page, operation: Literal["update", "delete"]) -> None:
    """C(permission) for a write that the account may not do, before it is tried.

    A list that does not even name the reading is not the one that is meant, and denies nothing.
    """
    told = member(page.content, "operations")
    entries = told if isinstance(told, list) else []
    known = [member(one, "operation") for one in entries if member(one, "targetType") == page.type]
    if "read" in known and operation not in known:
        said = f"the account may not {operation} the page '{page.title}' ({page.id})"
        raise ToolchainError("permission", f"{what}: {said}")


def of_the_page(fields: Iterable[str]) -> bool:
    """Whether one of what is changed wants the right to update the page: files have their own."""
    return any(field != "attachments" for field in fields)
