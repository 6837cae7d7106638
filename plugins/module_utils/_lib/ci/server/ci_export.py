# SPDX-License-Identifier: GPL-3.0-or-later
"""Export the state of the server as `ci.yml` of a desired state: `ci_export` [C9]."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

from ...core.address import path
from ...core.errors import ToolchainError
from ...core.json_text import as_text
from ...core.module import typed_options
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Positive
from ...core.operations.service_export import ExportOptions, ServiceExport, ServiceState
from .. import xml_reader
from ..client import (
    EXTENDED_READ,
    READ_NODE,
    READ_VIEW,
    SEES_JOB,
    SYSTEM_READ,
    VIEW_CREDENTIALS,
    ServerObjects,
    objects,
    part,
    server_of,
)
from ..credentials.ci_credential import CiCredentialEntry
from ..credentials.credential_store import CredentialLocation, CredentialStores
from ..credentials.wanted import XML, WantedFields, kind_of
from ..export_run import ExportRun
from ..job_address import Job
from ..jobs.ci_view import CiViewEntry
from ..jobs.configuration import drift
from ..jobs.exported_jobs import ExportedJobs
from ..jobs.kept_secrets import has_secret, may_have_secrets
from ..service import SERVICE
from ..xml_reader import KEPT, XmlElement
from . import plugin_list
from .baseline import least_version
from .casc_comparison import FAILED, MASKED, live_configuration
from .casc_items import content_of, identity_of, name_of
from .ci_node import BUILT_IN, CiNodeEntry, NodeState, NodeStore, configuration_of, without_state
from .plugin_list import Plugin

#: Paths that another list of the desired state covers, with the name of that list.
_OTHER_LISTS = {
    "credentials": "credentials",
    "jenkins.nodes": "nodes",
    "jenkins.labelAtoms": "nodes",
    "jenkins.views": "views",
    "jenkins.primaryView": "views",
}
_LEFT_OUT = object()


def exported_configuration(run: ExportRun) -> list[dict[str, Any]] | None:
    """Return an entry for each section, or `None` if the configuration cannot be read."""
    read = partial(live_configuration, server_of(run.task))
    live = run.listed("configuration", "*", read, required=run.requested)
    if live is None:
        return None
    sections = ((str(name), _exported(run, str(name), value)) for name, value in live.items())
    return [{"config": {name: value}} for name, value in sections if value not in (_LEFT_OUT, {})]


def _exported(run: ExportRun, path: str, value: Any) -> Any:
    """Return a value without members that cannot be exported, or `_LEFT_OUT` if none can be."""
    reason = _reason_to_skip(path, value)
    if reason:
        run.state.leave_out("configuration", path, reason)
        return _LEFT_OUT
    if isinstance(value, Mapping):
        if _is_secret_variable(value):
            run.state.leave_out("configuration", f"{path}.value", "it is a secret")
            value = {name: item for name, item in value.items() if name != "value"}
        members = {name: _exported(run, f"{path}.{name}", item) for name, item in value.items()}
        left = {name: item for name, item in members.items() if item is not _LEFT_OUT}
        return left if left or not value else _LEFT_OUT
    if isinstance(value, list):
        entries = [_exported(run, _item_path(path, item, n), item) for n, item in enumerate(value)]
        # an item without a name is identified by its content, so the content must be unchanged
        if [*map(_identity, entries)] == [*map(_identity, value)]:
            return entries
        run.state.leave_out("configuration", path, "an item of the list cannot be exported")
        return _LEFT_OUT
    return value


def _reason_to_skip(path: str, value: Any) -> str:
    """Return the reason for which a value cannot be exported, or ""."""
    if path in _OTHER_LISTS:
        return f"it is exported in the list {_OTHER_LISTS[path]}"
    if isinstance(value, Mapping):
        is_plain = all(isinstance(name, str) for name in value)
        return "" if is_plain else "one of its keys is not a string"
    if isinstance(value, list):
        names = [_identity(item) for item in value if isinstance(item, Mapping)]
        return "items of the list have the same name" if len({*names}) < len(names) else ""
    if isinstance(value, str) and FAILED in value:
        return "the server cannot export it"
    name = path.rpartition(".")[2].partition("[")[0]
    secret = isinstance(value, str) and (value.strip() == MASKED or has_secret(name, value))
    return "it is a secret" if secret else ""


def _is_secret_variable(value: Mapping[Any, Any]) -> bool:
    """Return whether an object is a variable that contains a secret, by its name or its value."""
    name, content = value.get("key", value.get("name")), value.get("value")
    return isinstance(name, str) and isinstance(content, str) and has_secret(name, content)


def _item_path(path: str, entry: Any, number: int) -> str:
    """Return the path of a list item. An item without a name is numbered, because its content may
    be a secret.
    """
    name = name_of(entry) if isinstance(entry, Mapping) else None
    return f"{path}[{number if name is None else name}]"


def _identity(entry: Any) -> str:
    return (name_of(entry) and identity_of(entry)) or content_of(entry)


#: Root element of a node that was not created by a cloud.
_PERMANENT = "slave"


def exported_nodes(run: ExportRun) -> list[dict[str, Any]] | None:
    """Return entries for the nodes, or `None` if the nodes cannot be listed."""
    store = NodeStore(run.task)
    states = run.listed("node", "*", store.all, required=run.requested)
    if states is None:
        return None
    entries = [_offline_options(state) for state in states if state.name == BUILT_IN]
    nodes = [state for state in states if state.name != BUILT_IN]
    found = run.read_each(
        "node", nodes, lambda node: store.configuration(node.name), lambda node: node.name
    )
    for state, root in found:
        if root.name != _PERMANENT:
            run.state.leave_out("node", state.name, f"a cloud creates this node ({root.name})")
            continue
        entry = {**_offline_options(state), **_configuration_options(run, state, root)}
        if run.is_valid("node", state.name, partial(typed_options.check, CiNodeEntry(**entry))):
            entries.append(entry)
    return entries


def _offline_options(state: NodeState) -> dict[str, Any]:
    """Return the options that name a node and take it offline."""
    entry = {"name": state.name, "offline": state.temporarily_offline}
    return entry | ({"offline_reason": state.offline_reason} if state.offline_reason else {})


def _configuration_options(run: ExportRun, state: NodeState, root: XmlElement) -> dict[str, Any]:
    """Return the option `src` for an exported file, or separate options if the configuration
    contains secrets.
    """
    text = xml_reader.written_in_lines(without_state(root))
    if may_have_secrets(text):
        reason = "it contains secrets, so only settings with an option of ci_node are exported"
        run.state.leave_out("configuration of the node", state.name, reason)
        return configuration_of(root)
    return {"src": run.file("ci/nodes", state.name, text)}


#: Class of the view with all jobs, which every server and folder has.
_ALL = "hudson.model.AllView"


class _ViewLocation(NamedTuple):
    """Name and folder of a view. `folder` is `None` for a view of the server."""

    folder: Job | None
    name: str

    @property
    def full_name(self) -> str:
        return self.name if self.folder is None else f"{self.folder.name}/{self.name}"


def exported_views(run: ExportRun) -> list[dict[str, Any]] | None:
    """Return entries for the views of the server and of the exported folders.

    Returns `None` if the views of the server cannot be listed.
    """
    server = ServerObjects(server_of(run.task, connections=max(10, run.parallel)))
    views: list[_ViewLocation] = []
    for folder in (None, *run.folders):
        name = "*" if folder is None else f"{folder.name}/*"
        required = run.requested and folder is None
        found = run.listed("view", name, partial(_listed, server, folder), required=required)
        if found is None and folder is None:
            return None
        views += found or []

    def read(view: _ViewLocation) -> XmlElement | None:
        parent_path = "" if view.folder is None else f"{view.folder.path}/"
        purpose = f"exporting the view '{view.full_name}'"
        return server.document(purpose, f"{parent_path}view/{path(view.name)}")

    roots = run.read_each("view", views, read, lambda view: view.full_name)
    return [entry for view, root in roots for entry in _entries(run, view, root)]


def _listed(server: ServerObjects, folder: Job | None) -> list[_ViewLocation]:
    """Return the views of the server or a folder, except a primary view with all jobs."""
    parent_path = "" if folder is None else f"{folder.path}/"
    purpose = f"listing the views of {folder.name if folder else 'the server'}"
    response = server.read(
        purpose, f"{parent_path}api/json", "primaryView[name],views[name,_class]"
    )
    if response is None:
        raise ToolchainError(
            "not_found",
            f"{purpose}: the folder no longer exists, or the account cannot see it",
            status=404,
        )
    shown = part(response.json())
    if not isinstance(shown.get("views"), list):
        raise response.error("protocol", "the response has no list of views")
    primary = part(shown.get("primaryView")).get("name")
    return [
        _ViewLocation(folder, as_text(obj.get("name")))
        for obj in objects(shown.get("views"))
        if obj.get("_class") != _ALL or obj.get("name") != primary
    ]


def _entries(run: ExportRun, view: _ViewLocation, root: XmlElement) -> Iterator[dict[str, Any]]:
    """Yield the entry of a view. A view that cannot be exported is added to `left_out`."""
    text = xml_reader.written_in_lines(root)
    if may_have_secrets(text):
        run.state.leave_out("view", view.full_name, "its configuration contains secrets")
        return
    folder = "" if view.folder is None else view.folder.name
    entry: dict[str, Any] = {"name": view.name, **({"folder": folder} if folder else {})}
    if run.is_valid("view", view.full_name, partial(typed_options.check, CiViewEntry(**entry))):
        yield {**entry, "src": run.file("ci/views", view.full_name.replace("/", "-"), text)}


_SCOPES = ("global", "system")


def exported_credentials(run: ExportRun) -> list[dict[str, Any]] | None:
    """Return entries for the credentials in the system store and in the exported folders.

    Returns `None` if no store can be read.
    """
    stores = CredentialStores(run.task)
    found: list[list[CredentialLocation] | None] = []
    for folder in ("", *(job.name for job in run.folders)):
        name, read = f"{folder}/*".lstrip("/"), partial(stores.locations, folder)
        found.append(run.listed("credential", name, read, required=run.requested and not folder))
    if found.count(None) == len(found):
        return None
    locations = [location for store in found for location in store or ()]
    roots = run.read_each("credential", locations, stores.read, lambda location: location.name)
    entries = [_entry(run, location, root) for location, root in roots]
    return [entry for entry in entries if entry is not None]


def _entry(run: ExportRun, location: CredentialLocation, root: XmlElement) -> dict[str, Any] | None:
    """Return the entry of a credential, or `None` if its class or values cannot be exported."""
    kind = kind_of(root)
    if kind == XML:
        reason = (
            f"{root.name} can only be exported as XML, but the server omits the secrets from it"
        )
        run.state.leave_out("credential", location.name, reason)
        return None
    wanted = WantedFields(kind, location.id, {})
    fields = wanted.current(root)
    for name in wanted.unknown(root):
        del fields[name]
        reason = f"{name} has characters that the server does not show: write it yourself"
        run.state.leave_out("credential field", location.name, reason)
    if location.folder or fields["scope"] not in _SCOPES:
        del fields["scope"]
    if not fields.get("file_name", "-"):
        del fields["file_name"]
    entry = {
        "id": location.id,
        **({"folder": location.folder} if location.folder else {}),
        **({} if location.domain == "_" else {"domain": location.domain}),
        **fields,
    }
    checked = CiCredentialEntry(**entry)
    if not (
        run.is_valid("credential", location.name, partial(typed_options.check, checked))
        and run.is_valid("credential", location.name, partial(checked.require_kind, kind))
    ):
        return None
    reason = "the server never returns it, but creating or changing the credential requires it"
    run.state.leave_out("secret", location.name, reason)
    return entry


_NOT_EXPORTED = (
    "The server does not store scripts: add the scripts that should run to 'scripts'.",
    "Secrets that the server encrypts stay there; the jobs have '(kept by the server)' instead.",
    "Credentials of users and of multibranch projects are not exported.",
    "The view of all jobs, which every server and folder has, is not exported.",
)
#: Exporters by the name of their list in `ci.yml`, which is also the name of their option. An
#: exporter returns the entries, or `None` if they cannot be read.
_EXPORTERS: Mapping[str, Callable[[ExportRun], list[dict[str, Any]] | None]] = {
    "configuration": exported_configuration,
    "credentials": exported_credentials,
    "nodes": exported_nodes,
    "views": exported_views,
}


@dataclass(frozen=True, kw_only=True)
class CiExportOptions(ExportOptions):
    """The options of `ci_export`. `None` exports a kind if the account may read it."""

    jobs: list[str] | None = None
    exclude: list[str] = field(default_factory=list)
    plugins: bool = True
    configuration: bool | None = None
    credentials: bool | None = None
    nodes: bool | None = None
    views: bool | None = None
    parallel: Positive = 4


class CiExportOperation(ServiceExport):
    """Exports the jobs that match the patterns, and the other selected kinds of objects."""

    # without a permission, the objects that it protects are in `left_out`
    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads(
                *(*SEES_JOB, EXTENDED_READ, SYSTEM_READ, READ_NODE, READ_VIEW, VIEW_CREDENTIALS)
            )
        },
    )

    service = "ci"

    def __init__(self, task: Task, options: CiExportOptions) -> None:
        super().__init__(task, options)
        self._options = options
        self._chosen = {name: getattr(options, name) for name in _EXPORTERS}

    def read(self) -> ServiceState:
        state = ServiceState(untold=_NOT_EXPORTED)
        if self._options.plugins:
            state.values["plugins"] = self._plugins(state)
        run = ExportRun(self._task, state, self._options.parallel)
        exported = ExportedJobs(run, self._options.jobs, self._options.exclude)
        jobs = exported.entries()
        for warning in exported.warnings():
            self._task.warn(warning)
        if self._options.jobs != []:
            state.values["jobs"] = jobs
        for name, kind in _EXPORTERS.items():
            chosen = self._chosen[name]
            kind_run = replace(run, folders=exported.folders, requested=chosen is True)
            entries = None if chosen is False else kind(kind_run)
            if entries is not None:
                state.values[name] = entries
        run.require_complete()
        return state

    def alike(self, before: str, after: str) -> bool:
        """Return whether two configurations are equal for `ci_job` [ci-15], and which secrets they
        leave to the server.
        """
        same_secrets = before.count(KEPT) == after.count(KEPT)
        return same_secrets and not drift(after, before).found

    def _plugins(self, state: ServiceState) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        for plugin in plugin_list.read(server_of(self._task)):
            if plugin.deleted is True:
                state.leave_out(
                    "plugin", plugin.short_name, "it will be removed when the server restarts"
                )
            elif plugin.works:
                entries.append(_working(plugin, state))
            elif plugin.enabled is False:
                entries.append({"name": plugin.short_name, "state": "disabled"})
            else:
                state.leave_out("plugin", plugin.short_name, "it is not loaded")
        return entries


def _working(plugin: Plugin, state: ServiceState) -> dict[str, Any]:
    """Return the entry of an active plugin. Its version is the minimum version, unless it cannot be
    compared.
    """
    try:
        least = least_version(plugin.version, "version")
    except ToolchainError as error:
        state.leave_out("version", plugin.short_name, error.message)
        least = None
    return {"name": plugin.short_name, **({"version": least} if least else {})}
