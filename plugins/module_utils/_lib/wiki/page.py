# SPDX-License-Identifier: GPL-3.0-or-later
"""A page, parsed from the server's JSON [W2.3, wiki-1]."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..core.errors import ToolchainError, invalid
from ..core.http.paged_list import is_whole
from ..core.json_text import member
from ..core.module.authorship import Author, author

_LONGEST = 255
_CONTROL = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")
#: Characters at which servers reject or truncate a label.
_NO_LABEL = re.compile(r"[()!#&*,.:;<>?@\[\]^]")


def composed(title: str) -> str:
    """Return the stripped title in NFC, because file names may be in NFD."""
    return unicodedata.normalize("NFC", title.strip())


def same_title(one: str, other: str) -> bool:
    """Return whether two titles are equal for the server, which ignores case."""
    return composed(one).lower() == composed(other).lower()


def decomposed(title: str) -> str:
    return unicodedata.normalize("NFD", title.strip())


def wrong_title(title: str) -> str | None:
    """Return the reason why a title is invalid, or None."""
    if _CONTROL.search(title):
        return "the title contains a line break, a tab or another control character"
    if len(title) > _LONGEST:
        return f"the title has {len(title)} characters, but the wiki allows at most {_LONGEST}"
    return None if title.strip() else "the title is empty"


def wrong_label(label: str) -> str | None:
    """Return the reason why a label is invalid, or None."""
    if label.split() != [label] or _CONTROL.search(label):
        return f"'{label}' is not a valid label: it is empty or contains a blank"
    if (sign := _NO_LABEL.search(label)) is not None:
        return (
            f"'{label}' is not a valid label: it contains '{sign[0]}', but a label cannot contain"
            " ( ) ! # & * , . : ; < > ? @ [ ] ^"
        )
    return None if len(label) <= _LONGEST else f"a label has more than {_LONGEST} characters"


def require_labels(labels: Sequence[str] | None) -> None:
    """Raise `invalid` for an invalid entry of the option `labels`."""
    for number, label in enumerate(labels or ()):
        wrong = wrong_label(label)
        if wrong is not None:
            raise invalid(f"labels[{number}]: {wrong}")


@dataclass(frozen=True)
class Page:
    """A page. Fields that the server does not return are None.

    `parent`: id of the parent page; None is the top of the space if `shows_parent`, else unknown.
    `shows_parent`: whether the server returns the parent.
    `labels`: also None if the server's list is incomplete.
    `home`: whether the page is the home page of its space.
    `content`: JSON object of the server.
    """

    id: str
    title: str
    space: str | None
    version: int
    url: str
    status: str = "current"
    type: str = "page"
    body: str | None = None
    parent: str | None = None
    shows_parent: bool = False
    labels: tuple[str, ...] | None = None
    home: bool | None = None
    has_children: bool | None = None
    content: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def ancestors(self) -> list[str]:
        """Return the ids of the ancestors, as far as the server returns them."""
        pages = self.content.get("ancestors")
        return [str(member(page, "id")) for page in pages] if isinstance(pages, list) else []

    def shown(self) -> dict[str, Any]:
        """Return the page as the return value `page`."""
        names = ("id", "title", "space", "version", "url")
        return {name: getattr(self, name) for name in names}


def page_of(content: Any, space: str | None, base: str) -> Page | None:
    """Parse a page from the server's JSON object. Return None without id, title or version.

    :param space: space key, for servers that do not return it
    :param base: URL of the wiki
    """
    version = number(member(content, "version", "number"))
    page_id, title = member(content, "id"), member(content, "title")
    if page_id is None or not isinstance(title, str) or version is None:
        return None
    ancestors = member(content, "ancestors")
    shows_parent = isinstance(ancestors, list)
    parent = member(ancestors[-1], "id") if shows_parent and ancestors else None
    body = member(content, "body", "storage", "value")
    children = member(content, "children", "page")
    below = member(children, "results")
    return Page(
        id=str(page_id),
        title=title,
        space=member(content, "space", "key") or space,
        version=version,
        url=_url(str(page_id), content, base),
        status=member(content, "status") or "current",
        type=member(content, "type") or "page",
        body=body if isinstance(body, str) else None,
        parent=None if parent is None else str(parent),
        shows_parent=shows_parent,
        labels=_labels(member(content, "metadata", "labels")),
        home=_is_home(content),
        has_children=bool(below) if below or whole_results(children) is not None else None,
        content=content,
    )


def _url(page_id: str, content: Any, site: str) -> str:
    base, page = member(content, "_links", "base"), member(content, "_links", "webui")
    if isinstance(page, str):
        return f"{(base if isinstance(base, str) and base else site).rstrip('/')}{page}"
    return f"{site}/pages/viewpage.action?pageId={page_id}"


def whole_results(listing: Any, *needed: str) -> list[Any] | None:
    """Return the entries of a list inside another object.

    Returns None if some may be missing, or lack one of the needed members.
    """
    results = member(listing, "results")
    if not isinstance(results, list) or not is_whole(listing, results):
        return None
    known = all(member(entry, name) is not None for entry in results for name in needed)
    return results if known else None


def author_of(page: Page | None) -> Author:
    """Return who saved the present version of a page."""
    version = None if page is None else member(page.content, "version")
    by = member(version, "by")
    accounts = [member(by, name) for name in ("username", "displayName", "accountId")]
    saved = member(version, "when") or member(version, "createdAt")
    return author([*accounts, member(version, "authorId")], saved)


def number(value: Any) -> int | None:
    """Parse a non-negative integer that the server may send as a string. Return None for others."""
    return int(value) if str(value).isdecimal() else None


def label_names(entries: Iterable[Any]) -> tuple[str, ...]:
    """Return the sorted global labels; personal and team labels have another prefix."""
    found = [entry["name"] for entry in entries if entry.get("prefix") in (None, "global")]
    return tuple(sorted(map(str, found)))


def _labels(listing: Any) -> tuple[str, ...] | None:
    """Return the global labels, or None if the list is missing or incomplete."""
    results = whole_results(listing, "name")
    return None if results is None else label_names(results)


def _is_home(content: Any) -> bool | None:
    home = member(content, "space", "homepage", "id")
    return None if home is None else str(home) == str(member(content, "id"))


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
