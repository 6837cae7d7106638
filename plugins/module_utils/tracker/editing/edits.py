# SPDX-License-Identifier: GPL-3.0-or-later
"""Managed parts of an issue. Each part is written with separate requests [tracker-19]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...core.plan import Change
from .site import TrackerIssue


@dataclass(frozen=True)
class Edit:
    """A write to an issue, with its changes and the permissions that it needs."""

    changes: tuple[Change, ...]
    write: Callable[[], None]
    needs: tuple[str, ...]


class Part(Protocol):
    """A managed part: fields, links, attachments, a comment, watchers or the status."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the ids of the fields that the part compares."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the permissions for creating an issue with this part [tracker-28]."""

    def differs(self, issue: TrackerIssue) -> bool:
        """Return whether the fields of an issue differ, or cannot show that they are equal."""

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        """Return the writes for an issue. Raises the errors that the server would return."""

    def expected(self) -> tuple[Change, ...]:
        """Return the values for a new issue."""
