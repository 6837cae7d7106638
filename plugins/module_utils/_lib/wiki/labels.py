# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of a page ([wiki-14]: `metadata.labels`, and the route `label`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.plan import Change
from ..core.verification import not_saved
from .client import WikiClient, content_route
from .page import Page, label_names, require_labels


class PageLabels:
    """Set the global labels of a page; personal and team labels stay.

    Raises `invalid` for an invalid label. The server stores labels in lower case.

    :param current: current labels of the page
    """

    noun = "labels"

    def __init__(
        self, client: WikiClient, wanted: Sequence[str], current: tuple[str, ...] = ()
    ) -> None:
        require_labels(wanted)
        self._client, self._current = client, current
        self._wanted = tuple(sorted({name.lower() for name in wanted}))

    def on(self, page: Page | None) -> PageLabels:
        current: tuple[str, ...] = ()
        if page is not None:
            current = self._read(page) if page.labels is None else page.labels
        return PageLabels(self._client, self._wanted, current)

    @property
    def change(self) -> Change | None:
        if self._current == self._wanted:
            return None
        return Change("labels", list(self._current), list(self._wanted))

    def text(self, *, after: bool) -> str:
        return f"labels: {', '.join(self._wanted if after else self._current) or '-'}\n"

    def result(self) -> Any:
        return list(self._wanted)

    def apply(self, page: Page) -> None:
        missing = [name for name in self._wanted if name not in self._current]
        surplus = [name for name in self._current if name not in self._wanted]
        if missing:
            purpose = (
                f"adding the labels {', '.join(missing)} to the page '{page.title}' ({page.id})"
            )
            added = [{"prefix": "global", "name": name} for name in missing]
            self._write(page, purpose, "POST", missing, True, json=added)
        for name in surplus:
            purpose = f"removing the label {name} from the page '{page.title}' ({page.id})"
            self._write(page, purpose, "DELETE", [name], False, query={"name": name})
        if missing or surplus:
            self._verify(page, missing, surplus)

    def _verify(self, page: Page, missing: Sequence[str], surplus: Sequence[str]) -> None:
        """Read the labels again. Raises `rejected` for those that were not added or removed.

        Labels that another user has changed meanwhile do not matter.
        """
        now = self._read(page)
        unsaved = [name for name in missing if name not in now]
        unsaved += [name for name in surplus if name in now]
        if unsaved:
            purpose = f"changing the labels of the page '{page.title}' ({page.id})"
            raise not_saved(purpose, [f"labels ({', '.join(unsaved)})"])

    def _read(self, page: Page) -> tuple[str, ...]:
        purpose = f"reading the labels of the page '{page.title}' ({page.id})"
        return label_names(self._client.labels(purpose, page.id))

    def _write(
        self, page: Page, purpose: str, method: str, names: list[str], there: bool, **parts: Any
    ) -> None:
        """Add or remove labels. After a lost response, check the labels of the page.

        :param names: labels to check
        :param there: whether the page must have these labels afterwards
        """

        def is_done() -> bool:
            now = self._read(page)
            return all((name in now) is there for name in names)

        route = content_route(page.id, "label")
        self._client.send(
            purpose, method, route, (200, 204), verify=is_done, repeatable=True, **parts
        )
