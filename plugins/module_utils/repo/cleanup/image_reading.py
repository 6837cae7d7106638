# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the manifests of the images from which a cleanup deletes [repo-34]."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...core.concurrency import bounded
from ...core.errors import ToolchainError, looks_like_html
from ...core.http.messages import unexpected_body
from ...core.progress import ProgressCounter
from .. import aql, repositories
from ..client import RepoClient, item_path
from ..image_names import subject_of
from ..images import registry
from .image_parts import ImageParts, Manifest, image_of, link
from .items import CleanupVerdict, items_in
from .rules import FILE_FIELDS, CleanupRule

#: Package types of repositories that may contain images.
_CONTAINERS = frozenset({"docker", "oci", "helmoci"})


def complete_rows(client: RepoClient, purpose: str, query: str) -> aql.QueryResult:
    """Return the result of a query for items. Raises `protocol` unless it is complete."""
    found = aql.ask(client, purpose, query)
    if found.trimmed:
        raise ToolchainError(
            "protocol",
            f"{purpose}: the server truncated the result ({found.trimmed}), so nothing was"
            " deleted: use more rules with narrower paths",
            detail=found.trimmed,
        )
    identity = ("repo", "path", "name")
    if not all(isinstance(row.get(name), str) for row in found.rows for name in identity):
        raise ToolchainError(
            "protocol",
            f"{purpose}: the server does not report {', '.join(identity)} of each item, so"
            " nothing was deleted",
        )
    return found


class ImageReader:
    """Reads the manifests of images, each once."""

    def __init__(
        self, client: RepoClient, parts: ImageParts, show_progress: Callable[[str], None]
    ) -> None:
        self._client, self._parts, self._show_progress = client, parts, show_progress
        self._blocked: list[str] = []

    def check_type(self, rule: CleanupRule, rows: Iterable[Mapping[str, Any]]) -> None:
        """Learn whether the repository may have images, if a name is that of an attached tag."""
        folders = {f"{row['path']}/{row['name']}" for row in rows}
        names = {name for folder in folders for name in folder.split("/")}
        is_asked = rule.kind != "image" and any(map(subject_of, names))
        if is_asked and not self._may_have_images(rule.repo):
            self._parts.without_images.add(rule.repo)

    def read(self, rule: CleanupRule, verdicts: Iterable[CleanupVerdict]) -> bool:
        """Read the images from which a rule deletes; return whether anything was read."""
        found = {image_of(verdict.item) for verdict in verdicts if verdict.goes}
        images = sorted(image for image in found if image is not None)
        if not images or (rule.kind != "image" and not self._may_have_images(rule.repo)):
            return False
        count = ProgressCounter(self._show_progress, "reading the manifests of images", len(images))
        news = False
        for image in images:
            every = self._manifests(rule.repo, image)
            unread = [manifest for manifest in every if not manifest.is_read]
            self._read(every, unread)
            news = news or bool(unread)
            count.add()
        self._warn_of_blocked()
        return news

    def _warn_of_blocked(self) -> None:
        if self._blocked:
            more = f" and {len(self._blocked) - 1} more" if self._blocked[1:] else ""
            self._client.warn(
                f"the server does not return '{self._blocked[0]}'{more} (403): a manifest that it"
                " blocks counts as an image, even if it is attached to another image"
            )
        self._blocked.clear()

    def _may_have_images(self, repo: str) -> bool:
        kind = repositories.package_type(self._client, repo)
        return kind is None or kind in _CONTAINERS

    def _manifests(self, repo: str, image: str) -> Sequence[Manifest]:
        if self._parts.image(repo, image) is None:
            purpose = f"searching for the manifests of '{repo}/{image}'"
            criteria = {"repo": repo, "type": "file", "path": {"$match": f"{image}/*"}}
            rows = complete_rows(self._client, purpose, aql.items(criteria, FILE_FIELDS)).rows
            self._parts.learn(items_in(repo, rows).values(), lambda folder: folder == image)
        return self._parts.image(repo, image) or []

    def _read(self, every: Sequence[Manifest], unread: Sequence[Manifest]) -> None:
        """Read manifests of an image: first indexes and tags, then those that no index lists."""
        first = [one for one in unread if one.is_index or (one.has_tag and not one.is_leaf)]
        self._read_contents(first)
        listed = {digest for manifest in every for digest in manifest.lists}
        rest = [one for one in unread if not (one.is_index or one.has_tag)]
        self._read_contents([one for one in rest if one.digest not in listed])
        for manifest in unread:
            manifest.is_read = True
        link(every)

    def _read_contents(self, unread: Sequence[Manifest]) -> None:
        read = bounded(self._client.connections, self._content, unread)
        for manifest, (digest, content) in zip(unread, read, strict=True):
            manifest.digest = manifest.digest or digest
            manifest.lists = content.lists
            manifest.subject = manifest.subject or content.subject

    def _content(self, manifest: Manifest) -> tuple[str | None, registry.ManifestContent]:
        """Return digest and content of a manifest.

        Raises an error if an index cannot be read.
        """
        file = manifest.file
        try:
            response = self._client.transport.read(
                f"reading '{file.repo}/{file.path}', to find what belongs to the image",
                item_path(file.repo, file.path),
                # another client may have deleted it, or a scan may have blocked it [repo-26]
                expect=(200,) if manifest.is_index else (200, 403, 404),
                # server fact [repo-34]: otherwise the server counts a download
                query={"skipUpdateStats": "true"},
                headers={"Accept-Encoding": "identity"},
            )
            if response.status != 200:
                if response.status == 403:
                    self._blocked.append(f"{file.repo}/{file.path}")
                return None, registry.ManifestContent()
            content = registry.parse(response.body, index=manifest.is_index)
            is_manifest = response.body and not looks_like_html(response.text)
            if content is None and (manifest.is_index or not is_manifest):
                raise unexpected_body(response, "a manifest of an image")
        except ToolchainError as error:
            raise error.with_hint("nothing was deleted") from None
        digest = f"sha256:{hashlib.sha256(response.body).hexdigest()}"
        return digest, content or registry.ManifestContent()
