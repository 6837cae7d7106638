# SPDX-License-Identifier: GPL-3.0-or-later
"""What versions, components and roles of projects share [tracker-15, tracker-29, tracker-30]."""

from __future__ import annotations

import re
import unicodedata
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

from ...core.address import path
from ...core.concurrency import first_alone
from ...core.errors import ToolchainError, conflict, invalid, not_found
from ...core.http.messages import expected, json_or_none, unexpected_body
from ...core.json_text import as_text, member
from ...core.module.authorship import Author, author, last_of
from ...core.module.task import Task
from ...core.module.typed_options import Option, Segment
from ...core.operations.objects import Item, ItemKind
from ...core.plan import Comparison, Plan, plan, remaining, unchanged, without_none
from ..accounts import lacking, reject_missing
from ..client import TrackerClient
from ..issues.documents import plain_lines

API = "rest/api/2"
_PARALLEL = 4
_LONGEST = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: Number of records of the audit log that are read for an object.
_RECORDS = 100
#: Types of objects in the audit log [tracker-43].
_AUDITED = {"version": "VERSION", "component": "PROJECT_COMPONENT"}


def name_key(name: str) -> str:
    """Return the same string for all spellings of a name: letter case, Unicode composition."""
    return unicodedata.normalize("NFC", name.strip()).lower()


def same_name(name: str, other: str) -> bool:
    """Return whether a server treats two names as equal [tracker-17]."""
    return name_key(name) == name_key(other)


def same_lines(current: Any, desired: Any) -> tuple[bool, Any]:
    """Compare strings with normalized line ends, for `core.plan`."""
    return plain_lines(current or "") == plain_lines(desired), desired


@dataclass(frozen=True)
class ProjectEntry:
    """The option that versions, components and roles share."""

    project: Segment

    def check(self) -> None:
        """Raise `invalid` for an id, which would be another name of the same project."""
        if self.project.isdecimal():
            raise invalid(f"project is '{self.project}': write the key of the project, not its id")


@dataclass(frozen=True)
class NamedEntry(ProjectEntry):
    """The options that versions and components share."""

    name: str
    new_name: str | None = None
    description: Annotated[str | None, Option(empty=True)] = None
    state: str = "present"

    @property
    def last_name(self) -> str:
        """Return the name of the object after the task."""
        return self.new_name or self.name

    def check(self) -> None:
        """Raise `invalid` for a name that the server would reject."""
        super().check()
        for option in ("name", "new_name"):
            name = (getattr(self, option) or "").strip()
            if len(name) > _LONGEST:
                raise invalid(f"{option} has more than {_LONGEST} characters")
            if _CONTROL.search(name):
                raise invalid(f"{option} contains a line break, a tab or another control character")


Entry = TypeVar("Entry", bound=ProjectEntry)
Named = TypeVar("Named", bound=NamedEntry)
State = TypeVar("State")


class ProjectKind(ItemKind[Entry, State]):
    """Objects of projects. Each project is read once, for all its entries.

    If that read fails, only the entries of the project fail.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._client = TrackerClient(task)
        self._lacking: dict[str, list[str]] = {}

    @abstractmethod
    def read_project(self, key: str) -> State:
        """Read the objects of a project."""

    def key(self, entry: Entry) -> str:
        return name_key(self.name(entry))

    def load(self, items: Sequence[Item[Entry, State]]) -> None:
        def read(key: str) -> State | ToolchainError:
            try:
                return self.read_project(key)
            except ToolchainError as error:
                return error

        keys = list(dict.fromkeys(item.entry.project for item in items))
        found = dict(zip(keys, first_alone(_PARALLEL, read, keys), strict=True))
        for item in items:
            state = found[item.entry.project]
            if isinstance(state, ToolchainError):
                item.error = state
            else:
                item.state = state

    def foresee(self, item: Item[Entry, State]) -> None:
        project = item.entry.project
        if project not in self._lacking:
            needed = ["ADMINISTER_PROJECTS"]
            self._lacking[project] = lacking(self._client, needed, projectKey=project)
        name = item.name.removeprefix(f"{project}/")
        purpose = f"the {self.noun} '{name}' of the project '{project}'"
        reject_missing(purpose, self._lacking[project])


@dataclass(frozen=True)
class ProjectObject:
    """A version or component on the server.

    :param record: the object as the server describes it
    :param values: the values that can be changed, by the name of the option
    """

    id: str
    record: Mapping[str, Any]
    values: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.values["name"])


@dataclass(frozen=True)
class ProjectState:
    """The versions or components of a project, in its order, as read before the task.

    :param read_at: time of that read by the server's clock, or None
    :param now: the managed object after its write
    """

    objects: list[ProjectObject]
    read_at: datetime | None
    now: ProjectObject | None = None

    def named(self, name: str) -> ProjectObject | None:
        """Return the object with a name: the exact one, if the letter case of several differs."""
        found = [one for one in self.objects if same_name(one.name, name)]
        return next((one for one in found if one.name == name.strip()), next(iter(found), None))


ObjectItem: TypeAlias = Item[Named, ProjectState]


class ProjectObjectKind(ProjectKind[Named, ProjectState]):
    """Versions or components. The data of a plan are two objects: as it is before the task, and
    the one that gets its issues.

    :cvar no_project: hint for the error of a missing project
    :cvar comparisons: comparisons of values, by the name of the option
    :cvar blank: values of an object for which no option is set
    """

    no_project: ClassVar[str] = "the project does not exist, or the account cannot see it"
    comparisons: ClassVar[Mapping[str, Comparison]]
    blank: ClassVar[Mapping[str, Any]]

    # -- what differs between versions and components ---------------------------------------------

    @abstractmethod
    def values(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of an object, by the name of the option."""

    @abstractmethod
    def members(self, wanted: Mapping[str, Any], *, is_new: bool) -> dict[str, Any]:
        """Return wanted values as members of a request."""

    @abstractmethod
    def delete(
        self, item: ObjectItem[Named], found: ProjectObject, target: ProjectObject | None
    ) -> ProjectObject | None:
        """Delete an object. Move its issues to `target`, or only remove it from them if None.

        Returns the object if the server still has it.
        """

    def update(
        self, item: ObjectItem[Named], found: ProjectObject, target: ProjectObject | None
    ) -> ProjectObject | None:
        """Write what differs from the plan, and return the object as stored.

        Returns None if the object does not exist any more.
        """
        return self.put(item, found)

    def shown(self, project: str, number: str | None, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return an object as return value. `number`: its id; None for a new object."""
        return {"id": number, **values}

    # -- planning ---------------------------------------------------------------------------------

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        #: Keys of the names that earlier entries give to objects, and that they take from objects.
        self._coming: set[str] = set()
        self._going: set[str] = set()
        #: Keys of the new names of objects that are renamed already.
        self._renamed: set[str] = set()

    def name(self, entry: Named) -> str:
        return f"{entry.project}/{entry.name}"

    def key(self, entry: Named) -> str:
        return _key(entry.project, entry.name)

    def load(self, items: Sequence[Item[Named, ProjectState]]) -> None:
        _reject_contradictions(self.noun, items)
        for names in (self._coming, self._going, self._renamed):
            names.clear()
        super().load(items)
        # backwards: an object with the name of an entry may be the one that a later entry has
        # given this name in an earlier run
        for item in reversed(items):
            entry = item.entry
            if entry.new_name is None or item.state is None:
                continue
            key = _key(entry.project, entry.new_name)
            is_former = item.state.named(entry.name) is None or self.key(entry) in self._renamed
            if is_former and item.state.named(entry.new_name) is not None:
                self._renamed.add(key)

    def read_project(self, key: str) -> ProjectState:
        purpose = f"reading the {self.noun}s of the project '{key}'"
        try:
            response = self._client.read(purpose, f"{API}/project/{path(key)}/{self.noun}s")
        except ToolchainError as error:
            if error.status == 404:
                error.with_hint(self.no_project)
            raise
        records = response.json()
        found = (
            [self._parsed(record) for record in records] if isinstance(records, list) else [None]
        )
        objects = [one for one in found if one is not None]
        if len(objects) < len(found):
            raise unexpected_body(response, f"a list of {self.noun}s")
        return ProjectState(objects, response.date)

    def _parsed(self, record: Any) -> ProjectObject | None:
        """Parse an object. Return None if the JSON value has no number as id, or no name."""
        number, name = (as_text(member(record, key)) for key in ("id", "name"))
        if not number.isdecimal() or not name:
            return None
        return ProjectObject(number, record, self.values(record))

    def known(self, item: ObjectItem[Named]) -> ProjectState:
        if item.state is None:
            raise AssertionError("load() has read the project of every compared object")
        return item.state

    def managed(self, item: ObjectItem[Named]) -> ProjectObject | None:
        """Return the object with the old or the new name, or None.

        Raises `conflict` if two objects have the old and the new name.
        """
        entry, known = item.entry, self.known(item)
        found, renamed = known.named(entry.name), None
        if entry.new_name is not None and not self._is_free(entry.project, entry.new_name):
            renamed = known.named(entry.new_name)
        if renamed is not None and self.key(entry) in self._renamed:
            return renamed
        if found is not None and renamed is not None and found.id != renamed.id:
            raise conflict(
                f"renaming the {self.noun} '{entry.name}' of the project '{entry.project}': the"
                f" {self.noun} '{renamed.name}' already exists"
            )
        return found or renamed

    def _is_free(self, project: str, name: str) -> bool:
        """Return whether an earlier entry, or an earlier task in check mode, takes this name from
        its object.
        """
        place = (self.noun, project, name.lower())
        return _key(project, name) in self._going or self._task.predictions.is_free(*place)

    def desired(self, entry: Named, current: ProjectObject | None, **values: Any) -> dict[str, Any]:
        """Return the desired values of the options that are set."""
        name = entry.new_name or (entry.name if current is None else current.name)
        return without_none({"name": name.strip(), "description": entry.description, **values})

    def planned(
        self, item: ObjectItem[Named], current: ProjectObject | None, wanted: dict[str, Any]
    ) -> Plan:
        """Return the plan for the desired values, with the object as return value."""
        found = plan(None if current is None else current.values, wanted, self.comparisons)
        self._coming.add(_key(item.entry.project, wanted["name"]))
        if current is not None and not same_name(current.name, wanted["name"]):
            self._going.add(_key(item.entry.project, current.name))
        values = {**self.blank, **found.before, **found.after}
        number = None if current is None else current.id
        shown = self.shown(item.entry.project, number, values)
        return found.with_result(**{self.noun: shown}).with_data((current, None))

    def removal(self, item: ObjectItem[Named], option: str, name: str | None) -> Plan:
        """Return the plan for the deletion of an object.

        :param option: option with the object that gets its issues
        :param name: value of that option
        """
        current = self.known(item).named(item.entry.name)
        if current is None or self.key(item.entry) in self._renamed:
            self.reject_pattern(item.entry.name)
            return unchanged({self.noun: None})
        target = None if name is None else self.target(item, option, name)
        self._going.add(self.key(item.entry))
        found = plan(current.values, None)
        if target is not None:  # in the diff, so that a sealed plan contains it
            found.after[option] = target.name
        return found.with_result(**{self.noun: None}).with_data((current, target))

    def target(self, item: ObjectItem[Named], option: str, name: str) -> ProjectObject:
        """Return the object that gets issues of another one. Raises `not_found`."""
        project, found = item.entry.project, None
        if _key(project, name) not in self._going:
            found = self.known(item).named(name)
        if found is None and self.is_predicted(project, name):
            return ProjectObject("", {}, {**self.blank, "name": name})
        if found is None:
            message = f"{option}: the project '{project}' has no {self.noun} '{name}'"
            raise not_found(message)
        return found

    def is_predicted(self, project: str, name: str) -> bool:
        """Return whether an earlier entry creates this object, or gives this name to another, or
        an earlier task in check mode would.
        """
        key = _key(project, name)
        if key in self._coming or key in self._going:
            return key in self._coming
        return self._task.predictions.get(self.noun, project, name.lower()) is not None

    def reject_pattern(self, name: str) -> None:
        """Raise `invalid` for a name with wildcards."""
        if "*" in name or "?" in name:
            raise invalid(f"name: '{name}' contains wildcards, but must name a single {self.noun}")

    # -- writing ----------------------------------------------------------------------------------

    def write(self, item: ObjectItem[Named]) -> None:
        """Delete or create the object, or change what differs.

        A server ignores some values of a new object, which a second request then sets.
        """
        current, target = item.plan.data
        if target is not None and not target.id:  # an earlier entry has created it
            project, name = item.entry.project, target.name
            target = self.read_project(project).named(name)
            if target is None:
                missing = f"the project '{project}' has no {self.noun} '{name}'"
                raise not_found(missing)
        now: ProjectObject | None = current
        if item.plan.action == "delete":
            now = self.delete(item, current, target)
        else:
            created = self._created(item) if current is None else current
            now = self.update(item, created, target) if self.left_of(item, created) else created
            if now is not None:
                shown = self.shown(item.entry.project, now.id, now.values)
                item.returned = {self.noun: shown}
        item.state = replace(self.known(item), now=now)

    def left(self, item: ObjectItem[Named]) -> Plan:
        """Compare the object as it was read after the last write."""
        now = self.known(item).now
        return remaining(item.plan, None if now is None else now.values, self.comparisons)

    def left_of(self, item: ObjectItem[Named], now: ProjectObject) -> dict[str, Any]:
        """Return the planned values that an object does not have, by the name of the option."""
        left = remaining(item.plan, now.values, self.comparisons)
        return {change.field: change.after for change in left.changes}

    def _created(self, item: ObjectItem[Named]) -> ProjectObject:
        """Create an object. If another user created it at the same time, return that object.

        Server fact [tracker-18]: 404 means a missing permission here. The project exists, because
        it was read before.
        """
        project, wanted = item.entry.project, item.plan.after
        name = str(wanted["name"])
        try:
            response = self._client.write(
                f"creating the {self.noun} '{name}' of the project '{project}'",
                "POST",
                f"{API}/{self.noun}",
                json={**self.members(wanted, is_new=True), "project": project},
                verify=lambda: self.read_project(project).named(name) is not None,
            )
        except ToolchainError as error:
            if error.status == 404:
                raise as_permission(error) from None
            found = None
            if error.status in (400, 409):
                found = self.read_project(project).named(name)
            if found is None:
                raise
            return found
        made = self._parsed(json_or_none(response.body))
        created = self.read_project(project).named(name) if made is None else self.read(made)
        if created is None:
            reason = f"the server accepted the request, but the {self.noun} does not exist"
            raise response.error("protocol", reason)
        return created

    def put(
        self, item: ObjectItem[Named], found: ProjectObject, **more: Any
    ) -> ProjectObject | None:
        """Send what differs from the plan, and return the object as stored.

        :param more: other members of the request
        """

        def done() -> bool:
            now = self.read(found)
            return now is not None and not self.left_of(item, now)

        self._client.write(
            f"changing the {self.noun} '{found.name}' of the project '{item.entry.project}'",
            "PUT",
            self.route(found),
            json={**self.members(self.left_of(item, found), is_new=False), **more},
            verify=done,
            repeatable=True,
        )
        return self.read(found)

    def send_deletion(
        self, item: ObjectItem[Named], found: ProjectObject, method: str, *below: str, **parts: Any
    ) -> ProjectObject | None:
        """Send the request that deletes an object. Return the object if the server still has it."""
        self._client.write(
            f"deleting the {self.noun} '{found.name}' of the project '{item.entry.project}'",
            method,
            self.route(found, *below),
            **parts,
            verify=lambda: self.read(found) is None,
            repeatable=True,
        )
        return self.read(found)

    def read(self, found: ProjectObject) -> ProjectObject | None:
        """Read an object again. Return None if it does not exist any more."""
        purpose = f"reading the {self.noun} '{found.name}'"
        response = self._client.read(purpose, self.route(found), expect=(200, 404))
        if response.status == 404:
            return None
        current = self._parsed(response.json())
        if current is None:
            raise unexpected_body(response, f"a {self.noun}")
        return current

    def count(self, found: ProjectObject, issues: str, address: str, member: str) -> int:
        """Return the number of issues with an object, including issues that are not visible.

        :param issues: the counted issues, for messages
        :param address: route of the count, below the object
        :param member: member of the response that contains the count
        """
        purpose = f"counting the {issues} of the {self.noun} '{found.name}'"
        response = self._client.read(purpose, self.route(found, address))
        return expected(response, int, "a number of issues", member)

    def route(self, found: ProjectObject, *below: str) -> str:
        return f"{API}/{self.noun}/{path(found.id, *below)}"

    # -- reports and predictions ------------------------------------------------------------------

    def author(self, item: ObjectItem[Named]) -> Author:
        """Return who changed the object last, by the audit log [tracker-43].

        Only administrators may read the log. A record is about the object if type and id are equal.
        """
        found = self.known(item).named(item.entry.name)
        query = {"filter": item.entry.name, "limit": _RECORDS}
        purpose = f"searching the audit log for the {self.noun} '{item.name}'"
        shown = self._client.read_optional(purpose, f"{API}/auditing/record", query=query)
        listed = member(shown, "records")
        records = [
            record
            for record in (listed if isinstance(listed, list) else ())
            if member(record, "objectItem", "typeName") == _AUDITED[self.noun]
            and found is not None
            and str(member(record, "objectItem", "id")) == found.id
        ]
        last = last_of(records, "created")
        accounts = [member(last, name) for name in ("authorKey", "authorAccountId")]
        return author(accounts, member(last, "created"))

    def predict(self, item: ObjectItem[Named]) -> None:
        name = str({**item.plan.before, **item.plan.after}["name"])
        place, predictions = (self.noun, item.entry.project, name.lower()), self._task.predictions
        if item.plan.action == "delete":
            predictions.remove(*place)
        else:
            former = item.plan.before.get("name", name)
            if former != name:
                predictions.remove(self.noun, item.entry.project, str(former).lower())
            predictions.add(*place, value=name)
            if item.plan.before.get("name") != name:
                # not its project: a query may name the object without it
                predictions.add(f"new {self.noun}", "", name)


def _key(project: str, name: str) -> str:
    """Return the same string for all spellings of the name of an object."""
    return name_key(f"{project}/{name.strip()}")


def _reject_contradictions(noun: str, items: Sequence[ObjectItem[Named]]) -> None:
    """Raise `invalid` for entries that give a name twice, or take a name and then free it."""
    taken: dict[str, str] = {}
    for item in items:
        entry = item.entry
        own, last = _key(entry.project, entry.name), _key(entry.project, entry.last_name)
        is_freed = entry.state == "absent" or last != own
        if is_freed and own in taken:
            raise invalid(
                f"{taken[own]} gives a {noun} the name '{item.name}' before {item.place} frees"
                f" it: put {item.place} first; names can only be swapped with a third name, in"
                " several tasks"
            )
        if entry.state == "absent":
            continue
        first = taken.setdefault(last, item.place)
        if first != item.place:
            raise invalid(
                f"{first} and {item.place} both give a {noun} the name"
                f" '{entry.project}/{entry.last_name}': list each {noun} once"
            )


def as_permission(error: ToolchainError) -> ToolchainError:
    """Return the error of a write to an object that exists as `permission`."""
    error.kind = "permission"
    return error.with_hint(
        "the object exists, so the account may lack the permission to administer the project"
    )
