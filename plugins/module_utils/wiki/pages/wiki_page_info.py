# SPDX-License-Identifier: GPL-3.0-or-later
"""A page with its body ([C5.1]: the lookup C(wiki_page), the module C(wiki_page_info))."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.errors import ToolchainError
from ...core.module.task import Task
from ...core.plan import Operation, Reading
from ..client import Page, Wiki
from .single_page import named, require_address


def operation(task: Task) -> Operation:
    """The operation of C(wiki_page_info). Raises C(invalid) where no page is named."""
    require_address(task.params)
    return Reading(lambda: {"page": page(task)})


def page(task: Task) -> dict[str, Any]:
    """The page that the options C(page_id), or C(space) and C(title) name.

    C(not_found) where it is missing or not visible, and for a title where the server has no
    look-up by title; C(protocol) where the server does not send the body.
    """
    require_address(task.params)
    found = _read(Wiki(task), task.params)
    if found.body is None:
        name = named(task.params)
        raise ToolchainError("protocol", f"reading {name}: the server does not send the body")
    return {**found.shown(), "parent_id": found.parent, "body": found.body}


def _read(wiki: Wiki, params: Mapping[str, Any]) -> Page:
    page_id, space, name = params["page_id"], params["space"], named(params)
    if page_id is not None:
        found: Page | None = wiki.require(f"reading {name}", page_id, space)
    else:
        found = wiki.find(f"looking for {name}", space, params["title"].strip())
    if found is None or found.status != "current":
        raise ToolchainError("not_found", f"{name} does not exist, or is not visible")
    return found
