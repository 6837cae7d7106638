# SPDX-License-Identifier: GPL-3.0-or-later
"""Build records: publishing, reading, deleting and promoting them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from sandbox.context import Context, context
from sandbox.repo import repositories, trash
from sandbox.repo.answers import SERVICE, empty, error, java_time, may, quote, user_name
from sandbox.repo.tree import Tree
from sandbox.service import Answer, json_body

if TYPE_CHECKING:
    from starlette.requests import Request

    from sandbox.repo.tree import Node

KIND = "repo.build"

# `name`, `number`, `started` (ms) and `info`, the `buildInfo` of the record.
Build = dict[str, Any]


def publish(
    current: Context,
    name: str,
    number: str,
    properties: dict[str, str],
    *,
    started: int | None = None,
    modules: list[dict[str, Any]] | None = None,
) -> None:
    """Write a build record (another one where this number exists already, server fact [repo-11]).

    `started` is in milliseconds (None: now), `properties` are the environment, such as
    `buildInfo.env.BUILD_URL`.
    """
    moment = current.now_ms() if started is None else started
    info: dict[str, Any] = {
        "version": "1.0.1",
        "name": name,
        "number": number,
        "started": java_time(moment),
        "durationMillis": 0,
        "modules": modules or [],
    }
    if properties:
        # server fact [repo-11]: the key is absent, not empty
        info["properties"] = properties
    save(current, {"name": name, "number": number, "started": moment, "info": info})


def save(current: Context, build: Build) -> None:
    current.store.put(KIND, _key(build["name"], build["number"], build["started"]), build)


def _key(name: str, number: str, started: int) -> str:
    return f"{quote(name)}/{quote(number)}/{started:015d}"


def of_name(current: Context, name: str) -> list[Build]:
    return current.store.values(KIND, quote(name) + "/")


def of_number(current: Context, name: str, number: str) -> list[Build]:
    """The runs of a number, oldest first."""
    return current.store.values(KIND, f"{quote(name)}/{quote(number)}/")


def listing(request: Request) -> Response:
    """GET /api/build/{name} [W2.1, repo-11]: `uri` is encoded."""
    current, name = context(request), request.path_params["name"]
    found = of_name(current, name)
    if not found:
        raise error(404, f"No build was found for build name: {name}")
    real = current.real(SERVICE)
    numbers = [
        {
            "uri": "/" + (quote(build["number"]) if real else build["number"]),
            "started": java_time(build["started"]),
        }
        for build in found
    ]
    uri = f"{current.base_url(request, SERVICE)}/api/build/{quote(name)}"
    return JSONResponse({"uri": uri, "buildsNumbers": numbers})


def record(request: Request) -> Response:
    """GET /api/build/{name}/{number} [W2.1, repo-11]: newest run.

    The written interface shows `started` and `properties`; it also gets `statuses` here unless the
    setting `build_statuses` hides them.
    """
    current = context(request)
    name, number = request.path_params["name"], request.path_params["number"]
    found = of_number(current, name, number)
    if not found:
        raise error(404, f"No build was found for build name: {name}, build number: {number}")
    info = found[-1]["info"]
    if current.real(SERVICE):
        uri = f"{current.base_url(request, SERVICE)}/api/build/{quote(name)}/{quote(number)}"
        return JSONResponse({"uri": uri, "buildInfo": info})
    shown = {"started": info["started"], "properties": info.get("properties", {})}
    if current.settings(SERVICE)["build_statuses"] and "statuses" in info:
        shown["statuses"] = info["statuses"]
    return JSONResponse({"buildInfo": shown})


async def upload(request: Request) -> Response:
    """PUT /api/build, a `buildInfo`: real servers only, 204."""
    info = json_body(await request.body())
    if not isinstance(info, dict) or not {"name", "number", "started"} <= set(info):
        raise error(400, "Bad Request")
    try:
        started = datetime.strptime(info["started"], "%Y-%m-%dT%H:%M:%S.%f%z")
    except ValueError:
        raise error(400, f"Invalid format: {info['started']}") from None
    save(
        context(request),
        {
            "name": info["name"],
            "number": str(info["number"]),
            "started": int(started.timestamp() * 1000),
            "info": info,
        },
    )
    return Response(status_code=204)


def delete(request: Request) -> Response:
    """DELETE /api/build/{name}?buildNumbers=&artifacts=: server fact [repo-12]."""
    current, name = context(request), request.path_params["name"]
    query = request.query_params
    numbers = [number for number in query.get("buildNumbers", "").split(",") if number]
    if query.get("deleteAll") == "1":
        numbers = sorted({build["number"] for build in of_name(current, name)})
    if not numbers:
        raise error(400, "Either buildNumbers or deleteAll is needed")
    return _delete_numbers(request, name, numbers, artifacts=query.get("artifacts") == "1")


async def delete_by_body(request: Request) -> Response:
    """POST /api/build/delete, real servers only (6.13): server fact [repo-12], for numbers with
    commas.
    """
    body = json_body(await request.body())
    if not isinstance(body, dict) or not body.get("buildName"):
        raise error(400, "Bad Request")
    name, numbers = body["buildName"], [str(number) for number in body.get("buildNumbers") or []]
    if body.get("deleteAll"):
        numbers = sorted({build["number"] for build in of_name(context(request), name)})
    if not numbers:
        raise error(400, "Either buildNumbers or deleteAll is needed")
    return _delete_numbers(request, name, numbers, artifacts=bool(body.get("deleteArtifacts")))


def _delete_numbers(
    request: Request, name: str, numbers: list[str], *, artifacts: bool
) -> Response:
    current = context(request)
    runs = {number: of_number(current, name, number) for number in numbers}
    missing = [number for number in numbers if not runs[number]]
    if missing:
        raise error(404, f"Could not find builds: {', '.join(f'{name}#{n}' for n in missing)}")
    with current.store.transaction():
        for number in numbers:
            _delete_runs(request, name, number, runs[number], artifacts=artifacts)
    gone = ", ".join(f"'{name}#{number}'" for number in numbers)
    return PlainTextResponse(f"The following builds has been deleted successfully: {gone}.")


def _delete_runs(
    request: Request, name: str, number: str, runs: list[Build], *, artifacts: bool
) -> None:
    current = context(request)
    for build in runs:
        key = _key(name, number, build["started"])
        current.store.delete(KIND, key)
        current.store.put(trash.KIND, f"{trash.builds_key(current)}/{key}", build)
    if artifacts:
        for node in carrying(current, name, number, None):
            trash.keep(
                current, Tree(current).remove(node["repo"], node["path"]), user_name(request)
            )


def carrying(current: Context, name: str, number: str, repo: str | None) -> list[Node]:
    """The stored files of a build: those with its name and number as properties [repo-30]."""
    repos = [
        key
        for key, doc in current.store.items(repositories.KIND)
        if doc["type"] == "LOCAL" and repo in (None, key)
    ]
    return [
        node
        for node in Tree(current).files(repos)
        if name in node["properties"].get("build.name", [])
        and number in node["properties"].get("build.number", [])
    ]


async def promote(request: Request) -> Response:
    """POST /api/build/promote/{name}/{number} [W2.1, W4.1, repo-15].

    Every call appends to `statuses`. Problems are messages: with `failFast` a 400, else a 200. The
    setting `promote_errors` makes the server report those errors with 200 and leave the items where
    they are.
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
        raise Answer(JSONResponse({"messages": promotion.messages}, 400))
    if promotion.real or promotion.reported or promotion.failed:
        return JSONResponse({"messages": promotion.messages})
    return Response(status_code=200)


class _Promotion:
    """One promotion of a build."""

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

    def run(self) -> None:
        runs = of_number(self.current, self._name, self._number)
        if not runs:
            raise error(
                404,
                f"Cannot find builds by the name '{self._name}' and the number '{self._number}'.",
            )
        if self._body.get("mappings") and {"sourceRepo", "targetRepo"} & set(self._body):
            raise error(400, "Mappings cannot be combined with source or target repository.")
        target = self._target()
        moment = self._moment()
        with self.current.store.transaction():
            self._relocate(runs, target)
            if not (self.failed and self.fail_fast):
                self._note_status(runs[-1], target, moment)

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
        # server fact [repo-15]: a virtual target counts as its deployment repository
        target = repositories.deployment_target(self.current, wanted)
        if target is None:
            raise error(400, f"The target repository '{wanted}' does not accept deployments.")
        return target

    def _moment(self) -> int:
        text = self._body.get("timestamp")
        if text is None:
            return self.current.now_ms()
        try:
            # the zone may come without a colon
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
        items = self._items(runs)
        user = user_name(self._request)
        if not may(self._request, "deploy"):
            self._fail(f"User {user} doesn't have permissions to deploy to '{target}'.")
            return
        for node in items:
            self._relocate_one(node, target, user)

    def _items(self, runs: list[Build]) -> list[Node]:
        """The stored items to relocate; 400 where artifacts of the record are nowhere."""
        aborted = (
            f"Unable to find artifacts of build '{self._name}' #{self._number}: aborting promotion."
        )
        if len(runs) > 1:
            # server fact [repo-15]: two records with the same number
            raise error(400, aborted)
        carried = carrying(self.current, self._name, self._number, self._body.get("sourceRepo"))
        items: list[Node] = []
        if self._body.get("artifacts", True):
            items += carried
            stored = {node["sha1"] for node in carried}
            if any(sha1 not in stored for sha1 in _digests(runs[0], "artifacts", None)):
                raise error(400, aborted)
        if self._body.get("dependencies", False):
            wanted = _digests(runs[0], "dependencies", self._body.get("scopes"))
            repos = [
                key
                for key, doc in self.current.store.items(repositories.KIND)
                if doc["type"] == "LOCAL"
            ]
            items += [n for n in Tree(self.current).files(repos) if n["sha1"] in wanted]
        return items

    def _relocate_one(self, node: Node, target: str, user: str) -> None:
        """Copy or move one item (both leave alone what is in the target) and set the properties."""
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


def _digests(build: Build, part: str, scopes: list[str] | None) -> set[str]:
    """SHA-1 of the artifacts or dependencies (of these scopes) in all modules of a record."""
    return {
        item["sha1"]
        for module in build["info"].get("modules", [])
        for item in module.get(part, [])
        if item.get("sha1") and (not scopes or set(scopes) & set(item.get("scopes", [])))
    }


async def retention(request: Request) -> Response:
    """POST /api/build/retention/{name} [W2.1, repo-13]: 204.

    Keeps the newest `count` builds (-1: all), those since `minimumBuildDate`, those that are named,
    and all that were promoted.
    """
    current, name = context(request), request.path_params["name"]
    body = json_body(await request.body())
    if not isinstance(body, dict):
        raise error(400, "Bad Request")
    count = int(body.get("count", -1))
    if count == 0:
        raise Answer(PlainTextResponse("Max count retention needs to be a positive number", 400))
    found = sorted(of_name(current, name), key=lambda build: -build["started"])
    if not found:
        raise error(404, f"No build was found for build name: {name}")
    kept = {str(number) for number in body.get("buildNumbersNotToBeDiscarded") or []}
    since = _epoch(body.get("minimumBuildDate"))
    artifacts = bool(body.get("deleteBuildArtifacts"))
    for position, build in enumerate(found):
        expired = (0 < count <= position) or (since is not None and build["started"] < since)
        if expired and build["number"] not in kept and not build["info"].get("statuses"):
            with current.store.transaction():
                _delete_runs(request, name, build["number"], [build], artifacts=artifacts)
    if not current.real(SERVICE):
        return Response(status_code=200)
    raise empty(204)


def _epoch(value: Any) -> int | None:
    """Milliseconds of an epoch number or an ISO time."""
    if value is None:
        return None
    if isinstance(value, int) or re.fullmatch(r"\d+", str(value)):
        return int(value)
    try:
        return int(datetime.fromisoformat(str(value)).timestamp() * 1000)
    except ValueError:
        raise error(400, f"Invalid format: {value}") from None
