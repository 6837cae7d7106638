# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what is attached to the promoted tags of an image [repo-34]."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
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
        belonging = list(bounded(self._client.connections, self._belonging, images))
        digests: set[str] = set().union(*belonging)
        subjects = {tag: subject_of(tag) or "" for tag in self._attached}
        subjects.update(self._tagged_referrers(digests, known, warn))
        names = [tag for tag, each in subjects.items() if each in digests and tag not in known]
        leaving = {*known, *subjects}
        needed = self._needed_by_others(leaving) if names and not self._copy else set()
        return [
            replace(
                state,
                copy=self._copy or subjects[state.tag] in needed,
                owners=tuple(
                    image.tag
                    for image, own in zip(images, belonging, strict=True)
                    if subjects[state.tag] in own
                ),
            )
            for state in self._read(names)
        ]

    def marked(self, states: Sequence[TagState]) -> list[TagState]:
        """Return the states; attached tags whose target has additional content stay in the source.

        Signatures of the target, for example, are added to the same tag.
        """
        return list(bounded(self._client.connections, self._marked, states))

    def _marked(self, state: TagState) -> TagState:
        if subject_of(state.tag) is None or state.is_same or None in (state.source, state.target):
            return state
        own = self._content(state.tag)[1].parts
        found = registry.content(self._client, self._target, state.target_tag)
        if not own or found is None or not own < found[1].parts:
            return state
        return replace(state, copy=True, is_extended=True)

    def _read(self, names: Sequence[str]) -> list[TagState]:
        source = {tag: digest for tag in names if (digest := self._content(tag)[0]) is not None}
        target = registry.manifests_of(self._client, self._target.repo, self._target.name, names)
        return states_of({tag: tag for tag in names}, source, target, copy=self._copy)

    def _content(self, reference: str) -> tuple[str | None, ManifestContent]:
        """Return digest and content of a manifest in the source, which is read once."""
        if reference not in self._contents:
            found = registry.content(self._client, self._source, reference)
            self._contents[reference] = found or (None, ManifestContent())
        return self._contents[reference]

    def _belonging(self, state: TagState) -> set[str]:
        """Return the digests of a tag, of what it lists, and of the tags attached to these."""
        if state.source is not None:
            return self._closure(state.source, self._content(state.tag)[1])
        if state.target is None:
            return set()
        # the tag has been moved already, but what is attached to it may still be in the source
        moved = registry.content(self._client, self._target, state.target_tag)
        return self._closure(state.target, moved[1] if moved else ManifestContent())

    def _closure(self, digest: str, content: ManifestContent) -> set[str]:
        digests, left = {digest, *content.lists}, set(self._attached)
        while True:
            new = [tag for tag in left if subject_of(tag) in digests]
            if not new:
                return digests
            for own, attached in map(self._content, new):
                digests.update(attached.lists if own is None else (own, *attached.lists))
            left.difference_update(new)

    def _needed_by_others(self, leaving: Collection[str]) -> set[str]:
        """Return the digests that belong to tags that stay in the source.

        :param leaving: tags that are moved, or attached to other tags
        """
        others = [tag for tag in self._tags if tag not in leaving]
        needed: set[str] = set()
        for digest, content in bounded(self._client.connections, self._content, others):
            if digest is not None:
                needed |= self._closure(digest, content)
        return needed

    def _tagged_referrers(
        self, digests: set[str], known: Collection[str], warn: Callable[[str], None]
    ) -> dict[str, str]:
        """Return the tags of further referrers, with the digests to which they are attached.

        Warn of referrers that have no tag, and that the target lacks.

        :param known: tags that are promoted anyway
        """
        found = self._referrers(self._source, digests)
        missing = {referrer: found[referrer] for referrer in found.keys() - digests}
        if not missing:
            return {}
        others = [tag for tag in self._tags if tag not in known and tag not in self._attached]
        tags = registry.manifests_of(self._client, self._source.repo, self._source.name, others)
        lost = missing.keys() - tags.values()
        if lost:
            lost -= self._referrers(self._target, digests).keys()
        if lost:
            named = ", ".join(sorted(lost)[:_NAMED])
            more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
            warn(
                f"manifests without a tag are attached to '{self._source}', but the server only"
                f" promotes tags: copy {named}{more} to '{self._target}' with a container client"
            )
        return {tag: missing[digest] for tag, digest in tags.items() if digest in missing}

    def _referrers(self, image: ImageReference, digests: set[str]) -> dict[str, str]:
        """Return the digests of the referrers, with those to which they are attached."""
        supported = True

        def ask(digest: str) -> list[str]:
            nonlocal supported
            found = registry.referrers(self._client, image, digest) if supported else None
            supported = found is not None
            return found or []

        wanted = sorted(digests)
        listed = zip(wanted, first_alone(self._client.connections, ask, wanted), strict=True)
        return {referrer: digest for digest, found in listed for referrer in found}
