# SPDX-License-Identifier: GPL-3.0-or-later
"""Copy and move of items: server facts [repo-28]."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from sandbox.context import context
from sandbox.repo import permissions, repositories
from sandbox.repo.items.tree import Tree
from sandbox.repo.responses import flag, user_name
from sandbox.service import ErrorResponse

if TYPE_CHECKING:
    from starlette.requests import Request

    from sandbox.repo.items.tree import Node
    from sandbox.service import Handler

_TYPE = "application/vnd.org.jfrog.artifactory.storage.CopyOrMoveResult+json"
_VERBS = {True: ("copying", "copied"), False: ("moving", "moved")}


def handler(*, copy: bool) -> Handler:
    """POST /api/copy/{repo}/{path}?to= and /api/move/...: real servers only."""

    def relocate(request: Request) -> Response:
        return _Relocation(request, copy, bool(flag(request, "dry"))).run()

    return relocate


def _response(status: int, level: str, *messages: str) -> Response:
    shown = [{"level": level, "message": message} for message in messages]
    return JSONResponse({"messages": shown}, status, media_type=_TYPE)


@dataclass
class _Relocation:
    """State and result of a copy or move request."""

    request: Request
    copy: bool
    dry: bool
    files: int = 0
    folders: int = 0
    errors: list[tuple[int, str]] = field(default_factory=list)

    def run(self) -> Response:
        source = self._source()
        repo, path = self._target()
        if self._tree.get(repo, path) is not None and self._is_folder(repo, path):
            # server fact [repo-28]: if the target folder exists, the item is placed below it
            path = f"{path}/{source['path'].rpartition('/')[2]}".strip("/")
        ways = f"{source['repo']}:{source['path']} to {repo}:{path}"
        if (repo, path) == (source["repo"], source["path"]):
            message = f"Skipping {self._verbs[0]} {ways}: Destination and source are the same"
            return _response(200, "ERROR", message)
        occupied = self._tree.get(repo, path)
        if occupied is not None and occupied["folder"] != source["folder"]:
            return _response(400, "ERROR", f"Can't {'copy' if self.copy else 'move'} {ways}.")
        if flag(self.request, "atomic"):
            self._at_once(source, repo, path)
        else:
            self._all(source, repo, path)
        return self._told(ways)

    @property
    def _tree(self) -> Tree:
        return Tree(context(self.request))

    @property
    def _verbs(self) -> tuple[str, str]:
        return _VERBS[self.copy]

    def _is_folder(self, repo: str, path: str) -> bool:
        node = self._tree.get(repo, path)
        return node is not None and bool(node["folder"])

    def _source(self) -> Node:
        repo = self.request.path_params["repo"]
        path = self.request.path_params["path"].strip("/")
        for member in permissions.readable(self.request, repo):
            node = self._tree.get(member, path)
            if node is not None:
                return node
        raise ErrorResponse(_response(404, "ERROR", f"Could not find item at '{repo}:{path}'"))

    def _target(self) -> tuple[str, str]:
        given = self.request.query_params.get("to", "").strip("/")
        key, _slash, path = given.partition("/")
        current = context(self.request)
        if not key:
            raise ErrorResponse(_response(400, "ERROR", "The target path is missing"))
        if repositories.find(current, key) is None:
            message = f"Could not find a local repository named {key} to deploy to."
            raise ErrorResponse(_response(404, "ERROR", message))
        repo = repositories.deployment_target(current, key)
        if repo is None:
            message = f"The target repository '{key}' is not a local repository"
            raise ErrorResponse(_response(400, "ERROR", message))
        return repo, path

    def _at_once(self, source: Node, repo: str, path: str) -> None:
        """Relocate all items or none (`atomic=1`)."""
        wet, self.dry = self.dry, True
        self._all(source, repo, path)
        self.dry = wet
        if not self.errors and not self.dry:
            self.files = self.folders = 0
            self._all(source, repo, path)

    def _all(self, source: Node, repo: str, path: str) -> None:
        nodes = [source, *self._tree.below(source["repo"], source["path"])]
        if not source["folder"]:
            nodes = [source]
        for node in nodes:
            rest = node["path"][len(source["path"]) :].strip("/")
            self._one(node, repo, f"{path}/{rest}".strip("/"))
            if self.errors and flag(self.request, "failFast"):
                return
        if source["folder"] and not (self.copy or self.dry or self.errors):
            self._tree.remove(source["repo"], source["path"])

    def _one(self, node: Node, repo: str, path: str) -> None:
        if node["folder"]:
            self._folder(repo, path)
            return
        refusal = permissions.refused_relocation(self.request, node, (repo, path), self.copy)
        if refusal is not None:
            # server fact [repo-28]: this 401 is about permissions, not about the login
            self.errors.append((401 if "override" in refusal else 403, refusal))
            return
        if not repositories.accepts(context(self.request), repo, path):
            message = f"The repository '{repo}' rejected the artifact '{repo}:{path}'"
            self.errors.append((409, f"{message} due to its include/exclude patterns"))
            return
        self.files += 1
        if not self.dry:
            relocate = self._tree.copy if self.copy else self._tree.move
            relocate(node, repo, path, user_name(self.request))

    def _folder(self, repo: str, path: str) -> None:
        if not path or self._tree.get(repo, path) is not None:
            return
        self.folders += 1
        if not self.dry and permissions.may(self.request, permissions.DEPLOY, repo):
            self._tree.make_folder(repo, path, user_name(self.request))

    def _told(self, ways: str) -> Response:
        """Server fact [repo-28]: if at least one file succeeded, a 200 may contain errors."""
        if self.errors:
            status = self.errors[0][0]
            if self.files and not flag(self.request, "failFast"):
                status = 200
            return _response(status, "ERROR", *(words for _status, words in self.errors))
        doing, done = self._verbs
        begin = f"Dry Run for {doing}" if self.dry else doing
        counted = f"{self.files} artifacts and {self.folders} folders were {done}"
        return _response(200, "INFO", f"{begin} {ways} completed successfully, {counted}")
