# SPDX-License-Identifier: GPL-3.0-or-later
"""Read configurations of repositories, in as few requests as possible [repo-60, repo-61]."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...core import address
from ...core.concurrency import bounded
from ...core.errors import ToolchainError
from ...core.http.messages import Response, unexpected_body
from ..client import RepoClient, object_of, objects
from ..error_text import lacks_licence
from ..repositories import listed

#: A configuration with the server's names.
Config = Mapping[str, Any]
#: Limits of a batch: the keys, and the characters of their names in an address.
MAX_KEYS, _MAX_CHARACTERS = 100, 6000
_BATCH = "api/v2/repositories/batch"
_HAS_BATCH = "reads repositories in batches"
#: Classes of repositories without a configuration of their own.
_SERVER_CLASSES = ("release_bundle", "releasebundles", "distribution")
#: A field that only administrators see.
_OF_ADMINISTRATORS = "includesPattern"


class RepositoryCatalogue:
    """The configurations of a server, as far as they were read."""

    def __init__(self, client: RepoClient) -> None:
        self._client = client
        self._found: dict[str, Config | None] = {}
        self._keys: frozenset[str] | None = None

    def get(self, key: str) -> Config | None:
        """Return a repository that was loaded; `None` if it does not exist."""
        return self._found[key]

    def load_one(self, key: str) -> None:
        self._found[key] = self.read(key)

    def load_many(self, needed: Mapping[str, Collection[str]]) -> None:
        """Read many repositories: with the list of all configurations, and those of which it lacks
        a needed field in batches or one by one.

        :param needed: keys to the server's names of the compared fields
        """
        every = self.all()
        if every is None:
            known = self.known_keys()
            every = {key: {} for key in needed if key in known}
        self._keys = self._keys or frozenset(every)
        self._found = {key: every.get(key) for key in needed}
        lacking = [
            key
            for key, names in needed.items()
            if (found := every.get(key)) is not None and not {"rclass", *names} <= set(found)
        ]
        self._found.update(self.complete(lacking))

    def known_keys(self) -> frozenset[str]:
        """Return the keys of all repositories that the account may see."""
        if self._keys is None:
            _response, entries = listed(self._client)
            self._keys = frozenset(str(entry.get("key")) for entry in entries)
        return self._keys

    def all(self) -> dict[str, Config] | None:
        """Return the listed configurations by key; `None` if the server has no such list.

        Server fact [repo-61]: the fields of the package type are missing.
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
        if not all(isinstance(one, list) for one in decoded.values()):
            return None  # a repository whose key is `configurations`, on an older server
        found: dict[str, Config] = {}
        for rclass, entries in decoded.items():
            for entry in objects(entries):
                found[str(entry.get("key"))] = {"rclass": rclass.lower(), **entry}
        return found

    def everything(self) -> dict[str, Config | None]:
        """Return the complete configurations of all repositories."""
        every = self.all()
        listed_ones = self.known_keys() if every is None else frozenset(every)
        found: dict[str, Config | None] = dict(every or {})
        keys = [key for key, one in found.items() if one and one["rclass"] in _SERVER_CLASSES]
        found.update(self.complete(sorted(listed_ones.difference(keys))))
        return found

    def complete(self, keys: Sequence[str]) -> dict[str, Config | None]:
        """Return complete configurations, in batches if the server has them."""
        if len(keys) > 1 and self._client.transport.memory.get(_HAS_BATCH) is not False:
            found: dict[str, Config | None] = {}
            for part in _parts(keys):
                batch = self._batch(part)
                if batch is None:
                    break
                found.update({key: batch.get(key) for key in part})
            else:
                return found
        return dict(zip(keys, bounded(self._client.connections, self.read, keys), strict=True))

    def _batch(self, keys: Sequence[str]) -> dict[str, Config] | None:
        response = self._client.transport.read(
            f"reading {len(keys)} repositories",
            _BATCH,
            query={"names": list(keys)},
            expect=(200, 400, 404, 405),
        )
        self._client.transport.memory[_HAS_BATCH] = response.status == 200
        if response.status != 200:
            self._refuse_edition(response)
            return None
        decoded = object_of(response, "repositories")
        return {str(key): one for key, one in decoded.items() if isinstance(one, Mapping)}

    def read(self, key: str) -> Config | None:
        """Return the configuration of a repository; `None` if it does not exist.

        Server fact [repo-9]: 400 or 404 for an unknown key, which the list confirms. [repo-4]: 400
        without a licence.
        """
        response = self._response(key)
        if response.status == 200:
            return _config(response)
        self._refuse_edition(response)
        self._keys = None  # the list may be older than the repository
        if key in self.known_keys():
            raise self._client.transport.failure(response)
        return None

    def now(self, key: str) -> Config | None:
        """Return a repository that this task has changed; `None` if it cannot be read yet."""
        response = self._response(key)
        return _config(response) if response.status == 200 else None

    def _response(self, key: str) -> Response:
        return self._client.transport.read(
            f"reading the repository '{key}'",
            f"api/repositories/{address.path(key)}",
            expect=(200, 400, 404),
        )

    def _refuse_edition(self, response: Response) -> None:
        """Raise if the server has no licence for the interface."""
        if lacks_licence(response):
            raise self._client.transport.failure(response)

    def require_administrator(self) -> None:
        """Raise `permission` if the account surely cannot change repositories."""
        self.all()


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
    """Raise `permission` if the account sees only a part of a repository. Server fact [repo-60]."""
    if _OF_ADMINISTRATORS not in config:
        raise ToolchainError(
            "permission",
            f"the account sees only a part of the configuration of the repository '{key}':"
            " managing repositories requires an administrator",
        )


def without_secrets(config: Config) -> dict[str, Any]:
    """Return a configuration without the encrypted password."""
    return {name: value for name, value in config.items() if name != "password"}


def _parts(keys: Iterable[str]) -> Iterator[list[str]]:
    """Split keys by the limits of a batch."""
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
