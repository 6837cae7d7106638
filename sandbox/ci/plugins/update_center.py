# SPDX-License-Identifier: GPL-3.0-or-later
"""The update centre: the offered plugins, and its jobs, which run one after the other [ci-23].

Seed format: `update_site: [{name, version, title, dependencies, optional, fails, needs_restart,
site}]`. `dependencies` are names, or least versions by name, `optional` are least versions. `site`
is one of the setting `update_sites`, by default the first. `fails` is the reason for a failed
installation. `needs_restart` is the only sign that a plugin cannot be loaded without a restart.
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
    plugin = {"site": context.settings("ci")["update_sites"][0], **plugin}
    context.store.put(_SITE, f"{plugin['site']}/{plugin['name']}", plugin)


def fetch(context: Context) -> None:
    """Fetch the offers of the update site."""
    context.store.put(_STATE, "site", {"fetched": True})


def site(context: Context, name: str = "default") -> dict[str, dict[str, Any]]:
    """Return the plugins of a site by name. The result is empty until `fetch` is called, unless the
    setting `site_fetched` is true.
    """
    fetched = context.settings("ci")["site_fetched"] or context.store.get(_STATE, "site")
    records = context.store.values(_SITE, f"{name}/")
    return {record["name"]: record for record in records} if fetched else {}


def has_site(context: Context, name: str) -> bool:
    return name in context.settings("ci")["update_sites"]


def offer(context: Context, name: str, least: str = "0") -> dict[str, Any] | None:
    """Return a plugin of the first site that has it, with at least this version [ci-23]."""
    sites = (site(context, each) for each in context.settings("ci")["update_sites"])
    found = (records[name] for records in sites if name in records)
    return next((record for record in found if not older(record["version"], least)), None)


def _needs(plugin: dict[str, Any]) -> dict[str, str]:
    """Return the dependencies of a plugin with their least versions."""
    needs = plugin.get("dependencies") or {}
    return needs if isinstance(needs, dict) else dict.fromkeys(needs, "0")


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
    for record in needed(context, wanted):
        plugin = offer(context, record["name"], record["version"])
        if plugin is not None:
            install(context, plugin, None)


def install(context: Context, plugin: dict[str, Any], correlation: str | None) -> None:
    """Queue the installation of an offered plugin, after its dependencies."""
    there = plugin_manager.versions(context)
    optional = {
        name: each for name, each in (plugin.get("optional") or {}).items() if name in there
    }
    for name, least in {**optional, **_needs(plugin)}.items():
        queued = any(job["name"] == name for job in _all(context) if not job["done"])
        offered = offer(context, name, least)
        if offered is not None and not queued and (name not in there or older(there[name], least)):
            install(context, offered, None)
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
        "site": plugin.get("site", ""),
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
        plugin = context.store.get(_SITE, f"{job['site']}/{job['name']}") or {}
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
    missing = [name for name in _needs(plugin) if name not in there]
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
        "availables": lambda: [_offer(record) for record in _availables(context)],
        "jobs": lambda: [_job_view(context, job) for job in _all(context)],
        **constants(restartRequiredForCompletion=waiting),
        "sites": lambda: [
            site_view(context, name) for name in context.settings("ci")["update_sites"]
        ],
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


def site_view(context: Context, name: str = "default") -> Exported:
    """Handle GET /updateCenter/site/default/api/json: available plugins and available updates.

    Server fact [ci-23]: the updates of a site are those of all sites.
    """
    there = plugin_manager.versions(context)
    newest = [(version, offer(context, each, version)) for each, version in there.items()]
    updates = [record for version, record in newest if record and older(version, record["version"])]
    available = [record for record in site(context, name).values() if record["name"] not in there]
    fields = constants(
        availables=[_offer(record) for record in available],
        updates=[_offer(update) for update in updates],
        hasUpdates=bool(updates),
        id=name,
        url="https://updates.jenkins.io/update-center.json",
    )
    return Exported("hudson.model.UpdateSite", fields, ("id", "url", "hasUpdates"))


def _availables(context: Context) -> list[dict[str, Any]]:
    """Return the plugins of all sites that are not installed, each version once."""
    there = plugin_manager.versions(context)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name in context.settings("ci")["update_sites"]:
        for record in site(context, name).values():
            found.setdefault((record["name"], record["version"]), record)
    return [record for (name, _version), record in found.items() if name not in there]


def _offer(plugin: dict[str, Any]) -> Exported:
    fields = constants(
        name=plugin["name"],
        version=plugin["version"],
        title=plugin.get("title") or plugin["name"],
        dependencies=_needs(plugin),
        optionalDependencies=plugin.get("optional") or {},
        sourceId=plugin["site"],
    )
    return Exported("hudson.model.UpdateSite$Plugin", fields, ("name", "version"))
