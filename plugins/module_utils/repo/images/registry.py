# SPDX-License-Identifier: GPL-3.0-or-later
"""Container images: their names, their tags, and the digests of their manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core import address
from ...core.concurrency import bounded
from ...core.http.messages import json_or_none
from ...core.http.writes import Verify
from ..client import RepoClient, segments
from ..error_text import messages_of, text_of
from .pagination import PAGE, NameList

#: What stands for a manifest that is there and whose digest the server does not tell.
PRESENT = "present"
# Without all four a registry may convert the manifest, and give another digest.
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
    """The names of all images, C(None) where there is no such repository [W4.1]."""
    what = f"listing the images of '{repo}'"
    return NameList(client, what, f"{_base(client, repo)}/_catalog", "repositories", page).read()


def tags(
    client: RepoClient, repo: str, image: str, *, page: int = PAGE, until: str | None = None
) -> list[str] | None:
    """All tags of an image, with C(until) only as far as that one; C(None) where there is no such
    image [W4.1].
    """
    what = f"listing the tags of '{repo}/{image}'"
    path = f"{_base(client, repo)}/{address.path(*segments(image))}/tags/list"
    return NameList(client, what, path, "tags", page, until).read()


def manifest(client: RepoClient, repo: str, image: str, tag: str) -> str | None:
    """The digest of a tag's manifest (an index counts as one), C(PRESENT) where only its name
    can be read, C(None) where there is no such tag.

    Server fact [repo-24]: HEAD on the manifest; the written interface shows tags only.
    """
    if client.dialect.manifest_digests:
        response = client.transport.read(
            f"reading the digest of '{repo}/{image}:{tag}'",
            f"{_base(client, repo)}/{address.path(*segments(image))}/manifests/{address.path(tag)}",
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


def manifests(client: RepoClient, repo: str, image: str) -> dict[str, str]:
    """All tags of an image with what :func:`manifest` tells of each; empty where there is no
    such image.
    """
    names = tags(client, repo, image) or []
    if not client.dialect.manifest_digests:
        return dict.fromkeys(names, PRESENT)

    def ask(name: str) -> str:
        return manifest(client, repo, image, name) or PRESENT

    return dict(zip(names, bounded(client.connections, ask, names), strict=True))


def manifests_of(client: RepoClient, repo: str, image: str, names: Sequence[str]) -> dict[str, str]:
    """Those of the tags that are there, with what :func:`manifest` tells of each. Where only names
    can be read, all of them come from one list.
    """
    if len(names) > 1 and not client.dialect.manifest_digests:
        listed = tags(client, repo, image) or []
        return {name: PRESENT for name in names if name in listed}

    def ask(name: str) -> str | None:
        return manifest(client, repo, image, name)

    found = zip(names, bounded(client.connections, ask, names), strict=True)
    return {name: digest for name, digest in found if digest is not None}


def promote(client: RepoClient, repo: str, body: dict[str, object], verify: Verify) -> str:
    """Send a promotion; the server's words ([W4.1]: plain text). One that answers with an object
    repeats what it was asked for [repo-25]: of that only messages are words.
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
        return "; ".join(one["message"] for one in messages_of(response.text))
    return text_of(response.text)
