# SPDX-License-Identifier: GPL-3.0-or-later
"""What hangs on a page and has no version of the page: its labels, its attachments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ...core.plan import Change
from ..client import Page


class Part(Protocol):
    """One kind of thing that hangs on a page, as it is wanted."""

    def plan(self, page: Page | None) -> Change | None:
        """Read what hangs on a page (C(None): it is made first) and compare. Sends reads only."""

    def text(self, *, after: bool) -> str:
        """What a diff shows: whole lines, before or after the task. Known once there is a plan."""

    def result(self) -> Mapping[str, Any]:
        """The return values, if what is planned is done."""

    def apply(self, page: Page) -> None:
        """Do what is planned."""
