# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `wiki_page_info` and lookup `wiki_page`: a page with its body [C5.1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.errors import invalid, not_found, protocol
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.plan import Plan, ReadOnly, unchanged
from ..client import WikiClient
from ..page import Page
from ..service import SERVICE
from .desired_page import PageAddress


@dataclass(frozen=True)
class WikiPageInfoOptions(PageAddress):
    """Options of `wiki_page_info`."""

    constraints: ClassVar[dict[str, Any]] = {"required_one_of": [["page_id", "space"]]}


class WikiPageInfoOperation(ReadOnly):
    """Read a page with its body. Raises `invalid` if the options name no page."""

    descriptor: ClassVar = Descriptor(
        SERVICE, dict.fromkeys(("read", "find", "tree"), reads("view"))
    )

    def __init__(self, task: Task, options: WikiPageInfoOptions) -> None:
        options.require()
        if options.page_id is not None and options.title is not None:
            raise invalid("title cannot be combined with page_id: leave out title")
        self._client, self._options = WikiClient(task), options

    def plan(self) -> Plan:
        return unchanged({"page": self.page()})

    def page(self) -> dict[str, Any]:
        """Return the page with its body, as the return value `page`.

        Raises `not_found` if the page is missing or not visible, or the server cannot find pages by
        title. Raises `protocol` if the server does not send the body.
        """
        found, name = self._read(), self._options.named
        if found is None or found.status != "current":
            raise not_found(f"{name} does not exist, or is not visible")
        if found.body is None:
            raise protocol(f"reading {name}: the server does not send the body")
        return {**found.shown(), "parent_id": found.parent, "body": found.body}

    def _read(self) -> Page | None:
        options, name = self._options, self._options.named
        if options.page_id is not None:
            return self._client.require(f"reading {name}", options.page_id, options.space)
        return self._client.find(f"searching for {name}", *options.space_and_title())
