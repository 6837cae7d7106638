# SPDX-License-Identifier: GPL-3.0-or-later
"""Copy and move items [repo-28]."""

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
    """Return the handler of POST /api/copy/{repo}/{path}?to=, or of /api/move/..."""

    def relocate(request: Request) -> Response:
        return _Relocation(request, copy, bool(flag(request, "dry"))).run()

    return relocate


def _response(status: int, level: str, *messages: str) -> Response:
    shown = [{"level": level, "message": message} for message in messages]
    return JSONResponse({"messages": shown}, status, media_type=_TYPE)


@dataclass
class _Relocation:
    """State of a copy or move while the server carries it out.

    :param dry: whether to check the request only
    :param files: number of relocated files
    :param folders: number of created folders
    :param errors: status and message of each failure
    """

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
            # server fact [repo-28]: the item is put into the target folder if that exists
            path = f"{path}/{source['path'].rpartition('/')[2]}".strip("/")
        places = f"{source['repo']}:{source['path']} to {repo}:{path}"
        if (repo, path) == (source["repo"], source["path"]):
            message = f"Skipping {self._verbs[0]} {places}: Destination and source are the same"
            return _response(200, "ERROR", message)
        occupied = self._tree.get(repo, path)
        if occupied is not None and occupied["folder"] != source["folder"]:
            return _response(400, "ERROR", f"Can't {'copy' if self.copy else 'move'} {places}.")
        if flag(self.request, "atomic"):
            self._relocate_atomically(source, repo, path)
        else:
            self._relocate(source, repo, path)
        return self._result(places)

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

    def _relocate_atomically(self, source: Node, repo: str, path: str) -> None:
        """Relocate all items, or none if any item fails (`atomic=1`)."""
        requested_dry, self.dry = self.dry, True
        self._relocate(source, repo, path)
        self.dry = requested_dry
        if not self.errors and not self.dry:
            self.files = self.folders = 0
            self._relocate(source, repo, path)

    def _relocate(self, source: Node, repo: str, path: str) -> None:
        nodes = [source, *self._tree.below(source["repo"], source["path"])]
        if not source["folder"]:
            nodes = [source]
        for node in nodes:
            below = node["path"][len(source["path"]) :].strip("/")
            self._relocate_item(node, repo, f"{path}/{below}".strip("/"))
            if self.errors and flag(self.request, "failFast"):
                return
        if source["folder"] and not (self.copy or self.dry or self.errors):
            self._tree.remove(source["repo"], source["path"])

    def _relocate_item(self, node: Node, repo: str, path: str) -> None:
        if node["folder"]:
            self._make_folder(repo, path)
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

    def _make_folder(self, repo: str, path: str) -> None:
        if not path or self._tree.get(repo, path) is not None:
            return
        self.folders += 1
        if not self.dry and permissions.may(self.request, permissions.DEPLOY, repo):
            self._tree.make_folder(repo, path, user_name(self.request))

    def _result(self, places: str) -> Response:
        """Return the response with the messages of the server.

        Server fact [repo-28]: if at least one file was relocated, the status is 200 in spite of
        errors.

        :param places: source and target for the message
        """
        if self.errors:
            status = self.errors[0][0]
            if self.files and not flag(self.request, "failFast"):
                status = 200
            return _response(status, "ERROR", *(message for _status, message in self.errors))
        doing, done = self._verbs
        begin = f"Dry Run for {doing}" if self.dry else doing
        counted = f"{self.files} artifacts and {self.folders} folders were {done}"
        return _response(200, "INFO", f"{begin} {places} completed successfully, {counted}")
