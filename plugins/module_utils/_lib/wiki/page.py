# SPDX-License-Identifier: GPL-3.0-or-later
"""A page, parsed from the server's JSON [W2.3, wiki-1], or predicted in check mode."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from ..core.errors import ToolchainError, invalid
from ..core.http.paged_list import is_whole
from ..core.json_text import member
from ..core.module.authorship import Author, author
from ..core.module.predictions import Predictions

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

    def content_property(self, key: str) -> Any:
        """Return a content property as JSON, or None if the page has none or none was expanded."""
        return member(self.content, "metadata", "properties", key)

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
    labels = whole_results(member(content, "metadata", "labels"), "name")
    home = member(content, "space", "homepage", "id")
    url, site = member(content, "_links", "webui"), member(content, "_links", "base")
    site = (site if isinstance(site, str) and site else base).rstrip("/")
    return Page(
        id=str(page_id),
        title=title,
        space=member(content, "space", "key") or space,
        version=version,
        url=f"{site}{url}"
        if isinstance(url, str)
        else f"{base}/pages/viewpage.action?pageId={page_id}",
        status=member(content, "status") or "current",
        type=member(content, "type") or "page",
        body=body if isinstance(body, str) else None,
        parent=None if parent is None else str(parent),
        shows_parent=shows_parent,
        labels=None if labels is None else label_names(labels),
        home=None if home is None else str(home) == str(page_id),
        has_children=bool(below) if below or whole_results(children) is not None else None,
        content=content,
    )


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


# -- predicted pages -------------------------------------------------------------------------------

#: Prefix of the ids of new pages, which no wiki uses.
_PREDICTED = "predicted-"


def predicted_id(space: str, title: str) -> str:
    """Return the predicted id of a page that does not exist yet."""
    return _PREDICTED + hashlib.sha256(address_of(space, title).encode()).hexdigest()[:16]


def is_predicted(page_id: str) -> bool:
    return page_id.startswith(_PREDICTED)


def address_of(space: str, title: str) -> str:
    """Return a key that is the same for equal titles of a space."""
    return f"{space}/{composed(title)}".lower()


class PredictedPages:
    """Pages that earlier tasks in check mode would create, rename or remove.

    Later tasks can use the predicted ids as `parent_id` and `page_id`.
    """

    def __init__(self, predictions: Predictions) -> None:
        self._predictions = predictions

    def new_id(self, space: str, title: str) -> str:
        """Return the predicted id of a new page, or "" outside check mode."""
        return predicted_id(space, title) if self._predictions.active else ""

    def add(self, page: Page) -> None:
        """Record a new page with its predicted id, or a page with its new title."""
        self._predictions.add("page", page.id, value=asdict(page))
        self._predictions.add("title", address_of(str(page.space), page.title), value=page.id)

    def remove(self, page: Page) -> None:
        """Record a page that would be removed."""
        self._predictions.add("removed child", str(page.parent), page.id)
        self._predictions.add("removed page", str(page.space).lower(), page.id)

    def removed_below(self, page: Page) -> set[str]:
        """Return the ids of the children of a page that earlier tasks would remove."""
        return set(self._predictions.all("removed child", page.id))

    def removed_in(self, space: str) -> set[str]:
        """Return the ids of the pages of a space that earlier tasks would remove."""
        return set(self._predictions.all("removed page", space.lower()))

    def has_space(self, key: str) -> bool:
        """Return whether an earlier task would create a space."""
        return self._predictions.get("space", key.lower()) is not None

    def by_id(self, page_id: str) -> Page | None:
        """Return the new page with a predicted id, or None."""
        parts = self._predictions.get("page", page_id) if is_predicted(page_id) else None
        return None if parts is None else Page(**parts)

    def by_title(self, space: str, title: str) -> Page | None:
        """Return the new page with a title, or None."""
        page_id = self._predictions.get("title", address_of(space, title))
        return None if page_id is None else self.by_id(page_id)

    def renamed_to(self, space: str, title: str) -> str | None:
        """Return the id of an existing page that would get this title, or None."""
        found: str | None = self._predictions.get("title", address_of(space, title))
        return None if found is None or is_predicted(found) else found

    def renamed(self, page: Page) -> Page:
        """Return an existing page with the title that an earlier task would give it."""
        parts = self._predictions.get("page", page.id)
        return page if parts is None else replace(page, title=parts["title"])
