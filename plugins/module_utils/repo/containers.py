# SPDX-License-Identifier: GPL-3.0-or-later
"""Container images: their tags, page by page, and the digests of their manifests."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

from ..core import wire
from ..core.pool import bounded
from ..core.wire import Answer
from .client import Client, object_of, segments

#: What stands for a manifest that is there and whose digest the server does not tell.
PRESENT = "present"
_PAGE = 1000
#: More pages than any image has tags for: a server that never ends its list is left.
_MOST_PAGES = 10_000
_LINK = re.compile(r"<([^>]*)>([^<]*)")
_NEXT = re.compile(r"\brel\s*=\s*\"?next\"?", re.IGNORECASE)
# Without all four a registry may convert the manifest, and give another digest.
_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)


def _base(client: Client, repo: str) -> str:
    return f"{client.dialect.containers}/{wire.path(repo)}/v2"


def tags(client: Client, repo: str, image: str, *, page: int = _PAGE) -> list[str] | None:
    """All tags of an image, C(None) where there is no such image (written interface 4.1).

    Server fact: C(last) is an offset or a tag; a C(Link) may have lost part of its path, or be
    missing. Its query is taken, never its path. A page that adds nothing new is the last one.
    """
    path = f"{_base(client, repo)}/{wire.path(*segments(image))}/tags/list"
    found: dict[str, None] = {}
    query: list[tuple[str, str]] = [("n", str(page))]
    for number in range(_MOST_PAGES):
        # only the first page proves that there is no such image
        expect = (200, 404) if number == 0 else (200, 400, 404)
        answer = client.transport.read(
            f"listing the tags of '{repo}/{image}'", path, query=query, expect=expect
        )
        if answer.status != 200:
            return None if number == 0 else list(found)
        names = [str(name) for name in object_of(answer, "a list of tags").get("tags") or []]
        fresh = dict.fromkeys(name for name in names if name not in found)
        found.update(fresh)
        following = _next_query(answer) or _guess(names, page)
        if not fresh or following is None:
            break
        query = following
    return list(found)


def _next_query(answer: Answer) -> list[tuple[str, str]] | None:
    for target, parameters in _LINK.findall(answer.headers.get("Link") or ""):
        if _NEXT.search(parameters):
            return parse_qsl(urlsplit(target).query) or None
    return None


def _guess(names: list[str], page: int) -> list[tuple[str, str]] | None:
    """The next page of a server without C(Link): a full page may have another one after it."""
    return [("n", str(page)), ("last", names[-1])] if names and len(names) >= page else None


def manifest(client: Client, repo: str, image: str, tag: str) -> str | None:
    """The digest of a tag's manifest (an index counts as one), C(PRESENT) where only its name
    can be read, C(None) where there is no such tag.

    Server fact: HEAD on the manifest; the written interface shows tags only.
    """
    if client.dialect.manifest_digests:
        answer = client.transport.read(
            f"reading the digest of '{repo}/{image}:{tag}'",
            f"{_base(client, repo)}/{wire.path(*segments(image))}/manifests/{wire.path(tag)}",
            method="HEAD",
            headers={"Accept": _MANIFESTS},
            expect=(200, 400, 404, 405, 406),
        )
        if answer.status == 404:
            return None
        found = answer.headers.get("Docker-Content-Digest")
        if answer.status == 200 and found:
            return found
    return PRESENT if tag in (tags(client, repo, image) or []) else None


def manifests(client: Client, repo: str, image: str) -> dict[str, str]:
    """All tags of an image with what :func:`manifest` tells of each; empty where there is no
    such image.
    """
    names = tags(client, repo, image) or []
    if not client.dialect.manifest_digests:
        return dict.fromkeys(names, PRESENT)

    def ask(name: str) -> str:
        return manifest(client, repo, image, name) or PRESENT

    return dict(zip(names, bounded(client.connections, ask, names), strict=True))


def promote(client: Client, repo: str, body: dict[str, object]) -> str:
    """Send a promotion; the server's words (written interface 4.1: plain text)."""
    image, target = body["dockerRepository"], body["targetRepo"]
    name = f"{repo}/{image}" + (f":{body['tag']}" if "tag" in body else "")
    answer = client.transport.write(
        f"promoting '{name}' to '{target}'", "POST", f"{_base(client, repo)}/promote", json=body
    )
    return answer.text.strip()
