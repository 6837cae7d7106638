# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs, folders and multibranch projects as the sandbox keeps them.

A job's key is its full name: stored names joined with `/`. A branch `feature/x` is stored as
`feature%2Fx` [ci-5], so that no stored name holds a slash.
"""

from __future__ import annotations

from typing import Any

from sandbox.context import Context

JOBS, NUMBERS = "ci.job", "ci.number"

FREESTYLE, PIPELINE, FOLDER, MULTIBRANCH = "freestyle", "pipeline", "folder", "multibranch"
_WORKFLOW_PACKAGE = "org.jenkinsci.plugins"
_FOLDER_PACKAGE = "com.cloudbees.hudson.plugins"
CLASSES = {
    FREESTYLE: "hudson.model.FreeStyleProject",
    PIPELINE: f"{_WORKFLOW_PACKAGE}.workflow.job.WorkflowJob",
    FOLDER: f"{_FOLDER_PACKAGE}.folder.Folder",
    MULTIBRANCH: f"{_WORKFLOW_PACKAGE}.workflow.multibranch.WorkflowMultiBranchProject",
}
BUILD_CLASSES = {
    FREESTYLE: "hudson.model.FreeStyleBuild",
    PIPELINE: f"{_WORKFLOW_PACKAGE}.workflow.job.WorkflowRun",
}
CONTAINERS = (FOLDER, MULTIBRANCH)

# What a seed may say of a job, with the defaults. Times are seconds.
#
# `refuse`: a trigger is answered 302 to the job and nothing is queued; `offline`: no node can run
# it; `concurrent`: builds do not wait for each other; `survives`: of `stop` and `term`, what a
# running build takes no notice of; `post_production_seconds`: how long a build with a result still
# works; `on_success`: `publish_build: {name, number}`, `push_image: {repo, image, tag}`;
# `artifacts`: what a build keeps, `{path, content or parameter, recorded_as}`; `fingerprint`:
# whether their digests are recorded; `changes`: the commits that a build takes in first, `{id,
# message, author, timestamp}`. `parts`, `properties`, `save` and `hold_off` are of the
# configuration, see `configuration.read`.
DEFAULTS: dict[str, Any] = {
    "kind": FREESTYLE,
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
    "parts": None,
    "properties": [],
    "save": 0,
    "hold_off": False,
}
PARAMETER_TYPES = ("string", "text", "boolean", "choice", "password", "multi", "file")


def put(context: Context, name: str, definition: dict[str, Any]) -> None:
    """Create or replace a job; ValueError for a definition that cannot be played."""
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


def below(context: Context, folder: str) -> list[dict[str, Any]]:
    """The direct children of a folder ("" is the server itself), by name."""
    prefix = f"{folder}/" if folder else ""
    return [
        job for name, job in context.store.items(JOBS, prefix) if "/" not in name[len(prefix) :]
    ]


def subtree(context: Context, name: str) -> list[str]:
    """The full names of a job and of all that is below it."""
    return [name, *(key for key in context.store.keys(JOBS, f"{name}/"))]


def short_name(job: dict[str, Any]) -> str:
    return str(job["full_name"]).rpartition("/")[2]


def is_container(job: dict[str, Any]) -> bool:
    return job["kind"] in CONTAINERS


def next_number(context: Context, name: str) -> int:
    """The number of the next build (not taken)."""
    counter = context.store.get(NUMBERS, name)
    return 1 if counter is None else int(counter["next"])


def take_number(context: Context, name: str, number: int | None = None) -> int:
    """Take the next number, or this one; later builds get higher ones."""
    following = next_number(context, name)
    taken = following if number is None else number
    context.store.put(NUMBERS, name, {"next": max(following, taken + 1)})
    return taken
