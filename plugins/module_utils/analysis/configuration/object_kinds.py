# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of objects of a whole configuration, each read once.

catalogue = Catalogue(client)
for kind in KINDS:
    for project in list(catalogue.projects()) if kind.in_project else [None]:
        catalogue.entries(kind, project)   # dicts as the option kind.option takes them
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any, TypeAlias

from ...core.concurrency import spread
from ...core.errors import ToolchainError
from ...core.plan import without_none
from ...core.progress import ProgressCounter
from ..client import AnalysisClient, Call
from ..engine import accounts
from ..engine.resource import Objects, Resource, State
from ..resources import (
    analysis_build,
    analysis_defect_type,
    analysis_group,
    analysis_module,
    analysis_project,
    analysis_role,
    analysis_role_assignment,
    analysis_user,
    analysis_view,
)
from ..responses import Record

#: Maximum number of users or groups to request; without a limit, servers return at most 1000
#: [analysis-9].
LIMIT = 100_000
_DEFAULT_LIMIT = 1000
#: Projects by name, with their ids.
Ids: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, eq=False)
class ObjectKind:
    """A kind of objects.

    :param option: its list in `analysis_config`, and `kind` in plans
    :param makes: the class of the objects
    :param options: the options of an entry, those of the module for one object
    :param wanted: returns the object of an entry
    :param listing: returns the read of all objects, given the project for kinds inside projects
    :param objects: returns the objects of records, given the project, and the ids of projects by
        name
    :param name: the fields that name an object in plans, without those that are `None`
    :param in_project: whether the objects are inside projects
    :param limited: whether the listing has a limit
    :param made: whether objects can be created and deleted
    """

    option: str
    makes: type[Resource]
    options: type[Any]
    wanted: Callable[[Any], Resource]
    listing: Callable[[str | None], Call]
    objects: Callable[[Sequence[Record], str, Ids], Mapping[Hashable, State]]
    name: tuple[str, ...] = ("name",)
    in_project: bool = False
    limited: bool = False
    made: bool = True

    def entry(self, state: State) -> dict[str, Any]:
        """Return an object as an entry of the option: the fields that the server shows."""
        names = [field.name for field in fields(self.options)]
        return without_none({name: state[name] for name in names if name in state})

    def name_of(self, state: State) -> str:
        """Return the name in plans: `name`, `project/name`, `role/account` or
        `role/account/project`.

        The last segment is the name on the server, except for assignments.
        """
        return "/".join(str(state[part]) for part in self.name if state.get(part) is not None)


USERS = ObjectKind(
    option="users",
    makes=analysis_user.User,
    options=analysis_user.UserEntry,
    wanted=analysis_user.wanted,
    listing=lambda inside: Call("users", {"limit": LIMIT}),
    objects=lambda records, inside, ids: analysis_user.objects(records),
    limited=True,
)
GROUPS = ObjectKind(
    option="groups",
    makes=analysis_group.Group,
    options=analysis_group.GroupEntry,
    wanted=analysis_group.wanted,
    listing=lambda inside: accounts.group_listing({"limit": LIMIT}),
    objects=lambda records, inside, ids: accounts.groups(records),
    limited=True,
)
PROJECTS = ObjectKind(
    option="projects",
    makes=analysis_project.Project,
    options=analysis_project.AnalysisProjectOptions,
    wanted=analysis_project.wanted,
    listing=lambda inside: Call("projects"),
    objects=lambda records, inside, ids: analysis_project.objects(records),
)
ROLES = ObjectKind(
    option="roles",
    makes=analysis_role.Role,
    options=analysis_role.RoleEntry,
    wanted=analysis_role.wanted,
    listing=lambda inside: Call("roles"),
    objects=lambda records, inside, ids: analysis_role.objects(records),
)
ROLE_ASSIGNMENTS = ObjectKind(
    option="role_assignments",
    makes=analysis_role_assignment.RoleAssignment,
    options=analysis_role_assignment.RoleAssignmentEntry,
    wanted=analysis_role_assignment.wanted,
    listing=lambda inside: Call("role_assignments"),
    objects=lambda records, inside, ids: accounts.assignments(records, ids),
    name=("name", "account", "project"),
)


def _in_project(
    module: ModuleType,
    option: str,
    makes: type[Resource],
    options: type[Any],
    *,
    key: str = "name",
    made: bool = True,
) -> ObjectKind:
    """Return a kind of objects inside projects, whose action has the name of its option."""

    def listing(project: str | None) -> Call:
        return Call(option, {"project": project})

    def objects(records: Sequence[Record], project: str, _ids: Ids) -> Mapping[Hashable, State]:
        found: Mapping[Hashable, State] = module.objects(records, project)
        return found

    return ObjectKind(
        option=option,
        makes=makes,
        options=options,
        wanted=module.wanted,
        listing=listing,
        objects=objects,
        name=("project", key),
        in_project=True,
        made=made,
    )


MODULES = _in_project(
    analysis_module, "modules", analysis_module.Module, analysis_module.AnalysisModuleOptions
)
VIEWS = _in_project(analysis_view, "views", analysis_view.View, analysis_view.AnalysisViewOptions)
DEFECT_TYPES = _in_project(
    analysis_defect_type,
    "defect_types",
    analysis_defect_type.DefectType,
    analysis_defect_type.AnalysisDefectTypeOptions,
    key="code",
    made=False,
)
#: Created by analyses; no list of a configuration has them.
BUILDS = _in_project(
    analysis_build,
    "builds",
    analysis_build.Build,
    analysis_build.AnalysisBuildOptions,
    made=False,
)
#: In the order of creation; deletions run in reverse order.
KINDS = (USERS, GROUPS, PROJECTS, ROLES, ROLE_ASSIGNMENTS, MODULES, VIEWS, DEFECT_TYPES)


@dataclass(frozen=True)
class Listed:
    """All objects of a kind. `doubt` is the reason if the list may be incomplete."""

    objects: Objects
    doubt: str | None = None


class Catalogue:
    """The kinds of a server, each read once on first use.

    :param parallel: maximum number of concurrent reads
    :param ids: name to id of the projects, if already read
    :param renamed: new to old names of projects that are renamed later; their content is known by
        the new names
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
        """Return the projects of the server."""
        if self._ids is None:
            records = self.client.ask("reading the projects", Call("projects"))
            self._ids = accounts.ids_of(records)
        return self._ids

    def known(self) -> Ids:
        """Return the projects by their current or later names."""
        ids = dict(self.projects())
        for new, old in self._renamed.items():
            if old in ids and new not in ids:
                ids[new] = ids.pop(old)
        return ids

    def load(self, places: Iterable[tuple[ObjectKind, str | None]]) -> None:
        """Read these kinds concurrently, with their projects. A failure is raised on the first use
        of the list.
        """
        todo = {(kind.option, project): (kind, project) for kind, project in places}
        missing = [place for key, place in todo.items() if key not in self._read]
        if any(kind in (PROJECTS, ROLE_ASSIGNMENTS) for kind, _project in missing):
            with suppress(ToolchainError):  # read again, and raised, on the first use
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
        for (kind, inside), listed in zip(missing, found, strict=True):
            self._read[kind.option, inside] = listed

    def listed(self, kind: ObjectKind, project: str | None = None) -> Listed:
        """Return all objects of a kind, or those inside a project."""
        if (kind.option, project) not in self._read:
            self.load([(kind, project)])
        found = self._read[kind.option, project]
        if isinstance(found, ToolchainError):
            raise found
        return found

    def entries(self, kind: ObjectKind, project: str | None = None) -> list[dict[str, Any]]:
        """Return all objects of a kind as entries of its option, without built-in
        (read-only) ones.
        """
        states = self.listed(kind, project).objects.values()
        return [kind.entry(state) for state in states if not state.get("readonly")]

    def _listing(self, kind: ObjectKind, project: str | None) -> Listed | ToolchainError:
        where = "" if project is None else f" of the project '{project}'"
        purpose = f"reading the {kind.option.replace('_', ' ')}{where}"
        try:
            if kind is PROJECTS:
                records = [{"name": name} for name in self.projects()]
            else:
                records = self.client.ask(purpose, kind.listing(self._present_name(project)))
            ids = self.known() if kind is ROLE_ASSIGNMENTS else {}
            return Listed(kind.objects(records, project or "", ids), _doubt(kind, records))
        except ToolchainError as error:
            return error

    def _present_name(self, project: str | None) -> str | None:
        if project is None or self._ids is None or project in self._ids:
            return project
        return self._renamed.get(project, project)


def _doubt(kind: ObjectKind, records: Sequence[Record]) -> str | None:
    """Return why a listing may be incomplete."""
    if kind.limited and (len(records) == _DEFAULT_LIMIT or len(records) >= LIMIT):
        return f"the server returned {len(records)} {kind.option}, and may have truncated the list"
    if kind is GROUPS and records and not any("users" in record for record in records):
        return "the server does not show the members of groups"
    return None
