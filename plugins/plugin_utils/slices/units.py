# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of C(drift) or C(enforce) consists of, and how it is dealt out to slices: by host, by
service, and by project, as far as one part depends on no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.delivery.toolchain.plugins.plugin_utils import role_variables

#: The roles, with the service that each holds; C(desired_state) holds several.
_ROLES = {"analysis_config": "analysis", "ci_baseline": "ci", "repo_housekeeping": "repo"}
_DESIRED = {
    "desired_state_jobs": "ci",
    "desired_state_versions": "tracker",
    "desired_state_pages": "wiki",
    "desired_state_trees": "wiki",
}
#: The lists whose entries each belong to one project, and the key that names it.
_PROJECTS = {
    "analysis_config_defect_types": "project",
    "analysis_config_modules": "project",
    "analysis_config_views": "project",
    "desired_state_pages": "space",
    "desired_state_trees": "space",
    "desired_state_versions": "project",
}
#: The other lists of the code analysis server: they belong together.
_WHOLE = tuple(
    f"analysis_config_{name}"
    for name in ("groups", "projects", "role_assignments", "roles", "users")
)
_CONNECTIONS = "enforce_connections"


@dataclass(frozen=True, order=True)
class Unit:
    """The smallest part of a run: what can be looked at, and held, without the others.

    :param project: empty for what belongs to no single project
    """

    host: str
    service: str
    project: str = ""

    def title(self) -> str:
        return " ".join(filter(None, (self.host, self.service, self.project)))


@dataclass(frozen=True)
class Description:
    """What is wanted on a host: the roles that are run, and the variables that they take."""

    roles: Sequence[str]
    variables: Mapping[str, Any]

    def units(self, host: str) -> list[Unit]:
        services = {_ROLES[role] for role in self.roles if role in _ROLES}
        if "desired_state" in self.roles:
            services |= {_DESIRED[name] for name in _DESIRED if self.variables.get(name)}
        return [
            Unit(host, service, project)
            for service in sorted(services)
            for project in sorted(self._projects(service))
        ]

    def _projects(self, service: str) -> set[str]:
        """The parts of a service."""
        found = {
            self._project(name, entry)
            for name in _PROJECTS
            if _service_of(name) == service
            for entry in self.variables.get(name) or ()
        }
        whole = _ROLES.get("analysis_config") == service and any(map(self._given, _WHOLE))
        return found | {""} if whole or not found else found

    def _given(self, name: str) -> bool:
        return self.variables.get(name) is not None

    def _project(self, name: str, entry: Any) -> str:
        """The project of an entry; none where it depends on what belongs to none: where projects
        are made and renamed, and where a limit counts all deletions.
        """
        project = str(entry.get(_PROJECTS[name]) or "") if isinstance(entry, Mapping) else ""
        if _service_of(name) == "analysis":
            if self.variables.get("analysis_config_purge"):
                return ""
            listed = self.variables.get("analysis_config_projects") or ()
            made = [(one.get("name"), one.get("new_name")) for one in listed]
            return "" if any(project in names for names in made) else project
        return project

    def part(self, units: Iterable[Unit]) -> Description:
        """What is left of it for some of its units."""
        projects: dict[str, set[str]] = {}
        for unit in units:
            projects.setdefault(unit.service, set()).add(unit.project)
        chosen: dict[str, Any] = {}
        for name, value in self.variables.items():
            service = _service_of(name)
            if name == _CONNECTIONS:
                logins = value if isinstance(value, Mapping) else {}
                chosen[name] = {each: logins[each] for each in logins if each in projects}
            elif service is None:
                chosen[name] = value
            elif service in projects:
                self._choose(chosen, name, projects[service])
        roles = [role for role in self.roles if _is_needed(role, chosen, projects)]
        return Description(roles, chosen)

    def _choose(self, chosen: dict[str, Any], name: str, projects: set[str]) -> None:
        value = self.variables[name]
        if name in _PROJECTS and value:
            value = [entry for entry in value if self._project(name, entry) in projects]
            if not value:
                return
        elif name in _WHOLE and "" not in projects:
            return
        chosen[name] = value


def is_sent(name: str) -> bool:
    """Whether a variable is one that the roles, or their connections, take. A misspelt one is: the
    role that runs on the worker refuses it.
    """
    if any(name in role_variables.left_by(role) for role in (*_ROLES, "desired_state")):
        return False
    return name == _CONNECTIONS or name.startswith("toolchain_") or _service_of(name) is not None


def _service_of(name: str) -> str | None:
    """The service that a variable is about."""
    if name in _DESIRED:
        return _DESIRED[name]
    for role, service in _ROLES.items():
        if name.startswith(f"{role}_"):
            return service
    services = {*_ROLES.values(), *_DESIRED.values()}
    words = name.split("_")
    return words[1] if words[0] == "toolchain" and len(words) > 2 and words[1] in services else None


def _is_needed(role: str, chosen: Mapping[str, Any], services: Mapping[str, Any]) -> bool:
    return _ROLES[role] in services if role in _ROLES else any(map(chosen.get, _DESIRED))


def deal(units: Iterable[Unit], count: int) -> list[list[Unit]]:
    """At most so many slices of about the same size. A host stays in one slice where there are
    hosts enough, a service of it where there are services enough: then each login is made once.
    """
    ordered = sorted(units)
    groups: dict[tuple[str, ...], list[Unit]] = {}
    for parts in (1, 2, 3):
        groups = {}
        for unit in ordered:
            key = (unit.host, unit.service, unit.project)[:parts]
            groups.setdefault(key, []).append(unit)
        if len(groups) >= count:
            break
    dealt = [list(groups.values())[number::count] for number in range(count)]
    return [[unit for group in part for unit in group] for part in dealt if part]
