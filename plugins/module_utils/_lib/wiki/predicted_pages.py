# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages that earlier tasks in check mode would create, rename or remove.

The ids of new pages have a prefix that no wiki uses. Later tasks can use them as `parent_id` and
`page_id`.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from typing import Any

from ..core.module.predictions import Predictions
from .page import Page

_PREFIX = "predicted-"


def new_id(predictions: Predictions, space: str, title: str) -> str:
    """Return the predicted id of a new page, or "" outside check mode."""
    return id_for(space, title) if predictions.active else ""


def id_for(space: str, title: str) -> str:
    """Return the predicted id of a page that does not exist yet."""
    return _PREFIX + hashlib.sha256(_name(space, title).encode()).hexdigest()[:16]


def predict(predictions: Predictions, page: Page) -> None:
    """Record a new page with its predicted id, or a page with its new title, for later tasks in
    check mode.
    """
    predictions.add("page", page.id, value=asdict(page))
    predictions.add("title", _name(str(page.space), page.title), value=page.id)


def predict_removal(predictions: Predictions, page: Page) -> None:
    """Record a page that would be removed, for later tasks in check mode."""
    predictions.add("removed child", str(page.parent), page.id)
    predictions.add("removed page", str(page.space).lower(), page.id)


def removed_below(predictions: Predictions, page: Page) -> set[str]:
    """Return the ids of the children of a page that earlier tasks would remove."""
    return set(predictions.all("removed child", page.id))


def removed_in(predictions: Predictions, space: str) -> set[str]:
    """Return the ids of the pages of a space that earlier tasks would remove."""
    return set(predictions.all("removed page", space.lower()))


def by_title(predictions: Predictions, space: str, title: str) -> Page | None:
    """Return the predicted page with a title, or None."""
    page_id = predictions.get("title", _name(space, title))
    return None if page_id is None else by_id(predictions, page_id)


def id_of(predictions: Predictions, space: str, title: str) -> str | None:
    """Return the id of an existing page that would get this title."""
    found: str | None = predictions.get("title", _name(space, title))
    return None if found is None or is_id(found) else found


def renamed(predictions: Predictions, page: Page) -> Page:
    """Return an existing page with the title that an earlier task would give it."""
    parts = predictions.get("page", page.id)
    return page if parts is None else replace(page, title=parts["title"])


def by_id(predictions: Predictions, page_id: str) -> Page | None:
    """Return the predicted page with an id, or None."""
    parts: dict[str, Any] | None = predictions.get("page", page_id) if is_id(page_id) else None
    return None if parts is None else Page(**parts)


def is_id(page_id: str) -> bool:
    """Return whether a page id is a predicted id."""
    return page_id.startswith(_PREFIX)


def _name(space: str, title: str) -> str:
    return f"{space}/{title}".lower()
