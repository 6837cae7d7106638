# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of `tracker_issue` for the parts of an issue, and their validation [C8.8]."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import invalid
from ...core.module.input_check import Place
from ...core.module.rules import Rule
from ...core.module.typed_options import Names, NotNegative, Option, PathText, Segment
from ...core.secret import clean_url

_LONGEST = 255
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/]\S*")
_LISTS = ("labels", "fix_versions", "components")
_MANAGED = (
    "summary",
    "description",
    "fields",
    *_LISTS,
    "add",
    "assignee",
    "priority",
    "parent",
    "status",
    "remove",
    "comment",
    "comment_find",
    "watchers",
    "links",
    "remote_links",
    "attachments",
)

JsonValues = Annotated[dict[str, Any], Option(values="json")]


@dataclass(frozen=True)
class IssueAdditions:
    """Entries to add to the lists of an issue."""

    option_rules: ClassVar[tuple[Rule, ...]] = (Rule(requires=_LISTS),)

    labels: list[str] | None = None
    fix_versions: Names | None = None
    components: Names | None = None


@dataclass(frozen=True)
class IssueRemovals:
    """Entries to remove from the lists of an issue."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule(requires=(*_LISTS, "affects_versions", "watchers")),
    )

    labels: list[str] | None = None
    fix_versions: Names | None = None
    affects_versions: Names | None = None
    components: Names | None = None
    watchers: Names | None = None


@dataclass(frozen=True)
class IssueLink:
    """A link to another issue. `type`: name of the link type, or a phrase such as `blocks`."""

    type: str
    issue: Segment


@dataclass(frozen=True)
class RemoteLink:
    """A link to a page of another server."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", forbids=("title", "summary", "relationship")),
    )

    url: str
    global_id: str | None = None
    title: str | None = None
    summary: Annotated[str | None, Option(empty=True)] = None
    relationship: Annotated[str | None, Option(empty=True)] = None
    state: Literal["present", "absent"] = "present"

    @property
    def identity(self) -> str:
        """Return the global id, by which the server knows the link."""
        return self.url if self.global_id is None else self.global_id

    def check(self) -> None:
        """Raise `invalid` for an address that the server would reject [tracker-44]."""
        if _ADDRESS.fullmatch(self.url) is None:
            raise invalid("url must be an absolute address, such as https://example.com/page")
        if clean_url(self.url) != self.url:
            raise invalid("url contains a secret, which all readers of the issue would see")
        if len(self.identity) > _LONGEST:
            raise invalid(f"global_id (by default the url) has more than {_LONGEST} characters")

    def wanted(self, *, is_new: bool) -> dict[str, str]:
        """Return the managed values. A new link needs a title."""
        title = self.url if is_new and self.title is None else self.title
        values = {"title": title, "summary": self.summary, "relationship": self.relationship}
        given = {name: value for name, value in values.items() if value is not None}
        return {"url": self.url, **given}


@dataclass(frozen=True)
class CommentVisibility:
    """The role or group that can see a comment."""

    type: Literal["role", "group"]
    value: str


@dataclass(frozen=True)
class IssueOptions:
    """Options for the managed parts of an issue, and for a new issue."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("comment_state=absent", requires=("comment", "comment_find")),
        Rule("comment_find", requires=("comment", "comment_state=absent")),
        Rule("comment_visibility", "comment_internal", requires="comment"),
        Rule("comment_state=absent", forbids=("comment_visibility", "comment_internal")),
    )

    match: str | None = None
    project: Segment | None = None
    type: str | None = None
    summary: str | None = None
    description: Annotated[str | None, Option(empty=True, whole=True)] = None
    text_format: Literal["plain", "markdown"] = "plain"
    fields: JsonValues | None = None
    labels: list[str] | None = None
    fix_versions: Names | None = None
    components: Names | None = None
    add: IssueAdditions | None = None
    remove: IssueRemovals | None = None
    assignee: Annotated[str | None, Option(empty=True)] = None
    priority: str | None = None
    parent: Segment | None = None
    status: str | None = None
    transition: str | None = None
    transition_fields: JsonValues | None = None
    comment: Annotated[str | None, Option(whole=True)] = None
    comment_find: str | None = None
    comment_state: Literal["present", "absent"] = "present"
    comment_visibility: CommentVisibility | None = None
    comment_internal: bool | None = None
    watchers: Names | None = None
    links: list[IssueLink] | None = None
    remote_links: list[RemoteLink] | None = None
    attachments: list[PathText] | None = None
    replace: bool = True
    compare_max: NotNegative = 64 * 1024 * 1024

    def check(self) -> None:
        """Raise `invalid` for contradictory options."""
        if all(getattr(self, name) is None for name in _MANAGED):
            raise invalid(f"nothing to change: set at least one of {', '.join(_MANAGED)}")
        if self.description and not self.description.strip():
            raise Place("description").blank()
        if self.summary is not None:
            require_summary("summary", self.summary)
        require_labels("labels", self.labels or [])
        require_labels("add.labels", (self.add.labels if self.add else None) or [])
        for option in ("add", "remove"):
            for name in _LISTS:
                if getattr(getattr(self, option), name, None) and getattr(self, name) is not None:
                    raise invalid(
                        f"{option}.{name} cannot be combined with {name}, which sets the complete"
                        " list"
                    )
        self._require_disjoint()
        # two entries about the same remote link
        known: dict[str, int] = {}
        for number, link in enumerate(self.remote_links or []):
            first = known.setdefault(link.identity, number)
            if first != number:
                raise invalid(
                    f"remote_links[{number}] is the same link as remote_links[{first}]: list each"
                    " link once"
                )
        if self.comment_state == "absent" and None not in (self.comment, self.comment_find):
            raise invalid("comment_find selects the comment to delete: omit comment")

    def _require_disjoint(self) -> None:
        """Raise `invalid` for a value that is both added and removed."""
        for name, source, option in (
            *((name, self.add, f"add.{name}") for name in _LISTS),
            ("watchers", self, "watchers"),
        ):
            key = str if name == "labels" else str.casefold  # labels are case-sensitive
            removed = {key(value) for value in getattr(self.remove, name, None) or ()}
            for value in getattr(source, name, None) or ():
                if key(value) in removed:
                    raise invalid(
                        f"'{value}' is in both {option} and remove.{name}: remove it from one of"
                        " them"
                    )


def require_summary(place: str, summary: Any) -> None:
    """Raise `invalid` for a summary that the server would reject [tracker-22].

    :param place: the option, for the message
    """
    text = str(summary or "").strip()
    if not text or len(text.splitlines()) > 1 or len(text) > _LONGEST:
        raise invalid(f"{place} must be one line of at most {_LONGEST} characters")


def require_labels(place: str, labels: Any) -> None:
    """Raise `invalid` for a label that the server would reject [tracker-22].

    :param place: the option, for the message
    """
    for number, label in enumerate(labels if isinstance(labels, list) else []):
        text = str(label)
        if text.split() != [text] or len(text) > _LONGEST:
            raise invalid(
                f"{place}[{number}] is '{label}', but a label must not contain blanks, and must"
                f" have at most {_LONGEST} characters"
            )
