# SPDX-License-Identifier: GPL-3.0-or-later
"""Read container images: names, tags, and digests of manifests.

The pagination of lists differs between servers [W4.1].
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ...core import address
from ...core.address import has_valid_characters
from ...core.concurrency import bounded
from ...core.errors import ToolchainError, protocol, rejected
from ...core.http.messages import Response, json_or_none, unexpected_body
from ...core.http.writes import Verify
from ...core.plan import without_none
from ..client import RepoClient, messages_of, object_of, segments, text_of
from ..image_names import ImageReference

#: Default page size.
PAGE = 1000
#: Maximum number of pages, to stop at a server whose list never ends.
_MAX_PAGES = 10_000
#: Maximum number of consecutive empty pages. A page is empty if the login may see none of its
#: names, but some servers send links to empty pages forever.
_MAX_EMPTY = 10
_LINK = re.compile(r"<([^<>]*)>([^<]*)")
#: Maximum length of the parameters of a link.
_LONGEST_PARAMETERS = 1000
_NEXT = re.compile(r"""\brel\s*=\s*["']?(?:[^"';,]*\s)?next\b""", re.IGNORECASE)
_Pairs = list[tuple[str, str]]
#: Digest of an existing manifest whose digest cannot be read.
PRESENT = "present"
#: Digest of a tag that a CI build of this run will push.
EXPECTED = "(not pushed yet)"
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
        raise rejected(f"{message} return digests")
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


@dataclass
class NameList:
    """A paginated list of names.

    Server facts [repo-23]: the address in `Link` may lack a part of its path, contain another host,
    or repeat itself. Only its query is used, and a page without new names ends the list, unless it
    is full. A registry may ignore the page size, not sort the names, and return `null` for an empty
    list.

    :param key: key of the list in a response: `tags` or `repositories`
    :param page: maximum number of names per page
    :param until: stop after the page with this name; `None` means to read all pages
    """

    client: RepoClient
    purpose: str
    path: str
    key: str
    page: int = PAGE
    until: str | None = None
    _found: dict[str, None] = field(default_factory=dict)
    _pages: int = 0

    def read(self) -> list[str] | None:
        """Return all names without duplicates in the server's order; `None` if the list does not
        exist.
        """
        # a 404 for a later page does not mean that the list does not exist
        response = self._ask([("n", str(self.page))], 404)
        if response.status == 404:
            return None
        count = len(self._names(response) or [])
        self._add(response)
        following = _next_query(response)
        if following is not None:
            self._follow(following)
        elif count == self.page or not self.client.dialect.tag_links:
            self._read_on(required=count >= self.page)
        return list(self._found)

    def _ask(self, query: _Pairs, *expect: int) -> Response:
        self._pages += 1
        if self._pages > _MAX_PAGES:
            message = f"{self.purpose}: the list did not end after {_MAX_PAGES} pages"
            raise protocol(message)
        return self.client.transport.read(
            self.purpose, self.path, query=query, expect=(200, *expect)
        )

    def _names(self, response: Response) -> list[str] | None:
        """Return the names of a page; `None` if the server rejected the request."""
        if response.status != 200:
            return None
        wanted = f"a list of {self.key}"
        decoded = object_of(response, wanted)
        found = decoded.get(self.key)
        if found is None and (self._found or decoded.keys() & {self.key, "name"}):
            # server fact [repo-23]: `null`, or only the name of the image, means an empty list
            return []
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise unexpected_body(response, wanted)
        return found

    def _add(self, response: Response) -> bool:
        """Add the names of a page; return whether any of them is new."""
        known = len(self._found)
        self._found.update(dict.fromkeys(self._names(response) or []))
        return len(self._found) > known

    @property
    def _is_enough(self) -> bool:
        return self.until is not None and self.until in self._found

    def _follow(self, following: _Pairs | None) -> None:
        """Read the pages that links announce; after a broken link, continue without links.

        Raises `protocol` if that does not reach the end of the list.

        :param following: query of the next page
        """
        empty = 0
        while following is not None and not self._is_enough and empty < _MAX_EMPTY:
            response = self._ask(following, 400, 404)
            following = _next_query(response)
            if self._add(response):
                empty = 0
            elif self._names(response) == []:
                empty += 1
            else:
                break
        else:
            return
        # the link is broken: continue without links
        known = len(self._found)
        end_seen = self._read_on()
        if end_seen or len(self._found) > known:
            return
        if response.status != 200:
            message = f"the server returned {response.status} for the next page that it had linked"
            raise response.error("protocol", message)
        if len(self._names(response) or []) >= self.page:
            message = "the server sends the same page again: names may be missing"
            raise response.error("protocol", message)

    def _read_on(self, *, required: bool = False) -> bool:
        """Read further pages without links; return whether the end of the list was reached.

        The written interface [W4.1] does not specify a maximum page size, so a short page may not
        be the last. Nor does it specify the parameter `last`: for some servers it is the last name,
        for others the number of names.

        :param required: whether to raise an error if a request fails, as after a full page
        """
        for by_count in (False, True):
            while self._found and not self._is_enough:
                last = str(len(self._found)) if by_count else next(reversed(self._found))
                try:
                    response = self._ask([("n", str(self.page)), ("last", last)], 400, 404)
                except ToolchainError:
                    if required:
                        raise
                    break
                if self._names(response) == []:
                    return True
                if not self._add(response):
                    break
        return self._is_enough


def _next_query(response: Response) -> _Pairs | None:
    for target, parameters in _LINK.findall(response.headers.get("Link") or ""):
        if _NEXT.search(parameters[:_LONGEST_PARAMETERS]) and has_valid_characters(target):
            try:
                return parse_qsl(urlsplit(target).query) or None
            except ValueError:  # the address of the link is malformed
                return None
    return None
