# SPDX-License-Identifier: GPL-3.0-or-later
"""The server itself, its executors and its users as exported objects."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from sandbox.ci.builds import builds
from sandbox.ci.configuration import list_views, nodes
from sandbox.ci.formats import views
from sandbox.ci.formats.exports import Exported, Getter, constants
from sandbox.ci.jobs import jobs
from sandbox.ci.server import restart


def server_view(world: views.World) -> Exported:
    """Return the server itself, with its top-level jobs."""

    def children() -> list[Exported]:
        return views.children_of(world, "")

    fields = {
        **constants(
            assignedLabels=[{}],
            mode="NORMAL",
            nodeDescription="the Jenkins controller's built-in node",
            nodeName="",
            numExecutors=2,
            description=None,
        ),
        "jobs": children,
        **constants(
            quietDownReason=None,
            quietingDown=restart.quieting(world.context),
            slaveAgentPort=50000,
            url=f"{world.base}/",
            useCrumbs=bool(world.context.settings("ci")["crumb_issuer"]),
            useSecurity=True,
        ),
        **list_views.fields(world.context, ""),
    }
    return Exported("hudson.model.Hudson", fields, ())


def computers_view(world: views.World) -> Exported:
    """Return the executors and their builds; pipelines run on one-off executors."""

    def executors(pipelines: bool) -> list[Exported]:
        found = []
        for key in builds.all_running(world.context):
            job, _mark, number = key.rpartition("#")
            build = builds.get(world.context, job, int(number))
            definition = jobs.get(world.context, job) or jobs.DEFAULTS
            shown = build is not None and (definition["kind"] == jobs.PIPELINE) is pipelines
            if build is not None and shown and world.login.sees(job):
                found.append(Exported(None, {"currentExecutable": _getter(world, build)}))
        return found

    fields = {
        **nodes.built_in(world.context).fields,
        "executors": lambda: executors(False),
        "oneOffExecutors": lambda: executors(True),
    }
    node = Exported("hudson.model.Hudson$MasterComputer", fields, tuple(fields))
    busy = {"busyExecutors": lambda: len(builds.all_running(world.context))}
    return Exported(
        "hudson.model.ComputerSet",
        {**busy, **constants(computer=[node, *nodes.all_of(world.context)], totalExecutors=2)},
    )


def _getter(world: views.World, build: dict[str, Any]) -> Getter:
    return lambda: views.build_view(world, build)


def user_view(world: views.World, user: str) -> Exported:
    fields = constants(
        absoluteUrl=f"{world.base}/user/{quote(user, safe='')}",
        description=None,
        fullName=user,
        id=user,
        property=[],
    )
    return Exported("hudson.model.User", fields, ())
