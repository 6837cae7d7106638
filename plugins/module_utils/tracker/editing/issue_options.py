# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of `tracker_issue` for an issue, and their validation [C8.8]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from ...core.errors import invalid
from ...core.module.typed_options import Option, PathText

_LONGEST = 255
_LISTS = ("labels", "fix_versions", "components")
_MANAGED = (
    "summary",
    "description",
    "fields",
    *_LISTS,
    "add",
    "assignee",
    "priority",
    "status",
    "comment",
    "links",
    "attachments",
)

JsonValues = Annotated[dict[str, Any], Option(values="json")]


@dataclass(frozen=True)
class IssueAdditions:
    """Lists that only get more entries."""

    labels: list[str] | None = None
    fix_versions: list[str] | None = None
    components: list[str] | None = None


@dataclass(frozen=True)
class IssueLink:
    """A link. `type` is the name or a phrase of its type."""

    type: str
    issue: str


@dataclass(frozen=True)
class IssueOptions:
    """Managed parts of an issue, and values of a new issue."""

    match: str | None = None
    project: str | None = None
    type: str | None = None
    summary: str | None = None
    description: Annotated[str | None, Option(empty=True, whole=True)] = None
    fields: JsonValues | None = None
    labels: list[str] | None = None
    fix_versions: list[str] | None = None
    components: list[str] | None = None
    add: IssueAdditions | None = None
    assignee: str | None = None
    priority: str | None = None
    status: str | None = None
    transition: str | None = None
    transition_fields: JsonValues | None = None
    comment: Annotated[str | None, Option(whole=True)] = None
    links: list[IssueLink] | None = None
    attachments: list[PathText] | None = None
    replace: bool = True
    compare_max: int = 64 * 1024 * 1024

    def require_sense(self) -> None:
        """Raise `invalid` for contradictory options."""
        if all(getattr(self, name) is None for name in _MANAGED):
            raise invalid(f"there is nothing to do: give at least one of {', '.join(_MANAGED)}")
        if self.add == IssueAdditions():
            raise invalid(f"add is empty: it takes {', '.join(_LISTS)}")
        self._require_texts()
        for name in _LISTS:
            added = None if self.add is None else getattr(self.add, name)
            if added is not None and getattr(self, name) is not None:
                raise invalid(f"add.{name} has no meaning beside {name}, which is the whole list")

    def _require_texts(self) -> None:
        if self.summary is not None:
            require_summary("summary", self.summary)
        require_labels("labels", self.labels or [])
        require_labels("add.labels", (self.add.labels if self.add else None) or [])


def require_summary(place: str, summary: Any) -> None:
    """Raise `invalid` for an impossible summary [tracker-22]."""
    text = str(summary or "").strip()
    if not text or len(text.splitlines()) > 1 or len(text) > _LONGEST:
        raise invalid(f"{place} must be one line of at most {_LONGEST} characters")


def require_labels(place: str, labels: Any) -> None:
    """Raise `invalid` for an impossible label [tracker-22]."""
    for number, label in enumerate(labels if isinstance(labels, list) else []):
        text = str(label)
        if text.split() != [text] or len(text) > _LONGEST:
            raise invalid(
                f"{place}[{number}] is '{label}': a label has no blanks, and at most"
                f" {_LONGEST} characters"
            )
