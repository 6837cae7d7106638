# SPDX-License-Identifier: GPL-3.0-or-later
"""Base classes for kinds of objects that belong to projects."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from ...core.concurrency import first_alone
from ...core.errors import ToolchainError
from ...core.json_text import member
from ...core.module.authorship import Author, author, last_of
from ...core.module.task import Task
from ...core.operations.objects import Item, ItemKind
from ...core.plan import Plan, remaining
from .. import permissions
from ..client import TrackerClient
from .project_objects import Found, KnownObjects, ProjectObjects, name_key

_PARALLEL = 4
#: Number of records of the audit log that are read for an object.
_RECORDS = 100
_AUDIT = "rest/api/2/auditing/record"
#: Types of objects in the audit log [tracker-43].
AUDITED = {"version": "VERSION", "component": "PROJECT_COMPONENT"}


class OfProject(Protocol):
    """Options of an object that belongs to a project."""

    @property
    def project(self) -> str: ...


class NamedInProject(OfProject, Protocol):
    """Options of a version or component."""

    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=OfProject)
Named = TypeVar("Named", bound=NamedInProject)
State = TypeVar("State")


class ProjectKind(ItemKind[Entry, State]):
    """Objects of projects. Each project is read once, for all its entries.

    If that read fails, only the entries of the project fail.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._client = TrackerClient(task)

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
        name = item.name.removeprefix(f"{project}/")
        purpose = f"the {self.noun} '{name}' of the project '{project}'"
        permissions.require(self._client, purpose, ["ADMINISTER_PROJECTS"], projectKey=project)


class ProjectObjectKind(ProjectKind[Named, KnownObjects[Found]]):
    """Versions or components of projects."""

    def name(self, entry: Named) -> str:
        return f"{entry.project}/{entry.name}"

    @abstractmethod
    def objects(self, project: str) -> ProjectObjects[Found]:
        """Return the objects of a project, to read and write them."""

    def read_project(self, key: str) -> KnownObjects[Found]:
        return self.objects(key).listed()

    def known(self, item: Item[Named, KnownObjects[Found]]) -> KnownObjects[Found]:
        if item.state is None:
            raise AssertionError("load() has read the project of every compared object")
        return item.state

    def store(self, item: Item[Named, KnownObjects[Found]], now: Found | None) -> None:
        """Store an object as it is after the write; None if it was deleted."""
        item.state = replace(self.known(item), current=now)

    def left(self, item: Item[Named, KnownObjects[Found]]) -> Plan:
        """Compare the object as it was read after the last write."""
        now, objects = self.known(item).current, self.objects(item.entry.project)
        return remaining(item.plan, None if now is None else now.settable(), objects.comparisons)

    def author(self, item: Item[Named, KnownObjects[Found]]) -> Author:
        """Return who changed the object last, by the audit log [tracker-43].

        Only administrators may read the log. A record is about the object if type and id are equal.
        """
        name = name_key(item.entry.name)
        number = next(
            (found.id for found in self.known(item).objects if name_key(found.name) == name), None
        )
        query = {"filter": item.entry.name, "limit": _RECORDS}
        purpose = f"searching the audit log for the {self.noun} '{item.name}'"
        shown = self._client.read_optional(purpose, _AUDIT, query=query)
        listed = member(shown, "records")
        records = [
            record
            for record in (listed if isinstance(listed, list) else ())
            if member(record, "objectItem", "typeName") == AUDITED[self.noun]
            and number is not None
            and str(member(record, "objectItem", "id")) == number
        ]
        last = last_of(records, "created")
        accounts = [member(last, name) for name in ("authorKey", "authorAccountId")]
        return author(accounts, member(last, "created"))

    def predict(self, item: Item[Named, KnownObjects[Found]]) -> None:
        name = str({**item.plan.before, **item.plan.after}["name"])
        place, predictions = (self.noun, item.entry.project, name.lower()), self._task.predictions
        if item.plan.action == "delete":
            predictions.remove(*place)
        else:
            predictions.add(*place, value=name)
            if item.plan.before.get("name") != name:
                # not its project: a query may name the object without it
                predictions.add(f"new {self.noun}", "", name)
