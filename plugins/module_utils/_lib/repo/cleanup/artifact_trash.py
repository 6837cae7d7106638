# SPDX-License-Identifier: GPL-3.0-or-later
"""Clean and empty the trash [C2.5].

Written interface [W2.1, W4.1]: the listing of the trash contains repository keys. Server facts
[repo-8]: listing an empty trash returns 404. A deleted item has the path
`auto-trashcan/{repository}/{path}`. Removing an item that is not in the trash returns 400.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal

from ...core import address
from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid, protocol
from ...core.finding import Finding
from ...core.module.descriptor import Descriptor, writes
from ...core.module.rules import Rule
from ...core.module.sealing import PlannedChange
from ...core.module.task import Task
from ...core.plan import Action, Plan
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
        raise protocol(f"{purpose}: the server truncated the result ({found.trimmed})")
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


class ArtifactTrashOperation:
    """Empty the trash, or remove an item or all items of a repository from it.

    Under a sealed plan, the items are removed file by file.
    """

    descriptor: ClassVar = Descriptor(SERVICE, {"clean": writes("admin"), "empty": writes("admin")})

    def __init__(self, task: Task, options: ArtifactTrashOptions) -> None:
        self._options, self._state, self._warn = options, options.state, task.warn
        self._client = RepoClient(task, connections=_PARALLEL)
        self._repo = self._path = ""
        if options.project is not None:
            repository_key("project", options.project)
        if options.state == "builds_clean":
            self._repo = self._client.builds_key(options.project)
        if options.state == "clean":
            self._repo = repository_key("repo", options.repo or "")
            self._path = "/".join(segments(options.path))
            if self._path == "" and not options.force:
                raise invalid(
                    f"path is empty, which means all items of '{self._repo}' in the trash: set"
                    " path, or set force=true to allow that"
                )
            refuse_glob(self._path)

    def plan(self) -> Plan:
        client = self._client
        if self._state == "empty":
            found = going = children(client)
        else:
            if self._state == "builds_clean":
                found = children(client)
            else:
                found = _listed(client) or []
                if self._repo not in found:
                    repositories.require(client, [self._repo])
            exists = _exists(client, self._repo, self._path, found) is not False
            going = [join(self._repo, self._path)] if exists else []
        parts = cache(lambda: [part for place in going for part in _planned(client, place)])
        return self._plan_of(_TrashState(found, going, parts))

    def _plan_of(self, state: _TrashState) -> Plan:
        action: Action = "delete" if state.going else "none"
        if self._state == "empty":
            left = {"children": [key for key in state.found if key not in state.going]}
            return Plan({"children": state.found}, left, action, result=left, data=state)
        before = dict.fromkeys(state.going, "in the trash")
        return Plan(before, {}, action, result={"children": state.found}, data=state)

    def parts(self, plan: Plan) -> list[PlannedChange]:
        """Return a change for each removed item, for a sealed plan."""
        state: _TrashState = plan.data
        return state.parts()

    def findings(self, plan: Plan, values: Mapping[str, Any]) -> list[Finding]:
        """Return a finding for each repository with items in the trash, or for the path."""
        place = join(self._options.repo or "", self._options.path) or self._state
        if not values["changed"]:
            return [Finding(place, "trash")]
        why = "the trash contains items from it"
        going = plan.data.going if self._state == "empty" else [place]
        return [Finding(one, "trash", "delete", text=why) for one in going]

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        """Return the plan without the removals at these positions in `parts()`."""
        parts = [part for number, part in enumerate(self.parts(plan)) if number not in places]
        left = {part.group for part in parts}
        going = [place for place in plan.data.going if place in left]
        return self._plan_of(_TrashState(plan.data.found, going, lambda: parts, sealed=True))

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        client, state = self._client, plan.data
        if state.sealed:
            removed: list[bool] = []

            def remove(part: PlannedChange) -> None:
                repo, _slash, path = part.name.partition("/")
                removed.append(_remove(client, repo, path))

            try:
                spread(_PARALLEL, remove, state.parts())
            except ToolchainError as error:
                error.result.setdefault("changed", any(removed))
                raise
            return {"changed": any(removed), "children": children(client)}
        if self._state == "empty":

            def is_empty() -> bool | None:
                left = children(self._client)
                return None if left and left != state.found else not left

            self._client.write("emptying the trash", "POST", "api/trash/empty", verify=is_empty)
            left = children(self._client)
            if left:
                # server fact [repo-8]: the server empties the trash after its response (202); the
                # list also contains items that were deleted meanwhile
                self._warn(f"emptying the trash: it still contains items from {', '.join(left)}")
            return {"children": left}
        changed = _remove(client, self._repo, self._path)
        left = children(client)
        # a repository may be listed again, because further items were deleted meanwhile
        if changed and self._path != "" and _exists(client, self._repo, self._path, left):
            purpose = _purpose(self._repo, self._path)
            raise without_effect(purpose, "the item is still in the trash", changed=False)
        return {"changed": changed, "children": left}


def _purpose(repo: str, path: str) -> str:
    return f"removing '{repo}/{path}' from the trash"


def _remove(client: RepoClient, repo: str, path: str) -> bool:
    """Remove an item, or all items of a repository; return whether the request removed any."""

    def is_gone() -> bool | None:
        exists = _exists(client, repo, path, children(client))
        return None if exists is None else not exists

    place = address.path(repo, *segments(path))
    try:
        client.write(
            _purpose(repo, path),
            "DELETE",
            f"api/trash/clean/{place}",
            verify=is_gone,
            repeatable=True,
        )
    except ToolchainError as error:
        if error.status != 404 and _NOT_THERE not in (error.detail or "").lower():
            raise
        return error.resent
    return True


def _exists(client: RepoClient, repo: str, path: str, found: list[str]) -> bool | None:
    """Return whether a repository or item is in the trash; `None` if that is unknown.

    :param found: keys of the repositories in the trash
    """
    if repo not in found or path == "":
        return repo in found
    if not client.dialect.trash_shows_items:
        return None
    response = client.transport.read(
        f"searching for '{repo}/{path}' in the trash",
        f"{_TRASH}/{address.path(repo, *segments(path))}",
        expect=(200, 400, 403, 404),
    )
    return {200: True, 404: False}.get(response.status)
