# SPDX-License-Identifier: GPL-3.0-or-later
"""Which images a repository holds, and which tags they have [C2.11]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.concurrency import bounded
from ...core.errors import ToolchainError, invalid
from ...core.module.task import Task
from ...core.plan import Operation, Reading
from ..client import RepoClient, join, repository_key, segments
from . import registry


def operation(task: Task) -> Operation:
    """The tags of one image, or without C(image) all images with theirs. Raises C(invalid)."""
    if task.params["image"] is None:
        images = _images(task)
        return Reading(lambda: {"images": images()})
    tags = _tags(task)
    return Reading(lambda: {"tags": tags()})


def tags(task: Task) -> list[str]:
    """The tags of the image C(image) in C(repo), as the server orders them.

    Raises C(not_found) where there is no such image.
    """
    return _tags(task)()


def images(task: Task) -> list[dict[str, Any]]:
    """The images of C(repo): C(name) and C(tags) each. Raises C(not_found) where it is no
    repository of images.
    """
    return _images(task)()


def _client(task: Task) -> RepoClient:
    repository_key("repo", task.params["repo"])
    if task.params["page_size"] < 1:
        raise invalid("page_size: a page has at least one name")
    return RepoClient(task)


def _tags(task: Task) -> Callable[[], list[str]]:
    client, image = _client(task), task.params["image"]
    if not segments(image):
        raise invalid("image must not be empty")

    def read() -> list[str]:
        return _tags_of(client, task, join(image))

    return read


def _tags_of(client: RepoClient, task: Task, image: str) -> list[str]:
    repo = task.params["repo"]
    found = registry.tags(client, repo, image, page=task.params["page_size"])
    if found is None:
        said = f"there is no image '{image}' in '{repo}', or no right to see it"
        raise ToolchainError("not_found", said, status=404)
    return found


def _images(task: Task) -> Callable[[], list[dict[str, Any]]]:
    client, repo = _client(task), task.params["repo"]

    def describe(name: str) -> dict[str, Any]:
        try:
            return {"name": name, "tags": _tags_of(client, task, name)}
        except ToolchainError as error:
            # server fact [repo-23]: a catalog may list images whose tags the login cannot read, or
            # that went
            if error.kind not in ("permission", "not_found"):
                raise
            task.warn(f"the tags of '{repo}/{name}' cannot be read: {error.message}")
            return {"name": name, "tags": None}

    def read() -> list[dict[str, Any]]:
        names = registry.images(client, repo, page=task.params["page_size"])
        if names is None:
            said = f"there is no repository of images '{repo}', or no right to see it"
            raise ToolchainError("not_found", said, status=404)
        return list(bounded(client.connections, describe, names))

    return read
