# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, update and delete repositories, and verify the result [repo-60, repo-61]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

from ...core import address
from ...core.errors import ToolchainError
from ...core.http.writes import Verify
from ...core.module.task import Task
from ...core.polling import PollInterval, PollTimeout
from ..client import RepoClient
from ..platform.interface import ACCESS, PlatformClient
from .catalogue import MAX_KEYS, Config, RepositoryCatalogue
from .fields import project_of

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

        self._send(f"creating the repository '{key}'", "PUT", key, body, done)

    def update(self, key: str, body: Mapping[str, Any], left: Left) -> None:
        """Change the fields in `body`; other fields keep their values."""

        def done() -> bool | None:
            config = self._catalogue.read(key)
            missing = None if config is None else left(config)
            if not missing:
                return None if missing is None else True
            return None if len(missing) < len(body) else False

        self._send(f"updating the repository '{key}'", "POST", key, body, done)

    def delete(self, key: str) -> None:
        """Delete a repository and its content."""

        def gone() -> bool:
            return self._catalogue.read(key) is None

        purpose, path = f"deleting the repository '{key}'", _path(key)
        self._retried(lambda: self._client.write(purpose, "DELETE", path, verify=gone), gone)

    def create_batch(self, bodies: Sequence[Mapping[str, Any]]) -> bool | None:
        """Create repositories in batches.

        Returns `True` if all were created, `False` if no request was sent, and `None` after a
        failure, when some may have been created.
        """
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
                    verify=partial(self._are_there, [str(body["key"]) for body in part]),
                )
            except ToolchainError as error:
                if error.status not in _NOT_AS_BATCH and not error.outcome_unknown:
                    raise
                memory[_PUTS_BATCH] = error.status not in (404, 405, 501)
                return None
        return True

    def _are_there(self, keys: Sequence[str]) -> bool | None:
        found = self._catalogue.complete(keys)
        there = {found[key] is not None for key in keys}
        return None if len(there) == 2 else True in there

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

    def _send(
        self, purpose: str, method: str, key: str, body: Mapping[str, Any], done: Verify
    ) -> None:
        path = _path(key)
        self._retried(
            lambda: self._client.write(purpose, method, path, json=body, verify=done), done
        )

    def _retried(self, send: Callable[[], Any], done: Verify) -> None:
        """Send a change, and repeat it if it collided with another change of the configuration.

        Server fact [repo-60]: a request that collided had no effect.

        :param done: returns whether the server already has the change
        """
        polls = PollInterval(float("inf"), self.interval)
        for attempt in range(_MAX_ATTEMPTS + 1):
            try:
                send()
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


def _path(key: str) -> str:
    return f"api/repositories/{address.path(key)}"
