# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and fetch the artifacts of a build: names, known digests, bytes [ci-24]."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core import address
from ...core.errors import ToolchainError, shorten
from ...core.http.download import AS_STORED, download
from ...core.http.file_download import Fetched, RemoteContent, download_file, fetch_digests
from ...core.http.messages import REDIRECTS
from ...core.http.transport import Transport
from ..builds.records import number_of
from ..client import objects

if TYPE_CHECKING:
    from ...core.http.bodies import Incoming

#: The `tree` parameter for a build.
FIELDS = "artifacts[fileName,relativePath],fingerprint[fileName,hash]"
_SHOWN = 200
_DIGEST = re.compile(r"[0-9a-fA-F]{32}")
#: Path segments that are commands to the server, not names.
_COMMAND = re.compile(r"\*(zip|plain|view|fingerprint)\*")
_PAGE_NAME = re.compile(r"\.(x?html?|xhtml)$", re.IGNORECASE)


@dataclass(frozen=True)
class Artifact:
    """An artifact. `md5`: the digest that the server recorded under exactly this path, if there is
    only one. `likely`: a digest that was recorded only under the file name; it may be that of an
    input of the build.
    """

    path: str
    md5: str | None
    likely: str | None

    @property
    def content(self) -> RemoteContent:
        """Return the expected metadata of the fetched bytes."""
        may_be_page = _PAGE_NAME.search(self.path) is not None
        return RemoteContent(None, "md5", self.md5, may_be_page)


def artifacts_of(shown: Mapping[str, Any]) -> list[Artifact]:
    """Return the artifacts in the response for a build, in its order, without duplicate paths."""
    recorded: dict[str, set[str]] = {}
    named: dict[str, set[str]] = {}
    for entry in objects(shown.get("fingerprint")):
        name, digest = str(entry.get("fileName")), str(entry.get("hash"))
        if _DIGEST.fullmatch(digest):
            recorded.setdefault(name, set()).add(digest.lower())
            named.setdefault(name.rpartition("/")[2], set()).add(digest.lower())
    paths = dict.fromkeys(
        str(entry["relativePath"])
        for entry in objects(shown.get("artifacts"))
        if entry.get("relativePath")
    )
    counted = Counter(path.rpartition("/")[2] for path in paths)

    def single(digests: set[str] | None) -> str | None:
        return next(iter(digests)) if digests is not None and len(digests) == 1 else None

    found = []
    for path in paths:
        name = path.rpartition("/")[2]
        likely = single(named.get(name)) if counted[name] == 1 else None
        found.append(Artifact(path, single(recorded.get(path)), likely))
    return found


class ArtifactSource:
    """Compares and fetches the artifacts of the build at `path`."""

    def __init__(self, server: Transport, path: str, purpose: str) -> None:
        self._server, self._path, self._purpose = server, path, purpose

    def is_at(self, artifact: Artifact, place: str, sha256: str) -> bool:
        """Return whether the file at `place`, whose digest is `sha256`, has the content of the
        artifact.

        A fingerprint decides; without a fingerprint the size is compared first. A likely digest
        only proves equality: if it differs, the bytes are compared.
        """
        if artifact.md5 is not None:
            return artifact.content.is_at(place)
        if artifact.likely is not None:
            if RemoteContent(None, "md5", artifact.likely).is_at(place):
                return True
            return self._verify(artifact).sha256 == sha256
        size = self._size(artifact)
        if size is None:
            return self._verify(artifact).sha256 == sha256
        return RemoteContent(size).is_at(place)

    def save(self, artifact: Artifact, place: str) -> Fetched:
        purpose, where = self._doing("fetching", artifact), self._address(artifact)
        return download_file(self._server, purpose, where, place, content=artifact.content)

    def _verify(self, artifact: Artifact) -> Fetched:
        purpose, where = self._doing("comparing", artifact), self._address(artifact)
        return fetch_digests(self._server, purpose, where, content=artifact.content)

    def _size(self, artifact: Artifact) -> int | None:
        """Server fact [ci-24]: a store on another host signs its addresses for GET alone."""
        purpose, where = self._doing("reading the size of", artifact), self._address(artifact)
        try:
            response = self._server.read(purpose, where, method="HEAD", headers=AS_STORED)
        except ToolchainError as error:
            if error.status not in REDIRECTS:
                raise
            length = download(
                self._server, purpose, where, _length_of, validate=lambda response: None
            )
        else:
            length = response.headers.get("Content-Length", "")
        size = number_of(length)
        return size if size is not None and size >= 0 else None

    def _address(self, artifact: Artifact) -> str:
        segments = artifact.path.split("/")
        if any(_COMMAND.fullmatch(segment) for segment in segments):
            raise ToolchainError(
                "rejected",
                f"{self._doing('fetching', artifact)}: the server interprets its name as a"
                " command, so it cannot be downloaded",
            )
        return f"{self._path}/artifact/{address.path(*segments)}"

    def _doing(self, doing: str, artifact: Artifact) -> str:
        return f"{doing} '{shorten(artifact.path, _SHOWN)}' of {self._purpose}"


def _length_of(response: Incoming) -> str:
    return str(response.headers.get("Content-Length", ""))
