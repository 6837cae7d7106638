# SPDX-License-Identifier: GPL-3.0-or-later
"""Read container images: names, tags, and digests of manifests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...core import address
from ...core.concurrency import bounded
from ...core.errors import ToolchainError
from ...core.http.messages import json_or_none, unexpected_body
from ...core.http.writes import Verify
from ...core.plan import without_none
from ..client import RepoClient, segments
from ..error_text import messages_of, text_of
from ..image_names import ImageReference
from .pagination import PAGE, NameList

#: Digest of an existing manifest whose digest cannot be read.
PRESENT = "present"
# If a media type is missing, a registry may convert the manifest and return another digest.
_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)


def _base(client: RepoClient, repo: str) -> str:
    return f"{client.dialect.containers}/{address.path(repo)}/v2"


def images(client: RepoClient, repo: str, *, page: int = PAGE) -> list[str] | None:
    """Return the names of all images [W4.1]; `None` if the repository does not exist.

    :param page: page size
    """
    purpose = f"listing the images of '{repo}'"
    return NameList(client, purpose, f"{_base(client, repo)}/_catalog", "repositories", page).read()


def tags(
    client: RepoClient, repo: str, image: str, *, page: int = PAGE, until: str | None = None
) -> list[str] | None:
    """Return all tags of an image [W4.1]; `None` if the image does not exist.

    :param page: page size
    :param until: stop after the page with this tag
    """
    purpose = f"listing the tags of '{repo}/{image}'"
    path = f"{_base(client, repo)}/{address.path(*segments(image))}/tags/list"
    return NameList(client, purpose, path, "tags", page, until).read()


def manifest(client: RepoClient, repo: str, image: str, tag: str) -> str | None:
    """Return the digest of a tag, which may be a manifest or a manifest list.

    Returns `PRESENT` if the server does not return its digest, `None` if the tag does not exist.
    Server fact [repo-24]: Artifactory returns the digest for a HEAD request; the written interface
    only lists tags.
    """
    if client.dialect.manifest_digests:
        response = client.transport.read(
            f"reading the digest of '{repo}/{image}:{tag}'",
            f"{_path(client, ImageReference(repo, image))}/manifests/{address.path(tag)}",
            method="HEAD",
            headers={"Accept": _MANIFESTS},
            expect=(200, 400, 404, 405, 406, 501),
        )
        if response.status == 404:
            return None
        found = response.headers.get("Docker-Content-Digest")
        if response.status == 200 and found:
            return found
    return PRESENT if tag in (tags(client, repo, image, until=tag) or []) else None


def content(
    client: RepoClient, image: ImageReference, reference: str
) -> tuple[str, ManifestContent] | None:
    """Return digest and content of a manifest; `None` if the server does not return it.

    :param reference: tag or digest
    """
    response = client.transport.read(
        f"reading the manifest '{image}:{reference}'",
        f"{_path(client, image)}/manifests/{address.path(reference)}",
        headers={"Accept": _MANIFESTS},
        expect=(200, 400, 404, 405, 406, 501),
    )
    if response.status != 200:
        return None
    digest = f"sha256:{hashlib.sha256(response.body).hexdigest()}"
    found = parse(response.body, index=False)
    if found is None:
        raise unexpected_body(response, "a manifest")
    return response.headers.get("Docker-Content-Digest") or digest, found


def referrers(client: RepoClient, image: ImageReference, digest: str) -> list[str] | None:
    """Return the digests of the manifests that are attached to a digest [repo-34].

    Returns `None` if the server cannot list them.
    """
    response = client.transport.read(
        f"listing the referrers of '{image}@{digest}'",
        f"{_path(client, image)}/referrers/{address.path(digest)}",
        expect=(200, 400, 403, 404, 405, 406, 501),
    )
    found = parse(response.body, index=True) if response.status == 200 else None
    return None if found is None else list(found.lists)


def _path(client: RepoClient, image: ImageReference) -> str:
    return f"{_base(client, image.repo)}/{address.path(*segments(image.name))}"


def manifests(client: RepoClient, repo: str, image: str) -> dict[str, str]:
    """Return the digests of all tags of an image, by tag; empty if the image does not exist.

    A digest is `PRESENT` if the server does not return it.
    """
    names = tags(client, repo, image) or []
    if not client.dialect.manifest_digests:
        return dict.fromkeys(names, PRESENT)
    return {**dict.fromkeys(names, PRESENT), **_digests(client, repo, image, names)}


def manifests_of(client: RepoClient, repo: str, image: str, names: Sequence[str]) -> dict[str, str]:
    """Return the digests of the tags that exist, by tag.

    A digest is `PRESENT` if the server does not return it. Such a server is asked for all tags with
    a single list.
    """
    if len(names) > 1 and not client.dialect.manifest_digests:
        listed = tags(client, repo, image) or []
        return {name: PRESENT for name in names if name in listed}
    return _digests(client, repo, image, names)


def _digests(client: RepoClient, repo: str, image: str, names: Sequence[str]) -> dict[str, str]:
    found = bounded(client.connections, partial(manifest, client, repo, image), names)
    return without_none(dict(zip(names, found, strict=True)))


def with_digest(client: RepoClient, image: ImageReference, names: Sequence[str]) -> list[str]:
    """Return those of the tags that have the digest of the image reference.

    Raises `rejected` if the server does not return digests.
    """
    found = manifests_of(client, image.repo, image.name, names)
    if PRESENT in found.values():
        message = f"cannot check whether a tag of '{image}' has {image.digest}: the server does not"
        raise ToolchainError("rejected", f"{message} return digests")
    return [name for name, digest in found.items() if digest == image.digest]


def promote(client: RepoClient, repo: str, body: dict[str, object], verify: Verify) -> str:
    """Send a promotion and return the server's message.

    The response is plain text [W4.1], or a JSON object that repeats the request and may contain
    messages [repo-25].
    """
    image, target = body["dockerRepository"], body["targetRepo"]
    name = f"{repo}/{image}" + (f":{body['tag']}" if "tag" in body else "")
    response = client.write(
        f"promoting '{name}' to '{target}'",
        "POST",
        f"{_base(client, repo)}/promote",
        json=body,
        verify=verify,
    )
    if isinstance(json_or_none(response.body), Mapping):
        return "; ".join(message["message"] for message in messages_of(response.text))
    return text_of(response.text)


@dataclass(frozen=True)
class ManifestContent:
    """References in a manifest.

    :param lists: digests of the manifests that an index lists
    :param subject: digest of the image to which the manifest is attached
    :param parts: all that the manifest lists, with annotations, such as signatures
    """

    lists: tuple[str, ...] = ()
    subject: str | None = None
    parts: frozenset[str] = frozenset()


def parse(content: bytes, *, index: bool) -> ManifestContent | None:
    """Return the references in a manifest; `None` if its content is not that of a manifest.

    :param index: whether the manifest must be an index
    """
    data = json_or_none(content)
    if not isinstance(data, Mapping) or (index and "manifests" not in data):
        return None
    entries = data.get("manifests") or []
    found = [_digest(entry) for entry in entries] if isinstance(entries, list) else [None]
    lists = tuple(digest for digest in found if digest is not None)
    if len(lists) < len(found):
        return None
    layers = data.get("layers")
    listed = [*entries, *(layers if isinstance(layers, list) else [])]
    parts = frozenset(json.dumps(entry, sort_keys=True) for entry in listed)
    return ManifestContent(lists, _digest(data.get("subject")), parts)


def _digest(descriptor: Any) -> str | None:
    digest = descriptor.get("digest") if isinstance(descriptor, Mapping) else None
    return digest if isinstance(digest, str) else None
