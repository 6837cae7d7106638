# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse the one spelling of images [C2.11]: `repo/image:tag@sha256:digest`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.errors import ToolchainError, invalid
from .client import join, repository_key, segments

FORM = "repo/image:tag"
_SPELLED = re.compile(r"([^:@]+)(?::([^:@/]*))?(?:@(.*))?", re.DOTALL)
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class ImageReference:
    """An image in a repository, and the tag and digest that its spelling names."""

    repo: str
    name: str
    tag: str | None = None
    digest: str | None = None

    def __str__(self) -> str:
        """Return the image without tag and digest."""
        return f"{self.repo}/{self.name}"


def image_of(option: str, text: str, repo: str | None, repo_option: str = "repo") -> ImageReference:
    """Return the image that a string names. Raises `invalid`.

    :param repo: its repository, which may also begin the string; `None` if the first segment names
        it
    """
    spelled = _SPELLED.fullmatch(text)
    if spelled is None or not spelled[1].strip("/ "):
        raise _refused(option, text, f"does not name an image: write {FORM}")
    path, tag, digest = join(spelled[1]), spelled[2], spelled[3]
    if tag is not None and _TAG.fullmatch(tag) is None:
        raise _refused(
            option, text, f"has no valid tag: write {FORM} with a repository, not a host"
        )
    if digest is not None and _DIGEST.fullmatch(digest) is None:
        raise _refused(
            option, text, "has no valid digest: write @sha256: followed by 64 hexadecimal digits"
        )
    if repo is None:
        key, _slash, name = path.partition("/")
        if not name:
            raise _refused(option, text, f"has no repository: set {repo_option}, or write {FORM}")
        repo = repository_key(option, key)
    else:
        name = path.removeprefix(f"{repository_key(repo_option, repo)}/")
    segments(name)
    return ImageReference(repo, name, tag, digest)


def _refused(option: str, text: str, reason: str) -> ToolchainError:
    return invalid(f"{option}: '{text}' {reason}")
