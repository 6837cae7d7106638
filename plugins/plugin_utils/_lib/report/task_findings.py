# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert the result of a task to findings, one for each object that the task compared [C9].

The descriptor of the module contains the kind and name of the object, or the return value that
lists several objects. Some modules have a reader in `findings` instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .. import findings, refused_servers
from ..descriptors import descriptor_of
from ..findings import Finding, Result

#: Return value that lists the objects of modules with the option `entries` [C11.1].
ENTRIES = "results"
#: Return values whose rows have an `error` for each object that failed.
_WITH_ERRORS = (ENTRIES, "pages")
#: Return value of `wiki_tree`: pages of the tree that no file describes.
_PAGES_WITHOUT_FILE = "without_file"
#: Kinds of errors of objects that differ, but that the module refuses to change.
_REFUSALS = ("invalid", "conflict")
_DONE = {"none", "unchanged", "absent", "kept", "present", "skipped"}
_MADE = {"create", "created", "uploaded", "exploded", "checksum_deployed", "copied", "installed"}
_GONE = {"delete", "deleted", "remove", "removed", "trashed", "uninstalled"}


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
        return [_censored(descriptor.kind, result, task)] if descriptor.writes else []
    if module == "ci_job_info":
        return _expected_job(result, options)
    values = {"name": task, **options, **result}
    if module == "ci_script":
        values["name"] = task
    if module in findings.READERS:
        return findings.compared(values, module)
    if not descriptor.kind:
        return []
    listed = result.get(descriptor.listed)
    if isinstance(listed, list):
        rows = [row for row in listed if isinstance(row, Mapping)]
        # an object has the same name in `entries` as in a task with a single object
        has_name = descriptor.listed == ENTRIES
        names = [
            str((has_name and values.get("name")) or descriptor.name_of(values) or task)
            for values in ({**options, **row} for row in rows)
        ]
        pairs = zip(names, rows, strict=True)
        found = [(_of_row(descriptor.kind, name, row, check=check), row) for name, row in pairs]
        others = [
            findings.without_file(
                descriptor.kind,
                descriptor.name_of({**options, **page}),
                marked=bool(options.get("mark", True)),
            )
            for page in result.get(_PAGES_WITHOUT_FILE) or ()
        ]
        return [*(_with_unknown(finding, row) for finding, row in found), *others]
    return [_with_unknown(_of_task(module, result, options, task), result)]


def _with_unknown(finding: Finding, returned: Mapping[str, Any]) -> Finding:
    """Add what the module returns in `unknown`, the fields that it could not compare, and in
    `unsupported`, sentences about parts that the server cannot hold.
    """
    unknown, unsupported = returned.get("unknown"), returned.get("unsupported")
    finding = findings.with_unknown(finding, unknown if isinstance(unknown, list) else ())
    return findings.with_unsupported(finding, unsupported if isinstance(unsupported, list) else ())


def differing(module: str, result: Result) -> list[Finding]:
    """Return the findings of objects that differ, with their `service`."""
    if result.get("skipped"):
        return []
    if module in findings.READERS:
        found = findings.compared(result, module)
    else:
        found = compared(module, result, result, module)
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
        lists: Iterable[str] = findings.LISTS
    else:
        lists = ("entries", "plugins", "required", "rules")
    given = [options[name] for name in lists if isinstance(options.get(name), list)]
    if given:
        return sum(map(len, given))
    return int(module in findings.READERS or bool(descriptor_of(module).kind))


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
    planned = [] if "censored" in result else _planned_before(module, result, options, check)
    rows = result.get(descriptor_of(module).listed) if planned else None
    if any(record["status"] == "failed" for record in planned) or (
        isinstance(rows, list) and any(row.get("error") for row in rows)
    ):
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
    found = findings.different(kind, name, findings.differing(names), before, after)
    return {**found, "text": f"{found['text']}; {text}"}


def _planned_before(
    module: str, result: Result, options: Mapping[str, Any], check: bool
) -> list[Finding]:
    if module == "analysis_config" and result.get("plan"):
        return findings.compared({**options, **result}, module)
    listed = descriptor_of(module).listed if module else ""
    if listed not in _WITH_ERRORS or not result.get(listed):
        return []
    return compared(module, result, options, "", check=check)


def object_of(
    module: str, options: Mapping[str, Any], result: Result, task: str
) -> tuple[str, str]:
    """Return kind and name of the object of a task.

    If there is no object, return `task` and the name of the task.
    """
    descriptor = descriptor_of(module) if module else None
    if descriptor is None or not descriptor.kind:
        return "task", task
    returned = result.get(descriptor.kind)
    more = returned if isinstance(returned, Mapping) else {}
    values = {key: value for key, value in options.items() if value is not None}
    name = descriptor.name_of({**more, **values})
    name = name or str(options.get("page_id") or options.get("issue") or "")
    return ("task", task) if descriptor.listed and not name else (descriptor.kind, name or task)


def _censored(kind: str, result: Result, task: str) -> Finding:
    kind = kind or "task"
    if result.get("changed"):
        return findings.different(kind, task, "differs, but no_log hides the difference")
    return findings.wanted(kind, task)


def _expected_job(result: Result, options: Mapping[str, Any]) -> list[Finding]:
    """Return the finding of `ci_job_info`, which compares a job only with `expected_config`."""
    if not options.get("expected_config"):
        return []
    name = str(options.get("job"))
    if not result.get("config_drift"):
        return [findings.wanted("job", name)]
    return [findings.different("job", name, findings.differing(()), *findings.sides(result))]


def _of_row(kind: str, name: str, row: Mapping[str, Any], *, check: bool) -> Finding:
    error = row.get("error")
    if isinstance(error, Mapping) and error.get("msg"):
        text = str(error["msg"]).removeprefix(f"the {kind} '{name}': ")
        if check and (difference := _refused(kind, name, row, text)):
            return difference
        found = findings.failed(kind, name, str(error["msg"]))
        refused = refused_servers.refusal_of(error)
        return {**found, "refused": refused, "count": 1} if refused else found
    action = str(row.get("action") or "none")
    if action in _DONE:
        return findings.wanted(kind, name)
    changes = row.get("changes")
    is_listed = isinstance(changes, list) and all(isinstance(change, Mapping) for change in changes)
    before, after = row.get("before"), row.get("after")
    if is_listed:
        before = {change.get("field"): change.get("before") for change in changes or ()}
        after = {change.get("field"): change.get("after") for change in changes or ()}
    if action in _MADE:
        return findings.missing(kind, name, after)
    if action in _GONE:
        return findings.unwanted(kind, name, before)
    if is_listed and isinstance(before, dict) and isinstance(after, dict):
        sides = _in_words(kind, before, after)
        return findings.different(kind, name, findings.differing(map(str, before)), *sides)
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
    before, after = ({key: one.get(key) for key in names} for one in (before, after))
    return findings.different(
        kind, name, findings.differing(names), *_in_words(kind, before, after)
    )


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
