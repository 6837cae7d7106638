# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs, builds and queue items as JSON data [ci-8, ci-9, ci-11]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from sandbox.ci.builds import archiving, builds, parameters, queue
from sandbox.ci.formats import input_view
from sandbox.ci.formats.exports import Exported, Getter, constants
from sandbox.ci.jobs import jobs
from sandbox.ci.server.access import Login
from sandbox.context import Context

NEWEST = 100
PERMALINKS = {
    "lastBuild": (None, True),
    "lastCompletedBuild": (None, False),
    "lastStableBuild": (("SUCCESS",), False),
    "lastSuccessfulBuild": (("SUCCESS", "UNSTABLE"), False),
    "lastFailedBuild": (("FAILURE",), False),
    "lastUnstableBuild": (("UNSTABLE",), False),
    "lastUnsuccessfulBuild": (("FAILURE", "UNSTABLE", "ABORTED", "NOT_BUILT"), False),
}
COLORS = {
    "SUCCESS": "blue",
    "UNSTABLE": "yellow",
    "FAILURE": "red",
    "ABORTED": "aborted",
    "NOT_BUILT": "notbuilt",
}


@dataclass(frozen=True)
class ViewContext:
    """Sandbox, base URL, flavour and login of a request, which the views need."""

    context: Context
    base: str
    real: bool
    login: Login

    def job_url(self, name: str) -> str:
        path = "".join(f"/job/{quote(part, safe='')}" for part in name.split("/"))
        return f"{self.base}{path}/"

    def build_url(self, job: str, number: int) -> str:
        return f"{self.job_url(job)}{number}/"


def permalink(site: ViewContext, job: str, name: str) -> int | None:
    """Return the number of the build that a permalink names, or `None`."""
    results, unfinished = PERMALINKS[name]
    for number in builds.numbers(site.context, job):
        if unfinished:
            return number
        build = builds.get(site.context, job, number)
        if build is not None and build["done"] and (results is None or build["result"] in results):
            return number
    return None


def color(site: ViewContext, name: str, job: dict[str, Any]) -> str:
    last = permalink(site, name, "lastCompletedBuild")
    build = None if last is None else builds.get(site.context, name, last)
    base = "notbuilt" if build is None else COLORS[build["result"]]
    if job["disabled"]:
        base = "disabled"
    return f"{base}_anime" if builds.running(site.context, name) else base


def job_view(site: ViewContext, job: dict[str, Any]) -> Exported:
    """Return a job, or a folder with its jobs."""
    return _folder(site, job) if jobs.is_container(job) else _job(site, job)


def _names(site: ViewContext, job: dict[str, Any]) -> dict[str, Getter]:
    name = job["full_name"]
    shown = [unquote(part) for part in name.split("/")]
    return constants(
        description=job["description"],
        displayName=shown[-1],
        displayNameOrNull=None,
        fullDisplayName=" » ".join(shown),
        fullName=name,
        name=jobs.short_name(job),
        url=site.job_url(name),
    )


def _folder(site: ViewContext, job: dict[str, Any]) -> Exported:
    def children() -> list[Exported]:
        return children_of(site, job["full_name"])

    fields = {
        **constants(actions=[{}]),
        **_names(site, job),
        **constants(healthReport=[]),
        "jobs": children,
    }
    if job["kind"] in jobs.COMPUTED:
        fields |= constants(buildable=not jobs.is_disabled(site.context, job))
    return Exported(jobs.CLASSES[job["kind"]], fields, ("name", "url"))


def children_of(site: ViewContext, folder: str) -> list[Exported]:
    """Return the jobs of a folder that the user may read."""
    return [
        job_view(site, child)
        for child in jobs.below(site.context, folder)
        if site.login.sees(child["full_name"])
    ]


def _job(site: ViewContext, job: dict[str, Any]) -> Exported:
    name = job["full_name"]
    definitions = [
        parameters.shown_definition(definition, not site.real) for definition in job["parameters"]
    ]
    holder = Exported(
        "hudson.model.ParametersDefinitionProperty",
        constants(parameterDefinitions=definitions),
        ("parameterDefinitions",),
    )
    fields: dict[str, Getter] = {
        **constants(actions=[{}, holder, {}] if definitions else [{}, {}]),
        **_names(site, job),
        **constants(buildable=not (jobs.is_disabled(site.context, job) or job["hold_off"])),
        "builds": lambda: build_list(site, name, NEWEST),
        "allBuilds": lambda: build_list(site, name, None),
        "color": lambda: color(site, name, job),
        "firstBuild": lambda: _reference(site, name, _first(site, name)),
        **constants(healthReport=[]),
        "inQueue": lambda: queue.waiting_for(site.context, name) is not None,
        **constants(keepDependencies=False),
        **{link: _permalink_getter(site, name, link) for link in PERMALINKS},
        "nextBuildNumber": lambda: jobs.next_number(site.context, name),
        **constants(property=[holder] if definitions else []),
        "queueItem": lambda: _queued(site, name),
        **constants(concurrentBuild=job["concurrent"], disabled=job["disabled"]),
    }
    return Exported(
        jobs.CLASSES[job["kind"]], fields, ("name", "url", "color"), frozenset({"allBuilds"})
    )


def _permalink_getter(site: ViewContext, job: str, link: str) -> Getter:
    return lambda: _reference(site, job, permalink(site, job, link))


def _first(site: ViewContext, job: str) -> int | None:
    return next(iter(reversed(builds.numbers(site.context, job))), None)


def _queued(site: ViewContext, job: str) -> Exported | None:
    item = queue.waiting_for(site.context, job)
    return None if item is None else queue_view(site, item)


def build_list(site: ViewContext, job: str, limit: int | None) -> list[Exported]:
    """Return builds, newest first. A build is read from the store only if it is in the response."""
    cls = _build_class(site, job)
    return [
        _lazy_build(site, job, number, cls) for number in builds.numbers(site.context, job)[:limit]
    ]


def _build_class(site: ViewContext, job: str) -> str:
    kind = (jobs.get(site.context, job) or jobs.DEFAULTS)["kind"]
    return jobs.BUILD_CLASSES[kind]


def _reference(site: ViewContext, job: str, number: int | None) -> Exported | None:
    return None if number is None else _lazy_build(site, job, number, _build_class(site, job))


def build_view(site: ViewContext, build: dict[str, Any]) -> Exported:
    job = build["job"]
    return _lazy_build(site, job, build["number"], _build_class(site, job))


def _lazy_build(site: ViewContext, job: str, number: int, cls: str) -> Exported:
    shown: dict[str, Getter] = constants(number=number, url=site.build_url(job, number))
    loaded: dict[str, Getter] = {}

    def lazy(name: str) -> Getter:
        def read() -> Any:
            if not loaded:
                build = builds.get(site.context, job, number)
                if build is None:
                    raise LookupError(name)
                loaded.update(_build_fields(site, build))
            return loaded[name]()

        return read

    fields = {name: lazy(name) for name in _BUILD_FIELDS}
    if site.real:
        fields["artifacts"] = lazy("artifacts")
        freestyle = cls == jobs.BUILD_CLASSES[jobs.FREESTYLE]
        # server fact [ci-27]
        changes = "changeSet" if freestyle else "changeSets"
        fields[changes] = lazy(changes)
        if not freestyle:
            # server fact [ci-11]: only freestyle builds have the member `builtOn`
            del fields["builtOn"]
    else:
        # the interface description [W2.4] names this member `artifact`
        fields["artifact"] = lazy("artifacts")
    return Exported(cls, {**fields, **shown}, ("number", "url"), frozenset({"fingerprint"}))


_BUILD_FIELDS = (
    "actions",
    "building",
    "description",
    "displayName",
    "duration",
    "estimatedDuration",
    "fingerprint",
    "fullDisplayName",
    "id",
    "inProgress",
    "keepLog",
    "nextBuild",
    "previousBuild",
    "queueId",
    "result",
    "timestamp",
    "builtOn",
)


def _build_fields(site: ViewContext, build: dict[str, Any]) -> dict[str, Getter]:
    job, number, done = build["job"], build["number"], build["done"]
    shown = " » ".join(unquote(part) for part in job.split("/"))
    definition = jobs.get(site.context, job) or jobs.DEFAULTS
    return {
        **constants(
            building=not done,
            description=None,
            displayName=f"#{number}",
            # server fact [ci-9]: the duration is 0 while the build is running
            duration=build["end_ms"] - build["start_ms"] if done else 0,
            estimatedDuration=int(definition["build_seconds"] * 1000),
            fullDisplayName=f"{shown} #{number}",
            id=str(number),
            keepLog=bool(build.get("keep")),
            queueId=build["queue_id"],
            result=build["result"] if done else None,
            timestamp=build["start_ms"],
            builtOn="",
        ),
        "actions": lambda: [*_actions(site, build), *input_view.exported(build)],
        "artifacts": lambda: archiving.exported(build),
        "changeSet": lambda: _changes(definition),
        "changeSets": lambda: [_changes(definition)] if definition["changes"] else [],
        "fingerprint": lambda: archiving.fingerprints(definition, build),
        "inProgress": lambda: builds.in_progress(site.context, build),
        "nextBuild": lambda: _neighbour(site, job, number, 1),
        "previousBuild": lambda: _neighbour(site, job, number, -1),
    }


def _changes(definition: dict[str, Any]) -> Exported:
    """Return the commits. Server fact [ci-27]: `msg` is the first line of the commit message."""
    items = [
        Exported(
            "hudson.plugins.git.GitChangeSet",
            constants(
                affectedPaths=[],
                author=Exported("hudson.model.User", constants(fullName=change["author"])),
                commitId=change["id"],
                comment=f"{change['message']}\n",
                id=change["id"],
                msg=change["message"].partition("\n")[0],
                timestamp=change["timestamp"],
            ),
        )
        for change in definition["changes"]
    ]
    kind = "git" if items else None
    return Exported("hudson.plugins.git.GitChangeSetList", constants(items=items, kind=kind))


def _neighbour(site: ViewContext, job: str, number: int, step: int) -> Exported | None:
    present = builds.get(site.context, job, number + step) is not None
    return _reference(site, job, number + step) if present else None


def _actions(site: ViewContext, entry: dict[str, Any]) -> list[Any]:
    """Return the member `actions`. Server fact [ci-11]: the list contains empty objects and has no
    fixed order.
    """
    user = entry["user"]
    cause = Exported(
        "hudson.model.Cause$UserIdCause",
        constants(shortDescription=entry["cause"], userId=user, userName=user or "anonymous"),
        ("shortDescription", "userId", "userName"),
    )
    found: list[Any] = [
        Exported("hudson.model.CauseAction", constants(causes=[cause]), ("causes",)),
        {},
    ]
    values = [parameters.shown_value(value, not site.real) for value in entry["parameters"]]
    if values:
        fields = constants(parameters=values)
        found.insert(1, Exported("hudson.model.ParametersAction", fields, ("parameters",)))
    return [{}, *found]


def queue_view(site: ViewContext, item: dict[str, Any]) -> Exported:
    """Return a queue item, with `cancelled` and `executable` if it has left the queue [ci-8]."""
    context = site.context
    cls = queue.kind(context, item)
    job = jobs.get(context, item["job"]) or {**jobs.DEFAULTS, "full_name": item["job"]}
    task = Exported(
        jobs.CLASSES[job["kind"]],
        {
            **constants(name=jobs.short_name(job), url=site.job_url(item["job"])),
            "color": lambda: color(site, item["job"], job),
        },
        ("name", "url", "color"),
    )
    fields = {
        "actions": lambda: _actions(site, item),
        **constants(
            blocked=cls == queue.BLOCKED,
            buildable=cls == queue.BUILDABLE,
            id=item["id"],
            inQueueSince=item["since_ms"],
            params=parameters.queue_text(item["parameters"]),
            stuck=cls == queue.BUILDABLE and job["offline"],
            task=task,
            url=f"queue/item/{item['id']}/",
            why=queue.why(context, item, cls),
        ),
        **_by_class(site, item, cls),
    }
    return Exported(cls, fields, tuple(fields))


def _by_class(site: ViewContext, item: dict[str, Any], cls: str) -> dict[str, Getter]:
    if cls == queue.WAITING:
        return constants(timestamp=item["ready_ms"])
    if cls == queue.LEFT:
        return {
            **constants(cancelled=item["cancelled"]),
            "executable": lambda: _executable(site, item),
        }
    extra = constants(buildableStartMilliseconds=item["ready_ms"])
    return {**extra, **constants(pending=False)} if cls == queue.BUILDABLE else extra


def _executable(site: ViewContext, item: dict[str, Any]) -> Exported | None:
    """Return the build of an item that has left the queue, or `None`.

    Server fact [ci-8]: an item that has just left the queue has no `executable` for a moment.
    """
    lag = int(float(site.context.settings("ci")["executable_lag_seconds"]) * 1000)
    if item["number"] is None or site.context.now_ms() < item["left_ms"] + lag:
        return None
    return _reference(site, item["job"], item["number"])


def queue_list(site: ViewContext) -> Exported:
    def items() -> list[Exported]:
        found = queue.waiting(site.context)
        return [queue_view(site, item) for item in found if site.login.sees(item["job"])]

    return Exported("hudson.model.Queue", {**constants(discoverableItems=[]), "items": items}, ())
