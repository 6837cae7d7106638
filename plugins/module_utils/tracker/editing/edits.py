# SPDX-License-Identifier: GPL-3.0-or-later
"""Managed parts of an issue; every part is a separate request [tracker-19]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ...core.plan import Change
from .site import TrackerIssue


@dataclass(frozen=True)
class Edit:
    """A write to an issue, and the permissions that it needs."""

    changes: tuple[Change, ...]
    write: Callable[[], None]
    needs: tuple[str, ...]


class Part(Protocol):
    """A managed part: fields, links, attachments, a comment, the status."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the fields that are compared."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the permissions for creating an issue with this part [tracker-28]."""

    def differs(self, issue: TrackerIssue) -> bool:
        """Return whether an issue may need an edit, by the fields that were read."""

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        """Return the writes. May read more, and raises errors that the server would return."""

    def expected(self) -> tuple[Change, ...]:
        """Return the values for a new issue."""


def as_dict(change: Change) -> dict[str, Any]:
    """Return an entry of `changes` in the return value."""
    return {"field": change.field, "before": change.before, "after": change.after}
