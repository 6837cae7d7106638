# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON and XML of the server, its nodes and its users."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from sandbox.ci.builds import builds
from sandbox.ci.configuration import list_views, nodes
from sandbox.ci.formats import views
from sandbox.ci.formats.exports import Exported, Getter, constants
from sandbox.ci.jobs import jobs
from sandbox.ci.server import access, restart


def server_view(site: views.ViewContext) -> Exported:
    """Return the object of the server, with its top-level jobs."""

    def children() -> list[Exported]:
        return views.children_of(site, "")

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
            quietingDown=restart.quieting(site.context),
            slaveAgentPort=50000,
            url=f"{site.base}/",
            useCrumbs=bool(site.context.settings("ci")["crumb_issuer"]),
            useSecurity=True,
        ),
        **list_views.fields(site.context, ""),
    }
    return Exported("hudson.model.Hudson", fields, ())


def computers_view(site: views.ViewContext) -> Exported:
    """Return the nodes with their executors and builds. Pipelines run on one-off executors."""

    def executors(pipelines: bool) -> list[Exported]:
        found = []
        for key in builds.all_running(site.context):
            job, _mark, number = key.rpartition("#")
            build = builds.get(site.context, job, int(number))
            definition = jobs.get(site.context, job) or jobs.DEFAULTS
            shown = build is not None and (definition["kind"] == jobs.PIPELINE) is pipelines
            if build is not None and shown and site.login.sees(job):
                found.append(Exported(None, {"currentExecutable": _getter(site, build)}))
        return found

    fields = {
        **nodes.built_in(site.context).fields,
        "executors": lambda: executors(False),
        "oneOffExecutors": lambda: executors(True),
    }
    node = Exported("hudson.model.Hudson$MasterComputer", fields, tuple(fields))
    busy = {"busyExecutors": lambda: len(builds.all_running(site.context))}
    return Exported(
        "hudson.model.ComputerSet",
        {**busy, **constants(computer=[node, *nodes.all_of(site.context)], totalExecutors=2)},
    )


def _getter(site: views.ViewContext, build: dict[str, Any]) -> Getter:
    return lambda: views.build_view(site, build)


def account_view(site: views.ViewContext, user: str | None, target: list[str]) -> Exported | None:
    """Return the object of `me`, `user/NAME` or `whoAmI`, or `None` if it does not exist."""
    if target == ["whoAmI"]:
        return _who_am_i(user)
    named = user if target == ["me"] else target[1] if len(target) == 2 else None
    return _user_view(site, named) if named in access.users(site.context) else None


def _user_view(site: views.ViewContext, user: str) -> Exported:
    fields = constants(
        absoluteUrl=f"{site.base}/user/{quote(user, safe='')}",
        description=None,
        fullName=user,
        id=user,
        property=[],
    )
    return Exported("hudson.model.User", fields, ())


def _who_am_i(user: str | None) -> Exported:
    fields = constants(
        anonymous=user is None,
        authenticated=True,
        authorities=["authenticated"],
        name=user or "anonymous",
        toString="",
    )
    return Exported("hudson.security.WhoAmI", fields, ())
