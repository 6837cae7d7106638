# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of jobs, folders and multibranch projects.

The key of a job is its full name: stored names joined with `/`. A branch `feature/x` is stored as
`feature%2Fx` [ci-5], so that no stored name contains a slash.
"""

from __future__ import annotations

from typing import Any

from sandbox.context import Context

JOBS, NUMBERS = "ci.job", "ci.number"

FREESTYLE, PIPELINE, FOLDER, MULTIBRANCH = "freestyle", "pipeline", "folder", "multibranch"
ORGANIZATION = "organization"
_WORKFLOW_PACKAGE = "org.jenkinsci.plugins"
_FOLDER_PACKAGE = "com.cloudbees.hudson.plugins"
CLASSES = {
    FREESTYLE: "hudson.model.FreeStyleProject",
    PIPELINE: f"{_WORKFLOW_PACKAGE}.workflow.job.WorkflowJob",
    FOLDER: f"{_FOLDER_PACKAGE}.folder.Folder",
    MULTIBRANCH: f"{_WORKFLOW_PACKAGE}.workflow.multibranch.WorkflowMultiBranchProject",
    ORGANIZATION: "jenkins.branch.OrganizationFolder",
}
BUILD_CLASSES = {
    FREESTYLE: "hudson.model.FreeStyleBuild",
    PIPELINE: f"{_WORKFLOW_PACKAGE}.workflow.job.WorkflowRun",
}
#: Kinds of folders that a branch scan fills with jobs.
COMPUTED = (MULTIBRANCH, ORGANIZATION)
CONTAINERS = (FOLDER, *COMPUTED)

# Keys of a job in a seed, with the defaults. Times are seconds.
#
# `refuse`: a trigger gets a 302 to the job and nothing is queued. `offline`: no node can run the
# job. `concurrent`: builds do not wait for each other. `survives`: which of `stop` and `term` a
# running build ignores. `post_production_seconds`: how long a build still works after it has a
# result. `on_success`: `publish_build: {name, number}`, `push_image: {repo, image, tag}`.
# `artifacts`: the archived files, `{path, content or parameter, recorded_as}`. `fingerprint`:
# whether their digests are recorded. `changes`: the commits that a build includes for the first
# time, `{id, message, author, timestamp}`. `input`: what a running pipeline waits for, `{id,
# message, ok, submitter, parameters: [{name, type}]}`. `scan`: `{adds, removes: [name], seconds,
# result}` of a scan of a computed folder. `parts`, `properties`, `save`, `read` and `hold_off`
# belong to the configuration, see `configuration.read`.
DEFAULTS: dict[str, Any] = {
    "kind": FREESTYLE,
    "read": False,
    "description": None,
    "disabled": False,
    "refuse": False,
    "offline": False,
    "concurrent": False,
    "parameters": [],
    "build_seconds": 0.3,
    "post_production_seconds": 0,
    "quiet_period": 0,
    "result": "SUCCESS",
    "log": ["Building ${JOB_NAME} #${BUILD_NUMBER}", "Done"],
    "survives": [],
    "on_success": {},
    "artifacts": [],
    "fingerprint": True,
    "changes": [],
    "input": None,
    "scan": {},
    "parts": None,
    "properties": [],
    "save": 0,
    "hold_off": False,
}
PARAMETER_TYPES = ("string", "text", "boolean", "choice", "password", "multi", "file", "run")


def put(context: Context, name: str, definition: dict[str, Any]) -> None:
    """Create or replace a job. Raises ValueError for a definition that cannot be simulated."""
    unknown = sorted(set(definition) - set(DEFAULTS))
    if unknown:
        raise ValueError(f"job {name}: unknown {', '.join(unknown)}")
    job = {**DEFAULTS, **definition, "full_name": name}
    parent = name.rpartition("/")[0]
    if job["kind"] not in CLASSES:
        raise ValueError(f"job {name}: unknown kind {job['kind']}")
    if parent and (get(context, parent) or {}).get("kind") not in CONTAINERS:
        raise ValueError(f"job {name}: there is no folder {parent}")
    for parameter in job["parameters"]:
        if parameter["type"] not in PARAMETER_TYPES:
            raise ValueError(f"job {name}: unknown parameter type {parameter['type']}")
    context.store.put(JOBS, name, job)


def get(context: Context, name: str) -> dict[str, Any] | None:
    return context.store.get(JOBS, name)


def find(context: Context, name: str) -> dict[str, Any] | None:
    """Return a job by its name in any letter case.

    Server fact [ci-5]: names that differ only in case are one job.
    """
    stored = get(context, name)
    if stored is not None:
        return stored
    keys = context.store.keys(JOBS)
    return next((get(context, key) for key in keys if key.casefold() == name.casefold()), None)


def below(context: Context, folder: str) -> list[dict[str, Any]]:
    """Return the direct children of a folder ("" is the server itself), by name."""
    prefix = f"{folder}/" if folder else ""
    return [
        job for name, job in context.store.items(JOBS, prefix) if "/" not in name[len(prefix) :]
    ]


def subtree(context: Context, name: str) -> list[str]:
    """Return the full names of a job and of all jobs below it."""
    return [name, *(key for key in context.store.keys(JOBS, f"{name}/"))]


def short_name(job: dict[str, Any]) -> str:
    return str(job["full_name"]).rpartition("/")[2]


def is_container(job: dict[str, Any]) -> bool:
    return job["kind"] in CONTAINERS


def is_disabled(context: Context, job: dict[str, Any]) -> bool:
    """Return whether a job or one of its parent folders is disabled [ci-29]."""
    parent = get(context, str(job["full_name"]).rpartition("/")[0])
    return bool(job["disabled"]) or (parent is not None and is_disabled(context, parent))


def next_number(context: Context, name: str) -> int:
    """Return the number that the next build will get."""
    counter = context.store.get(NUMBERS, name)
    return 1 if counter is None else int(counter["next"])


def take_number(context: Context, name: str, number: int | None = None) -> int:
    """Assign a build number: `number` if it is set, otherwise the next one."""
    following = next_number(context, name)
    taken = following if number is None else number
    context.store.put(NUMBERS, name, {"next": max(following, taken + 1)})
    return taken
