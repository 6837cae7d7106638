# SPDX-License-Identifier: GPL-3.0-or-later
"""State of the tags of a promotion on both sides, and the remaining work (no requests)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .registry import PRESENT


@dataclass(frozen=True)
class TagState:
    """A tag, its name in the target, and the digests on both sides.

    A digest is `PRESENT` if only the tag's name can be read, `None` if the tag does not exist. The
    digest of an index (several architectures) covers all its manifests.
    """

    tag: str
    target_tag: str
    source: str | None
    target: str | None

    @property
    def is_same(self) -> bool:
        """Return whether the target equals the source, as far as the server shows it."""
        if self.source is None or self.target is None:
            return False
        return self.source == self.target or PRESENT in (self.source, self.target)

    @property
    def is_named_only(self) -> bool:
        return PRESENT in (self.source, self.target)

    def is_done(self, *, copy: bool) -> bool:
        """Return whether nothing remains to be done: a move needs the target only, a copy needs
        equal digests. If the server shows names only, a copy needs no source.
        """
        if not copy:
            return self.source is None and self.target is not None
        return self.is_same or (self.source is None and self.target == PRESENT)

    @property
    def overwritten(self) -> str | None:
        """Return the digest that the target loses, if it is known."""
        if self.target is None or (self.is_same and not self.is_named_only):
            return None
        return self.target

    @property
    def promoted(self) -> TagState:
        """Return the state of the tag after its promotion."""
        return replace(self, target=self.source)

    def shown(self, action: str) -> dict[str, Any]:
        """Return the entry of the return value `tags`."""
        return {
            "tag": self.tag,
            "target_tag": self.target_tag,
            "source_digest": _told(self.source),
            "target_digest": _told(self.target),
            "action": action,
        }


def _told(digest: str | None) -> str | None:
    return None if digest == PRESENT else digest


def states_of(
    names: Mapping[str, str], source: Mapping[str, str], target: Mapping[str, str]
) -> list[TagState]:
    """Return states from the tags of both sides; `names` maps tags to their names in the target."""
    return [
        TagState(tag, target_tag, source.get(tag), target.get(target_tag))
        for tag, target_tag in names.items()
    ]
