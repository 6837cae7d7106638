# SPDX-License-Identifier: GPL-3.0-or-later
"""Clean and empty the trash [C2.5].

Written interface [W2.1, W4.1]: the listing of the trash contains repository keys. Server facts
[repo-8]: listing an empty trash returns 404. A deleted item has the path
`auto-trashcan/{repository}/{path}`. Removing an item that is not in the trash returns 400.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, Protocol

from ...core import address
from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, writes
from ...core.module.rules import Rule
from ...core.module.sealing import Divisible, PlannedChange
from ...core.module.task import Task
from ...core.plan import Action, Operation, Plan
from ...core.verification import without_effect
from .. import aql, repositories
from ..client import RepoClient, join, objects_of, refuse_glob, repository_key, segments
from ..service import SERVICE

_KEY = "auto-trashcan"
_TRASH = f"api/storage/{_KEY}"
_PARALLEL = 4
#: Error message for an item that is not in the trash; its status 400 also has other meanings.
_NOT_THERE = "could not locate"


@dataclass(frozen=True)
class ArtifactTrashOptions:
    """The options of `artifact_trash`."""

    constraints: ClassVar[dict[str, Any]] = {"required_if": [("state", "clean", ["repo"])]}
    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("project", requires="state=builds_clean"),
        Rule("repo", "path", requires="state=clean"),
    )

    state: Literal["empty", "clean", "builds_clean"]
    repo: str | None = None
    path: str = ""
    project: str | None = None
    force: bool = False


class _TrashOperation(Operation, Divisible, Protocol):
    """Operation for a value of the option `state`."""


class ArtifactTrashOperation:
    """Clean or empty the trash, depending on the option `state`."""

    descriptor: ClassVar = Descriptor(SERVICE, {"clean": writes("admin"), "empty": writes("admin")})

    def __init__(self, task: Task, options: ArtifactTrashOptions) -> None:
        self._operation = _operation(task, options)

    def plan(self) -> Plan:
        return self._operation.plan()

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        return self._operation.apply(plan)

    def parts(self, plan: Plan) -> list[PlannedChange]:
        """Return a change for each removed item, for a sealed plan."""
        return list(self._operation.parts(plan))

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        """Return the plan without the removals at these positions in `parts()`."""
        return self._operation.leave_out(plan, places)


def _operation(task: Task, options: ArtifactTrashOptions) -> _TrashOperation:
    client = RepoClient(task, connections=_PARALLEL)
    if options.project is not None:
        repository_key("project", options.project)
    if options.state == "clean":
        return TrashCleaning(client, *_item(options))
    if options.state == "builds_clean":
        return TrashCleaning(client, client.builds_key(options.project), "", of_builds=True)
    return TrashEmptying(client, task.warn)


def _item(options: ArtifactTrashOptions) -> tuple[str, str]:
    repo, path = repository_key("repo", options.repo or ""), "/".join(segments(options.path))
    if path == "" and not options.force:
        raise invalid(
            f"path is empty, which means all items of '{repo}' in the trash: set path, or set"
            " force=true to allow that"
        )
    refuse_glob(path)
    return repo, path


def children(client: RepoClient) -> list[str]:
    """Return the keys of the repositories that have items in the trash."""
    found = _listed(client)
    if found is None:
        # raises if the 404 came from another kind of server
        repositories.listed(client)
    return found or []


def _listed(client: RepoClient) -> list[str] | None:
    """Return the repository keys in the trash; `None` after a 404.

    The status is 404 if the trash is empty, or if this is not a repository manager.
    """
    response = client.transport.read("listing the trash", _TRASH, expect=(200, 404))
    if response.status == 404:
        return None
    entries = objects_of(response, "children", "a listing of the trash")
    found = {join(str(entry.get("uri") or "")).partition("/")[0] for entry in entries}
    return sorted(found - {""})


def _planned(client: RepoClient, place: str) -> Iterator[PlannedChange]:
    """Yield a change for each file that is removed with a repository or an item.

    If the server only lists repository keys, yield a single change. An earlier task of the run may
    have moved the files to the trash.

    :param place: repository key, or `repository/path`
    """
    items = _items(client, place) if client.dialect.trash_shows_items else []
    if not items:
        yield PlannedChange(place, None, "in the trash", None, group=place, follows=True)
    for item in items:
        name = join(str(item["path"]), str(item["name"]))
        yield PlannedChange(name, None, item, None, group=place, follows=True)


def _items(client: RepoClient, place: str) -> list[dict[str, Any]]:
    """Return the files at a path in the trash or below it, sorted [repo-8]."""
    purpose = f"listing '{place}' in the trash"
    folder, _slash, name = place.rpartition("/")
    places: list[dict[str, Any]] = [{"path": place}, {"path": {"$match": f"{place}/*"}}]
    if folder:
        places.append({"$and": [{"path": folder}, {"name": name}]})
    fields = ("path", "name", "size", "actual_sha1", "modified")
    found = aql.ask(client, purpose, aql.items({"repo": _KEY, "$or": places}, fields))
    if found.trimmed:
        raise ToolchainError(
            "protocol", f"{purpose}: the server truncated the result ({found.trimmed})"
        )
    items = [{name: row.get(name) for name in fields} for row in found.rows]
    return sorted(items, key=lambda item: (str(item["path"]), str(item["name"])))


@dataclass(frozen=True)
class _TrashState:
    """Data of a plan.

    :param found: keys of the repositories in the trash
    :param going: keys of the repositories to remove, or the path of the item
    :param parts: returns a change for each file to remove; sends requests at the first call
    :param sealed: whether only these files are removed, not whole repositories
    """

    found: list[str]
    going: list[str]
    parts: Callable[[], list[PlannedChange]]
    sealed: bool = False


class _Removal(ABC):
    """Removal from the trash, with a single request or, under a sealed plan, file by file."""

    def __init__(self, client: RepoClient) -> None:
        self._client = client

    @abstractmethod
    def _plan_of(self, state: _TrashState) -> Plan:
        """Return the plan for a state of the trash."""

    @abstractmethod
    def _remove(self, found: list[str]) -> Mapping[str, Any]:
        """Remove the whole content with a single request; return the return values."""

    def _full_plan(self, found: list[str], going: list[str]) -> Plan:
        client = self._client
        parts = cache(lambda: [part for place in going for part in _planned(client, place)])
        return self._plan_of(_TrashState(found, going, parts))

    def parts(self, plan: Plan) -> list[PlannedChange]:
        state: _TrashState = plan.data
        return state.parts()

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        parts = [part for number, part in enumerate(self.parts(plan)) if number not in places]
        left = {part.group for part in parts}
        going = [place for place in plan.data.going if place in left]
        return self._plan_of(_TrashState(plan.data.found, going, lambda: parts, sealed=True))

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        state: _TrashState = plan.data
        return self._remove_parts(state.parts()) if state.sealed else self._remove(state.found)

    def _remove_parts(self, parts: list[PlannedChange]) -> Mapping[str, Any]:
        removed: list[bool] = []

        def remove(part: PlannedChange) -> None:
            repo, _slash, path = part.name.partition("/")
            removed.append(TrashCleaning(self._client, repo, path).send())

        try:
            spread(_PARALLEL, remove, parts)
        except ToolchainError as error:
            error.result.setdefault("changed", any(removed))
            raise
        return {"changed": any(removed), "children": children(self._client)}


class TrashEmptying(_Removal):
    """Empty the trash."""

    def __init__(self, client: RepoClient, warn: Callable[[str], None]) -> None:
        super().__init__(client)
        self._warn = warn

    def plan(self) -> Plan:
        found = children(self._client)
        return self._full_plan(found, found)

    def _plan_of(self, state: _TrashState) -> Plan:
        left = {"children": [key for key in state.found if key not in state.going]}
        action: Action = "delete" if state.going else "none"
        return Plan({"children": state.found}, left, action, result=left, data=state)

    def _remove(self, found: list[str]) -> Mapping[str, Any]:
        purpose = "emptying the trash"
        self._client.write(purpose, "POST", "api/trash/empty", verify=lambda: self._is_empty(found))
        left = children(self._client)
        if left:
            # server fact [repo-8]: the server empties the trash after its response (202); the list
            # also contains items that were deleted meanwhile
            self._warn(f"emptying the trash: it still contains items from {', '.join(left)}")
        return {"children": left}

    def _is_empty(self, found: list[str]) -> bool | None:
        """Return whether the trash is empty; `None` if it contains other repositories than before.

        :param found: keys of the repositories in the trash before the request
        """
        left = children(self._client)
        return None if left and left != found else not left


class TrashCleaning(_Removal):
    """Remove an item, or all items of a repository, from the trash."""

    def __init__(
        self, client: RepoClient, repo: str, path: str, *, of_builds: bool = False
    ) -> None:
        super().__init__(client)
        self._repo, self._path = repo, path
        self._of_builds = of_builds

    def plan(self) -> Plan:
        if self._of_builds:
            found = children(self._client)
        else:
            found = _listed(self._client) or []
            if self._repo not in found:
                repositories.require(self._client, [self._repo])
        exists = self._exists(found) is not False
        return self._full_plan(found, [join(self._repo, self._path)] if exists else [])

    def _plan_of(self, state: _TrashState) -> Plan:
        before = dict.fromkeys(state.going, "in the trash")
        action: Action = "delete" if before else "none"
        return Plan(before, {}, action, result={"children": state.found}, data=state)

    def _exists(self, found: list[str]) -> bool | None:
        """Return whether the repository or item is in the trash; `None` if that is unknown.

        :param found: keys of the repositories in the trash
        """
        if self._repo not in found or self._path == "":
            return self._repo in found
        if not self._client.dialect.trash_shows_items:
            return None
        response = self._client.transport.read(
            f"searching for '{self._repo}/{self._path}' in the trash",
            f"{_TRASH}/{self._address}",
            expect=(200, 400, 403, 404),
        )
        return {200: True, 404: False}.get(response.status)

    def _is_gone(self) -> bool | None:
        exists = self._exists(children(self._client))
        return None if exists is None else not exists

    @property
    def _address(self) -> str:
        return address.path(self._repo, *segments(self._path))

    @property
    def _purpose(self) -> str:
        return f"removing '{self._repo}/{self._path}' from the trash"

    def send(self) -> bool:
        """Send the request; return whether it removed an item."""
        try:
            self._client.write(
                self._purpose,
                "DELETE",
                f"api/trash/clean/{self._address}",
                verify=self._is_gone,
                repeatable=True,
            )
        except ToolchainError as error:
            if error.status != 404 and _NOT_THERE not in (error.detail or "").lower():
                raise
            return error.resent
        return True

    def _remove(self, found: list[str]) -> Mapping[str, Any]:
        changed = self.send()
        left = children(self._client)
        # a repository may be listed again, because further items were deleted meanwhile
        if changed and self._path != "" and self._exists(left):
            raise without_effect(self._purpose, "the item is still in the trash", changed=False)
        return {"changed": changed, "children": left}
