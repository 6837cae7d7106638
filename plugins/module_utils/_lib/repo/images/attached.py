# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what is attached to the promoted tags of an image [repo-34]."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.concurrency import bounded, first_alone
from ...core.errors import ToolchainError
from .. import aql
from ..client import RepoClient
from ..image_names import UNTAGGED, ImageReference, subject_of
from . import registry
from .predicted_tags import PredictedTag
from .registry import EXPECTED, PRESENT, ManifestContent

_NAMED = 3
#: Maximum number of manifests that are read to find referrers without the endpoint for them.
_MOST = 100


@dataclass(frozen=True)
class TagState:
    """A tag, its name in the target, and its digests in source and target.

    A digest is `PRESENT` if the server does not return it, `None` if the tag does not exist. The
    digest of a multi-platform image is that of its manifest list.

    :param copy: whether the tag is copied; otherwise it is moved
    :param owners: tags of the images to which the tag is attached
    :param subject: digest to which the tag is attached
    :param is_extended: whether the target has all content of an attached tag, and more, such as
        another signature, which a promotion would remove
    """

    tag: str
    target_tag: str
    source: str | None
    target: str | None
    copy: bool = True
    owners: tuple[str, ...] = ()
    subject: str | None = None
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
    return None if digest in (PRESENT, EXPECTED) else digest


def states_of(
    names: Mapping[str, str], source: Mapping[str, str], target: Mapping[str, str], *, copy: bool
) -> list[TagState]:
    """Return states from the tags of both sides; `names` maps tags to their names in the target."""
    return [
        TagState(tag, target_tag, source.get(tag), target.get(target_tag), copy)
        for tag, target_tag in names.items()
    ]


class Attachments:
    """The attached tags of an image in the source of a promotion.

    :param copy: whether the promotion copies; otherwise it moves
    :param predicted: tags of the source that earlier tasks in check mode would create
    """

    def __init__(
        self,
        client: RepoClient,
        source: ImageReference,
        target: ImageReference,
        *,
        copy: bool,
        predicted: Mapping[str, PredictedTag],
    ) -> None:
        self._client, self._source, self._target, self._copy = client, source, target, copy
        self._predicted = predicted
        listed = registry.tags(client, source.repo, source.name) or []
        self._tags = list(dict.fromkeys((*listed, *predicted)))
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

        def belonging_to(state: TagState) -> set[str]:
            """Return the digests of a tag, of what it lists, and of the tags attached to these."""
            if state.source is not None:
                return self._closure(state.source, self._content(state.tag)[1])
            if state.target is None:
                return set()
            # the tag has been moved already, but what is attached to it may still be in the source
            moved = registry.content(self._client, self._target, state.target_tag)
            return self._closure(state.target, moved[1] if moved else ManifestContent())

        belonging = list(bounded(self._client.connections, belonging_to, images))
        digests: set[str] = set().union(*belonging)
        subjects = {tag: subject_of(tag) or "" for tag in self._attached}
        # a predicted image has only the referrers that are promoted with it
        pairs = zip(images, belonging, strict=True)
        stored = [own for state, own in pairs if state.tag not in self._predicted]
        subjects.update(self._tagged_referrers(set().union(*stored), known, warn))
        subjects.update(
            {tag: each.subject for tag, each in self._predicted.items() if each.subject is not None}
        )
        names = [tag for tag, each in subjects.items() if each in digests and tag not in known]
        needed: set[str] = set()  # digests that belong to tags that stay in the source
        if names and not self._copy:
            staying = [tag for tag in self._tags if tag not in known and tag not in subjects]
            for digest, content in bounded(self._client.connections, self._content, staying):
                needed |= set() if digest is None else self._closure(digest, content)
        source = {tag: digest for tag in names if (digest := self._content(tag)[0]) is not None}
        target = registry.manifests_of(self._client, self._target.repo, self._target.name, names)
        states = states_of({tag: tag for tag in names}, source, target, copy=self._copy)
        return [
            replace(
                state,
                copy=self._copy or subjects[state.tag] in needed,
                subject=subjects[state.tag],
                owners=tuple(
                    image.tag
                    for image, own in zip(images, belonging, strict=True)
                    if subjects[state.tag] in own
                ),
            )
            for state in states
        ]

    def marked(self, states: Sequence[TagState]) -> list[TagState]:
        """Return the states; attached tags whose target has additional content stay in the source.

        Signatures of the target, for example, are added to the same tag.
        """

        def marked(state: TagState) -> TagState:
            ends = (state.source, state.target)
            if subject_of(state.tag) is None or state.is_same or None in ends:
                return state
            own = self._content(state.tag)[1].parts
            found = registry.content(self._client, self._target, state.target_tag)
            if not own or found is None or not own < found[1].parts:
                return state
            return replace(state, copy=True, is_extended=True)

        return list(bounded(self._client.connections, marked, states))

    def _content(self, reference: str) -> tuple[str | None, ManifestContent]:
        """Return digest and content of a manifest in the source, which is read once.

        The content of a predicted tag is read where it is now.
        """
        if reference not in self._contents:
            known = self._predicted.get(reference)
            found: tuple[str, ManifestContent] | None
            if known is None:
                found = registry.content(self._client, self._source, reference)
            elif known.origin is None:
                found = known.digest, ManifestContent()
            else:
                found = registry.content(self._client, known.origin, str(known.origin.tag))
            self._contents[reference] = found or (None, ManifestContent())
        return self._contents[reference]

    def _closure(self, digest: str, content: ManifestContent) -> set[str]:
        digests, left = {digest, *content.lists}, set(self._attached)
        while True:
            new = [tag for tag in left if subject_of(tag) in digests]
            if not new:
                return digests
            for own, attached in map(self._content, new):
                digests.update(attached.lists if own is None else (own, *attached.lists))
            left.difference_update(new)

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
        listed = list(first_alone(self._client.connections, ask, wanted))
        if not supported:
            return self._stored_referrers(image, digests)
        pairs = zip(wanted, listed, strict=True)
        return {referrer: digest for digest, found in pairs for referrer in found}

    def _stored_referrers(self, image: ImageReference, digests: set[str]) -> dict[str, str]:
        """Return the untagged referrers among the stored manifests of an image [repo-34].

        Warn if the server does not show the manifests of the source, or has too many of them.
        """
        path = {"$match": f"{image.name}/*"}
        criteria = {"repo": image.repo, "path": path, "name": {"$match": "*manifest.json"}}
        purpose = f"searching for the manifests of '{image}'"
        try:
            rows = aql.ask_if_supported(self._client, purpose, criteria, ["path"])
        except ToolchainError:
            rows = None  # the result only serves a warning
        # the manifest of a promoted tag is there, so no rows mean that the server shows none
        tags = [str(row.get("path")).removeprefix(f"{image.name}/") for row in rows or ()]
        stored = {tag.replace("__", ":"): None for tag in tags if tag.startswith(UNTAGGED)}
        unknown = sorted(stored.keys() - digests)
        if image == self._source and (not tags or len(unknown) > _MOST):
            self._client.warn(
                f"the server cannot list what is attached to '{image}': manifests without a tag"
                " may stay there, copy them with a container client"
            )

        def subject(digest: str) -> str | None:
            try:
                content = registry.content(self._client, image, digest)
            except ToolchainError:
                return None
            return None if content is None else content[1].subject

        read = bounded(self._client.connections, subject, unknown[:_MOST])
        found = zip(unknown, read, strict=False)
        return {digest: owner for digest, owner in found if owner in digests}
