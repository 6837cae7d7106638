# SPDX-License-Identifier: GPL-3.0-or-later
"""Read configurations of repositories with few requests [repo-60, repo-61]."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from math import inf
from typing import Any, ClassVar

from ...core import address
from ...core.concurrency import bounded
from ...core.errors import ToolchainError
from ...core.http.messages import Response, unexpected_body
from ...core.http.writes import Verify
from ...core.json_text import as_text, json_objects
from ...core.module.task import Task
from ...core.progress import PollInterval, PollTimeout
from ..client import ACCESS, PlatformClient, RepoClient, lacks_licence, object_of
from ..repositories import listed
from .entry import project_of

#: Configuration of a repository, as returned by the server.
Config = Mapping[str, Any]
#: Maximum number of repositories in a batch.
MAX_KEYS = 100
#: Maximum number of characters of the keys in a URL.
_MAX_CHARACTERS = 6000
_BATCH = "api/v2/repositories/batch"
#: Key of the transport's memory: whether the server can read repositories in batches.
_HAS_BATCH = "reads repositories in batches"
#: Classes of repositories whose configuration cannot be read.
_SERVER_CLASSES = ("release_bundle", "releasebundles", "distribution")
#: Field that the server returns to administrators only.
_ADMINISTRATOR_FIELD = "includesPattern"


class RepositoryCatalogue:
    """The configurations of a server's repositories."""

    def __init__(self, client: RepoClient) -> None:
        self._client = client
        #: Cache of the keys in the list of repositories.
        self._keys: frozenset[str] | None = None

    def read_many(self, needed: Mapping[str, Collection[str]]) -> dict[str, Config | None]:
        """Read repositories with the list of all configurations.

        The list does not contain all fields. Repositories with other needed fields are read again,
        in batches or one by one.

        :param needed: names of the needed fields in the server's API, by repository key
        """
        every = self.all()
        if every is None:
            known = self.known_keys()
            every = {key: {} for key in needed if key in known}
        self._keys = self._keys or frozenset(every)
        lacking = [
            key
            for key, names in needed.items()
            if (found := every.get(key)) is not None and not {"rclass", *names} <= set(found)
        ]
        return {**{key: every.get(key) for key in needed}, **self.complete(lacking)}

    def known_keys(self) -> frozenset[str]:
        """Return the keys of all repositories that the account may see."""
        if self._keys is None:
            _response, entries = listed(self._client)
            self._keys = frozenset(as_text(entry.get("key")) for entry in entries)
        return self._keys

    def all(self) -> dict[str, Config] | None:
        """Return the configurations in the server's list, by key; `None` without such a list.

        Server fact [repo-61]: the list does not contain the fields of the package type.
        """
        response = self._client.transport.read(
            "reading the configurations of all repositories",
            "api/repositories/configurations",
            expect=(200, 400, 404, 405),
        )
        if response.status != 200:
            self._refuse_edition(response)
            return None
        decoded = object_of(response, "configurations of repositories")
        if not all(isinstance(entries, list) for entries in decoded.values()):
            return None  # an older server returned the repository with the key `configurations`
        found: dict[str, Config] = {}
        for rclass, entries in decoded.items():
            for entry in json_objects(entries):
                found[as_text(entry.get("key"))] = {"rclass": rclass.lower(), **entry}
        return found

    def everything(self) -> dict[str, Config | None]:
        """Return the complete configurations of all repositories."""
        every = self.all()
        keys = self.known_keys() if every is None else frozenset(every)
        found: dict[str, Config | None] = dict(every or {})
        unreadable = [
            key for key, config in (every or {}).items() if config["rclass"] in _SERVER_CLASSES
        ]
        found.update(self.complete(sorted(keys.difference(unreadable))))
        return found

    def complete(self, keys: Sequence[str]) -> dict[str, Config | None]:
        """Read complete configurations by key, in batches if the server supports them.

        The configuration of a repository that does not exist is `None`.
        """
        if len(keys) > 1 and self._client.transport.memory.get(_HAS_BATCH) is not False:
            found: dict[str, Config | None] = {}
            for part in _parts(keys):
                response = self._client.transport.read(
                    f"reading {len(part)} repositories",
                    _BATCH,
                    query={"names": part},
                    expect=(200, 400, 404, 405),
                )
                self._client.transport.memory[_HAS_BATCH] = response.status == 200
                if response.status != 200:
                    self._refuse_edition(response)
                    break
                batch = object_of(response, "repositories")
                rows = ((key, batch.get(key)) for key in part)
                found |= {key: row if isinstance(row, Mapping) else None for key, row in rows}
            else:
                return found
        return dict(zip(keys, bounded(self._client.connections, self.read, keys), strict=True))

    def read(self, key: str) -> Config | None:
        """Return the configuration of a repository; `None` if it does not exist.

        Server facts [repo-4, repo-9]: for an unknown key the server returns 400 or 404, and without
        a licence it also returns 400. The list of repositories distinguishes the two cases.
        """
        response = self._response(key)
        if response.status == 200:
            return _config(response)
        self._refuse_edition(response)
        self._keys = None  # read the list again: the repository may be newer
        if key in self.known_keys():
            raise self._client.transport.failure(response)
        return None

    def now(self, key: str) -> Config | None:
        """Read a repository that this task has changed; return `None` if it cannot be read yet."""
        response = self._response(key)
        return _config(response) if response.status == 200 else None

    def _response(self, key: str) -> Response:
        return self._client.transport.read(
            f"reading the repository '{key}'",
            f"api/repositories/{address.path(key)}",
            expect=(200, 400, 404),
        )

    def _refuse_edition(self, response: Response) -> None:
        """Raise an error if the server rejected the request because of its licence."""
        if lacks_licence(response):
            raise self._client.transport.failure(response)


def _config(response: Response) -> Config:
    found = object_of(response, "a repository")
    if "key" not in found:
        raise unexpected_body(response, "a repository")
    if "rclass" not in found:
        raise response.error(
            "rejected", "the server does not support the interface for repository configurations"
        )
    return found


def require_whole(key: str, config: Config) -> None:
    """Raise `permission` if the server returned only a part of a configuration.

    Server fact [repo-60]: accounts that are not administrators get few fields.
    """
    if _ADMINISTRATOR_FIELD not in config:
        raise ToolchainError(
            "permission",
            f"the account sees only a part of the configuration of the repository '{key}':"
            " managing repositories requires an administrator",
        )


def without_secrets(config: Config) -> dict[str, Any]:
    """Return a configuration without the encrypted password."""
    return {name: value for name, value in config.items() if name != "password"}


def _parts(keys: Iterable[str]) -> Iterator[list[str]]:
    """Split repository keys into batches."""
    part: list[str] = []
    length = 0
    for key in keys:
        more = len(address.path(key)) + len("&names=")
        if part and (len(part) == MAX_KEYS or length + more > _MAX_CHARACTERS):
            yield part
            part, length = [], 0
        part.append(key)
        length += more
    if part:
        yield part


#: Returns the names of the wanted fields that a configuration does not have yet.
Left = Callable[[Config], Sequence[str]]

#: Error message of a server whose configuration was changed concurrently.
_CONTENTION = "could not merge and save new descriptor"
_MAX_ATTEMPTS = 10
#: Key of the transport's memory: whether the server can create repositories in batches.
_PUTS_BATCH = "creates repositories in batches"
#: Statuses after which repositories are created one by one: the server has no batches, or an
#: invalid repository made the whole batch fail.
_NOT_AS_BATCH = frozenset({400, 404, 405, 409, 500, 501})
#: Number of reads after which an unknown field that is still missing counts as dropped.
_READS_OF_DROPPED = 3


class Writer:
    """Write repositories sequentially, because concurrent configuration changes collide."""

    #: Maximum seconds between two attempts or reads.
    interval: ClassVar[float] = 5.0

    def __init__(self, task: Task, client: RepoClient, catalogue: RepositoryCatalogue) -> None:
        self._task, self._client, self._catalogue = task, client, catalogue
        self._patience = float(task.connection.settings["timeout"])

    @cached_property
    def _access(self) -> PlatformClient:
        return PlatformClient(self._task, ACCESS)

    def create(self, key: str, body: Mapping[str, Any], left: Left) -> None:
        def done() -> bool | None:
            config = self._catalogue.read(key)
            return False if config is None else (not left(config) or None)

        self._send(f"creating the repository '{key}'", "PUT", key, done, json=body)

    def update(self, key: str, body: Mapping[str, Any], left: Left) -> None:
        """Change the fields in `body`; other fields keep their values."""

        def done() -> bool | None:
            config = self._catalogue.read(key)
            missing = None if config is None else left(config)
            if not missing:
                return None if missing is None else True
            return None if len(missing) < len(body) else False

        self._send(f"updating the repository '{key}'", "POST", key, done, json=body)

    def delete(self, key: str) -> None:
        """Delete a repository and its content."""

        def done() -> bool:
            return self._catalogue.read(key) is None

        self._send(f"deleting the repository '{key}'", "DELETE", key, done)

    def create_batch(self, bodies: Sequence[Mapping[str, Any]]) -> bool | None:
        """Create repositories in batches.

        Returns `True` if all were created, `False` if no request was sent, and `None` after a
        failure, when some may have been created.
        """

        def are_there(keys: Sequence[str]) -> bool | None:
            found = self._catalogue.complete(keys)
            there = {found[key] is not None for key in keys}
            return None if len(there) == 2 else True in there

        memory = self._client.transport.memory
        if memory.get(_PUTS_BATCH) is False or len(bodies) < 2:
            return False
        for start in range(0, len(bodies), MAX_KEYS):
            part = bodies[start : start + MAX_KEYS]
            try:
                self._client.write(
                    f"creating {len(part)} repositories",
                    "PUT",
                    "api/v2/repositories/batch",
                    json=part,
                    verify=partial(are_there, [str(body["key"]) for body in part]),
                )
            except ToolchainError as error:
                if error.status not in _NOT_AS_BATCH and not error.outcome_unknown:
                    raise
                memory[_PUTS_BATCH] = error.status not in (404, 405, 501)
                return None
        return True

    def attach(self, key: str, project: str, *, moves: bool) -> None:
        """Assign a repository to a project, or remove it from its project.

        :param project: key of the project; "" removes the repository from its project
        :param moves: whether the repository is assigned to another project now
        """
        path = f"api/v1/projects/_/attach/repositories/{address.path(key)}"

        def verify() -> bool:
            return project_of(self._catalogue.now(key)) == project

        if project:
            purpose = f"assigning the repository '{key}' to the project '{project}'"
            query = {"force": "true"} if moves else {}
            path = f"{path}/{address.path(project)}"
            self._access.write(purpose, "PUT", path, query=query, verify=verify)
        else:
            purpose = f"removing the repository '{key}' from its project"
            self._access.write(purpose, "DELETE", path, verify=verify)

    def settled(self, key: str, left: Left, *, known: Callable[[str], bool]) -> Config | None:
        """Wait until the server returns the changed fields; return the last configuration.

        It lacks fields that the server did not save before the timeout. Returns `None` if a new
        repository cannot be read.

        :param left: returns the wanted fields that a configuration does not have yet
        :param known: returns whether servers are known to have a field
        """
        polls = PollInterval(self._patience, self.interval)
        reads = 0
        while True:
            config = self._catalogue.now(key)
            reads += 1
            missing = [] if config is None else list(left(config))
            if config is not None and not missing:
                return config
            dropped = [name for name in missing if not known(name)]
            if len(dropped) == len(missing) > 0 and reads >= _READS_OF_DROPPED:
                return config
            try:
                polls.pause(f"reading the repository '{key}'")
            except PollTimeout:
                return config

    def _send(self, purpose: str, method: str, key: str, done: Verify, **parts: Any) -> None:
        """Send a change, and repeat it if it collided with another change of the configuration.

        Server fact [repo-60]: a request that collided had no effect.

        :param done: returns whether the server already has the change
        """
        path, polls = f"api/repositories/{address.path(key)}", PollInterval(inf, self.interval)
        for attempt in range(_MAX_ATTEMPTS + 1):
            try:
                self._client.write(purpose, method, path, verify=done, **parts)
                return
            except ToolchainError as error:
                if error.status != 400 or _CONTENTION not in str(error.detail).lower():
                    raise
                if attempt == _MAX_ATTEMPTS:
                    raise error.with_hint(
                        f"the request collided with other configuration changes {attempt + 1} times"
                    ) from None
            polls.pause("waiting for other changes")
            if done():
                return
