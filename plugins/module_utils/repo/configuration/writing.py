# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, update and delete repositories, and verify the result [repo-60, repo-61]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
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

#: Returns the wanted fields that a configuration does not have.
Left = Callable[[Config], Sequence[str]]

_CONTENTION = "could not merge and save new descriptor"
_MAX_ATTEMPTS = 10
_PUTS_BATCH = "creates repositories in batches"
#: Statuses after which the entries of a batch are created one by one: an unknown interface, or an
#: entry that fails all others.
_NOT_AS_BATCH = frozenset({400, 404, 405, 409, 500, 501})
#: Number of reads after which a field is surely dropped that no response contains.
_READS_OF_DROPPED = 3


class Writer:
    """Writes one repository after the other: concurrent changes of a server collide."""

    #: Maximum seconds between two attempts or reads.
    interval: ClassVar[float] = 5.0

    def __init__(self, task: Task, client: RepoClient, catalogue: RepositoryCatalogue) -> None:
        self._task, self._client, self._catalogue = task, client, catalogue
        self._patience = float(task.connection.settings["timeout"])
        self._access: PlatformClient | None = None

    def create(self, key: str, body: Mapping[str, Any], left: Left) -> None:
        """Create a repository."""

        def done() -> bool | None:
            config = self._catalogue.read(key)
            return False if config is None else (not left(config) or None)

        self._send(f"creating the repository '{key}'", "PUT", key, body, done)

    def update(self, key: str, body: Mapping[str, Any], left: Left) -> None:
        """Send the fields of a repository that differ; the others stay."""

        def done() -> bool | None:
            config = self._catalogue.read(key)
            missing = None if config is None else left(config)
            if not missing:
                return None if missing is None else True
            return None if len(missing) < len(body) else False

        self._send(f"updating the repository '{key}'", "POST", key, body, done)

    def delete(self, key: str) -> None:
        """Delete a repository with its content."""

        def gone() -> bool:
            return self._catalogue.read(key) is None

        purpose, path = f"deleting the repository '{key}'", _path(key)
        self._retried(lambda: self._client.write(purpose, "DELETE", path, verify=gone), gone)

    def create_batch(self, bodies: Sequence[Mapping[str, Any]]) -> bool | None:
        """Create many repositories at once.

        Returns true if they are created, false if nothing was sent, and `None` after a failure:
        some may exist then.
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
        """Assign a repository to a project, or release it from its project."""
        if self._access is None:
            self._access = PlatformClient(self._task, ACCESS)
        path = f"api/v1/projects/_/attach/repositories/{address.path(key)}"

        def verify() -> bool:
            return project_of(self._catalogue.now(key)) == project

        if project:
            purpose = f"assigning the repository '{key}' to the project '{project}'"
            query = {"force": "true"} if moves else {}
            path = f"{path}/{address.path(project)}"
            self._access.write(purpose, "PUT", path, query=query, verify=verify)
        else:
            purpose = f"releasing the repository '{key}' from its project"
            self._access.write(purpose, "DELETE", path, verify=verify)

    def settled(self, key: str, left: Left, *, known: Callable[[str], bool]) -> Config | None:
        """Wait until the change of a repository can be read, and return its configuration.

        `None` if the server accepted a new repository, but does not show it yet. Raises `rejected`
        for fields that the server did not keep.

        :param known: whether servers have such a field
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
                raise _not_kept(key, missing)
            try:
                polls.pause(f"reading the repository '{key}'")
            except PollTimeout:
                if config is None:
                    return None
                raise _not_kept(key, missing) from None

    def _send(
        self, purpose: str, method: str, key: str, body: Mapping[str, Any], done: Verify
    ) -> None:
        path = _path(key)
        self._retried(
            lambda: self._client.write(purpose, method, path, json=body, verify=done), done
        )

    def _retried(self, send: Callable[[], Any], done: Verify) -> None:
        """Send a change again after a collision with another change, which surely had no effect
        [repo-60].
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
                        f"it collided with other configuration changes {attempt + 1} times"
                    ) from None
            polls.pause("waiting for other changes")
            if done():
                return


def _not_kept(key: str, names: Sequence[str]) -> ToolchainError:
    return ToolchainError(
        "rejected",
        f"the server accepted the repository '{key}', but did not save {', '.join(names)}: it does"
        " not support the setting or its value",
    )


def _path(key: str) -> str:
    return f"api/repositories/{address.path(key)}"
