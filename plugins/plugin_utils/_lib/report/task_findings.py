# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert the result of a task to findings, one for each object that the task compared [C9].

The module returns them; this adds their texts, and the failure of a task. The descriptor of the
module contains the kind and name of the object of a failed task.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ....module_utils._lib.core.finding import RETURNED
from .. import findings, kinds, refused_servers
from ..descriptors import descriptor_of
from ..findings import Finding

Result = Mapping[str, Any]

#: Keys of findings that are not part of their text.
_MORE = ("digests", "changed_by", "changed_at")
#: Kinds of errors of objects that differ, but that the module refuses to change.
_REFUSALS = ("invalid", "conflict")


def compared(
    module: str, result: Result, options: Mapping[str, Any], task: str, *, check: bool = False
) -> list[Finding]:
    """Return a finding for each object that a task compared, also for unchanged objects.

    :param options: options of the module, from `invocation` of its result
    :param task: name for an object without a name: the loop item, or the name of the task
    :param check: see `failed`
    """
    descriptor = descriptor_of(module)
    if "censored" in result:
        text = "differs, but no_log hides the difference"
        kind = descriptor.kind or "task"
        return [_without_difference(kind, task, result, text)] if descriptor.writes else []
    if RETURNED in result:
        return [_worded(found, task, check=check) for found in result[RETURNED]]
    if not descriptor.kind:
        return []
    if "ansible_job_id" in result and not result.get("finished"):
        text = "runs in the background (async), so its result is not known"
        return [findings.not_compared(descriptor.kind, task, text)]
    if result.get("error") and not result.get("changed"):  # `failed_when` accepts the failure
        return failed(module, result, options, task, check=check)
    return [_without_difference(*object_of(module, options, result, task), result, "differs")]


def _worded(found: Mapping[str, Any], task: str, *, check: bool) -> Finding:
    """Return a finding that a module returned, with its text.

    :param task: see `compared`
    :param check: see `failed`
    """
    kind, name, action = found["kind"], found.get("name") or task, found.get("action", "none")
    before, after, text = (found.get(key) for key in ("before", "after", "text"))
    if "error" in found:
        worded = _of_error(kind, name, found, check=check)
    elif "unmanaged" in found:
        worded = findings.unmanaged_object(kind, name, found["unmanaged"])
    elif action == "none":
        worded = findings.wanted(kind, name)
    elif action == "create":
        worded = findings.missing(kind, name, after)
    elif action == "delete":
        worded = findings.unwanted(kind, name, before, why=text or "")
    elif isinstance(before, dict) and isinstance(after, dict):
        words = _in_words(kind, before, after)
        worded = findings.different(kind, name, text or findings.differing(before), *words)
    else:
        worded = findings.different(kind, name, text or "differs", before, after)
    worded = findings.with_unknown(worded, found.get("unknown", ()))
    worded = findings.with_unsupported(worded, found.get("unsupported", ()))
    return {**worded, **{key: found[key] for key in _MORE if key in found}}


def _of_error(kind: str, name: str, found: Mapping[str, Any], *, check: bool) -> Finding:
    """Return the finding of an object that failed, in check mode of one that differs, but that the
    module refuses to change.
    """
    error, before, after = found["error"], found.get("before"), found.get("after")
    if check and error.get("kind") in _REFUSALS and before:
        text = str(error["msg"]).removeprefix(f"the {kind} '{name}': ")
        return _refused_change(kind, name, before, after, text)
    failure = findings.failed(kind, name, str(error["msg"]))
    refused = refused_servers.refusal_of(error)
    return {**failure, "refused": refused, "count": 1} if refused else failure


def _without_difference(kind: str, name: str, result: Result, text: str) -> Finding:
    """Return the finding of an object of which only `changed` is known."""
    found = findings.different(kind, name, text)
    return found if result.get("changed") else findings.wanted(kind, name)


def differing(module: str, result: Result) -> list[Finding]:
    """Return the findings of objects that differ, with their `service`."""
    if result.get("skipped"):
        return []
    if module == "java_version":
        found = findings.of_java_version(result)
    else:
        found = compared(module, result, result, str(result.get("name") or module))
    # `java_version` is not a module: the role `ci_baseline` reads the Java version with `ci_script`
    service = "ci" if module == "java_version" else descriptor_of(module).service_name
    return [{"service": service, **record} for record in found if record["status"] != "ok"]


def refused(module: str, result: Result) -> list[Finding]:
    """Return the differing objects of a task in check mode that only failed because its module
    refuses to change them.
    """
    found = failed(module, result, result, module, check=True) if result.get("failed") else []
    # the results of `java_version`, which is no module, have no descriptor
    if not found or any(record["status"] == "failed" for record in found):
        return []
    service = descriptor_of(module).service_name
    return [{"service": service, **record} for record in found if record["status"] != "ok"]


def expected(module: str, options: Mapping[str, Any]) -> int:
    """Return the number of objects that a task with these options compares."""
    if module == "analysis_config":
        lists: Iterable[str] = [kind.list for kind in kinds.KINDS if kind.module == module]
    else:
        lists = ("entries", "plugins", "required", "rules")
    given = [options[name] for name in lists if isinstance(options.get(name), list)]
    if given:
        return sum(map(len, given))
    descriptor = descriptor_of(module)
    return int(bool(descriptor.kind) or descriptor.writes or module == "ci_plugin_info")


def failed(
    module: str, result: Result, options: Mapping[str, Any], task: str, *, check: bool = False
) -> list[Finding]:
    """Return the findings of a failed task: its planned changes, and the failure.

    :param check: the task ran in check mode. Then an object that differs, but that the module
        refuses to change, is a difference
    """
    text = _message_of(result)
    refused = refused_servers.refusal_of(result.get("error"))
    if refused and module:
        count = result.get("not_compared", expected(module, options))
        return [{**findings.failed("server", "", text), "refused": refused, "count": count}]
    returned = result.get(RETURNED, []) if module and "censored" not in result else []
    planned = [_worded(found, task, check=check) for found in returned]
    if any("error" in found for found in returned):
        return planned
    kind, name = object_of(module, options, result, task)
    difference = _refused(kind, name, result, text) if check and not planned else None
    return [*planned, difference or findings.failed(kind, name, text)]


def _refused(kind: str, name: str, values: Mapping[str, Any], text: str) -> Finding | None:
    """Return the finding of an object that differs, but that the module refuses to change."""
    error, changes = values.get("error"), values.get("changes")
    if not isinstance(error, Mapping) or error.get("kind") not in _REFUSALS or not changes:
        return None
    names = [change.get("field", change.get("path")) for change in changes]
    before, after = (
        {field: change.get(side) for field, change in zip(names, changes, strict=True)}
        for side in ("before", "after")
    )
    return _refused_change(kind, name, before, after, text)


def _refused_change(kind: str, name: str, before: Any, after: Any, text: str) -> Finding:
    found = findings.different(kind, name, findings.differing(map(str, before)), before, after)
    return {**found, "text": f"{found['text']}; {text}"}


def object_of(
    module: str, options: Mapping[str, Any], result: Result, task: str
) -> tuple[str, str]:
    """Return kind and name of the object of a task.

    If there is no object, return `task` and the name of the task.
    """
    descriptor = descriptor_of(module) if module else None
    if descriptor is None or not descriptor.kind:
        return "task", task
    name = descriptor.name_of_task(options, result)
    return ("task", task) if descriptor.listed and not name else (descriptor.kind, name or task)


def _in_words(
    kind: str, before: dict[str, Any], after: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the changed values of an object, for the body of a page the sentences that differ."""
    bodies = before.get("body"), after.get("body")
    if kind != "page" or not all(isinstance(body, str) for body in bodies):
        return before, after
    # only here, because every play with a module of the collection loads this file: 11 to 16 ms
    from ....module_utils._lib.wiki.formats.words import in_words

    was, will = in_words(*map(str, bodies))
    if not was and not will:  # only the form differs
        return before, after
    return {**before, "body": was}, {**after, "body": will}


def _message_of(result: Result) -> str:
    """Return the error message of a failed task."""
    if "censored" in result:
        return "failed, but no_log hides the message"
    return str(result.get("msg") or result.get("module_stderr") or "failed").strip()
