# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what is attached to the promoted tags of an image [repo-34]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ...core.concurrency import bounded, first_alone
from ..client import RepoClient
from ..image_names import ImageReference, subject_of
from . import registry
from .manifests import ManifestContent
from .tag_states import TagState, states_of

_NAMED = 3


class Attachments:
    """The attached tags of an image in the source of a promotion.

    :param copy: whether the promotion copies; otherwise it moves
    """

    def __init__(
        self, client: RepoClient, source: ImageReference, target: ImageReference, *, copy: bool
    ) -> None:
        self._client, self._source, self._target, self._copy = client, source, target, copy
        self._tags = registry.tags(client, source.repo, source.name) or []
        self._attached = [tag for tag in self._tags if subject_of(tag) is not None]
        self._contents: dict[str, tuple[str | None, ManifestContent]] = {}

    def states(self, promoted: Sequence[TagState], warn: Callable[[str], None]) -> list[TagState]:
        """Return the states of the tags that are attached to promoted tags.

        Warn of everything that cannot be promoted.
        """
        known = {state.tag for state in promoted}
        images = [state for state in promoted if subject_of(state.tag) is None]
        if not self._tags:
            return []
        if any(registry.PRESENT in (state.source, state.target) for state in images):
            others = [tag for tag in self._attached if tag not in known]
            if others:
                warn(
                    f"the server returns no digests, so tags that are attached to '{self._source}'"
                    f" were not promoted: name them in tags, such as {others[0]}"
                )
            return []
        owners: dict[str, list[str]] = {}
        digests: set[str] = set()
        found = bounded(self._client.connections, self._belonging, images)
        for state, (tags, belonging) in zip(images, found, strict=True):
            digests |= belonging
            for tag in tags:
                owners.setdefault(tag, []).append(state.tag)
        self._warn_of_untagged(digests, warn)
        needed = [] if self._copy or not owners else self._needed_by_others(promoted)
        named = {tag: tag for tag in owners if tag not in known}
        return [
            replace(state, copy=self._copy or state.tag in needed, owners=tuple(owners[state.tag]))
            for state in self._read(named)
        ]

    def _read(self, names: dict[str, str]) -> list[TagState]:
        source = {tag: digest for tag in names if (digest := self._content(tag)[0]) is not None}
        target = registry.manifests_of(
            self._client, self._target.repo, self._target.name, list(names)
        )
        return states_of(names, source, target, copy=self._copy)

    def _content(self, reference: str) -> tuple[str | None, ManifestContent]:
        """Return digest and content of a manifest in the source, which is read once."""
        if reference not in self._contents:
            found = registry.content(self._client, self._source, reference)
            self._contents[reference] = found or (None, ManifestContent())
        return self._contents[reference]

    def _belonging(self, state: TagState) -> tuple[list[str], set[str]]:
        """Return the tags that are attached to a tag, and the digests of both."""
        if state.source is not None:
            return self._closure(state.source, self._content(state.tag)[1])
        if state.target is None:
            return [], set()
        # the tag has been moved already, but what is attached to it may still be in the source
        moved = registry.content(self._client, self._target, state.target_tag)
        return self._closure(state.target, moved[1] if moved else ManifestContent())

    def _closure(self, digest: str, content: ManifestContent) -> tuple[list[str], set[str]]:
        digests = {digest, *content.lists}
        tags: dict[str, None] = {}
        while True:
            new = [tag for tag in self._attached if tag not in tags and subject_of(tag) in digests]
            if not new:
                return list(tags), digests
            for tag in new:
                tags[tag] = None
                own, content = self._content(tag)
                digests.update({own or "", *content.lists})

    def _needed_by_others(self, promoted: Iterable[TagState]) -> set[str]:
        """Return the attached tags that belong to tags that stay in the source."""
        moved = {state.tag for state in promoted}
        others = [tag for tag in self._tags if tag not in moved and tag not in self._attached]
        needed: set[str] = set()
        for digest, content in bounded(self._client.connections, self._content, others):
            if digest is not None:
                needed.update(self._closure(digest, content)[0])
        return needed

    def _warn_of_untagged(self, digests: set[str], warn: Callable[[str], None]) -> None:
        """Warn of attached manifests that have no tag, and that the target lacks."""
        missing = self._referrers(self._source, digests) - digests
        if missing:
            missing -= self._referrers(self._target, digests)
        if missing:
            named = ", ".join(sorted(missing)[:_NAMED])
            more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
            warn(
                f"manifests without a tag are attached to '{self._source}', but the server only"
                f" promotes tags: copy {named}{more} to '{self._target}' with a container client"
            )

    def _referrers(self, image: ImageReference, digests: set[str]) -> set[str]:
        supported = True

        def ask(digest: str) -> list[str]:
            nonlocal supported
            found = registry.referrers(self._client, image, digest) if supported else None
            supported = found is not None
            return found or []

        wanted = sorted(digests - {""})
        listed = first_alone(self._client.connections, ask, wanted)
        return {referrer for found in listed for referrer in found}
