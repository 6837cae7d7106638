# SPDX-License-Identifier: GPL-3.0-or-later
"""What the result of any module of the collection says of the objects that it compared [C9].

A module with a reader in C(findings) tells more than one object in its own words. Some return a
list with an action for each object. All others compare one object, which their options name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.delivery.toolchain.plugins.plugin_utils import findings
from ansible_collections.delivery.toolchain.plugins.plugin_utils.findings import Finding, Result

#: What only reads, or writes files of the machine alone, compares nothing.
READS = re.compile(
    r".*_(info|query|search|report|download|attachment|export)|oauth_consumer|ci_artifact"
)
#: Modules that return a list of objects, each with an action: its key, its kind, its name.
LISTS = {
    "artifact_copy": ("artifacts", "item", "{repo}/{path}"),
    "artifact_deploy": ("artifacts", "item", "{repo}/{path}"),
    "tracker_issue": ("issues", "issue", "{key}"),
    "wiki_tree": ("pages", "page", "{space}/{title}"),
}
_DONE = {"none", "unchanged", "absent", "kept", "present", "skipped"}
_MADE = {"create", "created", "uploaded", "exploded", "checksum_deployed", "copied", "installed"}
_GONE = {"delete", "deleted", "remove", "removed", "trashed", "uninstalled"}
#: Kind and name of the object of a module, the name by its options and what it returns.
OBJECTS = {
    "analysis_build": ("builds", "{project}/{name}"),
    "analysis_defect_type": ("defect_types", "{project}/{code}"),
    "analysis_group": ("groups", "{name}"),
    "analysis_issue": ("issues", "{project}"),
    "analysis_module": ("modules", "{project}/{name}"),
    "analysis_project": ("projects", "{name}"),
    "analysis_role": ("roles", "{name}"),
    "analysis_role_assignment": ("role_assignments", "{name}/{account}/{project}"),
    "analysis_server_import": ("server", "{source_url}"),
    "analysis_user": ("users", "{name}"),
    "analysis_view": ("views", "{project}/{name}"),
    "artifact_properties": ("item", "{repo}/{path}"),
    "build_promote": ("build", "{build_name}/{build_number}"),
    "build_publish": ("build", "{build_name}/{build_number}"),
    "build_record": ("build", "{build_name}/{build_numbers}"),
    "ci_build_stop": ("build", "{job}/{build}"),
    "ci_job": ("job", "{job}"),
    "ci_job_build": ("job", "{job}"),
    "ci_restart": ("server", "restart"),
    "docker_promote": ("image", "{target_repo}/{image}:{tag}"),
    "tracker_version": ("version", "{project}/{name}"),
    "wiki_page": ("page", "{space}/{title}"),
}
_WORD = re.compile(r"\{(\w+)\}")


def compared(module: str, result: Result, options: Mapping[str, Any], task: str) -> list[Finding]:
    """The objects that a task compared, as wanted or not.

    :param options: the options of the module as its result tells them
    :param task: what names an object that nothing else names: the item of a loop, or the task
    """
    if "censored" in result:
        return [] if READS.fullmatch(module) else [_censored(module, result, task)]
    if module == "ci_job_info":
        return _expected_job(result, options)
    whole = {"name": task, **options, **result}
    if module == "ci_script":
        whole["name"] = task
    if module in findings.READERS:
        return findings.compared(whole, module)
    if READS.fullmatch(module):
        return []
    key, kind, name = LISTS.get(module, ("", "", ""))
    if isinstance(result.get(key), list):
        rows = [row for row in result[key] if isinstance(row, Mapping)]
        return [_of_row(kind, _filled(name, {**options, **row}) or task, row) for row in rows]
    return [_of_task(module, result, options, task)]


def differing(module: str, result: Result) -> list[Finding]:
    """What differs in the result of a module, with its service. A task that was skipped compared
    nothing.
    """
    if result.get("skipped"):
        return []
    if module in findings.READERS:
        found = findings.compared(result, module)
    else:
        found = compared(module, result, result, module)
    service = module.partition("_")[0]
    service = "repo" if service in ("artifact", "build") else service
    return [{"service": service, **one} for one in found if one["status"] != "ok"]


def failed(module: str, result: Result, options: Mapping[str, Any], task: str) -> list[Finding]:
    """What a task that failed tells: the objects that it had planned, and what failed."""
    text = _words_of(result)
    told = [] if "censored" in result else _told_in_spite(module, result, options)
    if any(one["status"] == "failed" for one in told):
        return told
    kind, name = object_of(module, options, result, task)
    return [*told, findings.failed(kind, name, text)]


def _told_in_spite(module: str, result: Result, options: Mapping[str, Any]) -> list[Finding]:
    if module != "analysis_config" or not result.get("plan"):
        return []
    return findings.compared({**options, **result}, module)


def object_of(
    module: str, options: Mapping[str, Any], result: Result, task: str
) -> tuple[str, str]:
    """Kind and name of the object of a task; the task itself where nothing names one."""
    if module not in OBJECTS:
        return "task", task
    kind, pattern = OBJECTS[module]
    page = result.get("page")
    more = page if isinstance(page, Mapping) else {}
    name = _filled(pattern, {**options, **{key: more[key] for key in more if more[key]}})
    return kind, name or str(options.get("page_id") or options.get("issue") or task)


def _filled(pattern: str, values: Mapping[str, Any]) -> str:
    """The pattern with its values; what is not given is left out with what stands before it. Empty
    where nothing is.
    """
    text, end = "", 0
    for word in _WORD.finditer(pattern):
        value = values.get(word[1])
        shown = "/".join(map(str, value)) if isinstance(value, list) else value
        if shown not in (None, ""):
            text += (pattern[end : word.start()] if text else "") + str(shown)
        end = word.end()
    return text if _WORD.search(pattern) else pattern


def _censored(module: str, result: Result, task: str) -> Finding:
    kind = OBJECTS.get(module, ("task", ""))[0]
    if result.get("changed"):
        return findings.different(kind, task, "differs, no_log hides in what")
    return findings.wanted(kind, task)


def _expected_job(result: Result, options: Mapping[str, Any]) -> list[Finding]:
    """A job that was held against an expected configuration."""
    if not options.get("expected_config"):
        return []
    name = str(options.get("job"))
    if not result.get("config_drift"):
        return [findings.wanted("job", name)]
    return [findings.different("job", name, findings.differing(()), *findings.sides(result))]


def _of_row(kind: str, name: str, row: Mapping[str, Any]) -> Finding:
    action = str(row.get("action") or "none")
    if action in _DONE:
        return findings.wanted(kind, name)
    changes = row.get("changes")
    told = isinstance(changes, list) and all(isinstance(one, Mapping) for one in changes)
    before, after = row.get("before"), row.get("after")
    if told:
        before = {one.get("field"): one.get("before") for one in changes or ()}
        after = {one.get("field"): one.get("after") for one in changes or ()}
    if action in _MADE:
        return findings.missing(kind, name, after)
    if action in _GONE:
        return findings.unwanted(kind, name, before)
    if told and isinstance(before, dict):
        return findings.different(kind, name, findings.differing(map(str, before)), before, after)
    return findings.different(kind, name, f"differs ({action})", before, after)


def _of_task(module: str, result: Result, options: Mapping[str, Any], task: str) -> Finding:
    kind, name = object_of(module, options, result, task)
    if not result.get("changed"):
        return findings.wanted(kind, name)
    before, after = findings.sides(result)
    if after is None and before is not None:
        return findings.unwanted(kind, name, before)
    if before is None and after is not None:
        return findings.missing(kind, name, after)
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return findings.different(kind, name, "differs", before, after)
    names = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return findings.different(
        kind,
        name,
        findings.differing(names),
        {key: before.get(key) for key in names},
        {key: after.get(key) for key in names},
    )


def _words_of(result: Result) -> str:
    """What a failed task says of itself."""
    if "censored" in result:
        return "failed, no_log hides why"
    return str(result.get("msg") or result.get("module_stderr") or "failed").strip()
