# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task manages of an issue, part by part: each is a request of its own [tracker-19]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ...core.plan import Change
from .site import TrackerIssue


@dataclass(frozen=True)
class Edit:
    """What is to be written to one issue, how, and the permissions that this needs."""

    changes: tuple[Change, ...]
    write: Callable[[], None]
    needs: tuple[str, ...]


class Part(Protocol):
    """One thing that is managed: fields, links, attachments, a comment, the status."""

    @property
    def names(self) -> tuple[str, ...]:
        """The fields by which it is compared."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The permissions for what is expected of a new issue [tracker-28]."""

    def differs(self, issue: TrackerIssue) -> bool:
        """Whether an issue may need an edit, by what was read of it alone."""

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        """What is to be written; may read more, and raises what the server would refuse."""

    def expected(self) -> tuple[Change, ...]:
        """What is written to an issue that is not there yet."""


def as_dict(change: Change) -> dict[str, Any]:
    """An entry of C(changes) in the return value."""
    return {"field": change.field, "before": change.before, "after": change.after}
