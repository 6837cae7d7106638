# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of the wiki: pages, their labels, properties and attachments, in the version of the
interface that the server speaks [W2.3, W4.3, wiki-30].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, TypeVar

from ..core import errors
from ..core.http.download import Taken
from ..core.http.messages import Response
from ..core.http.writes import Verify
from ..core.module.task import Task
from . import predicted_pages
from .exchange import WikiExchange, content_route
from .names import composed, decomposed
from .page import Page
from .version1 import PagesOfVersion1
from .version2 import PagesOfVersion2

if TYPE_CHECKING:
    from ..core.http.bodies import Incoming

__all__ = ["WikiClient", "content_route"]

Found = TypeVar("Found")

#: Server fact [wiki-1]: a response has body and ancestors only if they are expanded.
_EXPAND = "body.storage,version,space,ancestors"
_LABELS = "metadata.labels"
#: Shows whether a page may be removed: its children, and the home page of its space [wiki-11].
_OBSTACLES = "children.page,space.homepage"
#: The operations that the account may do with the page [wiki-18].
_RIGHTS = "operations"


class WikiClient:
    """Read and write pages with their labels, properties and attachments.

    :param labels: expand the labels
    :param obstacles: expand children and home page, see `removal_obstacle`
    :param rights: in check mode, expand the operations that the account may do
    :param more: further members to expand
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
        self._exchange = WikiExchange(task, connections)
        self._version1 = PagesOfVersion1(self._exchange, ",".join([_EXPAND, *chosen, *more]))
        self._version2 = PagesOfVersion2(self._exchange, [*chosen, *more])

    @property
    def _pages(self) -> PagesOfVersion1 | PagesOfVersion2:
        return self._version2 if self._exchange.version == 2 else self._version1

    def _read(self, read: Callable[[PagesOfVersion1 | PagesOfVersion2], Found]) -> Found:
        """Read with the server's version of the interface, which the response may show."""
        try:
            return read(self._pages)
        except errors.ToolchainError as error:
            if not self._exchange.switches(error):
                raise
        return read(self._pages)

    def get(self, purpose: str, page_id: str, space: str | None) -> Page | None:
        """Return a page by id; None if it is missing or not visible.

        `space` here and below: the space key for servers that do not show it.
        """
        return self._read(lambda pages: pages.get(purpose, page_id, space))

    def find_by_id(self, purpose: str, page_id: str, space: str | None) -> Page | None:
        """Return a page like `get()`. Raise `not_found` if there is no wiki at this address."""
        return self._read(lambda pages: pages.find_by_id(purpose, page_id, space))

    def require(self, purpose: str, page_id: str, space: str | None) -> Page:
        """Return a page by id, also a predicted page. Raise `not_found` if it is missing or not
        visible.
        """
        predicted = predicted_pages.by_id(self.predictions, page_id)
        return predicted or self._read(lambda pages: pages.require(purpose, page_id, space))

    def find(self, purpose: str, space: str, title: str) -> Page | None:
        """Return the page with a title; the server trims titles and ignores case. In the cloud it
        may be in the archive.

        An umlaut in a stored title may be one code point or two, so both spellings are tried.
        Raises `not_found` if the server has no lookup by title.
        """
        for spelling in dict.fromkeys((composed(title), decomposed(title))):
            found = self._find(purpose, space, spelling)
            if found is not None:
                return found
        return None

    def _find(self, purpose: str, space: str, title: str) -> Page | None:
        return self._read(lambda pages: pages.find(purpose, space, title))

    def require_space(self, key: str) -> None:
        """Raise `not_found` if a space is missing or not visible.

        Servers without this read pass the check.
        """
        if self.predictions.get("space", key.lower()) is None:
            self._read(lambda pages: pages.require_space(key))

    def require_parent(self, page_id: str, space: str | None, child: str = "") -> None:
        """Check the parent of a page, which may be a folder in the cloud.

        Raises `not_found` if it is missing or not visible, `conflict` if it is in another space,
        `rejected` if it is the page `child` itself or below it.
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
        """Return a reason not to remove a page: it is a home page or has children; else None."""
        if self._read(lambda pages: pages.is_home(page)):
            return f"it is the home page of the space {page.space}"
        below = self._read(lambda pages: pages.has_children(page))
        return "it has child pages" if below else None

    def home(self, key: str) -> str:
        """Return the id of the home page of a space. Raises `not_found`."""
        return self._read(lambda pages: pages.home(key))

    def space(self, key: str) -> dict[str, Any] | None:
        """Return `id`, `name`, `description` and `home_page` (title) of a space; None if it is
        missing. Raises `not_found` if there is no wiki at this address.
        """
        return self._read(lambda pages: pages.space(key))

    def count_pages(self, key: str) -> int:
        """Return the number of pages of a space, at most 200."""
        return self._read(lambda pages: pages.count_pages(key))

    def children(self, purpose: str, page_id: str, space: str | None) -> list[Page]:
        """Return the children of a page, without their bodies; only where `descendants()` returns
        None.
        """
        return self._version1.children(purpose, page_id, space)

    def descendants(self, purpose: str, page_id: str) -> list[tuple[str, str]] | None:
        """Return the ids of all pages below a page, each with its parent; parents first. None: the
        server lists them level by level.
        """
        return self._version2.descendants(purpose, page_id) if self._exchange.version == 2 else None

    def create(
        self, purpose: str, content: Mapping[str, Any], space: str, verify: Verify
    ) -> Page | None:
        """Create a page; return it if the response contains it."""
        return self._pages.create(purpose, content, space, verify)

    def replace(
        self, purpose: str, page: Page, content: Mapping[str, Any], verify: Verify
    ) -> Page | None:
        """Save a page; return it if the response contains it."""
        return self._pages.replace(purpose, page, content, verify)

    @property
    def version(self) -> int:
        """Return the version of the interface [wiki-30]."""
        return self._exchange.version

    @property
    def creates_properties(self) -> bool:
        """Return whether a new page has its properties at once [wiki-30]."""
        return self.version == 1

    def trash(self, purpose: str, page_id: str, verify: Verify) -> None:
        self._pages.trash(purpose, page_id, verify)

    # -- labels, properties, attachments -------------------------------------------------------

    def labels(self, purpose: str, page_id: str) -> list[Any]:
        return self._read(lambda pages: pages.labels(purpose, page_id))

    def attachments(self, purpose: str, page_id: str) -> list[Any]:
        return self._read(lambda pages: pages.attachments(purpose, page_id))

    def read_property(self, purpose: str, page_id: str, key: str) -> Any:
        """Return a content property of a page; None if it does not exist."""
        return self._read(lambda pages: pages.read_property(purpose, page_id, key))

    def write_property(
        self, purpose: str, page_id: str, value: Mapping[str, Any], known: Any, verify: Verify
    ) -> None:
        """Create a content property, or save the next version of the `known` property."""
        self._pages.write_property(purpose, page_id, value, known, verify)

    def ask(
        self, purpose: str, route: str, query: Mapping[str, Any], expect: tuple[int, ...]
    ) -> Response:
        """Send a read."""
        return self._exchange.ask(purpose, route, query, expect)

    def send(
        self, purpose: str, method: str, route: str, expect: tuple[int, ...], **parts: Any
    ) -> Response:
        """Send a write; see `WikiExchange.send()`."""
        return self._exchange.send(purpose, method, route, expect, **parts)

    def download(self, purpose: str, route: str, take: Callable[[Incoming], Taken]) -> Taken:
        """Download a content; return the result of `take`."""
        return self._exchange.download(purpose, route, take)

    def download_into(self, purpose: str, route: str, file: IO[bytes], size: int) -> None:
        """Download `size` bytes into an open file. Raise `protocol` if the size differs."""
        self._exchange.download_into(purpose, route, file, size)
