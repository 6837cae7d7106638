# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `repo_repository`: manage repositories [C11.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

from ...core.errors import ToolchainError, invalid
from ...core.json_text import as_text
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.objects import Item, ItemKind, Objects, entries_of
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan, plan
from ..client import RepoClient
from ..items.listing import listing
from .catalogue import Config, RepositoryCatalogue, require_whole, without_secrets
from .entry import RepositoryEntry, canonical
from .fields import (
    NAMES,
    comparison,
    is_known,
    payload_of,
    project_of,
    server_name,
    settings_name,
    state_of,
)
from .writing import Writer

#: Placeholders for a password in a diff: servers return it encrypted with a changing key [repo-60].
_SECRET, _NEW_SECRET = "(secret)", "(new secret)"
_IDENTITY = {"rclass": "rclass", "package_type": "packageType"}
#: Fields that are not compared or sent like the others: the project has a separate request, and the
#: password is encrypted in responses.
_SEPARATE = ("project", "remote_password")


@dataclass(frozen=True)
class RepoRepositoryOptions(RepositoryEntry):
    """The options of `repo_repository`."""

    entries: Annotated[list[RepositoryEntry] | None, Option(empty=False)] = None


class Repositories(ItemKind[RepositoryEntry, Any]):
    """Compare and write repositories."""

    noun: ClassVar[str] = "repository"

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._client = RepoClient(task)
        self._catalogue = RepositoryCatalogue(self._client)
        self._writer = Writer(task, self._client, self._catalogue)
        #: Keys of the repositories that exist after the task.
        self._wanted: set[str] = set()

    def name(self, entry: RepositoryEntry) -> str:
        return entry.key

    def load(self, items: Sequence[Item[RepositoryEntry, Any]]) -> None:
        entries = [item.entry for item in items]
        self._wanted = {entry.key for entry in entries if entry.state == "present"}
        if len(entries) == 1:
            self._catalogue.load_one(entries[0].key)
            return
        self._catalogue.load_many(
            {entry.key: {server_name(name) for name in _visible(entry)} for entry in entries}
        )

    def compare(self, item: Item[RepositoryEntry, Any]) -> Plan:
        entry = item.entry
        config = self._catalogue.get(entry.key)
        if entry.state == "absent":
            return self._removal(entry, config)
        wanted = _fields(entry)
        if config is None:
            entry.require_creation()
            current = None
            wanted = {**{name: getattr(entry, name) for name in _IDENTITY}, **wanted}
        else:
            entry.require_same(config)
            entry.require_class(canonical(str(config["rclass"])))
            current = {name: as_text(config.get(json)) for name, json in _IDENTITY.items()}
            current |= state_of(config, wanted)
            wanted = self._with_password(entry, current, wanted)
        self._require_environment(entry, config)
        comparisons = {name: comparison(name, value) for name, value in wanted.items()}
        found = plan(current, wanted, comparisons)
        if config is not None and (found.changed or set(wanted) - set(current or {})):
            require_whole(entry.key, config)
        self._require_members(entry, found)
        if config is not None and entry.remote_password and entry.update_password != "always":
            found = found.with_unknown("remote_password")
        return found.with_result(repository=_predicted(entry, config, found))

    def _with_password(
        self, entry: RepositoryEntry, current: dict[str, Any], wanted: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the fields to compare for an existing repository.

        The password cannot be compared. It counts as changed if `update_password` is `always`.
        """
        fields = {name: value for name, value in wanted.items() if name != "remote_password"}
        if entry.update_password == "always":
            current["remote_password"], fields["remote_password"] = _SECRET, _NEW_SECRET
        return fields

    def _removal(self, entry: RepositoryEntry, config: Config | None) -> Plan:
        if config is None:
            return plan(None, None).with_result(repository=None)
        require_whole(entry.key, config)
        rclass = canonical(str(config["rclass"]))
        before = without_secrets(config)
        if rclass != "virtual":
            count = file_count(self._client, entry.key, rclass)
            before["files"] = count
            if count != 0 and not entry.force:
                number = "an unknown number of" if count is None else str(count)
                raise ToolchainError(
                    "conflict",
                    f"deleting the repository '{entry.key}' would also delete {number} files: set"
                    " force: true to allow that",
                )
        return plan(before, None).with_result(repository=None)

    def _require_environment(self, entry: RepositoryEntry, config: Config | None) -> None:
        """Raise `rejected` for environments without a project, which servers ignore [repo-60]."""
        project = project_of(config) if entry.project is None else entry.project
        if entry.environments and not project:
            raise ToolchainError(
                "rejected",
                f"environments of the repository '{entry.key}': the server ignores them without a"
                " project: set project as well",
            )

    def _require_members(self, entry: RepositoryEntry, found: Plan) -> None:
        """Raise `not_found` if a virtual repository refers to a repository that does not exist."""
        names: list[str] = []
        for change in found.changes:
            if change.field == "repositories":
                names += [name for name in change.after if name not in (change.before or [])]
            elif change.field == "default_deployment_repo" and change.after:
                names.append(change.after)
        get = self._task.predictions.get
        unknown = [name for name in names if name not in self._wanted]
        for name in unknown:
            if not get("repository", name.lower()) and name not in self._catalogue.known_keys():
                raise ToolchainError(
                    "not_found",
                    f"the virtual repository '{entry.key}' refers to '{name}', which does not"
                    " exist",
                )

    # -- writes -----------------------------------------------------------------------------------

    def foresee(self, item: Item[RepositoryEntry, Any]) -> None:
        entry, plan = item.entry, item.plan
        # an administrator of a project may create its repositories, although the server does not
        # return all configurations to such an account
        if plan.action == "create" and not entry.project:
            self._catalogue.require_administrator()

    def write_all(self, objects: Sequence[Item[RepositoryEntry, Any]]) -> None:
        """Create members before the virtual repositories that refer to them, and delete last."""
        new = [managed for managed in objects if managed.plan.action == "create"]
        for group in _in_creation_order(new):
            self._create_together(group)
        existing = [managed for managed in objects if managed.plan.action != "create"]
        for managed in sorted(existing, key=_write_order):
            with managed.reporting():
                self.write(managed)

    def _create_together(self, objects: Sequence[Item[RepositoryEntry, Any]]) -> None:
        bodies = [_body(managed.entry, managed.plan) for managed in objects]
        try:
            created = self._writer.create_batch(bodies)
            found = {} if created is False else self._catalogue.complete([e.name for e in objects])
        except ToolchainError as error:
            for managed in objects:
                managed.error = error
            return
        for managed in objects:
            config = found.get(managed.name)
            with managed.reporting():
                if created is not True and config is None:
                    self._create(managed.entry, managed.plan)
                managed.returned = self._created(managed.entry, managed.plan, config)

    def write(self, item: Item[RepositoryEntry, Any]) -> None:
        entry, plan = item.entry, item.plan
        if plan.action == "delete":
            self._writer.delete(entry.key)
            item.returned = {"repository": None}
            return
        if plan.action == "create":
            self._create(entry, plan)
            item.returned = self._created(entry, plan, None)
            return
        changes = {change.field: change.after for change in plan.changes}
        body = payload_of({name: value for name, value in changes.items() if name not in _SEPARATE})
        if "remote_password" in changes:
            body["password"] = entry.remote_password
        if "project" in changes:  # before the other fields, because environments require a project
            moves = bool(plan.before.get("project"))
            self._writer.attach(entry.key, changes["project"], moves=moves)
        if body:
            self._writer.update(entry.key, body, lambda config: self._left(entry, config))
        if changes.get("default_deployment_repo") == "":
            self._remove_deployment_repo(entry)
        item.returned = self._settled(entry, plan)

    def _create(self, entry: RepositoryEntry, plan: Plan) -> None:
        self._writer.create(entry.key, _body(entry, plan), lambda config: self._left(entry, config))

    def _created(
        self, entry: RepositoryEntry, plan: Plan, config: Config | None
    ) -> Mapping[str, Any]:
        """Assign a new repository to its project, verify it, and return the return values.

        :param config: configuration that was read after the creation; `None` if it was not read
        """
        if config is not None and not self._left(entry, config):
            return {"repository": without_secrets(config)}
        if entry.project and project_of(self._catalogue.now(entry.key)) != entry.project:
            self._writer.attach(entry.key, entry.project, moves=False)
        return self._settled(entry, plan)

    def _remove_deployment_repo(self, entry: RepositoryEntry) -> None:
        """Remove `defaultDeploymentRepo` from a server that ignores an empty value.

        Server fact [repo-60]: the key of a repository that does not exist removes the value.
        """
        config = self._catalogue.now(entry.key)
        if config is not None and config.get("defaultDeploymentRepo"):
            body = {"defaultDeploymentRepo": f"{entry.key}-no-deployments"}
            self._writer.update(entry.key, body, lambda config: self._left(entry, config))

    def _settled(self, entry: RepositoryEntry, plan: Plan) -> Mapping[str, Any]:
        config = self._writer.settled(
            entry.key, lambda config: self._left(entry, config), known=is_known
        )
        if config is None:
            self._task.warn(
                f"the server accepted the repository '{entry.key}', but does not return it yet"
            )
            return plan.result
        return {"repository": without_secrets(config)}

    def predict(self, item: Item[RepositoryEntry, Any]) -> None:
        entry, predictions = item.entry, self._task.predictions
        if item.plan.action == "create":
            value = {
                "rclass": entry.rclass,
                "defaultDeploymentRepo": entry.default_deployment_repo,
            }
            predictions.add("repository", entry.key.lower(), value=value)
        elif item.plan.action == "delete":
            predictions.remove("repository", entry.key.lower())

    def _left(self, entry: RepositoryEntry, config: Config) -> list[str]:
        """Return the names of the fields whose value in a configuration is not the wanted one."""
        wanted = _visible(entry)
        current = state_of(config, wanted)
        return [
            name
            for name, value in wanted.items()
            if not comparison(name, value)(current.get(name), value)[0]
        ]


class RepoRepositoryOperation(Objects[RepositoryEntry, Any]):
    """Create, update or delete a repository, or the repositories of `entries`."""

    descriptor: ClassVar = Descriptor(
        "repo",
        {
            "read": reads("read"),
            **dict.fromkeys(("create", "update", "delete", "batch"), writes("admin")),
            "project": writes("admin"),
        },
        kind="repository",
        name="{key}",
        listed="results",
    )

    def __init__(self, task: Task, options: RepoRepositoryOptions) -> None:
        if task.connection.other_server and options.rclass == "remote" and not options.remote_url:
            raise invalid(
                f"remote_url is missing, and url is {task.connection.url}, another server than that"
                " of the environment: url is the repository manager, remote_url the server behind"
                " a remote repository"
            )
        super().__init__(Repositories(task), *entries_of(options, RepositoryEntry))


def _fields(entry: RepositoryEntry) -> dict[str, Any]:
    """Return the fields that an entry sets, with their wanted values."""
    found = {name: getattr(entry, name) for name in NAMES if getattr(entry, name) is not None}
    if entry.members is not None:
        found["members"] = [asdict(member) for member in entry.members]
    if entry.remote_password is not None:
        found["remote_password"] = _SECRET
    found |= {settings_name(name): value for name, value in entry.settings_of_server().items()}
    return found


def _visible(entry: RepositoryEntry) -> dict[str, Any]:
    """Return the fields that an entry sets and that a response contains."""
    if entry.state == "absent":
        return {}
    return {name: value for name, value in _fields(entry).items() if name != "remote_password"}


def _body(entry: RepositoryEntry, plan: Plan) -> dict[str, Any]:
    """Return the request body that creates a repository."""
    fields = {name: value for name, value in plan.after.items() if name in _fields(entry)}
    body = {"key": entry.key, "rclass": entry.rclass, "packageType": entry.package_type}
    body |= payload_of(fields)
    password = entry.remote_password
    return body if password is None else {**body, "password": password}


def _predicted(entry: RepositoryEntry, config: Config | None, found: Plan) -> dict[str, Any]:
    """Return the predicted return value `repository`, without defaults that the server adds."""
    managed = {name: value for name, value in found.after.items() if name not in _IDENTITY}
    identity = {"key": entry.key, "rclass": entry.rclass, "packageType": entry.package_type}
    return without_secrets({**(config or identity), **payload_of(managed)})


def _in_creation_order(
    objects: Sequence[Item[RepositoryEntry, Any]],
) -> list[list[Item[RepositoryEntry, Any]]]:
    """Divide new repositories into groups that only refer to repositories of earlier groups."""
    groups: list[list[Item[RepositoryEntry, Any]]] = []
    left = list(objects)
    while left:
        names = {managed.name for managed in left}
        ready = [managed for managed in left if not names & set(managed.entry.repositories or [])]
        groups.append(ready or left)
        left = [managed for managed in left if ready and managed not in ready]
    return groups


def _write_order(managed: Item[RepositoryEntry, Any]) -> int:
    """Return the sort key of updates and deletions: virtual repositories are deleted first."""
    virtual = managed.plan.before.get("rclass") == "virtual"
    return 0 if managed.plan.action == "update" else 1 if virtual else 2


def file_count(client: RepoClient, key: str, rclass: str) -> int | None:
    """Return the number of files in a repository; `None` if they cannot be listed.

    Server fact [repo-7]: the files of a remote repository `x` are stored in the repository
    `x-cache`.
    """
    stored = f"{key}-cache" if rclass == "remote" else key
    try:
        top = listing(client, stored, "", folders=True)
        if not top:
            return 0 if top is not None or rclass == "remote" else None
        found = listing(client, stored, "", deep=True)
    except ToolchainError as error:
        if error.kind not in ("protocol", "timeout", "server"):
            raise
        return None
    return None if found is None else len(found)
