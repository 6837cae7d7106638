# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse references to container images [C2.11]: `repo/image:tag@sha256:digest`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.errors import ToolchainError, invalid
from .client import join, repository_key, segments

FORM = "repo/image:tag"
#: Names of the file that marks a folder as a tag: a manifest, or the manifest list of a
#: multi-platform image.
INDEX = "list.manifest.json"
MANIFESTS = ("manifest.json", INDEX)
#: Prefixes of the folders of manifests without a tag [repo-34].
UNTAGGED = ("sha256:", "sha256__")
_REFERENCE = re.compile(r"([^:@]+)(?::([^:@/]*))?(?:@(.*))?", re.DOTALL)
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ATTACHED = re.compile(r"sha256-([0-9a-f]{64})(?:\.(?:sig|att|sbom))?")


@dataclass(frozen=True)
class ImageReference:
    """An image in a repository, with its tag and digest if the reference contains them."""

    repo: str
    name: str
    tag: str | None = None
    digest: str | None = None

    def __str__(self) -> str:
        """Return `repo/image`, without tag and digest."""
        return f"{self.repo}/{self.name}"


def image_of(option: str, text: str, repo: str | None, repo_option: str = "repo") -> ImageReference:
    """Parse the reference `text`, the value of `option`. Raises `invalid` if it is malformed.

    :param repo: repository of the image, whose key the reference may repeat; `None` means that the
        first segment of the reference is the repository
    :param repo_option: option that sets the repository, for the error message
    """
    parsed = _REFERENCE.fullmatch(text)
    if parsed is None or not parsed[1].strip("/ "):
        raise _malformed(option, text, f"does not name an image: write {FORM}")
    path, tag, digest = join(parsed[1]), parsed[2], parsed[3]
    refuse_plus(option, tag)
    if tag is not None and _TAG.fullmatch(tag) is None:
        raise _malformed(
            option, text, f"has no valid tag: write {FORM} with a repository, not a host"
        )
    if digest is not None and _DIGEST.fullmatch(digest) is None:
        raise _malformed(
            option, text, "has no valid digest: write @sha256: followed by 64 hexadecimal digits"
        )
    if repo is None:
        key, _slash, name = path.partition("/")
        if not name:
            raise _malformed(option, text, f"has no repository: set {repo_option}, or write {FORM}")
        repo = repository_key(option, key)
    else:
        name = path.removeprefix(f"{repository_key(repo_option, repo)}/")
    segments(name, option)
    return ImageReference(repo, name, tag, digest)


def refuse_plus(option: str, tag: str | None) -> None:
    """Raise `invalid` for a version of a Helm chart whose `+` no tag can contain [repo-25]."""
    if tag is not None and "+" in tag:
        stored = tag.replace("+", "_")
        reason = f"contains '+', which no tag can: Helm stores this version as '{stored}'"
        raise _malformed(option, tag, reason)


def require_tag(option: str, tag: str | None) -> None:
    """Raise `invalid` for a tag that no image can have."""
    refuse_plus(option, tag)
    if tag is not None and _TAG.fullmatch(tag) is None:
        reason = "is not a tag: use at most 128 letters, digits, '_', '.' and '-'"
        raise _malformed(option, tag, reason)


def subject_of(tag: str) -> str | None:
    """Return the digest of the image to which a tag is attached; `None` for other tags [repo-34].

    Such a tag contains signatures, attestations or an SBOM, or lists the referrers of the image.
    """
    parsed = _ATTACHED.fullmatch(tag)
    return None if parsed is None else f"sha256:{parsed[1]}"


def _malformed(option: str, text: str, reason: str) -> ToolchainError:
    return invalid(f"{option}: '{text}' {reason}")
