# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of objects on the server, and a catalogue that reads each kind once.

Example:

    catalogue = Catalogue(client)
    for kind in KINDS:
        for project in list(catalogue.projects()) if kind.in_project else [None]:
            catalogue.entries(kind, project)  # entries of the option `kind.option`
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid
from ...core.progress import ProgressCounter
from .. import accounts
from ..client import AnalysisClient, Call
from ..resource import LIMIT, Ids, Objects, Reference, Resource
from ..resources.analysis_build import Build
from ..resources.analysis_defect_type import DefectType
from ..resources.analysis_group import Group
from ..resources.analysis_module import Module
from ..resources.analysis_project import Project
from ..resources.analysis_role import Role
from ..resources.analysis_role_assignment import RoleAssignment
from ..resources.analysis_user import User
from ..resources.analysis_view import View
from ..responses import Record

#: Maximum length of a list for which no limit was requested [analysis-9].
_DEFAULT_LIMIT = 1000


#: A kind of objects is their class.
ObjectKind: TypeAlias = type[Resource]
USERS, GROUPS, PROJECTS = User, Group, Project
ROLES, ROLE_ASSIGNMENTS = Role, RoleAssignment
MODULES, VIEWS, DEFECT_TYPES = Module, View, DefectType
#: Builds are created by analyses, so `analysis_config` has no option for them.
BUILDS = Build
#: Kinds in the order of creation. Objects are deleted in reverse order.
KINDS: tuple[ObjectKind, ...] = (
    USERS,
    GROUPS,
    PROJECTS,
    ROLES,
    ROLE_ASSIGNMENTS,
    MODULES,
    VIEWS,
    DEFECT_TYPES,
)


@dataclass(frozen=True)
class Listed:
    """All objects of a kind.

    :param doubt: reason for which the list may be incomplete, or `None`
    """

    objects: Objects
    doubt: str | None = None


class Catalogue:
    """Reads the objects of a server. Each kind is read once, on first use.

    :param parallel: maximum number of concurrent requests
    :param ids: project name to id, if already read
    :param renamed: new name to old name of projects that will be renamed; their objects are
        returned under the new name
    """

    def __init__(
        self,
        client: AnalysisClient,
        *,
        parallel: int = 1,
        ids: Ids | None = None,
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        self.client, self._parallel, self._renamed = client, parallel, renamed or {}
        self._ids = ids
        self._read: dict[tuple[str, str | None], Listed | ToolchainError] = {}

    def projects(self) -> Ids:
        """Return the ids of the server's projects by name."""
        if self._ids is None:
            records = self.client.ask("reading the projects", Call("projects"))
            self._ids = accounts.ids_of(records)
        return self._ids

    def known(self) -> Ids:
        """Return the ids of the projects by name, with the new names of renamed projects."""
        ids = dict(self.projects())
        for new, old in self._renamed.items():
            if old in ids and new not in ids:
                ids[new] = ids.pop(old)
        return ids

    def load(self, places: Iterable[tuple[ObjectKind, str | None]]) -> None:
        """Read several lists concurrently. An error is raised when the list is used.

        :param places: kinds to read, with the project or `None`
        """
        requested = {(kind.option, project): (kind, project) for kind, project in places}
        missing = [place for key, place in requested.items() if key not in self._read]
        if any(kind in (PROJECTS, ROLE_ASSIGNMENTS) for kind, _project in missing):
            with suppress(ToolchainError):  # the first use reads again and raises the error
                self.projects()
        count = ProgressCounter(
            self.client.progress, "reading the lists of the server", len(missing)
        )

        def read(place: tuple[ObjectKind, str | None]) -> Listed | ToolchainError:
            try:
                return self._listing(*place)
            finally:
                count.add()

        found = spread(self._parallel, read, missing)
        for (kind, project), listed in zip(missing, found, strict=True):
            self._read[kind.option, project] = listed

    def listed(self, kind: ObjectKind, project: str | None = None) -> Listed:
        """Return all objects of a kind, or those in a project."""
        if (kind.option, project) not in self._read:
            self.load([(kind, project)])
        found = self._read[kind.option, project]
        if isinstance(found, ToolchainError):
            raise found
        return found

    def entries(self, kind: ObjectKind, project: str | None = None) -> list[dict[str, Any]]:
        """Return the objects of a kind as entries of its option, except built-in objects."""
        states = self.listed(kind, project).objects.values()
        return [kind.entry_of(state) for state in states if not state.get("readonly")]

    def _listing(self, kind: ObjectKind, project: str | None) -> Listed | ToolchainError:
        suffix = "" if project is None else f" of the project '{project}'"
        purpose = f"reading the {kind.option.replace('_', ' ')}{suffix}"
        try:
            if kind is PROJECTS:
                records = [{"name": name} for name in self.projects()]
            else:
                present = project  # a project may have its old name still
                if project is not None and self._ids is not None and project not in self._ids:
                    present = self._renamed.get(project, project)
                records = self.client.ask(purpose, kind.whole_listing(present))
            ids = self.known() if kind is ROLE_ASSIGNMENTS else {}
            return Listed(kind.parse(records, project or "", ids), _doubt(kind, records))
        except ToolchainError as error:
            return error


def _doubt(kind: ObjectKind, records: Sequence[Record]) -> str | None:
    """Return the reason for which a list may be incomplete, or `None`."""
    if kind.limited and (len(records) == _DEFAULT_LIMIT or len(records) >= LIMIT):
        return f"the server returned {len(records)} {kind.option} and may have truncated the list"
    if kind is GROUPS and records and not any("users" in record for record in records):
        return "the server does not return the members of groups"
    return None


@dataclass(frozen=True)
class DesiredObjects:
    """Desired objects by kind. Kinds whose option is not set are missing."""

    lists: Mapping[ObjectKind, list[Resource]]

    def __iter__(self) -> Iterator[tuple[ObjectKind, Resource]]:
        for kind, resources in self.lists.items():
            for resource in resources:
                yield kind, resource

    @property
    def projects(self) -> list[Project]:
        """Return the desired projects."""
        return [
            resource for resource in self.lists.get(PROJECTS, []) if isinstance(resource, Project)
        ]

    @property
    def renamed(self) -> dict[str, str]:
        """Return the old names of the projects to rename, by new name."""
        return {
            project.target: project.name
            for project in self.projects
            if project.target != project.name
        }

    @property
    def needed(self) -> dict[Reference, Resource]:
        """Return the references of the desired objects, with a referring object per reference."""
        present = [resource for _kind, resource in self if resource.desired is not None]
        return {reference: resource for resource in present for reference in resource.needs}

    def refuse_empty(self, purge: Collection[str]) -> None:
        """Raise `invalid` if `purge` would delete all objects of a kind.

        :param purge: options whose unlisted objects are deleted
        """
        for kind, resources in self.lists.items():
            if kind.option in purge and all(resource.desired is None for resource in resources):
                raise invalid(
                    f"purge: all {kind.option} would be deleted, because no entry has state:"
                    f" present: to allow that, set allow_empty: [{kind.option}]"
                )

    def places(self, kind: ObjectKind, *, exact: bool) -> list[str | None]:
        """Return the projects in which objects of a kind must be read.

        These are the projects in the list of the kind and, if it is purged, all desired projects.
        Returns `[None]` for a kind outside of projects.

        :param exact: whether the kind is purged
        """
        if not kind.in_project:
            return [None]
        named = [resource.project for resource in self.lists[kind]]
        wanted = [
            project.target for project in self.projects if exact and project.desired is not None
        ]
        return list(dict.fromkeys([*named, *wanted]))


def names(kind: ObjectKind, resource: Resource) -> frozenset[Reference]:
    """Return the references by which other objects refer to an object."""
    return frozenset() if kind.in_project else frozenset({(kind.option, resource.target)})


def desired(entries: Mapping[str, Sequence[Any] | None]) -> DesiredObjects:
    """Return the desired objects. Raises `invalid` for duplicate or contradictory entries.

    :param entries: option name to entries; `None` if the option is not set
    """
    lists: dict[ObjectKind, list[Resource]] = {}
    for kind in KINDS:
        value = entries[kind.option]
        if value is not None:
            lists[kind] = [kind.of(entry) for entry in value]
            seen: set[Hashable] = set()
            for resource in lists[kind]:
                place = resource.project if kind.in_project else None
                places = {(place, resource.key)}
                if resource.target != resource.name:
                    places.add((place, resource.target))
                if places & seen:
                    raise invalid(f"{kind.option}: {resource.title} is listed twice")
                seen |= places
    found = DesiredObjects(lists)
    _refuse_contradictions(found)
    return found


def _refuse_contradictions(found: DesiredObjects) -> None:
    """Raise `invalid` if a desired object refers to an object to delete, or to the old name of a
    project.
    """
    gone = {("projects", old) for old in found.renamed.values()}
    for kind, resource in found:
        if resource.desired is None:
            gone |= names(kind, resource)
    for kind, resource in found:
        contradicted = sorted(resource.needs & gone) if resource.desired is not None else []
        if contradicted:
            option, name = contradicted[0]
            raise invalid(
                f"{kind.option}: {resource.title} requires '{name}', but {option} deletes or"
                " renames it"
            )
