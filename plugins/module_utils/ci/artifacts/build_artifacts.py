# SPDX-License-Identifier: GPL-3.0-or-later
"""List, compare and download the artifacts of a build [ci-24]."""

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

#: `tree` query for the artifacts of a build.
FIELDS = "artifacts[fileName,relativePath],fingerprint[fileName,hash]"
_MAX_NAME_LENGTH = 200
_DIGEST = re.compile(r"[0-9a-fA-F]{32}")
#: Path segments that the server interprets as commands.
_COMMAND = re.compile(r"\*(zip|plain|view|fingerprint)\*")
_PAGE_NAME = re.compile(r"\.(x?html?|xhtml)$", re.IGNORECASE)


@dataclass(frozen=True)
class Artifact:
    """An artifact of a build.

    :param path: path relative to the artifacts of the build
    :param md5: the only digest that the server recorded under this path, or `None`
    :param likely: the only digest that the server recorded under this file name, or `None`; it may
        belong to a file that the build used
    """

    path: str
    md5: str | None
    likely: str | None

    @property
    def content(self) -> RemoteContent:
        """Return the expected digest of the downloaded file."""
        may_be_page = _PAGE_NAME.search(self.path) is not None
        return RemoteContent(None, "md5", self.md5, may_be_page)


def artifacts_of(shown: Mapping[str, Any]) -> list[Artifact]:
    """Return the artifacts of a build in the order of the response, without duplicate paths."""
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
    """Compares and downloads the artifacts of a build.

    :param path: path of the build below the URL of the server
    :param purpose: name of the build for messages
    """

    def __init__(self, server: Transport, path: str, purpose: str) -> None:
        self._server, self._path, self._purpose = server, path, purpose

    def is_at(self, artifact: Artifact, path: str, sha256: str) -> bool:
        """Return whether a local file has the content of the artifact.

        `artifact.md5` decides if it is known. `artifact.likely` can only prove that the contents
        are equal; if it differs, the artifact is downloaded to compare its SHA-256 digest. Without
        a digest, the sizes are compared.

        :param path: path of the local file
        :param sha256: digest of the local file
        """
        if artifact.md5 is not None:
            return artifact.content.is_at(path)
        if artifact.likely is not None:
            if RemoteContent(None, "md5", artifact.likely).is_at(path):
                return True
            return self._fetch_digests(artifact).sha256 == sha256
        size = self._size(artifact)
        if size is None:
            return self._fetch_digests(artifact).sha256 == sha256
        return RemoteContent(size).is_at(path)

    def save(self, artifact: Artifact, path: str) -> Fetched:
        purpose, source = self._purpose_of("fetching", artifact), self._artifact_path(artifact)
        return download_file(self._server, purpose, source, path, content=artifact.content)

    def _fetch_digests(self, artifact: Artifact) -> Fetched:
        purpose, source = self._purpose_of("comparing", artifact), self._artifact_path(artifact)
        return fetch_digests(self._server, purpose, source, content=artifact.content)

    def _size(self, artifact: Artifact) -> int | None:
        """Return the size of an artifact in bytes, or `None` if the server does not report it.

        Server fact [ci-24]: a server that stores artifacts on another host redirects to URLs that
        are only valid for GET. For these the size is read from a GET request without its body.
        """
        source = self._artifact_path(artifact)
        purpose = self._purpose_of("reading the size of", artifact)
        try:
            response = self._server.read(purpose, source, method="HEAD", headers=AS_STORED)
        except ToolchainError as error:
            if error.status not in REDIRECTS:
                raise
            length = download(
                self._server, purpose, source, _length_of, validate=lambda response: None
            )
        else:
            length = response.headers.get("Content-Length", "")
        size = number_of(length)
        return size if size is not None and size >= 0 else None

    def _artifact_path(self, artifact: Artifact) -> str:
        segments = artifact.path.split("/")
        if any(_COMMAND.fullmatch(segment) for segment in segments):
            raise ToolchainError(
                "rejected",
                f"{self._purpose_of('fetching', artifact)}: cannot download the artifact, because"
                " the server interprets its name as a command",
            )
        return f"{self._path}/artifact/{address.path(*segments)}"

    def _purpose_of(self, verb: str, artifact: Artifact) -> str:
        return f"{verb} '{shorten(artifact.path, _MAX_NAME_LENGTH)}' of {self._purpose}"


def _length_of(response: Incoming) -> str:
    return str(response.headers.get("Content-Length", ""))
