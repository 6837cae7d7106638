# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `repo_repository`: manage repositories [C11.2]."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, TypeAlias

from ...core.errors import ToolchainError, conflict, invalid, not_found, rejected
from ...core.json_text import as_text
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.operations.objects import (
    Item,
    ItemKind,
    Objects,
    attempt_each,
    entries_of,
    stopping_errors,
)
from ...core.plan import Plan, plan
from ..client import RepoClient
from ..items.listing import listing
from ..service import SERVICE
from .catalogue import Config, RepositoryCatalogue, Writer, require_whole, without_secrets
from .entry import (
    NAMES,
    PATTERNS,
    RepositoryEntry,
    canonical,
    comparison,
    is_known,
    patterns_of,
    payload_of,
    project_of,
    server_name,
    settings_name,
    state_of,
)

RepositoryItem: TypeAlias = Item[RepositoryEntry, Config]

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


class Repositories(ItemKind[RepositoryEntry, Config]):
    """Compare and write repositories.

    :param wanted: keys of the repositories of the task that exist after it
    """

    noun: ClassVar[str] = "repository"

    def __init__(self, task: Task, wanted: Collection[str]) -> None:
        super().__init__(task)
        self._wanted = wanted
        self._client = RepoClient(task)
        self._catalogue = RepositoryCatalogue(self._client)
        self._writer = Writer(task, self._client, self._catalogue)

    def name(self, entry: RepositoryEntry) -> str:
        return entry.key

    def key(self, entry: RepositoryEntry) -> str:
        return entry.key.lower()  # the server rejects a key that only differs in letter case

    def load(self, items: Sequence[RepositoryItem]) -> None:
        removed = {item.name: item.place for item in items if item.entry.state == "absent"}
        for item in items:
            _require_other_members(item, removed)
        if len(items) == 1:
            items[0].state = self._catalogue.read(items[0].name)
            return
        needed = {item.name: {server_name(name) for name in _visible(item.entry)} for item in items}
        found = self._catalogue.read_many(needed)
        for item in items:
            item.state = found[item.name]

    def _is_free(self, key: str) -> bool:
        """Return whether an earlier task in check mode would delete the repository."""
        return self._task.predictions.is_free("repository", key.lower())

    def compare(self, item: RepositoryItem) -> Plan:
        entry, config = item.entry, item.state
        if entry.state == "absent":
            return self._removal(entry, config)
        if self._is_free(item.name):
            config = None
        wanted = _fields(entry)
        if config is None:
            entry.require_creation()
            current = None
            wanted = {**{name: getattr(entry, name) for name in _IDENTITY}, **wanted}
        else:
            entry.require_same(config)
            entry.require_class(canonical(str(config["rclass"])))
            # the password cannot be compared: it counts as changed if `update_password` is `always`
            wanted.pop("remote_password", None)
            current = {name: as_text(config.get(json)) for name, json in _IDENTITY.items()}
            current |= state_of(config, wanted)
            if entry.update_password == "always":
                current["remote_password"], wanted["remote_password"] = _SECRET, _NEW_SECRET
        project = project_of(config) if entry.project is None else entry.project
        if entry.environments and not project:  # servers ignore them [repo-60]
            raise rejected(
                f"environments of the repository '{entry.key}': the server ignores them without a"
                " project: set project as well"
            )
        comparisons = {name: comparison(name, value) for name, value in wanted.items()}
        found = plan(current, wanted, comparisons)
        if config is not None and (found.changed or set(wanted) - set(current or {})):
            require_whole(entry.key, config)
        self._require_members(entry, found)
        if config is not None and entry.remote_password and entry.update_password != "always":
            found = found.with_unknown("remote_password")
        # without defaults that the server adds
        managed = {name: value for name, value in found.after.items() if name not in _IDENTITY}
        identity = {"key": entry.key, "rclass": entry.rclass, "packageType": entry.package_type}
        predicted = without_secrets({**(config or identity), **payload_of(managed)})
        return found.with_result(repository=predicted)

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
                raise conflict(
                    f"deleting the repository '{entry.key}' would also delete {number} files: set"
                    " force=true to allow that"
                )
        return plan(before, None).with_result(repository=None)

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
                raise not_found(
                    f"the virtual repository '{entry.key}' refers to '{name}', which does not exist"
                )

    # -- writes -----------------------------------------------------------------------------------

    def foresee(self, item: RepositoryItem) -> None:
        # an administrator of a project may create its repositories, although the server does not
        # return all configurations to such an account
        if item.plan.action == "create" and not item.entry.project:
            # raises for an account that cannot read the list
            for known in self._catalogue.all() or ():
                if known.lower() == item.name.lower() and not self._is_free(known):
                    raise conflict(
                        f"creating the repository '{item.name}': the repository '{known}' exists,"
                        " and keys must not only differ in letter case"
                    )

    def write_all(self, items: Sequence[RepositoryItem]) -> None:
        """Create members before the virtual repositories that refer to them, and delete last."""
        done: list[RepositoryItem] = []
        new = [item for item in items if item.plan.action == "create"]
        while new:
            # a group refers to repositories of earlier groups only, unless they refer to each other
            names = {item.name for item in new}
            ready = [item for item in new if not names & set(item.entry.repositories or [])]
            group = ready or new
            is_sent = not stopping_errors(done) and self._create_together(group)
            todo = [item for item in group if item.error is None]
            attempt_each(partial(self._finish_created, is_sent=is_sent), todo, earlier=done)
            done += group
            new = [item for item in new if item not in group]

        def order(item: RepositoryItem) -> int:  # virtual repositories are deleted first
            is_virtual = item.plan.before.get("rclass") == "virtual"
            return 0 if item.plan.action == "update" else 1 if is_virtual else 2

        existing = [item for item in items if item.plan.action != "create"]
        attempt_each(self.finish, sorted(existing, key=order), earlier=done)

    def _create_together(self, items: Sequence[RepositoryItem]) -> bool:
        """Create repositories in batches, and read them. Return whether all were created."""
        try:
            created = self._writer.create_batch([_body(item) for item in items])
            names = [item.name for item in items]
            found = {} if created is False else self._catalogue.complete(names)
        except ToolchainError as error:
            for item in items:
                item.error = error
            return False
        for item in items:
            item.state = found.get(item.name)
        return created is True

    def _finish_created(self, item: RepositoryItem, *, is_sent: bool) -> None:
        """Verify a repository of a batch, or create it if the batch did not."""
        if item.state is not None and not self._left(item.entry, item.state):
            item.returned = {"repository": without_secrets(item.state)}
            return
        if item.state is None and not is_sent:
            self._create(item)
        else:
            self._assign(item)
        self.verify(item)

    def write(self, item: RepositoryItem) -> None:
        entry, left = item.entry, partial(self._left, item.entry)
        if item.plan.action == "delete":
            self._writer.delete(entry.key)
            return
        if item.plan.action == "create":
            self._create(item)
            return
        changes = {change.field: change.after for change in item.plan.changes}
        body = payload_of({name: value for name, value in changes.items() if name not in _SEPARATE})
        if "remote_password" in changes:
            body["password"] = entry.remote_password
        if "project" in changes:  # before the other fields, because environments require a project
            moves = bool(item.plan.before.get("project"))
            self._writer.attach(entry.key, changes["project"], moves=moves)
        if body:
            self._writer.update(entry.key, body, left)
        if changes.get("default_deployment_repo") == "":
            # some servers ignore an empty value; the key of a repository that does not exist
            # removes the value [repo-60]
            config = self._catalogue.now(entry.key)
            if config is not None and config.get("defaultDeploymentRepo"):
                body = {"defaultDeploymentRepo": f"{entry.key}-no-deployments"}
                self._writer.update(entry.key, body, left)

    def _create(self, item: RepositoryItem) -> None:
        self._writer.create(item.name, _body(item), partial(self._left, item.entry))
        self._assign(item)

    def _assign(self, item: RepositoryItem) -> None:
        """Assign a new repository to its project, unless the server has done that."""
        project = item.entry.project
        if project and project_of(self._catalogue.now(item.name)) != project:
            self._writer.attach(item.name, project, moves=False)

    def left(self, item: RepositoryItem) -> Plan | None:
        if item.plan.action == "delete":
            return None
        names = partial(self._left, item.entry)
        item.state = self._writer.settled(item.name, names, known=is_known)
        if item.state is None:
            self._task.warn(
                f"the server accepted the repository '{item.name}', but does not return it yet"
            )
            return None
        item.returned = {"repository": without_secrets(item.state)}
        return _compared(item.entry, item.state)

    def predict(self, item: RepositoryItem) -> None:
        entry, predictions = item.entry, self._task.predictions
        if item.plan.action == "create":
            value = {"rclass": entry.rclass, "defaultDeploymentRepo": entry.default_deployment_repo}
            predictions.add("repository", entry.key.lower(), value=value)
        elif item.plan.action == "delete":
            predictions.remove("repository", entry.key.lower())

    def _left(self, entry: RepositoryEntry, config: Config) -> list[str]:
        """Return the names of the fields whose value in a configuration is not the wanted one."""
        return [change.field for change in _compared(entry, config).changes]


def _require_other_members(item: RepositoryItem, removed: Mapping[str, str]) -> None:
    """Raise `invalid` if a repository refers to itself, or to one that the task deletes.

    :param removed: places of the entries that delete a repository, by its key
    """
    entry = item.entry
    for name in (*(entry.repositories or ()), entry.default_deployment_repo):
        if name == entry.key:
            raise item.placed(invalid("the repository refers to itself: remove this member"))
        if name in removed:
            raise item.placed(
                invalid(
                    f"the repository refers to '{name}', which {removed[name]} deletes: remove one"
                    " of them"
                )
            )


def _compared(entry: RepositoryEntry, config: Config) -> Plan:
    wanted = _visible(entry)
    comparisons = {name: comparison(name, value) for name, value in wanted.items()}
    return plan(state_of(config, wanted), wanted, comparisons)


class RepoRepositoryOperation(Objects[RepositoryEntry, Config]):
    """Create, update or delete a repository, or the repositories of `entries`."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
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
        entries, listed = entries_of(options, RepositoryEntry)
        wanted = {entry.key for entry in entries if entry.state == "present"}
        super().__init__(Repositories(task, wanted), entries, listed)


def _fields(entry: RepositoryEntry) -> dict[str, Any]:
    """Return the fields that an entry sets, with their wanted values."""
    found = {name: getattr(entry, name) for name in NAMES if getattr(entry, name) is not None}
    for name in PATTERNS & found.keys():
        found[name] = patterns_of(",".join(found[name]))
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


def _body(item: RepositoryItem) -> dict[str, Any]:
    """Return the request body that creates a repository."""
    entry = item.entry
    fields = {name: value for name, value in item.plan.after.items() if name in _fields(entry)}
    body = {"key": entry.key, "rclass": entry.rclass, "packageType": entry.package_type}
    body |= payload_of(fields)
    password = entry.remote_password
    return body if password is None else {**body, "password": password}


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
