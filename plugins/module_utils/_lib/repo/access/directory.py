# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and write groups, users and permissions, with Access or with the older security API."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from ...core import address
from ...core.concurrency import first_alone
from ...core.errors import ToolchainError, not_found
from ...core.http.messages import Response
from ...core.http.paged_list import Page, read_all
from ...core.http.writes import Verify
from ...core.module.task import Task
from ...core.operations.objects import Item, ItemKind
from ...core.plan import Plan, plan, remaining, unordered
from ..client import (
    ACCESS,
    InterfaceMissing,
    PlatformClient,
    RepoClient,
    listed_objects,
    object_of,
    objects_of,
)

#: Maximum number of objects that are read without the list of names, which saves requests for
#: objects that do not exist.
_FEW = 1
_PARALLEL = 8
#: Status with which a proxy blocks the older API [repo-43].
_BLOCKED = 406

Read = TypeVar("Read")


@dataclass(frozen=True)
class Endpoints:
    """Endpoints of a type of objects.

    :param noun: singular for messages; its plural is the key of the list in a response of Access
    :param new: path of the endpoint below Access
    :param old: path of the endpoint below the repository manager (older API)
    :param keys: possible keys of the name in a list
    :param query: query with which the older API returns the whole object
    """

    noun: str
    new: str
    old: str
    keys: tuple[str, ...] = ("name",)
    query: tuple[tuple[str, str], ...] = ()

    @property
    def plural(self) -> str:
        return f"{self.noun}s"


GROUPS = Endpoints(
    "group",
    "api/v2/groups",
    "api/security/groups",
    ("group_name", "name"),
    (("includeUsers", "true"),),
)
USERS = Endpoints("user", "api/v2/users", "api/security/users", ("username", "name"))
PERMISSIONS = Endpoints("permission", "api/v2/permissions", "api/v2/security/permissions")


class Directory:
    """The objects of a type on the server.

    Requests go to Access if the server has it and it accepts the login, otherwise to the older API
    [repo-31]. The choice is stored for the connection.
    """

    def __init__(self, task: Task, kind: Endpoints) -> None:
        self._kind, self._task = kind, task
        self._access = PlatformClient(task, ACCESS, connections=_PARALLEL)
        self._repo = RepoClient(task, connections=_PARALLEL)

    @property
    def _choice(self) -> str:
        return f"access lacks {self._kind.plural}"

    @property
    def is_old(self) -> bool:
        """Return whether the older API is in use; valid after the first read."""
        return bool(self._access.transport.memory.get(self._choice))

    def _read_with(self, read: Callable[[bool], Read]) -> Read:
        """Read with Access, or with the older API if Access is missing or rejects the login.

        :param read: sends the read; its argument tells whether to the older API
        """
        rejected: ToolchainError | None = None
        if not self.is_old:
            try:
                return read(False)
            except ToolchainError as error:
                if not (isinstance(error, InterfaceMissing) or self._rejects_login(error)):
                    raise
                rejected = error
        try:
            found = read(True)
        except ToolchainError as error:
            # the error of Access may explain more than that of the older API
            is_login = rejected is not None and self._rejects_login(rejected)
            if error.kind == "not_found" or (is_login and error.kind in ("auth", "permission")):
                raise rejected or error from None
            if error.status == _BLOCKED:
                raise self._with_way_out(rejected or error) from None
            raise
        self._access.transport.memory[self._choice] = True
        return found

    def _with_way_out(self, error: ToolchainError) -> ToolchainError:
        """Add the hint to an error that a proxy blocks the older API."""
        return error.with_hint(
            f"the server responded {_BLOCKED} at {self._kind.old}, which a proxy may block: set"
            " token to a token that /access accepts, so that this API is not needed"
        )

    def _rejects_login(self, error: ToolchainError) -> bool:
        return error.status in (401, 403) and self._access.lacks_token()

    def names(self) -> list[str]:
        """Return the names of all objects."""
        rows = self._read_with(self._rows)
        found = (next((row[key] for key in self._kind.keys if row.get(key)), None) for row in rows)
        return [str(name) for name in found if name is not None]

    def _rows(self, old: bool) -> list[Mapping[str, Any]]:
        purpose, wanted = f"reading the {self._kind.plural}", f"a list of {self._kind.plural}"
        if old:
            response = self._repo.transport.read(purpose, self._kind.old)
            return listed_objects(response, response.json(), wanted)

        def ask(_start: int, cursor: Any) -> Page:
            query = None if cursor is None else {"cursor": cursor}
            response = self._access.read(purpose, self._kind.new, query=query, expect=(200, 404))
            if response.status == 404:  # an older Access lacks this endpoint
                raise self._access.missing(response)
            found = response.json()
            if isinstance(found, list):  # some versions return a list without pages [repo-42]
                return Page(response, {}, listed_objects(response, found, wanted))
            rows = objects_of(response, self._kind.plural, wanted)
            page = object_of(response, wanted)
            return Page(response, page, rows, page.get("cursor") or None)

        return read_all(ask)

    def read(self, name: str) -> Mapping[str, Any] | None:
        """Return an object in the format of the API in use; `None` if it does not exist."""
        return self._read_with(partial(self._object, name))

    def _object(self, name: str, old: bool) -> Mapping[str, Any] | None:
        response = self.response(name, old=old, expect=(200, 404))
        if response.status == 404:
            # raises if the server lacks this API, so that the 404 says nothing about the object
            self._rows(old)
            return None
        return object_of(response, f"a {self._kind.noun}")

    def response(self, name: str, *, old: bool, expect: Collection[int] = (200,)) -> Response:
        """Return the response to the read of an object with Access, or with the older API."""
        purpose = f"reading the {self._kind.noun} '{name}'"
        if not old:
            path = f"{self._kind.new}/{address.path(name)}"
            return self._access.read(purpose, path, expect=expect)
        path, query = f"{self._kind.old}/{address.path(name)}", dict(self._kind.query)
        return self._repo.transport.read(purpose, path, query=query, expect=expect)

    def read_many(self, names: Sequence[str]) -> dict[str, Mapping[str, Any] | None]:
        """Return objects by name; `None` for those that do not exist.

        Sends a request for the list of names, and a request per existing object.
        """
        wanted = list(dict.fromkeys(names))
        there: Collection[str] = wanted
        if len(wanted) > _FEW:
            there = {name.lower() for name in self.names()}
        asked = [name for name in wanted if name in there or name.lower() in there]
        found = dict(zip(asked, first_alone(_PARALLEL, self.read, asked), strict=True))
        return {name: found.get(name) for name in wanted}

    def read_all(self) -> dict[str, Mapping[str, Any]]:
        """Return all objects by name, with a request for the list and one for each object."""
        names = sorted(self.names())
        found = zip(names, first_alone(_PARALLEL, self.read, names), strict=True)
        return {name: row for name, row in found if row is not None}

    def require_known(self, option: str, names: Sequence[str]) -> None:
        """Raise `not_found` if an object does not exist, and no earlier task would create it.

        :param option: name of the option for the message
        """
        if not names:
            return
        # the server stores only the names of users in lower case [repo-42]
        there, predicted = set(self.names()), self._task.predictions
        if self._kind is USERS:
            there |= {name.lower() for name in there}
        unknown = [
            name
            for name in names
            if name not in there and not predicted.get(self._kind.noun, name.lower())
        ]
        if unknown:
            listed = "', '".join(unknown)
            raise not_found(f"{option}: there is no {self._kind.noun} '{listed}'")

    def write(
        self, purpose: str, method: str, path: str, verify: Verify, body: Any = None, **parts: Any
    ) -> Response:
        """Send a write to the API that served the reads.

        :param path: path below the endpoint of the type
        """
        sent = {**parts, **({} if body is None else {"json": body})}
        if self.is_old:
            path = f"{self._kind.old}{path}"
            try:
                return self._repo.write(purpose, method, path, verify=verify, **sent)
            except ToolchainError as error:
                if error.status == _BLOCKED:
                    raise self._with_way_out(error) from None
                raise
        return self._access.write(purpose, method, f"{self._kind.new}{path}", verify=verify, **sent)

    def create(self, name: str, body: Mapping[str, Any], verify: Verify) -> None:
        """Create an object. In the older API its name is part of the path."""
        purpose = f"creating the {self._kind.noun} '{name}'"
        method, path = ("PUT", f"/{address.path(name)}") if self.is_old else ("POST", "")
        self.write(purpose, method, path, verify, body)

    def update(self, name: str, body: Mapping[str, Any], verify: Verify) -> None:
        """Change the fields in `body`; other fields keep their values."""
        purpose = f"changing the {self._kind.noun} '{name}'"
        method = "POST" if self.is_old else "PATCH"
        self.write(purpose, method, f"/{address.path(name)}", verify, body, repeatable=True)

    def delete(self, name: str) -> None:
        """Delete an object; a missing object counts as deleted."""
        self.write(
            f"deleting the {self._kind.noun} '{name}'",
            "DELETE",
            f"/{address.path(name)}",
            lambda: self.read(name) is None,
            expect=(200, 202, 204, 404),
            repeatable=True,
        )


def own_account(task: Task) -> str | None:
    """Return the user name of the login in lower case; `None` if the server does not return it."""
    if task.connection.username:
        return task.connection.username.lower()
    try:
        response = PlatformClient(task, ACCESS).read(
            "reading the account of the login", "api/v1/tokens/me", expect=(200, 401, 403, 404)
        )
        subject = object_of(response, "a token").get("subject") if response.status == 200 else None
    except ToolchainError:
        return None
    return str(subject).rpartition("/users/")[2].lower() or None if subject else None


Mode: TypeAlias = Literal["exact", "add", "remove"]
Fields: TypeAlias = "dict[str, Any]"
Entry = TypeVar("Entry")


def merged(current: Iterable[str], names: Iterable[str], mode: str) -> list[str]:
    """Return the sorted members after the change.

    :param mode: `exact` replaces the current members by the names, `add` adds the names, `remove`
        removes them
    """
    before, named = set(current), set(names)
    after = {"exact": named, "add": before | named, "remove": before - named}[mode]
    return sorted(after)


class AccountKind(ItemKind[Entry, Fields]):
    """Base class for users and groups. The state of an item has the names of the options.

    :cvar kind: endpoints of the objects
    :cvar old: options, and the names of their fields in the older API
    :cvar links: field with the members of a group, or the groups of a user
    """

    kind: ClassVar[Endpoints]
    old: ClassVar[Mapping[str, str]]
    links: ClassVar[str]

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._directory = Directory(task, self.kind)
        self._comparisons = {self.links: unordered}

    @abstractmethod
    def fields(self, item: Item[Entry, Fields], row: Mapping[str, Any]) -> Fields:
        """Return the fields of an object in a response."""

    def shown(self, state: Fields | None) -> Fields | None:
        """Return the fields that plans and return values have."""
        return state

    def removal(self, current: Fields | None) -> Plan:
        """Return the plan that deletes an object.

        It has no members or groups: earlier tasks of the run change them, and the deletion would
        no longer be that of a sealed plan.
        """
        kept = None if current is None else {k: v for k, v in current.items() if k != self.links}
        return plan(kept, None).with_result(**{self.noun: None})

    def load(self, items: Sequence[Item[Entry, Fields]]) -> None:
        rows = self._directory.read_many([item.name for item in items])
        for item in items:
            row = rows[item.name]
            item.state = None if row is None else self.fields(item, row)

    def left(self, item: Item[Entry, Fields]) -> Plan | None:
        if item.plan.action == "delete":
            return None  # the server's response is enough
        row = self._directory.read(item.name)
        item.state = None if row is None else self.fields(item, row)
        shown = self.shown(item.state)
        item.returned = {self.noun: shown}
        # a server may store the name with other letter case
        return remaining(item.plan, shown, self._comparisons, ("name", "user_password"))

    def _has(self, item: Item[Entry, Fields], fields: Collection[str]) -> bool:
        """Read an object again, and return whether these fields have their new values."""
        left = self.left(item)
        return left is not None and {change.field for change in left.changes}.isdisjoint(fields)

    def _sent(self, fields: Mapping[str, Any]) -> Fields:
        """Return fields with the names of the API in use."""
        return {self.old[k] if self._directory.is_old else k: v for k, v in fields.items()}

    def _link(self, item: Item[Entry, Fields], before: Iterable[str], after: Iterable[str]) -> None:
        """Change the members of a group, or the groups of a user.

        Only Access has a separate request for them [repo-41, repo-42].
        """
        verify = partial(self._has, item, [self.links])
        if self._directory.is_old:
            self._directory.update(item.name, self._sent({self.links: sorted(after)}), verify)
            return
        old, new = set(before), set(after)
        change = {"add": sorted(new - old), "remove": sorted(old - new)}
        purpose = f"changing the {self.links} of the {self.noun} '{item.name}'"
        path = f"/{address.path(item.name)}/{self.links}"
        self._directory.write(purpose, "PATCH", path, verify, change, repeatable=True)

    def predict(self, item: Item[Entry, Fields]) -> None:
        self._task.predictions.follow(self.noun, item.name, item.plan.action)
