# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `repo_export`: export the configuration to `repo.yml` of a desired state [C9]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from ...core.errors import ToolchainError, invalid
from ...core.module import typed_options
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.operations.service_export import PASSWORD, ExportOptions, ServiceExport, ServiceState
from ...core.secret import is_secret_name
from ..access.directory import GROUPS, PERMISSIONS, USERS, Directory
from ..access.repo_group import OWN_REALMS, group_of, with_members
from ..access.repo_permission import from_access, from_older
from ..access.repo_user import user_of
from ..client import RepoClient
from ..service import SERVICE
from .catalogue import Config, RepositoryCatalogue, require_whole
from .entry import (
    NAMES,
    RepositoryEntry,
    canonical,
    checked_settings,
    comparison,
    is_known,
    settings_name,
    state_of,
)

_NOT_EXPORTED = (
    "The server does not store rules for cleanup, retention and trash: write them by hand.",
)


def exported_groups(
    task: Task, _state: ServiceState, *, members: bool = False
) -> list[dict[str, Any]]:
    """Return all groups as entries for `repo_group`.

    :param members: otherwise only the entries of the users, which are applied later, list their
        groups
    """
    directory, found = Directory(task, GROUPS), []
    left_out = ("realm",) if members else ("members", "realm")
    for name, row in directory.read_all().items():
        whole = with_members(directory, name, row) if members else row
        entry = group_of(name, whole, old=directory.is_old)
        found.append({key: value for key, value in entry.items() if key not in left_out})
    return found


def exported_users(task: Task, state: ServiceState) -> list[dict[str, Any]]:
    """Return all users as entries for `repo_user`; the server never returns their passwords."""
    directory, found = Directory(task, USERS), []
    for name, row in directory.read_all().items():
        realm = str(row.get("realm") or "")
        if realm.lower() not in OWN_REALMS:
            state.leave_out("user", name, f"it comes from the realm {realm}")
            continue
        entry = user_of(name, row, old=directory.is_old)
        found.append(entry)
        if not entry["internal_password_disabled"]:
            state.leave_out(
                PASSWORD, name, "the server never returns it, but a new user requires it"
            )
    return found


def exported_permissions(task: Task, state: ServiceState) -> list[dict[str, Any]]:
    """Return all permissions with managed resources as entries for `repo_permission`."""
    directory, found = Directory(task, PERMISSIONS), []
    for name, row in directory.read_all().items():
        resources = from_older(row) if directory.is_old else from_access(row)
        if resources:
            found.append({"name": name, "resources": resources})
        else:
            state.leave_out("permission", name, "it has no managed resources")
    return found


_CLASSES = ("local", "remote", "virtual", "federated")
#: Names of the fields in the server's API that have an option.
_OPTIONS = {"key", "rclass", "packageType", *NAMES.values()}
#: Options that cannot be empty.
_NEVER_EMPTY = ("layout", "remote_url")
#: Package types of repositories that the server itself manages.
_OWN_TYPES = ("buildinfo", "releasebundles", "support")


def exported_repositories(task: Task, state: ServiceState) -> list[dict[str, Any]]:
    """Return all repositories as entries, sorted by key.

    The entries contain empty fields: otherwise a value that is set later would not count as drift.
    """
    found = RepositoryCatalogue(RepoClient(task)).everything()
    entries = []
    for key, config in sorted(found.items()):
        reason = ""
        if config is None:
            reason = "it was deleted during the export"
        else:
            rclass, package = str(config.get("rclass")), str(config.get("packageType"))
            if rclass.lower() not in _CLASSES or package.lower() in _OWN_TYPES:
                reason = f"the server manages it itself ({rclass}, {package})"
        entry = None if reason else _entry(key, config or {}, state)
        try:
            if entry is not None:
                typed_options.parse(RepositoryEntry, entry)
                entries.append(entry)
        except ToolchainError as error:
            reason = error.message
        if reason:
            state.leave_out("repository", key, reason)
    return entries


def _entry(key: str, config: Config, state: ServiceState) -> dict[str, Any]:
    require_whole(key, config)
    entry: dict[str, Any] = {
        "key": key,
        "rclass": canonical(str(config["rclass"])),
        "package_type": str(config["packageType"]),
    }
    options = {name: json for name, json in NAMES.items() if json in config and json != "password"}
    for name, value in state_of(config, dict.fromkeys(options)).items():
        if value == "" and name in _NEVER_EMPTY:
            continue
        if _is_same(name, value, config):
            entry[name] = value
        else:
            state.leave_out("field", f"{key}: {options[name]}", "it has an unknown format")
    settings = _settings(key, config, state)
    return {**entry, "settings": settings} if settings else entry


def _settings(key: str, config: Config, state: ServiceState) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in sorted(config.items()):
        plain = (name in _OPTIONS and name != "password") or is_known(settings_name(name))
        reason = "it is a secret" if not plain and _has_secret(name, value) else ""
        if name not in _OPTIONS and value is not None and not reason:
            try:
                checked = checked_settings({name: value}).get(name)
                found[name] = value
                if not _is_same(settings_name(name), checked, config):
                    reason = "it has an unknown format"
            except ToolchainError as error:
                reason = error.message
        if reason:
            found.pop(name, None)
            state.leave_out("field", f"{key}: {name}", reason)
    return found


def _is_same(name: str, value: Any, config: Config) -> bool:
    """Return whether `repo_repository` would find the exported value unchanged."""
    current = state_of(config, {name: value}).get(name)
    return comparison(name, value)(current, value)[0]


def _has_secret(name: str, value: Any) -> bool:
    """Return whether a field contains a secret, such as a password or a header with a token."""
    if isinstance(value, Mapping):
        # the value of a header may be secret whatever its name, and whether or not it is marked
        if value.get("sensitive") or {"name", "value"} <= value.keys():
            return True
        return any(_has_secret(str(key), member) for key, member in value.items())
    if isinstance(value, list):
        return any(_has_secret(name, item) for item in value)
    return bool(value) and isinstance(value, str) and is_secret_name(name)


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
    members: bool = False


class RepoExportOperation(ServiceExport):
    """Export the configuration of a repository manager."""

    descriptor: ClassVar = Descriptor(SERVICE, {"read": reads("admin")})

    service = "repo"

    def __init__(self, task: Task, options: RepoExportOptions) -> None:
        super().__init__(task, options)
        self._kinds = {name: kind for name, kind in _KINDS.items() if getattr(options, name)}
        if options.members and options.groups:
            self._kinds["groups"] = partial(exported_groups, members=True)
        if not self._kinds:
            raise invalid(f"there is nothing to export: set one of {', '.join(_KINDS)} to true")

    def read(self) -> ServiceState:
        state = ServiceState(not_exported=_NOT_EXPORTED)
        state.values = {name: kind(self._task, state) for name, kind in self._kinds.items()}
        return state
