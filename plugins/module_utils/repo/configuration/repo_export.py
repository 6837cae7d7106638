# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `repo_export`: export the configuration to `repo.yml` of a desired state [C9]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.errors import invalid
from ...core.export.service_export import ExportOptions, ServiceExport, ServiceState
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ..access.exported_access import exported_groups, exported_permissions, exported_users
from .exported_repositories import exported_repositories

_NOT_EXPORTED = (
    "The server does not store rules for cleanup, retention and trash: write them by hand.",
)
#: Returns the entries of a type of objects, and adds objects that it cannot export to the state.
_Kind = Callable[[Task, ServiceState], list[dict[str, Any]]]
#: Lists of `repo.yml`; an option of the same name selects each list.
_KINDS: Mapping[str, _Kind] = {
    "repositories": exported_repositories,
    "groups": exported_groups,
    "users": exported_users,
    "permissions": exported_permissions,
}


@dataclass(frozen=True, kw_only=True)
class RepoExportOptions(ExportOptions):
    """The options of `repo_export`."""

    repositories: bool = True
    groups: bool = True
    users: bool = True
    permissions: bool = True


class RepoExportOperation(ServiceExport):
    """Export the configuration of a repository manager."""

    descriptor: ClassVar = Descriptor("repo", {"read": reads("admin")})

    service = "repo"

    def __init__(self, task: Task, options: RepoExportOptions) -> None:
        super().__init__(task, options)
        self._kinds = {name: kind for name, kind in _KINDS.items() if getattr(options, name)}
        if not self._kinds:
            raise invalid(f"there is nothing to export: set one of {', '.join(_KINDS)} to true")

    def read(self) -> ServiceState:
        state = ServiceState(untold=_NOT_EXPORTED)
        state.values = {name: kind(self._task, state) for name, kind in self._kinds.items()}
        return state
