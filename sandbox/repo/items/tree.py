# SPDX-License-Identifier: GPL-3.0-or-later
"""Store files and folders by repository and path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox.repo.responses import error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.context import Context
    from sandbox.store import Blob

KIND = "repo.item"
CONTENT, BY_SHA1 = "repo.content", "repo.sha1"

# An item with the keys `repo`, `path`, `folder`, `created` and `modified` (epoch milliseconds),
# `createdBy`, `modifiedBy`, `properties` (lists of values by name) and `propertiesModified` (epoch
# milliseconds or None). A file also has `size`, `sha1`, `sha256` and `md5`.
Node = dict[str, Any]


class Tree:
    """Read and change items.

    Paths have no leading or trailing slash; the path of a repository's root is "".
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def get(self, repo: str, path: str) -> Node | None:
        return self._store.get(KIND, f"{repo}/{path}")

    def put_file(
        self,
        repo: str,
        path: str,
        blob: Blob,
        user: str,
        properties: dict[str, list[str]] | None = None,
        *,
        created: int | None = None,
    ) -> Node:
        """Store a file and its missing parent folders. A replaced file loses its properties.

        :param created: creation time in epoch milliseconds; None means the current time
        """
        current = self.get(repo, path)
        if current is not None and current["folder"]:
            raise error(400, f"Cannot deploy a file over the folder '{repo}:{path}'.")
        node = self._new(repo, path, user, current)
        if created is not None:
            node.update(created=created, modified=created)
        node.update(folder=False, size=blob.size, sha1=blob.sha1, sha256=blob.sha256, md5=blob.md5)
        if properties:
            node.update(properties=properties, propertiesModified=self._context.now_ms())
        with self._store.transaction():
            self._make_parents(repo, path, user)
            self._save(node)
            self.remember(blob)
        return node

    def remember(self, blob: Blob) -> None:
        """Register the digests of a blob, which can then be deployed by checksum."""
        if self._store.get(CONTENT, blob.sha256) is None:
            self._store.put(
                CONTENT, blob.sha256, {"sha1": blob.sha1, "md5": blob.md5, "size": blob.size}
            )
            self._store.put(BY_SHA1, blob.sha1, {"sha256": blob.sha256})

    def make_folder(self, repo: str, path: str, user: str) -> Node:
        """Return the folder at a path; create the folder and its parents if they are missing."""
        current = self.get(repo, path)
        if current is not None:
            if not current["folder"]:
                raise error(400, f"Expected a folder but found a file, at: {repo}:{path}")
            return current
        node = self._new(repo, path, user, None)
        node["folder"] = True
        with self._store.transaction():
            if path:
                self._make_parents(repo, path, user)
            self._save(node)
        return node

    def below(self, repo: str, path: str) -> list[Node]:
        """Return all items below a folder, sorted by path, without the folder itself."""
        prefix = f"{repo}/{path}/" if path else f"{repo}/"
        return [node for node in self._store.values(KIND, prefix) if node["path"] != path]

    def children(self, repo: str, path: str) -> list[Node]:
        start = len(path) + 1 if path else 0
        return [node for node in self.below(repo, path) if "/" not in node["path"][start:]]

    def files(self, repos: list[str]) -> Iterator[Node]:
        """Yield all files in the repositories."""
        for repo in repos:
            for node in self.below(repo, ""):
                if not node["folder"]:
                    yield node

    def remove(self, repo: str, path: str) -> list[Node]:
        """Remove an item and its content; return the removed files.

        The root of a repository is emptied, but not removed.
        """
        node = self.get(repo, path)
        gone = self.below(repo, path)
        if node is not None and path:
            gone.append(node)
        with self._store.transaction():
            for item in gone:
                self._store.delete(KIND, f"{repo}/{item['path']}")
        return [item for item in gone if not item["folder"]]

    def copy(self, node: Node, repo: str, path: str, user: str) -> None:
        """Copy a file with its properties; an existing file at the target path is replaced."""
        with self._store.transaction():
            self._make_parents(repo, path, user)
            moment = self._context.now_ms()
            self._save({**node, "repo": repo, "path": path, "modified": moment, "modifiedBy": user})

    def move(self, node: Node, repo: str, path: str, user: str) -> None:
        """Move a file, and remove folders that become empty."""
        with self._store.transaction():
            self.copy(node, repo, path, user)
            self._store.delete(KIND, f"{node['repo']}/{node['path']}")
            self._prune(node["repo"], node["path"])

    def set_properties(self, node: Node, changes: dict[str, list[str]]) -> None:
        """Set the given properties; an empty list of values removes a property."""
        properties = {**node["properties"], **changes}
        node["properties"] = {name: values for name, values in properties.items() if values}
        node["propertiesModified"] = self._context.now_ms()
        self._save(node)

    def _prune(self, repo: str, path: str) -> None:
        parent = path.rpartition("/")[0]
        while parent and not self.below(repo, parent):
            self._store.delete(KIND, f"{repo}/{parent}")
            parent = parent.rpartition("/")[0]

    def _make_parents(self, repo: str, path: str, user: str) -> None:
        parent = path.rpartition("/")[0]
        if parent or self.get(repo, "") is None:
            self.make_folder(repo, parent, user)

    def _new(self, repo: str, path: str, user: str, current: Node | None) -> Node:
        moment = self._context.now_ms()
        return {
            "repo": repo,
            "path": path,
            "created": moment if current is None else current["created"],
            "createdBy": user if current is None else current["createdBy"],
            "modified": moment,
            "modifiedBy": user,
            "properties": {},
            "propertiesModified": None,
        }

    def _save(self, node: Node) -> None:
        self._store.put(KIND, f"{node['repo']}/{node['path']}", node)
