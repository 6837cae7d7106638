# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect and validate the desired objects of `analysis_config`, without sending requests."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import invalid
from ..engine.resource import Reference, Renameable, Resource
from ..resources.analysis_project import Project
from .object_kinds import KINDS, PROJECTS, ObjectKind


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
        named = [resource.place for resource in self.lists[kind]]
        wanted = [
            project.target for project in self.projects if exact and project.desired is not None
        ]
        return list(dict.fromkeys([*named, *wanted]))


def names(kind: ObjectKind, resource: Resource) -> frozenset[Reference]:
    """Return the references by which other objects refer to an object."""
    name = resource.target if isinstance(resource, Renameable) else getattr(resource, "name", None)
    return frozenset() if name is None or kind.in_project else frozenset({(kind.option, name)})


def desired(entries: Mapping[str, Sequence[Any] | None]) -> DesiredObjects:
    """Return the desired objects. Raises `invalid` for duplicate or contradictory entries.

    :param entries: option name to entries; `None` if the option is not set
    """
    lists: dict[ObjectKind, list[Resource]] = {}
    for kind in KINDS:
        value = entries[kind.option]
        if value is not None:
            lists[kind] = [kind.makes.of(entry) for entry in value]
            _refuse_duplicates(kind, lists[kind])
    found = DesiredObjects(lists)
    _refuse_contradictions(found)
    return found


def _refuse_duplicates(kind: ObjectKind, resources: list[Resource]) -> None:
    seen: set[Hashable] = set()
    for resource in resources:
        keys = {resource.key}
        if isinstance(resource, Renameable):
            keys.add(resource.target)
        places = {(resource.place if kind.in_project else None, key) for key in keys}
        if places & seen:
            raise invalid(f"{kind.option}: {resource.title} is listed twice")
        seen |= places


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
