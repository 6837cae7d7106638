# SPDX-License-Identifier: GPL-3.0-or-later
"""List, clean and empty the trash [C2.5].

Written interface [W2.1, W4.1]: the trash lists repository keys. Server facts [repo-8]: an empty
trash is a 404; a deleted item is at `auto-trashcan/{repository}/{path}`; removing a missing item is
a 400.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ...core import address
from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.plan import Operation, Plan, ReadOnly, unchanged
from .. import repositories
from ..client import RepoClient, join, objects_of, refuse_glob, repository_key, segments

_TRASH = "api/storage/auto-trashcan"
#: Message for an item that is not in the trash; the status has other meanings too.
_NOT_THERE = "could not locate"


@dataclass(frozen=True)
class ArtifactTrashOptions:
    """The options of `artifact_trash`."""

    constraints: ClassVar[dict[str, Any]] = {"required_if": [("state", "clean", ["repo"])]}

    state: Literal["empty", "clean", "builds_clean", "listed"]
    repo: str | None = None
    path: str = ""
    project: str | None = None
    force: bool = False


class ArtifactTrashOperation:
    """List, clean or empty the trash, depending on the option `state`."""

    descriptor: ClassVar = Descriptor(
        "repo", {"list": reads("admin"), "clean": writes("admin"), "empty": writes("admin")}
    )

    def __init__(self, task: Task, options: ArtifactTrashOptions) -> None:
        self._operation = _operation(task, options)

    def plan(self) -> Plan:
        return self._operation.plan()

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        return self._operation.apply(plan)


def _operation(task: Task, options: ArtifactTrashOptions) -> Operation:
    client = RepoClient(task)
    if options.project is not None:
        repository_key("project", options.project)
        if options.state != "builds_clean":
            raise invalid("project goes with state=builds_clean")
    if options.state == "clean":
        return TrashCleaning(client, *_item(options))
    for name, given in (("repo", options.repo), ("path", options.path)):
        if given:
            raise invalid(f"{name} goes with state=clean")
    if options.state == "builds_clean":
        return TrashCleaning(client, client.builds_key(options.project), "", of_builds=True)
    if options.state == "empty":
        return TrashEmptying(client, task.warn)
    return TrashListing(client)


class TrashListing(ReadOnly):
    """The repositories with content in the trash."""

    def __init__(self, client: RepoClient) -> None:
        self._client = client

    def plan(self) -> Plan:
        return unchanged({"children": children(self._client)})


def _item(options: ArtifactTrashOptions) -> tuple[str, str]:
    repo, path = repository_key("repo", options.repo or ""), "/".join(segments(options.path))
    if path == "" and not options.force:
        raise invalid(
            f"path is empty, which means all that the trash has of '{repo}': force allows it"
        )
    refuse_glob(path)
    return repo, path


def children(client: RepoClient) -> list[str]:
    """Return the keys of the repositories with content in the trash."""
    found = _listed(client)
    if found is None:
        # an empty trash, if a repository manager responds at all
        repositories.listed(client)
    return found or []


def _listed(client: RepoClient) -> list[str] | None:
    """Return the keys in the trash; `None` for a 404: an empty trash, or no repository manager."""
    response = client.transport.read("listing the trash", _TRASH, expect=(200, 404))
    if response.status == 404:
        return None
    entries = objects_of(response, "children", "a listing of the trash")
    found = {join(str(each.get("uri") or "")).partition("/")[0] for each in entries}
    return sorted(found - {""})


class TrashEmptying:
    """Empty the trash."""

    def __init__(self, client: RepoClient, warn: Callable[[str], None]) -> None:
        self._client, self._warn = client, warn

    def plan(self) -> Plan:
        found = children(self._client)
        if not found:
            return unchanged({"children": []}, {"children": []})
        return Plan({"children": found}, {"children": []}, "delete", result={"children": []})

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        found = plan.before["children"]
        what = "emptying the trash"
        self._client.write(what, "POST", "api/trash/empty", verify=lambda: self._is_empty(found))
        left = children(self._client)
        if left:
            # server fact [repo-8]: 202; items deleted meanwhile are listed as well
            self._warn(f"emptying the trash: it still has something of {', '.join(left)}")
        return {"children": left}

    def _is_empty(self, found: list[str]) -> bool | None:
        """Return whether the trash is empty; `None` if something of `found` is left."""
        left = children(self._client)
        return None if left and left != found else not left


class TrashCleaning:
    """Remove an item, or all items of a repository, from the trash."""

    def __init__(
        self, client: RepoClient, repo: str, path: str, *, of_builds: bool = False
    ) -> None:
        self._client, self._repo, self._path = client, repo, path
        self._of_builds = of_builds

    def plan(self) -> Plan:
        if self._of_builds:
            found = children(self._client)
        else:
            found = _listed(self._client) or []
            if self._repo not in found:
                repositories.require(self._client, [self._repo])
        if self._is_there(found) is False:
            return unchanged({"children": found})
        name = join(self._repo, self._path)
        return Plan({name: "in the trash"}, {}, "delete", result={"children": found})

    def _is_there(self, found: list[str]) -> bool | None:
        """Return whether the item is in the trash; `None` if it is unknown."""
        if self._repo not in found or self._path == "":
            return self._repo in found
        if not self._client.dialect.trash_shows_items:
            return None
        response = self._client.transport.read(
            f"looking for '{self._repo}/{self._path}' in the trash",
            f"{_TRASH}/{self._address}",
            expect=(200, 400, 403, 404),
        )
        return {200: True, 404: False}.get(response.status)

    def _is_gone(self) -> bool | None:
        there = self._is_there(children(self._client))
        return None if there is None else not there

    @property
    def _address(self) -> str:
        return address.path(self._repo, *segments(self._path))

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        what, changed = f"cleaning '{self._repo}/{self._path}' out of the trash", True
        try:
            self._client.write(
                what,
                "DELETE",
                f"api/trash/clean/{self._address}",
                verify=self._is_gone,
                repeatable=True,
            )
        except ToolchainError as error:
            if error.status != 404 and _NOT_THERE not in (error.detail or "").lower():
                raise
            changed = error.resent
        left = children(self._client)
        # for a repository, items deleted meanwhile are listed as well
        if changed and self._path != "" and self._is_there(left):
            said = "the server reported success, but it is still there"
            raise ToolchainError("failed", f"{what}: {said}", result={"changed": False})
        return {"changed": changed, "children": left}
