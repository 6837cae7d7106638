# SPDX-License-Identifier: GPL-3.0-or-later
"""The update centre: the offered plugins, and its jobs, which run one after the other [ci-23].

Seed format: `update_site: [{name, version, title, dependencies: [names], fails, needs_restart}]`.
`fails` is the reason for a failed installation. `needs_restart` is the only sign that a plugin
cannot be loaded without a restart.
"""

from __future__ import annotations

import uuid
from typing import Any

from sandbox.ci.formats.exports import Exported, constants
from sandbox.ci.plugins import plugin_manager
from sandbox.ci.plugins.versions import older
from sandbox.context import Context

_SITE, _JOBS, _STATE = "ci.site", "ci.updatejob", "ci.state"
_PACKAGE = "hudson.model.UpdateCenter$"


def put(context: Context, plugin: dict[str, Any]) -> None:
    """Offer a plugin on the update site."""
    context.store.put(_SITE, plugin["name"], plugin)


def fetch(context: Context) -> None:
    """Fetch the offers of the update site."""
    context.store.put(_STATE, "site", {"fetched": True})


def site(context: Context) -> dict[str, dict[str, Any]]:
    """Return the offered plugins by name. The result is empty until `fetch` is called, unless the
    setting `site_fetched` is true.
    """
    fetched = context.settings("ci")["site_fetched"] or context.store.get(_STATE, "site")
    return {record["name"]: record for record in context.store.values(_SITE)} if fetched else {}


def needed(context: Context, wanted: dict[str, str]) -> list[dict[str, str]]:
    """Return `name`, `version` and `mode` of the requested plugins that are missing or too old."""
    there = plugin_manager.versions(context)
    found = []
    for name, version in wanted.items():
        if name not in there:
            found.append({"name": name, "version": version, "mode": "missing"})
        elif older(there[name], version):
            found.append({"name": name, "version": version, "mode": "old"})
    return found


def install_necessary(context: Context, wanted: dict[str, str]) -> None:
    """Install the wanted plugins.

    Server fact [ci-22]: a plugin that the site lacks, or has only in an older version, is skipped
    without an error.
    """
    offered = site(context)
    for record in needed(context, wanted):
        plugin = offered.get(record["name"])
        if plugin is not None and not older(plugin["version"], record["version"]):
            install(context, plugin, None)


def install(context: Context, plugin: dict[str, Any], correlation: str | None) -> None:
    """Queue the installation of an offered plugin, after its dependencies."""
    offered = site(context)
    there = plugin_manager.versions(context)
    for name in plugin.get("dependencies") or []:
        queued = any(job["name"] == name for job in _all(context) if not job["done"])
        if name in offered and name not in there and not queued:
            install(context, offered[name], None)
    _queue(context, "InstallationJob", plugin, correlation)


def new_correlation() -> str:
    return str(uuid.uuid4())


def batch_done(context: Context) -> None:
    """Queue the job that marks the end of a group of installations."""
    _queue(context, "CompleteBatchJob", {"name": "", "version": ""}, None)


def _queue(context: Context, kind: str, plugin: dict[str, Any], correlation: str | None) -> None:
    number = context.store.next_id("ci.updatejob")
    seconds = float(context.settings("ci")["install_seconds"])
    jobs = _all(context)
    start = max([context.now_ms(), *(job["end_ms"] for job in jobs)])
    end = start + (int(seconds * 1000) if kind == "InstallationJob" else 0)
    job = {
        "id": number,
        "type": kind,
        "name": plugin["name"],
        "version": plugin["version"],
        "title": plugin.get("title") or plugin["name"],
        "correlation": correlation,
        "start_ms": start,
        "end_ms": end,
        "done": False,
        "status": "",
        "error": None,
    }
    context.store.put(_JOBS, f"{number:09d}", job)


def _all(context: Context) -> list[dict[str, Any]]:
    return context.store.values(_JOBS)


def advance(context: Context) -> None:
    """Finish the jobs whose duration has passed."""
    now = context.now_ms()
    for job in _all(context):
        if not job["done"] and job["end_ms"] <= now:
            _finish(context, job)


def _finish(context: Context, job: dict[str, Any]) -> None:
    status, error = "Success", None
    if job["type"] == "InstallationJob":
        plugin = context.store.get(_SITE, job["name"]) or {}
        error = plugin.get("fails") or _missing(context, plugin)
        if error is not None:
            status = "Failure"
        elif plugin_manager.receive(context, plugin):
            status = "SuccessButRequiresRestart"
    context.store.put(
        _JOBS, f"{job['id']:09d}", {**job, "done": True, "status": status, "error": error}
    )


def _missing(context: Context, plugin: dict[str, Any]) -> str | None:
    """Return the error message for a missing dependency, or `None`.

    Server fact [ci-23]: the installation of a plugin fails if that of a dependency has failed.
    """
    there = plugin_manager.versions(context)
    missing = [name for name in plugin.get("dependencies") or [] if name not in there]
    if not missing:
        return None
    return f"Failed to load: {plugin['name']} - Plugin is missing: {missing[0]}"


def restart_pending(context: Context) -> bool:
    return any(job["status"] == "SuccessButRequiresRestart" for job in _all(context))


def forget(context: Context) -> None:
    """Remove all jobs, because the server restarts [ci-23]."""
    for job in _all(context):
        context.store.delete(_JOBS, f"{job['id']:09d}")


def status(context: Context, correlation: str | None) -> dict[str, Any]:
    """Handle GET /updateCenter/installStatus. `correlation` selects the jobs of one request."""
    jobs = [job for job in _all(context) if job["type"] == "InstallationJob"]
    chosen = [job for job in jobs if correlation in (None, job["correlation"])]
    shown = [
        {
            "name": job["name"],
            "version": job["version"],
            "title": job["title"],
            "installStatus": job["status"] or _phase(context, job),
            # strings, not booleans
            "requiresRestart": str(job["status"] == "SuccessButRequiresRestart").lower(),
            "correlationId": job["correlation"],
        }
        for job in chosen
    ]
    return {"status": "ok", "data": {"state": "RUNNING", "jobs": shown}}


def _phase(context: Context, job: dict[str, Any]) -> str:
    return "Installing" if job["start_ms"] <= context.now_ms() else "Pending"


def view(context: Context) -> Exported:
    """Handle GET /updateCenter/api/json.

    It includes whether an installed update needs a restart (`isRestartRequiredForCompletion`).
    """
    waiting = restart_pending(context) or plugin_manager.updates_wait(context)
    fields = {
        "availables": site_view(context).fields["availables"],
        "jobs": lambda: [_job_view(context, job) for job in _all(context)],
        **constants(restartRequiredForCompletion=waiting),
        "sites": lambda: [site_view(context)],
    }
    return Exported("hudson.model.UpdateCenter", fields, (), frozenset({"availables"}))


def _job_view(context: Context, job: dict[str, Any]) -> Exported:
    phase = job["status"] or _phase(context, job)
    fields = constants(errorMessage=job["error"], id=job["id"], type=job["type"])
    if job["type"] == "InstallationJob":
        done = job["status"] in ("Success", "SuccessButRequiresRestart")
        state = Exported(
            f"{_PACKAGE}DownloadJob${phase}",
            constants(success=done, type=phase),
            ("success", "type"),
        )
        plugin = constants(name=job["name"], title=job["title"], version=job["version"])
        fields |= constants(
            name=job["title"],
            status=state,
            plugin=Exported("hudson.model.UpdateSite$Plugin", plugin, tuple(plugin)),
        )
    return Exported(f"{_PACKAGE}{job['type']}", fields, tuple(fields))


def site_view(context: Context) -> Exported:
    """Handle GET /updateCenter/site/default/api/json: available plugins and available updates."""
    there = plugin_manager.versions(context)
    offered = list(site(context).values())
    updates = [
        record
        for record in offered
        if record["name"] in there and older(there[record["name"]], record["version"])
    ]
    available = [record for record in offered if record["name"] not in there]
    fields = constants(
        availables=[_offer(record) for record in available],
        updates=[_offer(update) for update in updates],
        hasUpdates=bool(updates),
        id="default",
        url="https://updates.jenkins.io/update-center.json",
    )
    return Exported("hudson.model.UpdateSite", fields, ("id", "url", "hasUpdates"))


def _offer(plugin: dict[str, Any]) -> Exported:
    fields = constants(
        name=plugin["name"],
        version=plugin["version"],
        title=plugin.get("title") or plugin["name"],
        dependencies=dict.fromkeys(plugin.get("dependencies") or [], "0"),
        sourceId="default",
    )
    return Exported("hudson.model.UpdateSite$Plugin", fields, ("name", "version"))
