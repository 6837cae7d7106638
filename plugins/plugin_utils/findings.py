# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings: what differs, one entry an object, in one wording for all services [C9].

They are read from the results of modules. Each has C(kind), C(name), C(action) and C(text).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Result = Mapping[str, Any]
Finding = dict[str, Any]


def finding(kind: str, name: Any, action: str, text: str) -> Finding:
    """One object that differs, and what would have to be done."""
    return {"kind": kind, "name": str(name), "action": action, "text": text}


def of_analysis_config(result: Result) -> Iterator[Finding]:
    """The plan of a whole configuration."""
    for entry in result.get("plan") or []:
        action = entry["action"]
        fields = [change["field"] for change in entry["changes"]] if action == "update" else []
        yield finding(entry["kind"], entry["name"], action, " ".join([action, *fields]))


def of_artifact_cleanup(result: Result) -> Iterator[Finding]:
    """The items that a cleanup deletes."""
    for item in result.get("deleted") or []:
        yield finding("item", f"{item['repo']}/{item['path']}", "delete", item["reason"])


def of_build_retention(result: Result) -> Iterator[Finding]:
    """The builds of a name that are discarded."""
    numbers = result.get("discarded") or []
    if numbers:
        text = f"too old or too many: {', '.join(map(str, numbers))}"
        yield finding("build", result.get("build_name", ""), "delete", text)


def of_artifact_trash(result: Result) -> Iterator[Finding]:
    """What is in the trash."""
    if result.get("changed"):
        name = result.get("repo") or result.get("state") or "trash"
        yield finding("trash", name, "delete", "something of it is in the trash")


def of_ci_plugin_info(result: Result) -> Iterator[Finding]:
    """Plugins that are not as a baseline or a lock file has them."""
    for name in result.get("missing") or []:
        yield finding("plugin", name, "create", f"plugin {name} is missing")
    for one in [*(result.get("outdated") or []), *(result.get("newer") or [])]:
        text = f"plugin {one['name']} is {one['installed']}, the baseline has {one['required']}"
        yield finding("plugin", one["name"], "update", text)
    for name in result.get("inactive") or []:
        yield finding("plugin", name, "update", f"plugin {name} is disabled or not loaded")
    for name in result.get("extra") or []:
        yield finding("plugin", name, "delete", f"plugin {name} is not in the lock file")


def of_ci_script(result: Result) -> Iterator[Finding]:
    """A script that changes the configuration."""
    if result.get("changed"):
        name = result.get("name", "")
        yield finding("script", name, "update", f"script {name} would change something")


def of_ci_java(result: Result) -> Iterator[Finding]:
    """The Java of the CI server, where its release is not meant to run on it."""
    supported = [int(version) for version in result.get("supported") or []]
    java = str(result.get("java") or "").removeprefix("1.")
    if supported and (not java.isdecimal() or int(java) not in supported):
        release, versions = result.get("release"), " or ".join(map(str, supported))
        text = f"the server runs on Java {java}, release {release} is to run on {versions}"
        yield finding("java", java, "update", text)


#: What results can be read, by the module that they are of; C(ci_java) is what C(ci_script) read.
READERS: Mapping[str, Callable[[Result], Iterator[Finding]]] = {
    "analysis_config": of_analysis_config,
    "artifact_cleanup": of_artifact_cleanup,
    "artifact_trash": of_artifact_trash,
    "build_retention": of_build_retention,
    "ci_java": of_ci_java,
    "ci_plugin_info": of_ci_plugin_info,
    "ci_script": of_ci_script,
}


def findings(result: Result, module: str) -> list[Finding]:
    """The findings in the result of a module. A task that was skipped found nothing."""
    return [] if result.get("skipped") else list(READERS[module](result))
