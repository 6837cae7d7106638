# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the tags of a promotion in source and target, without requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .registry import PRESENT


@dataclass(frozen=True)
class TagState:
    """A tag, its name in the target, and its digests in source and target.

    A digest is `PRESENT` if the server does not return it, `None` if the tag does not exist. The
    digest of a multi-platform image is that of its manifest list.

    :param copy: whether the tag is copied; otherwise it is moved
    :param owners: tags of the images to which the tag is attached
    :param is_extended: whether the target has all content of an attached tag, and more, such as
        another signature, which a promotion would remove
    """

    tag: str
    target_tag: str
    source: str | None
    target: str | None
    copy: bool = True
    owners: tuple[str, ...] = ()
    is_extended: bool = False

    @property
    def is_same(self) -> bool:
        """Return whether source and target are equal; unknown digests count as equal."""
        if self.source is None or self.target is None:
            return False
        return self.source == self.target or PRESENT in (self.source, self.target)

    @property
    def is_named_only(self) -> bool:
        return PRESENT in (self.source, self.target)

    @property
    def is_done(self) -> bool:
        """Return whether the tag has already been promoted.

        A move is done if the tag is only in the target. A copy is done if both digests are equal,
        or if the source is gone and the digest of the target is unknown.
        """
        if self.is_extended:
            return True
        if not self.copy:
            return self.source is None and self.target is not None
        return self.is_same or (self.source is None and self.target == PRESENT)

    @property
    def overwritten(self) -> str | None:
        """Return the digest of the target's tag that a promotion replaces.

        Returns `None` if the tag does not exist, or certainly has the digest of the source.
        """
        if self.target is None or (self.is_same and not self.is_named_only):
            return None
        return self.target

    @property
    def promoted(self) -> TagState:
        """Return the state that the tag has after its promotion."""
        return replace(self, target=self.source)

    def shown(self, action: str) -> dict[str, Any]:
        """Return the entry of the return value `tags`."""
        return {
            "tag": self.tag,
            "target_tag": self.target_tag,
            "source_digest": _known_digest(self.source),
            "target_digest": _known_digest(self.target),
            "action": action,
        }


def _known_digest(digest: str | None) -> str | None:
    return None if digest == PRESENT else digest


def states_of(
    names: Mapping[str, str], source: Mapping[str, str], target: Mapping[str, str], *, copy: bool
) -> list[TagState]:
    """Return states from the tags of both sides; `names` maps tags to their names in the target."""
    return [
        TagState(tag, target_tag, source.get(tag), target.get(target_tag), copy)
        for tag, target_tag in names.items()
    ]
