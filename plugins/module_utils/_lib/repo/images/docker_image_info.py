# SPDX-License-Identifier: GPL-3.0-or-later
"""List the images of a repository, and their tags [C2.11]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.concurrency import bounded
from ...core.errors import ToolchainError, not_found
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Positive
from ...core.plan import Plan, ReadOnly, unchanged
from ..client import RepoClient, repository_key
from ..image_names import ImageReference, image_of, subject_of
from ..service import SERVICE
from . import registry


@dataclass(frozen=True)
class DockerImageInfoOptions:
    """The options of `docker_image_info`."""

    constraints: ClassVar[dict[str, Any]] = {"required_one_of": [["repo", "image"]]}

    repo: str | None = None
    image: str | None = None
    page_size: Positive = 1000
    attached: bool = False


class DockerImageInfoOperation(ReadOnly):
    """Read the tags of an image, or without `image` those of all images."""

    descriptor: ClassVar = Descriptor(SERVICE, {"images": reads("read"), "tags": reads("read")})

    def __init__(self, task: Task, options: DockerImageInfoOptions) -> None:
        self._image = None
        if options.image is not None:
            self._image = image_of("image", options.image, options.repo)
        repo = self._image.repo if self._image is not None else options.repo or ""
        self._repo = repository_key("repo", repo)
        self._page_size, self._attached = options.page_size, options.attached
        self._client, self._warn = RepoClient(task), task.warn

    def plan(self) -> Plan:
        if self._image is None:
            return unchanged({"images": self.images()})
        return unchanged({"tags": self.tags(self._image)})

    def tags(self, image: ImageReference) -> list[str]:
        """Return the tags of an image in the server's order.

        A reference with a tag or a digest selects the matching tags only. Attached tags [repo-34]
        are left out, unless the reference contains one. Raises `not_found` if there is no such
        image or tag.
        """
        found = registry.tags(self._client, image.repo, image.name, page=self._page_size)
        if found is None:
            message = (
                f"there is no image '{image.name}' in '{image.repo}', or the account cannot see it"
            )
            raise not_found(message, status=404)
        named = found if image.tag is None else [tag for tag in found if tag == image.tag]
        if not (self._attached or image.tag or image.digest):
            named = [tag for tag in found if subject_of(tag) is None]
        if image.digest is not None:
            named = registry.with_digest(self._client, image, named)
        missing = image.digest or (image.tag and f"tag '{image.tag}'")
        if missing and not named and found:
            raise not_found(f"the image '{image}' has no {missing}", status=404)
        return named

    def named(self) -> list[dict[str, Any]]:
        """Return the image that the options select, or all images, each with `name` and `tags`."""
        image = self._image
        return self.images() if image is None else [{"name": image.name, "tags": self.tags(image)}]

    def images(self) -> list[dict[str, Any]]:
        """Return all images of the repository, each with `name` and `tags`.

        Raises `not_found` if there is no such container repository.
        """
        names = registry.images(self._client, self._repo, page=self._page_size)
        if names is None:
            message = (
                f"there is no container repository '{self._repo}', or the account cannot see it"
            )
            raise not_found(message, status=404)
        return list(bounded(self._client.connections, self._described, names))

    def _described(self, name: str) -> dict[str, Any]:
        try:
            return {"name": name, "tags": self.tags(ImageReference(self._repo, name))}
        except ToolchainError as error:
            # server fact [repo-23]: a catalog may list images whose tags the login cannot read, or
            # that were deleted
            if error.kind not in ("permission", "not_found"):
                raise
            self._warn(f"cannot read the tags of '{self._repo}/{name}': {error.message}")
            return {"name": name, "tags": None}
