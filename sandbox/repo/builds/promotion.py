# SPDX-License-Identifier: GPL-3.0-or-later
"""Promote builds: set their status, and copy or move their files."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sandbox.context import context
from sandbox.repo import permissions, repositories
from sandbox.repo.builds.builds import Build, carrying, digests, of_number, save
from sandbox.repo.items.tree import Tree
from sandbox.repo.responses import SERVICE, error, java_time, user_name
from sandbox.service import ErrorResponse, json_body

if TYPE_CHECKING:
    from starlette.requests import Request

    from sandbox.repo.items.tree import Node


async def promote(request: Request) -> Response:
    """Handle POST /api/build/promote/{name}/{number} [W2.1, W4.1, repo-15].

    Every promotion with a status adds an entry to `statuses`. Errors are returned as messages, with
    status 400 if `failFast` is true, otherwise with 200. Two settings simulate failures:
    `promote_errors` lists errors that the server reports with 200 without relocating any item;
    `promote_breaks_after` interrupts the promotion with a 500 after this number of items.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise error(415, "Unsupported Media Type")
    body = json_body(await request.body())
    if not isinstance(body, dict):
        raise error(400, "Bad Request")
    promotion = _Promotion(request, body)
    promotion.run()
    if body.get("dryRun", False):
        promotion.service.not_a_write(request)
    failed = promotion.failed and promotion.fail_fast
    if failed:
        raise ErrorResponse(JSONResponse({"messages": promotion.messages}, 400))
    if promotion.real or promotion.reported or promotion.failed:
        return JSONResponse({"messages": promotion.messages})
    return Response(status_code=200)


class _Promotion:
    """State of a promotion while the server carries it out."""

    def __init__(self, request: Request, body: dict[str, Any]) -> None:
        self.current = context(request)
        self.service = self.current.services[SERVICE]
        self.real = self.current.real(SERVICE)
        self.messages: list[dict[str, str]] = []
        self.failed = False
        self._request = request
        self._body = body
        self._name = request.path_params["name"]
        self._number = request.path_params["number"]
        self._dry = bool(body.get("dryRun", False))
        settings = self.current.settings(SERVICE)
        self.fail_fast = bool(body.get("failFast", settings["fail_fast_default"]))
        self.reported: list[str] = settings["promote_errors"]
        self._left: int | None = settings["promote_breaks_after"]
        self._broken = False

    def run(self) -> None:
        permissions.require_for_builds(self._request, permissions.DEPLOY, self._name, self._number)
        project = permissions.project_of(self._request)
        runs = of_number(self.current, self._name, self._number, project)
        if not runs:
            raise error(
                404,
                f"Cannot find builds by the name '{self._name}' and the number '{self._number}' and"
                f" buildRepo '{permissions.builds_key(self.current, project)}'.",
            )
        if self._body.get("mappings") and {"sourceRepo", "targetRepo"} & set(self._body):
            raise error(400, "Mappings cannot be combined with source or target repository.")
        target = self._target()
        moment = self._moment()
        with self.current.store.transaction():
            self._relocate(runs, target)
            if not (self._broken or (self.failed and self.fail_fast)):
                self._note_status(runs[-1], target, moment)
        if self._broken:
            raise error(500, "The promotion was interrupted.")

    def _say(self, level: str, message: str) -> None:
        self.messages.append({"level": level, "message": message})

    def _fail(self, message: str) -> None:
        self._say("ERROR", message)
        self.failed = True

    def _target(self) -> str | None:
        wanted = self._body.get("targetRepo")
        if not wanted:
            return None
        found = repositories.find(self.current, wanted)
        if found is None:
            raise error(404, f"Cannot find target repository by the key '{wanted}'.")
        # server fact [repo-15]: for a virtual target, use its deployment repository
        target = repositories.deployment_target(self.current, wanted)
        if target is None:
            raise error(400, f"The target repository '{wanted}' does not accept deployments.")
        return target

    def _moment(self) -> int:
        text = self._body.get("timestamp")
        if text is None:
            return self.current.now_ms()
        try:
            # accepts an offset without a colon, too
            return int(datetime.fromisoformat(str(text)).timestamp() * 1000)
        except ValueError:
            self._fail(f"Unable to parse the timestamp '{text}'.")
            return self.current.now_ms()

    def _relocate(self, runs: list[Build], target: str | None) -> None:
        if target is None:
            self._say("INFO", "Skipping build item relocation: no target repository selected.")
            return
        for message in self.reported:
            self._say("ERROR", message)
        if self.reported:
            return
        for node in self._items(runs):
            if self._is_interrupted():
                return
            refusal = None if node["repo"] == target else self._refusal(node, target)
            if refusal is None:
                self._relocate_item(node, target, user_name(self._request))
            else:
                self._fail(refusal)

    def _is_interrupted(self) -> bool:
        """Return whether the setting interrupts the promotion before the next item."""
        self._broken = self._left == 0 and not self._dry
        self._left = None if self._left is None else self._left - 1
        return self._broken

    def _refusal(self, node: Node, target: str) -> str | None:
        """Return the error message if the user may not relocate an item, else None [repo-28]."""
        copy = self._body.get("copy", False)
        return permissions.refused_relocation(self._request, node, (target, node["path"]), copy)

    def _items(self, runs: list[Build]) -> list[Node]:
        """Return the items to relocate. Raise a 400 if a recorded artifact is not stored."""
        aborted = (
            f"Unable to find artifacts of build '{self._name}' #{self._number}: aborting promotion."
        )
        if len(runs) > 1:
            # server fact [repo-15]: the server cannot promote a number that several builds have
            raise error(400, aborted)
        carried = carrying(self.current, self._name, self._number, self._body.get("sourceRepo"))
        items: list[Node] = []
        if self._body.get("artifacts", True):
            recorded = digests(runs[0], "artifacts", None)
            if not recorded <= {node["sha1"] for node in carried}:
                raise error(400, aborted)
            # server fact [repo-15]: an item must have a recorded SHA-1 and the build's properties
            items += [node for node in carried if not recorded or node["sha1"] in recorded]
        if self._body.get("dependencies", False):
            wanted = digests(runs[0], "dependencies", self._body.get("scopes"))
            repos = [
                key
                for key, doc in self.current.store.items(repositories.KIND)
                if doc["type"] == "LOCAL"
            ]
            items += [n for n in Tree(self.current).files(repos) if n["sha1"] in wanted]
        return items

    def _relocate_item(self, node: Node, target: str, user: str) -> None:
        """Copy or move an item to the target repository, and set the properties of the request."""
        tree = Tree(self.current)
        occupied = tree.get(target, node["path"])
        if occupied is not None and occupied["folder"]:
            self._fail(f"Cannot relocate over the folder '{target}:{node['path']}'.")
            return
        if self._dry:
            return
        if node["repo"] != target:
            relocate = tree.copy if self._body.get("copy", False) else tree.move
            relocate(node, target, node["path"], user)
        properties = self._body.get("properties") or {}
        moved = tree.get(target, node["path"])
        if properties and moved is not None:
            changes = {
                name: [str(value) for value in values] for name, values in properties.items()
            }
            tree.set_properties(moved, changes)

    def _note_status(self, build: Build, target: str | None, moment: int) -> None:
        status = self._body.get("status")
        if not status:
            self._say("INFO", "Skipping promotion status update: no status received.")
            return
        if self._dry:
            return
        entry = {
            "status": status,
            "comment": self._body.get("comment"),
            "repository": target,
            "timestamp": java_time(moment),
            "user": user_name(self._request),
            "ciUser": self._body.get("ciUser"),
        }
        build["info"].setdefault("statuses", []).append(
            {name: value for name, value in entry.items() if value is not None}
        )
        save(self.current, build)
