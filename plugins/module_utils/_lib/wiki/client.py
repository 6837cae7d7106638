# SPDX-License-Identifier: GPL-3.0-or-later
"""Client for pages with their labels, properties and attachments [W2.3, W4.3].

It uses the version of the interface that the server supports [wiki-30].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ..core import errors
from ..core.address import path
from ..core.http.writes import Verify
from ..core.module.task import Task
from . import predicted_pages
from .exchange import WikiExchange, content_route
from .page import Page, composed, decomposed
from .version1 import PagesOfVersion1
from .version2 import PagesOfVersion2

__all__ = ["WikiClient", "content_route"]

Found = TypeVar("Found")

#: Server fact [wiki-1]: a response has body and ancestors only if they are expanded.
_EXPAND = "body.storage,version,space,ancestors"
_LABELS = "metadata.labels"
#: Members that show whether a page may be removed: children, and the space's home page [wiki-11].
_OBSTACLES = "children.page,space.homepage"
#: The operations that the account may perform on the page [wiki-18].
_RIGHTS = "operations"


class WikiClient(WikiExchange):
    """Read and write pages with their labels, properties and attachments.

    :param labels: expand the labels
    :param obstacles: expand children and home page for `removal_obstacle()`
    :param rights: in check mode, expand the operations that the account may perform
    :param more: names of further members to expand
    :param connections: maximum number of connections
    """

    def __init__(
        self,
        task: Task,
        *,
        labels: bool = False,
        obstacles: bool = False,
        rights: bool = False,
        more: Sequence[str] = (),
        connections: int = 10,
    ) -> None:
        self.predictions = task.predictions
        optional = {_LABELS: labels, _OBSTACLES: obstacles, _RIGHTS: rights and task.read_only}
        chosen = [name for name, wanted in optional.items() if wanted]
        super().__init__(task, connections)
        self._version1 = PagesOfVersion1(self, ",".join([_EXPAND, *chosen, *more]))
        self._version2 = PagesOfVersion2(self, [*chosen, *more])

    @property
    def _pages(self) -> PagesOfVersion1 | PagesOfVersion2:
        return self._version2 if self.version == 2 else self._version1

    def _read(self, read: Callable[[PagesOfVersion1 | PagesOfVersion2], Found]) -> Found:
        """Call `read`. Call it again with version 2 if the server has removed version 1."""
        try:
            return read(self._pages)
        except errors.ToolchainError as error:
            if not self.switches(error):
                raise
        return read(self._pages)

    def get(self, purpose: str, page_id: str, space: str | None) -> Page | None:
        """Return the page with an id, or None if it is missing or not visible.

        :param space: space key of the page, for servers that do not return it
        """
        return self._read(lambda pages: pages.get(purpose, page_id, space))

    def find_by_id(self, purpose: str, page_id: str, space: str | None) -> Page | None:
        """Like `get()`, but raise `not_found` if there is no wiki at this address."""
        found = self._read(lambda pages: pages.find_by_id(purpose, page_id, space))
        return None if found is None else predicted_pages.renamed(self.predictions, found)

    def require(self, purpose: str, page_id: str, space: str | None) -> Page:
        """Return the page with an id, which may be a predicted page.

        Raises `not_found` if it is missing or not visible.
        """
        predicted = predicted_pages.by_id(self.predictions, page_id)
        if predicted is not None:
            return predicted
        found = self._read(lambda pages: pages.require(purpose, page_id, space))
        return predicted_pages.renamed(self.predictions, found)

    def find(self, purpose: str, space: str, title: str) -> Page | None:
        """Return the page of a space with a title, or None. In the cloud it may be archived.

        The server trims titles and ignores case. Stored titles may be in NFC or NFD, so both are
        tried. Raises `not_found` if the server cannot find pages by title.
        """
        page_id = predicted_pages.id_of(self.predictions, space, title)
        if page_id is not None:
            return self.find_by_id(purpose, page_id, space)
        for spelling in dict.fromkeys((composed(title), decomposed(title))):
            found = self._find(purpose, space, spelling)
            if found is not None:
                now = predicted_pages.renamed(self.predictions, found)
                return found if now.title == found.title else None
        return None

    def _find(self, purpose: str, space: str, title: str) -> Page | None:
        return self._read(lambda pages: pages.find(purpose, space, title))

    def require_space(self, key: str) -> None:
        """Raise `not_found` if a space is missing or not visible.

        Does nothing if the server has no route that reads spaces.
        """
        if self.predictions.get("space", key.lower()) is None:
            self._read(lambda pages: pages.require_space(key))

    def require_parent(self, page_id: str, space: str | None, child: str = "") -> None:
        """Check the parent of a page, which may be a folder in the cloud.

        Raises `not_found` if it is missing or not visible, `conflict` if it is in another space,
        `rejected` if it is the page `child` or a descendant of that page.
        """
        found = predicted_pages.by_id(self.predictions, page_id)
        if found is None:
            purpose = f"reading the parent page {page_id}"
            found = self._read(lambda pages: pages.parent(purpose, page_id))
        if found is None or found.status != "current":
            message = f"the parent page {page_id} does not exist, or the account cannot see it"
            raise errors.ToolchainError("not_found", f"parent_id: {message}")
        if space and found.space and space.lower() != found.space.lower():
            message = f"the page {page_id} is in the space {found.space}, not in {space}"
            raise errors.ToolchainError("conflict", f"parent_id: {message}")
        if child and child in (found.id, *self.ancestors(found)):
            message = f"the page {page_id} cannot be the parent: it is the page itself, or below it"
            raise errors.ToolchainError("rejected", f"parent_id: {message}")

    def ancestors(self, page: Page) -> list[str]:
        """Return the ids of the ancestors of a page."""
        return self._read(lambda pages: pages.ancestors(page))

    def removal_obstacle(self, page: Page) -> str | None:
        """Return why a page must not be removed, or None. Home pages and parents must stay."""
        if self._read(lambda pages: pages.is_home(page)):
            return f"it is the home page of the space {page.space}"
        below = self._read(lambda pages: pages.has_children(page))
        gone = predicted_pages.removed_below(self.predictions, page)
        if below and gone:
            below = not gone.issuperset(self._read(lambda pages: pages.children_ids(page)))
        return "it has child pages" if below else None

    def home(self, key: str) -> str:
        """Return the id of the home page of a space. Raises `not_found` if there is none."""
        return self._read(lambda pages: pages.home(key))

    def space(self, key: str) -> dict[str, Any] | None:
        """Return `id`, `name`, `description` and `home_page` (its title) of a space.

        Returns None if the space is missing. Raises `not_found` if there is no wiki at this
        address.
        """
        return self._read(lambda pages: pages.space(key))

    def content_of(self, purpose: str, key: str, kind: str, most: int) -> list[Any]:
        """Return the pages or blog posts of a space as JSON objects, without bodies.

        :param kind: `page` or `blogpost`
        :param most: after more objects than this, others may be missing
        """
        return self._read(lambda pages: pages.content_of(purpose, key, kind, most))

    def space_permissions(self, purpose: str, key: str) -> list[Any]:
        """Return the permissions of a space as JSON objects. For version 2 only."""
        return self._version2.space_permissions(purpose, key)

    def possibly_renamed(self, purpose: str, key: str, expand: str) -> list[Page]:
        """Return pages of a space that may have been renamed, without bodies.

        In version 2 these are pages among those that were changed last; version 1 lists all pages.

        :param expand: further member to expand, which version 2 does not show in lists
        """
        return self._read(lambda pages: pages.possibly_renamed(purpose, key, expand))

    def groups_of(self, account: Mapping[str, str]) -> frozenset[str]:
        """Return the names of the groups of an account. Empty if it may not list them.

        :param account: the parameter that identifies the account
        """
        purpose = "reading the groups of the account"
        try:
            listed = self.listing(purpose, "rest/api/user/memberof", account, "name")
        except errors.ToolchainError as error:
            if error.status not in (403, 404):
                raise
            return frozenset()
        return frozenset(str(group["name"]) for group in listed)

    def require_named(self, kind: str, name: str, identity: str = "username") -> None:
        """Raise `not_found` for a user or group that the wiki does not have [wiki-18].

        Does nothing if the server does not tell, for example because the account may not ask.

        :param identity: name of the parameter that identifies a user
        """
        route, query = "rest/api/user", {identity: name}
        if kind == "group":
            if not {"", ".", ".."}.isdisjoint(name.split("/")):
                return  # no address can contain this name
            route, query = f"rest/api/group/{path(name)}", {}
        purpose = f"searching for the {kind} '{name}'"
        try:
            response = self.ask(purpose, route, query, (200, 400, 403, 404))
        except errors.ToolchainError as error:
            if error.kind != "permission":
                raise
            return  # the token has no scope for accounts
        if response.status == 404:
            raise response.error("not_found", f"there is no {kind} '{name}'")

    def children(self, purpose: str, page_id: str, space: str | None) -> list[Page]:
        """Return the children of a page, without their bodies. For version 1 only."""
        return self._version1.children(purpose, page_id, space)

    def descendants(self, purpose: str, page_id: str) -> list[tuple[str, str]] | None:
        """Return pairs of page id and parent id for all pages below a page, parents first.

        Returns None in version 1, which only lists the children of a page.
        """
        return self._version2.descendants(purpose, page_id) if self.version == 2 else None

    def create(
        self, purpose: str, content: Mapping[str, Any], space: str, verify: Verify
    ) -> Page | None:
        """Create a page. Return it, or None if the response does not contain it."""
        return self._pages.create(purpose, content, space, verify)

    def replace(
        self, purpose: str, page: Page, content: Mapping[str, Any], verify: Verify
    ) -> Page | None:
        """Save a page. Return it, or None if the response does not contain it."""
        return self._pages.replace(purpose, page, content, verify)

    @property
    def creates_properties(self) -> bool:
        """Return whether one request creates a page together with its properties [wiki-30]."""
        return self.version == 1

    def trash(self, purpose: str, page_id: str, verify: Verify) -> None:
        self._pages.trash(purpose, page_id, verify)

    # -- labels, properties, attachments -------------------------------------------------------

    def labels(self, purpose: str, page_id: str) -> list[Any]:
        return self._read(lambda pages: pages.labels(purpose, page_id))

    def attachments(self, purpose: str, page_id: str) -> list[Any]:
        return self._read(lambda pages: pages.attachments(purpose, page_id))

    def read_property(self, purpose: str, page_id: str, key: str) -> Any:
        """Return a content property of a page as JSON, or None if it does not exist."""
        return self._read(lambda pages: pages.read_property(purpose, page_id, key))

    def write_property(
        self, purpose: str, page_id: str, value: Mapping[str, Any], known: Any, verify: Verify
    ) -> None:
        """Create a content property, or update it.

        :param value: the property with `key`, `value` and, for an update, the next `version`
        :param known: the current property as JSON, or None to create it
        """
        self._pages.write_property(purpose, page_id, value, known, verify)
