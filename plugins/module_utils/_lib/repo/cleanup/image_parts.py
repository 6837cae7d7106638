# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what belongs to the images that a cleanup deletes or keeps, without requests.

Server fact [repo-34]: signatures, attestations and SBOMs are manifests of their own, and so are
the images that an index lists. Each has its own folder next to the folder of the tag.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ...core.concurrency import bounded
from ...core.errors import ToolchainError, looks_like_html, protocol
from ...core.http.messages import unexpected_body
from ...core.progress import ProgressCounter
from .. import aql, repositories
from ..client import RepoClient, item_path
from ..image_names import INDEX, MANIFESTS, UNTAGGED, subject_of
from ..images import registry
from .rules import (
    FILE_FIELDS,
    NO_TIME,
    ROOT,
    CleanupItem,
    CleanupRule,
    CleanupVerdict,
    folders_above,
    items_in,
)


@dataclass(eq=False)
class Manifest:
    """A manifest of an image.

    :param item: the folder of the manifest, with all of its files
    :param file: the file of the manifest
    :param digest: digest of the manifest; `None` if unknown
    :param subject: digest of the image to which the manifest is attached
    :param lists: digests of the manifests that an index lists
    """

    item: CleanupItem
    file: CleanupItem
    digest: str | None = None
    subject: str | None = None
    lists: Collection[str] = ()
    is_read: bool = False
    #: Images to which the manifest is attached, indexes that list it, manifests that it lists.
    owners: list[Manifest] = field(default_factory=list)
    indexes: list[Manifest] = field(default_factory=list)
    children: list[Manifest] = field(default_factory=list)

    @property
    def has_tag(self) -> bool:
        return not self.item.name.startswith(UNTAGGED)

    @property
    def is_index(self) -> bool:
        return self.file.name == INDEX

    @property
    def is_part(self) -> bool:
        """Return whether the manifest can only be deleted together with an image."""
        return self.subject is not None or (bool(self.indexes) and not self.has_tag)

    def remover(self, going: Collection[str]) -> str | None:
        """Return the path whose deletion deletes the manifest; `None` if it stays.

        :param going: paths of the deleted items
        """
        paths = (self.item.path, self.file.path, *folders_above(self.item.path))
        return next((path for path in paths if path in going), None)

    def goes(
        self, rule: CleanupRule, going: Collection[str], below: tuple[Manifest, ...] = ()
    ) -> bool:
        """Return whether a rule deletes the manifest, or everything to which it belongs.

        :param going: paths of the items that the rule deletes
        :param below: manifests that belong to this one, because tags may refer to each other
        """
        if self.remover(going) is not None:
            return True
        if not self.is_part or self in below or kept_by(rule, self.item) is not None:
            return False
        holders = [*self.owners, *self.indexes]
        return bool(holders) and all(each.goes(rule, going, (*below, self)) for each in holders)


def manifests_in(files: Iterable[CleanupItem]) -> dict[str, Manifest]:
    """Return the manifests among the files of a repository by folder, with unread content.

    The age of a tag is computed from the last change of its manifest, because a tag that is pushed
    again gets a new manifest.
    """
    found: dict[str, Manifest] = {}
    listed = list(files)
    for file in listed:
        if file.name not in MANIFESTS or "/" not in file.parent:
            continue
        known = found.get(file.parent)
        moment = None if file.moment is None else max(file.moment, file.modified or NO_TIME)
        if known is not None:
            moment = max(moment or NO_TIME, known.item.moment or NO_TIME)
        main = file if known is None or file.name == INDEX else known.file
        item = replace(main, path=file.parent, folder=True, size=0, moment=moment, files=[])
        name = item.name.replace("__", ":")
        digest = main.digest or (name if name.startswith("sha256:") else None)
        found[item.path] = Manifest(item, main, digest, subject_of(item.name))
    for file in listed:
        for folder in folders_above(file.path):
            if folder in found:
                found[folder].item.files.append(file)
    return found


def link(manifests: Sequence[Manifest]) -> None:
    """Find the owners, indexes and children of the manifests of an image."""
    by_digest: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        manifest.indexes, manifest.children = [], []
        if manifest.digest is not None:
            by_digest.setdefault(manifest.digest, []).append(manifest)
    for manifest in manifests:
        owners = by_digest.get(manifest.subject or "", [])
        manifest.owners = [owner for owner in owners if owner is not manifest]
        for digest in dict.fromkeys(manifest.lists):
            for child in by_digest.get(digest, []):
                manifest.children.append(child)
                child.indexes.append(manifest)


def image_of(item: CleanupItem) -> str | None:
    """Return the path of the image whose manifest an item is or contains; `None` without one."""
    if item.folder:
        marked = any(f.parent == item.path and f.name in MANIFESTS for f in item.files)
        folder = item.path
    else:
        marked, folder = item.name in MANIFESTS, item.parent
    image, _slash, tag = folder.rpartition("/")
    marked = marked or tag.startswith(UNTAGGED) or subject_of(tag) is not None
    return image or None if marked else None


class ImageParts:
    """The manifests in the repositories of the rules, by image."""

    def __init__(self) -> None:
        self._images: dict[tuple[str, str], dict[str, Manifest]] = {}
        #: Folders that match a rule.
        self._matched: set[tuple[str, str]] = set()
        #: Repositories of other package types, where names of attached tags mean nothing.
        self.without_images: set[str] = set()

    def learn(self, files: Iterable[CleanupItem], covers: Callable[[str], bool]) -> list[Manifest]:
        """Return the manifests among files of a repository; add those of complete images.

        :param covers: returns whether the files are all files of an image
        """
        listed = manifests_in(files)
        found: dict[tuple[str, str], dict[str, Manifest]] = {}
        for folder, manifest in listed.items():
            found.setdefault((manifest.item.repo, manifest.item.parent), {})[folder] = manifest
        for key, manifests in found.items():
            if covers(key[1]) and key[0] not in self.without_images:
                # those that are known may have been read
                self._images[key] = {**manifests, **self._images.get(key, {})}
                link(list(self._images[key].values()))
        return list(listed.values())

    def image(self, repo: str, image: str) -> list[Manifest] | None:
        """Return the manifests of an image; `None` if they are unknown."""
        found = self._images.get((repo, image))
        return None if found is None else list(found.values())

    def of(self, item: CleanupItem) -> Manifest | None:
        """Return the manifest of an item, which is its folder or a file in its folder."""
        folder = _folder(item)
        return self._images.get((item.repo, folder.rpartition("/")[0]), {}).get(folder)

    def selectable(self, items: Iterable[CleanupItem]) -> list[CleanupItem]:
        """Return the matching items of a rule without those that only go with an image."""
        found = []
        for item in items:
            self._matched.add((item.repo, _folder(item)))
            manifest, tag = self.of(item), _folder(item).rpartition("/")[2]
            is_attached = item.repo not in self.without_images and subject_of(tag) is not None
            if not (is_attached if manifest is None else manifest.is_part):
                found.append(item)
        return found

    def keepers(
        self, rule: CleanupRule, items: Iterable[CleanupItem], going: Collection[str]
    ) -> dict[str, CleanupItem]:
        """Return the indexes that stay and list an item, by the path of the item.

        :param going: paths of the items that the rule deletes
        """
        found = {}
        for item in items:
            manifest = self.of(item)
            indexes = [] if manifest is None else manifest.indexes
            kept = next((index for index in indexes if not index.goes(rule, going)), None)
            if kept is not None:
                found[item.path] = kept.item
        return found

    def rank(self, item: CleanupItem) -> tuple[datetime, bool, str]:
        """Return the sort key of an item by its last push.

        An index is at least as new as the tags that it lists, which may have been pushed later.
        """
        manifest = self.of(item) if item.folder else None
        tags = [each.item for each in manifest.children if each.has_tag] if manifest else []
        return max(each.moment or NO_TIME for each in (item, *tags)), bool(tags), item.path

    @property
    def orphans(self) -> list[CleanupItem]:
        """Return what is attached to an image that does not exist, and matches a rule."""
        return [
            manifest.item
            for (repo, _image), manifests in self._images.items()
            if all(manifest.digest is not None for manifest in manifests.values())
            for folder, manifest in manifests.items()
            if manifest.subject is not None
            and not manifest.owners
            and (manifest.is_read or (repo, folder) in self._matched)
        ]

    def complete(self, verdicts: Sequence[CleanupVerdict]) -> list[CleanupVerdict]:
        """Return the verdicts on what belongs to deleted items, followed by the given deletions.

        A part stays if a rule excludes it. Of two verdicts on an item, the first counts.
        """
        going: dict[str, dict[str, CleanupVerdict]] = {}
        for verdict in verdicts:
            going.setdefault(verdict.item.repo, {})[verdict.item.path] = verdict
        parts = []
        for (repo, _image), manifests in self._images.items():
            parts += _parts(manifests, going.get(repo, {}))
        return [*parts, *verdicts]


def _folder(item: CleanupItem) -> str:
    return item.path if item.folder else item.parent


def _parts(
    manifests: Mapping[str, Manifest], going: dict[str, CleanupVerdict]
) -> list[CleanupVerdict]:
    """Return the verdicts on the manifests of an image that belong to deleted items.

    :param going: deletions in the repository by path, to which the parts are added
    """
    kept: dict[str, CleanupVerdict] = {}
    added: dict[str, CleanupVerdict] = {}
    changed = True
    while changed:
        changed = False
        for folder, manifest in manifests.items():
            verdict = None if folder in kept else _part(manifest, going)
            if verdict is None or going.get(folder) == verdict:
                continue
            changed = True
            if verdict.goes:
                going[folder] = added[folder] = verdict
            else:
                kept[folder] = verdict
    return [*added.values(), *kept.values()]


def _part(manifest: Manifest, going: Mapping[str, CleanupVerdict]) -> CleanupVerdict | None:
    """Return the verdict on a manifest that belongs to deleted items; `None` if it does not."""
    own = manifest.remover(going)
    if own is None and not manifest.is_part:
        return None
    if own is not None and own in folders_above(manifest.item.path):
        return None
    holders = [*manifest.owners, *manifest.indexes]
    removers = [path for holder in holders if (path := holder.remover(going)) is not None]
    if not holders or len(removers) < len(holders):
        return None
    first, found = holders[0].item.path, [going[path] for path in removers]
    if own is None:
        for verdict in found:
            kept = kept_by(verdict.rule, manifest.item)
            if kept is not None:
                reason = f"rule {verdict.rule.number}: part of '{first}', {kept}"
                return CleanupVerdict(manifest.item, verdict.rule, False, reason)
    after = tuple(dict.fromkeys(verdict.name for verdict in found))
    return CleanupVerdict(manifest.item, found[0].rule, True, f"part of '{first}'", after)


def kept_by(rule: CleanupRule, item: CleanupItem) -> str | None:
    """Return why a rule keeps an item because of its path, properties or content."""
    glob = next((glob for path in item.paths if (glob := rule.excluding(path))), None)
    return rule.protection(item) if glob is None else f"excluded by '{glob}'"


#: Number of characters for folders in a query; a query may have 6,000 [repo-14].
_QUERY_CHARACTERS = 5000
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
        raise protocol(
            f"{purpose}: the server does not report {', '.join(identity)} of each item, so"
            " nothing was deleted"
        )
    return found


def rows_at(
    client: RepoClient, purpose: str, repo: str, folders: Iterable[str], fields: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the rows of the files in folders, with as few queries as their length allows."""
    found: list[dict[str, Any]] = []
    pending = sorted(folders)
    while pending:
        size, count = 0, 0
        while count < len(pending) and (count == 0 or size < _QUERY_CHARACTERS):
            size += len(json.dumps(pending[count])) + len('{"path": }, ')
            count += 1
        some, pending = pending[:count], pending[count:]
        places = [{"path": folder or ROOT} for folder in some]
        criteria = {"repo": repo, "type": "file", "$or": places}
        rows = complete_rows(client, purpose, aql.items(criteria, fields)).rows
        wanted = {folder or ROOT for folder in some}
        found += [row for row in rows if row["path"] in wanted]
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
            if self._parts.image(rule.repo, image) is None:
                self._search(rule, image)
            every = self._parts.image(rule.repo, image) or []
            unread = [manifest for manifest in every if not manifest.is_read]
            self._read(every, unread)
            news = news or bool(unread)
            count.add()
        if self._blocked:
            more = f" and {len(self._blocked) - 1} more" if self._blocked[1:] else ""
            self._client.warn(
                f"the server does not return '{self._blocked[0]}'{more} (403): a manifest that it"
                " blocks counts as an image, even if it is attached to another image"
            )
        self._blocked.clear()
        return news

    def _may_have_images(self, repo: str) -> bool:
        kind = repositories.package_type(self._client, repo)
        return kind is None or kind in _CONTAINERS

    def _search(self, rule: CleanupRule, image: str) -> None:
        fields = [*FILE_FIELDS, "property"] if rule.reads_properties else FILE_FIELDS
        purpose = f"searching for the manifests of '{rule.repo}/{image}'"
        criteria = {"repo": rule.repo, "type": "file", "path": {"$match": f"{image}/*"}}
        rows = complete_rows(self._client, purpose, aql.items(criteria, fields)).rows
        self._parts.learn(items_in(rule.repo, rows).values(), lambda folder: folder == image)

    def _read(self, every: Sequence[Manifest], unread: Sequence[Manifest]) -> None:
        """Read manifests of an image: first indexes and tags, then those that no index lists."""
        # the name of a tag with a subject tells everything that the content would
        first = [
            one
            for one in unread
            if one.is_index or (one.has_tag and None in (one.subject, one.digest))
        ]
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
