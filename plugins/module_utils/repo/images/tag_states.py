# SPDX-License-Identifier: GPL-3.0-or-later
"""The tags of a promotion: what both sides hold of each, and what is left to do (no requests)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .registry import PRESENT


@dataclass(frozen=True)
class ImageName:
    """An image in a repository."""

    repo: str
    name: str

    def __str__(self) -> str:
        return f"{self.repo}/{self.name}"


@dataclass(frozen=True)
class TagState:
    """A tag, its name in the target, and the digests on both sides.

    A digest is C(PRESENT) where only the tag's name can be read, C(None) where there is no such
    tag. The digest of an index (several architectures) stands for all that it lists.
    """

    tag: str
    target_tag: str
    source: str | None
    target: str | None

    @property
    def is_same(self) -> bool:
        """Whether the target holds what the source holds, as far as the server tells."""
        if self.source is None or self.target is None:
            return False
        return self.source == self.target or PRESENT in (self.source, self.target)

    @property
    def is_named_only(self) -> bool:
        return PRESENT in (self.source, self.target)

    def is_done(self, *, copy: bool) -> bool:
        """Whether nothing is left to do: moved is what is gone here and is there, copied what is
        the same there. Where names are all that the server tells, a copy needs no source.
        """
        if not copy:
            return self.source is None and self.target is not None
        return self.is_same or (self.source is None and self.target == PRESENT)

    @property
    def overwritten(self) -> str | None:
        """The digest that the target loses, as far as the server tells."""
        if self.target is None or (self.is_same and not self.is_named_only):
            return None
        return self.target

    @property
    def promoted(self) -> TagState:
        """The same tag after its promotion."""
        return replace(self, target=self.source)

    def shown(self, action: str) -> dict[str, Any]:
        """For the return value C(tags)."""
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
    """States from the tags of both sides; C(names): tag to its name in the target."""
    return [
        TagState(tag, target_tag, source.get(tag), target.get(target_tag))
        for tag, target_tag in names.items()
    ]
