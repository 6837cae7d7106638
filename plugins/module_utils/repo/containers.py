# SPDX-License-Identifier: GPL-3.0-or-later
"""Container images: their tags, page by page, and the digests of their manifests."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

from ..core import wire
from ..core.errors import ToolchainError
from ..core.pool import bounded
from ..core.wire import Answer
from .client import Client, object_of, segments
from .words import text_of

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


def tags(
    client: Client, repo: str, image: str, *, page: int = _PAGE, until: str | None = None
) -> list[str] | None:
    """All tags of an image, with C(until) only as far as that one; C(None) where there is no such
    image (written interface 4.1).

    Server fact: a C(Link) may have lost part of its path: its query is taken, never its path. A
    page that adds nothing new is the last one.
    """
    what = f"listing the tags of '{repo}/{image}'"
    path = f"{_base(client, repo)}/{wire.path(*segments(image))}/tags/list"

    def ask(query: list[tuple[str, str]], *expect: int) -> Answer:
        return client.transport.read(what, path, query=query, expect=(200, *expect))

    # only the first page proves that there is no such image
    answer = ask([("n", str(page))], 404)
    if answer.status == 404:
        return None
    found = dict.fromkeys(_names(answer) or [])
    full, following = len(found) >= page, _next_query(answer)

    def after(last: str) -> list[str] | None:
        try:
            return _names(ask([("n", str(page)), ("last", last)], 400, 404))
        except ToolchainError:
            if full:
                raise
            return None

    if following is None and (full or not client.dialect.tag_links):
        _read_on_without_links(after, found, until)
    for _number in range(_MOST_PAGES):
        if following is None or until in found:
            break
        answer = ask(following, 400, 404)
        following = _next_query(answer) if _add(found, _names(answer)) else None
    return list(found)


def _read_on_without_links(
    after: Callable[[str], list[str] | None], found: dict[str, None], until: str | None
) -> None:
    """Add the pages after the first one of a server that does not say whether there are any.

    The written interface (4.1) names no greatest page size, so that even a short page may be
    followed by others, and calls C(last) a position: that is a tag for some servers, for others a
    count. After a short page this is a guess, which a server may leave unanswered (C(None)).
    """
    for spell in (_last_tag, _count):
        for _number in range(_MOST_PAGES):
            if not found or until in found:
                return
            names = after(spell(found))
            if names == []:
                return
            if not _add(found, names):
                break


def _last_tag(found: dict[str, None]) -> str:
    return next(reversed(found))


def _count(found: dict[str, None]) -> str:
    return str(len(found))


def _names(answer: Answer) -> list[str] | None:
    """The tags of a page, C(None) where it is refused."""
    if answer.status != 200:
        return None
    return [str(name) for name in object_of(answer, "a list of tags").get("tags") or []]


def _add(found: dict[str, None], names: list[str] | None) -> bool:
    """Whether a page adds new tags."""
    known = len(found)
    found.update(dict.fromkeys(names or []))
    return len(found) > known


def _next_query(answer: Answer) -> list[tuple[str, str]] | None:
    for target, parameters in _LINK.findall(answer.headers.get("Link") or ""):
        if _NEXT.search(parameters):
            return parse_qsl(urlsplit(target).query) or None
    return None


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
            expect=(200, 400, 404, 405, 406, 501),
        )
        if answer.status == 404:
            return None
        found = answer.headers.get("Docker-Content-Digest")
        if answer.status == 200 and found:
            return found
    return PRESENT if tag in (tags(client, repo, image, until=tag) or []) else None


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
    answer = client.write(
        f"promoting '{name}' to '{target}'", "POST", f"{_base(client, repo)}/promote", json=body
    )
    return text_of(answer.text)
