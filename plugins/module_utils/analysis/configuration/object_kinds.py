# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of objects that a whole configuration is made of, and their reading, each kind once.

catalogue = Catalogue(client)
for kind in KINDS:
    for project in list(catalogue.projects()) if kind.in_project else [None]:
        catalogue.entries(kind, project)   # dicts as the option kind.option takes them
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
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

#: Most users or groups that are asked for; untold, servers give at most 1000 [analysis-9].
LIMIT = 100_000
_DEFAULT_LIMIT = 1000
#: Projects by name, with their ids.
Ids: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, eq=False)
class ObjectKind:
    """A kind of objects.

    :param option: its list in C(analysis_config), and C(kind) in plans
    :param makes: the class of such objects
    :param options: the options of an entry, which are those of the module for one such object
    :param wanted: the object that an entry asks for
    :param listing: the read of all of them, given the project where the kind is inside one
    :param objects: the objects that records are, given the project, and the ids of projects by name
    :param name: the fields that name an object in plans, those that are C(None) are left out
    :param in_project: whether each project has its own
    :param limited: whether the listing has a limit
    :param made: whether such objects can be made and deleted
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
        """An object as an entry of the option: those fields that the server shows."""
        names = [each.name for each in fields(self.options)]
        return without_none({name: state[name] for name in names if name in state})

    def name_of(self, state: State) -> str:
        """An object in plans: C(name), C(project/name), C(role/account) or C(role/account/project).

        What the server calls it is the last of these, save for assignments.
        """
        return "/".join(str(state[part]) for part in self.name if state.get(part) is not None)


USERS = ObjectKind(
    "users",
    analysis_user.User,
    analysis_user.UserEntry,
    analysis_user.wanted,
    lambda inside: Call("users", {"limit": LIMIT}),
    lambda records, inside, ids: analysis_user.objects(records),
    limited=True,
)
GROUPS = ObjectKind(
    "groups",
    analysis_group.Group,
    analysis_group.GroupEntry,
    analysis_group.wanted,
    lambda inside: accounts.group_listing({"limit": LIMIT}),
    lambda records, inside, ids: accounts.groups(records),
    limited=True,
)
PROJECTS = ObjectKind(
    "projects",
    analysis_project.Project,
    analysis_project.AnalysisProjectOptions,
    analysis_project.wanted,
    lambda inside: Call("projects"),
    lambda records, inside, ids: analysis_project.objects(records),
)
ROLES = ObjectKind(
    "roles",
    analysis_role.Role,
    analysis_role.RoleEntry,
    analysis_role.wanted,
    lambda inside: Call("roles"),
    lambda records, inside, ids: analysis_role.objects(records),
)
ROLE_ASSIGNMENTS = ObjectKind(
    "role_assignments",
    analysis_role_assignment.RoleAssignment,
    analysis_role_assignment.RoleAssignmentEntry,
    analysis_role_assignment.wanted,
    lambda inside: Call("role_assignments"),
    lambda records, inside, ids: accounts.assignments(records, ids),
    name=("name", "account", "project"),
)
MODULES = ObjectKind(
    "modules",
    analysis_module.Module,
    analysis_module.AnalysisModuleOptions,
    analysis_module.wanted,
    lambda inside: Call("modules", {"project": inside}),
    lambda records, inside, ids: analysis_module.objects(records, inside),
    name=("project", "name"),
    in_project=True,
)
VIEWS = ObjectKind(
    "views",
    analysis_view.View,
    analysis_view.AnalysisViewOptions,
    analysis_view.wanted,
    lambda inside: Call("views", {"project": inside}),
    lambda records, inside, ids: analysis_view.objects(records, inside),
    name=("project", "name"),
    in_project=True,
)
DEFECT_TYPES = ObjectKind(
    "defect_types",
    analysis_defect_type.DefectType,
    analysis_defect_type.AnalysisDefectTypeOptions,
    analysis_defect_type.wanted,
    lambda inside: Call("defect_types", {"project": inside}),
    lambda records, inside, ids: analysis_defect_type.objects(records, inside),
    name=("project", "code"),
    in_project=True,
    made=False,
)
#: What an analysis makes: no list of a configuration has it.
BUILDS = ObjectKind(
    "builds",
    analysis_build.Build,
    analysis_build.AnalysisBuildOptions,
    analysis_build.wanted,
    lambda inside: Call("builds", {"project": inside}),
    lambda records, inside, ids: analysis_build.objects(records, inside),
    name=("project", "name"),
    in_project=True,
    made=False,
)
#: In the order in which they can be made; they are deleted the other way round.
KINDS = (USERS, GROUPS, PROJECTS, ROLES, ROLE_ASSIGNMENTS, MODULES, VIEWS, DEFECT_TYPES)


@dataclass(frozen=True)
class Listed:
    """All objects of a kind; C(doubt) says why there may be more of them, or more to them."""

    objects: Objects
    doubt: str | None = None


class Catalogue:
    """The kinds of a server, each read once when it is first asked for.

    :param parallel: most reads at once
    :param ids: name to id of the projects, where they have been read already
    :param renamed: new to old name of projects that get their new names later: what is inside
        them, and roles in them, are known by their new names
    """

    def __init__(
        self,
        client: AnalysisClient,
        *,
        parallel: int = 1,
        ids: Ids | None = None,
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        self._client, self._parallel, self._renamed = client, parallel, renamed or {}
        self._ids = ids
        self._read: dict[tuple[str, str | None], Listed | ToolchainError] = {}

    def projects(self) -> Ids:
        """The projects of the server."""
        if self._ids is None:
            records = self._client.ask("reading the projects", Call("projects"))
            self._ids = accounts.ids_of(records)
        return self._ids

    def known(self) -> Ids:
        """The projects by the names that they have or get later."""
        ids = dict(self.projects())
        for new, old in self._renamed.items():
            if old in ids and new not in ids:
                ids[new] = ids.pop(old)
        return ids

    def load(self, places: Iterable[tuple[ObjectKind, str | None]]) -> None:
        """Read these kinds side by side, each with its project; a failure is raised by whoever
        asks for what was to be read.
        """
        todo = {(kind.option, project): (kind, project) for kind, project in places}
        missing = [place for key, place in todo.items() if key not in self._read]
        if any(kind in (PROJECTS, ROLE_ASSIGNMENTS) for kind, _project in missing):
            with suppress(ToolchainError):  # asked for again, and kept, by what needs them
                self.projects()
        count = ProgressCounter(self._client.progress, "reading lists of the server", len(missing))

        def read(place: tuple[ObjectKind, str | None]) -> Listed | ToolchainError:
            try:
                return self._listing(*place)
            finally:
                count.add()

        found = spread(self._parallel, read, missing)
        for (kind, inside), listed in zip(missing, found, strict=True):
            self._read[kind.option, inside] = listed

    def listed(self, kind: ObjectKind, project: str | None = None) -> Listed:
        """All objects of a kind, or of its part inside a project."""
        if (kind.option, project) not in self._read:
            self.load([(kind, project)])
        found = self._read[kind.option, project]
        if isinstance(found, ToolchainError):
            raise found
        return found

    def entries(self, kind: ObjectKind, project: str | None = None) -> list[dict[str, Any]]:
        """All objects of a kind as entries of its option, without what is built in (read-only)."""
        states = self.listed(kind, project).objects.values()
        return [kind.entry(state) for state in states if not state.get("readonly")]

    def _listing(self, kind: ObjectKind, project: str | None) -> Listed | ToolchainError:
        where = "" if project is None else f" of the project '{project}'"
        what = f"reading the {kind.option.replace('_', ' ')}{where}"
        try:
            if kind is PROJECTS:
                records = [{"name": name} for name in self.projects()]
            else:
                records = self._client.ask(what, kind.listing(self._present_name(project)))
            ids = self.known() if kind is ROLE_ASSIGNMENTS else {}
            return Listed(kind.objects(records, project or "", ids), _doubt(kind, records))
        except ToolchainError as error:
            return error

    def _present_name(self, project: str | None) -> str | None:
        if project is None or self._ids is None or project in self._ids:
            return project
        return self._renamed.get(project, project)


def _doubt(kind: ObjectKind, records: Sequence[Record]) -> str | None:
    """Why a listing may not be all there is."""
    if kind.limited and (len(records) == _DEFAULT_LIMIT or len(records) >= LIMIT):
        return f"the server gave {len(records)} {kind.option}, and may have cut the list there"
    if kind is GROUPS and records and not any("users" in record for record in records):
        return "the server does not show the members of groups"
    return None
