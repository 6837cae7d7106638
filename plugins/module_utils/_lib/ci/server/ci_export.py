# SPDX-License-Identifier: GPL-3.0-or-later
"""Export the state of the server as `ci.yml` of a desired state: `ci_export` [C9]."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar
from urllib.parse import unquote

from ...core.address import path
from ...core.concurrency import bounded
from ...core.errors import ToolchainError, not_found, protocol, shorten
from ...core.globs import Patterns
from ...core.json_text import as_text, json_objects
from ...core.module import typed_options
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Positive
from ...core.operations.export_folder import FileNames
from ...core.operations.service_export import ExportOptions, ServiceExport, ServiceState
from ...core.progress import ProgressCounter
from .. import client, xml_reader
from ..client import FOLDER, SEES_JOB, ServerObjects, object_of, part, server_of
from ..credentials.ci_credential import CiCredentialEntry, CredentialLocation, CredentialStores
from ..credentials.wanted import XML, WantedFields, kind_of
from ..job_address import Job, job_of
from ..jobs import configuration, parts_of_others
from ..jobs.ci_view import CiViewEntry
from ..jobs.kept_secrets import has_secret, may_have_secrets, without_secrets
from ..service import SERVICE
from ..xml_reader import KEPT, XmlElement
from . import installed_plugins
from .casc_comparison import FAILED, MASKED, content_of, identity_of, live_configuration, name_of
from .ci_node import BUILT_IN, CiNodeEntry, NodeState, NodeStore, configuration_of, without_state
from .installed_plugins import least_version

Item = TypeVar("Item")
Found = TypeVar("Found")

#: Kinds of errors that affect a single object. The export continues after them.
_SINGLE_OBJECT_KINDS = ("permission", "protocol", "not_found")


@dataclass(frozen=True)
class ExportRun:
    """A running export.

    :param state: exported state, to which each kind of objects adds files and skipped objects
    :param parallel: maximum number of concurrent requests
    :param folders: exported folders, whose credentials and views are exported too
    :param requested: whether the task explicitly requests the current kind of objects; a missing
        permission or plugin is then an error
    :param names: generator of unique file names
    :param unread: messages about objects whose responses cannot be parsed, or come from a proxy
    """

    task: Task
    state: ServiceState
    parallel: int
    folders: Sequence[Job] = ()
    requested: bool = False
    names: FileNames = field(default_factory=FileNames)
    unread: list[str] = field(default_factory=list)

    def read_each(
        self,
        kind: str,
        items: Sequence[Item],
        read: Callable[[Item], Found | None],
        name: Callable[[Item], str],
    ) -> Iterator[tuple[Item, Found]]:
        """Read objects concurrently, and yield each item with its object.

        An object that the account may not read is added to `left_out`, an object with a damaged
        response to `unread`.

        :param kind: kind of the objects for messages, for example "job"
        :param read: returns the object of an item, or `None` if it no longer exists
        :param name: returns the name of an item for messages
        """
        count = ProgressCounter(self.task.progress, f"reading the {kind}s", len(items))

        def result(item: Item) -> Found | ToolchainError:
            try:
                found = read(item)
            except ToolchainError as error:
                if error.kind not in _SINGLE_OBJECT_KINDS:
                    raise
                return error
            finally:
                count.add()
            gone = not_found("it no longer exists, or the account cannot see it")
            return gone if found is None else found

        for item, found in zip(items, bounded(self.parallel, result, items), strict=True):
            if isinstance(found, ToolchainError):
                self.leave_out(kind, name(item), found)
            else:
                yield item, found

    def listed(
        self, kind: str, name: str, read: Callable[[], Found], *, required: bool = False
    ) -> Found | None:
        """Return a list of objects, or `None` after adding it to `left_out`, because the account
        may not read it or the server has none.

        :param name: the list for messages
        :param required: raise the error instead
        """
        try:
            return read()
        except ToolchainError as error:
            if required or error.kind not in ("permission", "not_found"):
                raise
            self.leave_out(kind, name, error)
            return None

    def is_valid(self, kind: str, name: str, check: Callable[[], object]) -> bool:
        """Return whether `check` raises no error. Otherwise the object is added to `left_out`."""
        try:
            check()
        except ToolchainError as error:
            self.leave_out(kind, name, error)
            return False
        return True

    def leave_out(self, kind: str, name: str, error: ToolchainError) -> None:
        """Add an object to `left_out`, or to `unread` if its response cannot be parsed or is that
        of a proxy.

        Raises `error` for a missing permission if the task explicitly requests this kind.
        """
        if self.requested and error.kind == "permission":
            raise error
        if error.kind == "protocol" or error.other_server is not None:
            self.unread.append(f"{kind} '{name}': {error.message}")
        else:
            unread = error.kind == "permission"
            self.state.leave_out(kind, name, error.message, unread=unread)

    def require_complete(self) -> None:
        """Raise `protocol` if the response for an object cannot be parsed.

        An export without the object would delete the file of an earlier export.
        """
        if self.unread:
            raise protocol(
                f"{len(self.unread)} objects cannot be read, so no file was changed:"
                f" {shorten('; '.join(self.unread))}"
            )

    def file(self, folder: str, name: str, text: str) -> str:
        """Add an XML file with a configuration. Return its path relative to `ci.yml`."""
        src = f"{self.names.name(folder, name)}.xml"
        self.state.files[src] = text
        return src


_DEEPEST = 50
#: Empty member of a job, which the server adds after a read [ci-15].
_ACTIONS = re.compile(r"\n  <actions/>\n")


@dataclass(frozen=True)
class _Item:
    """A job or folder on the server.

    :param names: name of each level, as the server stores it
    :param stem: path of the exported file without extension
    :param kind: class name
    :param generated_count: number of jobs that the server has generated in it
    """

    job: Job
    names: tuple[str, ...]
    stem: str
    kind: str
    generated_count: int


class ExportedJobs:
    """Exports the jobs that match the patterns.

    :param jobs: patterns of the jobs and folders to export; `None` means all
    :param exclude: patterns of the jobs and folders to skip
    """

    def __init__(self, run: ExportRun, jobs: Sequence[str] | None, exclude: Sequence[str]) -> None:
        self._run, self._all, self._none = run, jobs is None, jobs == []
        self._jobs, self._exclude = Patterns("jobs", jobs), Patterns("exclude", exclude)
        self._server = server_of(run.task, connections=max(10, run.parallel))
        #: Exported folders, without computed folders. `entries` fills the list.
        self.folders: list[Job] = []

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries for `ci_job`, parent folders first, and fill `folders`."""
        objects_ = ServerObjects(self._server)

        def read(item: _Item) -> str | None:
            return objects_.text(f"exporting the job '{item.job.name}'", item.job.path)

        items = [] if self._none else list(self._below((), "ci/jobs"))
        found: list[dict[str, Any]] = []
        for item, text in self._run.read_each("job", items, read, lambda item: item.job.name):
            own = parts_of_others.exported(_ACTIONS.sub("\n", text, count=1))
            stripped, _count = without_secrets(own)
            if item.generated_count:
                name, reason = f"{item.job.name}/*", "created by the server itself"
                self._run.state.leave_out("job", name, f"{item.generated_count} jobs {reason}")
            src, is_folder = f"{item.stem}.xml", configuration.kind_of(stripped) == FOLDER
            if is_folder:
                self.folders.append(item.job)
            self._run.state.files[src] = stripped
            folder = {"folder": True} if is_folder else {}
            found.append({"job": item.job.name, "src": src, **folder})
        return found

    def warnings(self) -> Iterator[str]:
        """Yield a warning for each pattern that matches nothing."""
        for patterns in (self._jobs, self._exclude):
            yield from patterns.warnings("nothing that the account can see")

    def _below(self, parents: tuple[str, ...], stem: str) -> Iterator[_Item]:
        """Yield the jobs of a folder and its subfolders that the patterns select, parents first.

        :param parents: names of the folder and its parents
        :param stem: path of the folder in the export
        """
        for shown in self._listed(parents):
            names = (*parents, as_text(shown.get("name")))
            text = "/".join(names)
            try:
                job = job_of(text, self._server.connection.url)
                same = job.path == "/".join(f"job/{path(name)}" for name in names)
            except (ToolchainError, UnicodeError):
                same = False
            if not same:
                self._run.state.leave_out("job", text, "ci_job does not support its name")
                continue
            kind = str(shown.get("_class", ""))
            generated = 0 if kind == FOLDER else len(json_objects(shown.get("jobs")))
            file = self._run.names.name(stem, unquote(names[-1]))
            item = _Item(job, names, file, kind, generated)
            if _is_named(item, self._exclude):
                continue
            if self._all or _is_named(item, self._jobs):
                yield item
            if item.kind != FOLDER:
                continue
            if len(names) < _DEEPEST:
                yield from self._below(names, item.stem)
            else:
                reason = f"folders are more than {_DEEPEST} levels deep"
                self._run.state.leave_out("job", f"{text}/*", reason)

    def _listed(self, parents: tuple[str, ...]) -> list[Mapping[str, Any]]:
        purpose = f"listing the jobs of {'/'.join(parents) or 'the server'}"
        folder_path = "".join(f"job/{path(name)}/" for name in parents)
        query = {"tree": "jobs[name,_class,jobs[name]]"}
        try:
            response = self._server.read(purpose, f"{folder_path}api/json", query=query)
        except ToolchainError as error:
            if not parents or error.kind not in ("permission", "not_found"):
                raise
            name, unread = f"{'/'.join(parents)}/*", error.kind == "permission"
            self._run.state.leave_out("job", name, error.message, unread=unread)
            return []
        jobs = object_of(response).get("jobs")
        if not isinstance(jobs, list):
            raise response.error("protocol", "the response has no list of jobs: check url")
        return json_objects(jobs)


def _is_named(item: _Item, patterns: Patterns) -> bool:
    """Return whether a pattern matches the job or one of its parent folders."""
    depths = range(1, len(item.names) + 1)
    return patterns.fits(*("/".join(item.names[:depth]) for depth in depths))


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
        name, content = value.get("key", value.get("name")), value.get("value")
        if isinstance(name, str) and isinstance(content, str) and has_secret(name, content):
            run.state.leave_out("configuration", f"{path}.value", "it is a secret")
            value = {name: item for name, item in value.items() if name != "value"}
        members = {name: _exported(run, f"{path}.{name}", item) for name, item in value.items()}
        left = {name: item for name, item in members.items() if item is not _LEFT_OUT}
        return left if left or not value else _LEFT_OUT
    if isinstance(value, list):
        entries = []
        for number, item in enumerate(value):
            # an item without a name is numbered, because its content may be a secret
            name = name_of(item) if isinstance(item, Mapping) else None
            place = f"{path}[{number if name is None else name}]"
            entries.append(_exported(run, place, item))
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
        text = xml_reader.written_in_lines(without_state(root))
        if may_have_secrets(text):
            reason = "it contains secrets, so only settings with an option of ci_node are exported"
            run.state.leave_out("configuration of the node", state.name, reason)
            options = configuration_of(root)
        else:
            options = {"src": run.file("ci/nodes", state.name, text)}
        entry = {**_offline_options(state), **options}
        if run.is_valid("node", state.name, partial(typed_options.check, CiNodeEntry(**entry))):
            entries.append(entry)
    return entries


def _offline_options(state: NodeState) -> dict[str, Any]:
    """Return the options that name a node and take it offline."""
    entry = {"name": state.name, "offline": state.temporarily_offline}
    return entry | ({"offline_reason": state.offline_reason} if state.offline_reason else {})


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

    entries = []
    for view, root in run.read_each("view", views, read, lambda view: view.full_name):
        text = xml_reader.written_in_lines(root)
        if may_have_secrets(text):
            run.state.leave_out("view", view.full_name, "its configuration contains secrets")
            continue
        folder_name = "" if view.folder is None else view.folder.name
        entry: dict[str, Any] = {"name": view.name}
        entry |= {"folder": folder_name} if folder_name else {}
        if run.is_valid("view", view.full_name, partial(typed_options.check, CiViewEntry(**entry))):
            src = run.file("ci/views", view.full_name.replace("/", "-"), text)
            entries.append({**entry, "src": src})
    return entries


def _listed(server: ServerObjects, folder: Job | None) -> list[_ViewLocation]:
    """Return the views of the server or a folder, except a primary view with all jobs."""
    parent_path = "" if folder is None else f"{folder.path}/"
    purpose = f"listing the views of {folder.name if folder else 'the server'}"
    response = server.read(
        purpose, f"{parent_path}api/json", "primaryView[name],views[name,_class]"
    )
    if response is None:
        raise not_found(
            f"{purpose}: the folder no longer exists, or the account cannot see it", status=404
        )
    shown = part(response.json())
    if not isinstance(shown.get("views"), list):
        raise response.error("protocol", "the response has no list of views")
    primary = part(shown.get("primaryView")).get("name")
    return [
        _ViewLocation(folder, as_text(obj.get("name")))
        for obj in json_objects(shown.get("views"))
        if obj.get("_class") != _ALL or obj.get("name") != primary
    ]


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
                *(*SEES_JOB, client.EXTENDED_READ, client.SYSTEM_READ),
                *(client.READ_NODE, client.READ_VIEW, client.VIEW_CREDENTIALS),
            )
        },
    )

    service = "ci"
    choosing = ("jobs", "exclude")

    def __init__(self, task: Task, options: CiExportOptions) -> None:
        super().__init__(task, options)
        self._options = options
        self._chosen = {name: getattr(options, name) for name in _EXPORTERS}

    def read(self) -> ServiceState:
        state = ServiceState(not_exported=_NOT_EXPORTED)
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
        return same_secrets and not configuration.drift(after, before).found

    def _plugins(self, state: ServiceState) -> list[dict[str, Any]]:
        """Return the entries of the plugins. The version of an active plugin is the minimum
        version, unless it cannot be compared.
        """
        entries: list[dict[str, Any]] = []
        for plugin in installed_plugins.read(server_of(self._task)):
            if plugin.deleted is True:
                state.leave_out(
                    "plugin", plugin.short_name, "it will be removed when the server restarts"
                )
            elif plugin.works:
                try:
                    least = least_version(plugin.version, "version")
                except ToolchainError as error:
                    state.leave_out("version", plugin.short_name, error.message)
                    least = None
                version = {"version": least} if least else {}
                entries.append({"name": plugin.short_name, **version})
            elif plugin.enabled is False:
                entries.append({"name": plugin.short_name, "state": "disabled"})
            else:
                state.leave_out("plugin", plugin.short_name, "it is not loaded")
        return entries
