# SPDX-License-Identifier: GPL-3.0-or-later
"""Begin the report of a run, and return what it contains."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.display import Display

from ....module_utils._lib.core.errors import printable
from ....module_utils._lib.core.times import age_of
from .. import collection, variables
from ..report import contents, ignored, sealed, summary, switch, task_findings, terminal, writing
from .plans import approval_rules, found_so_far, seal_key
from .run import LONGEST, Result, Run, StepError, mapping

_PAGE_OPTIONS = ("page_id", "space", "title", "parent_id", "section", "labels")


def findings(
    run: Run,
    results: Sequence[Mapping[str, Any]] = (),
    applied: Sequence[str] = (),
) -> Result:
    """Return the objects that differ, and the messages of failed results.

    In check mode an object that its module refuses to change is a difference, and no failure.

    :param results: dicts with a `module` and its `results`
    :param applied: variables with the results of the steps `apply` and `delete`
    """
    ran = [one for name in applied for one in mapping(run.variables.get(name)).get("results", ())]
    # such as that of an entry with a name that is not defined
    failures = [one.get("msg") for one in ran if "applied_by" not in one and one.get("failed")]
    found = []
    rows = [(each["module"], result) for each in results for result in each["results"]]
    known = [(one["applied_by"], one) for one in ran if "applied_by" in one]
    rows += [(by["module"], {**by["names"], **one}) for by, one in known]
    for module, values in rows:
        refused = task_findings.refused(module, values) if run.check_mode else []
        found += refused or task_findings.differing(module, values)
        if values.get("failed") and not refused:
            failures.append(values.get("msg"))
    # a script has read the version of Java: the report has its result from no module
    of_roles = [finding for finding in found if finding["kind"] == "java"]
    return {"findings": found, "failures": failures, "report": {"findings": of_roles}}


def reported(run: Run, known: Sequence[Mapping[str, Any]] | None = None) -> Result:
    """Return findings as the report contains them: with `id` and `since`, and without those that
    `drift_ignore` accepts.

    :param known: the findings to return, by default those of all hosts of the play
    """
    chosen = list(known or ())
    if known is None:
        names = (*(f"{role}_drift" for role in collection.ROLES), "enforce_failures")
        hosts = ((host, run.variables["hostvars"][host]) for host in run.hosts)
        chosen = [
            {**finding, "host": host}
            for host, values in hosts
            for name in names
            for finding in values.get(name) or ()
        ]
    found = switch.so_far()
    if found is None:
        result = contents.result_of(chosen)
        return {"findings": chosen, "resolved": [], "servers": [], "unread": [], "result": result}
    # without the changes of earlier plays of the same run
    identities = set(map(_identity, chosen))
    return {
        "findings": [
            finding
            for finding in found.findings
            if finding["status"] == "failed" or _identity(finding) in identities
        ],
        "resolved": found.resolved,
        "servers": [asdict(row) for row in found.rows()],
        "unread": found.unread,
        "result": found.result(),
    }


def _identity(finding: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(finding.get(name) for name in ("host", "service", "kind", "name"))


def begin(run: Run, *, seals: bool = False) -> Result:
    """Check the settings of the report, and create its folder.

    :param seals: the run makes a sealed plan. Return the variable for the modules
    """
    _check_settings(run)
    _make_folder(run, run.report_folder)
    if seals:
        seal_key(run, "drift_plan_key")  # an invalid key must end the run before its first request
        who = boolean(run.value("drift_who", default=False))
        begun: Result = {
            "sealed": {"salt": secrets.token_hex(16), **({"who": True} if who else {})}
        }
    else:
        approval_rules(run)  # invalid rules must end the run before its first request
        reason = run.value("enforce_reason")
        if reason is not None and not isinstance(reason, str):
            raise StepError(f"enforce_reason must be a sentence, not '{reason}'.")
        begun = {"report": {"reason": reason or ""}}
    if run.report_folder:
        folder = run.path(str(run.report_folder))
        try:
            writing.begin(folder, seals=seals)
        except OSError as error:
            raise StepError(f"Cannot write the report to {folder}: {error.strerror}.") from None
    return begun


def _check_settings(run: Run) -> None:
    output = run.value("drift_output", "text")
    if output not in terminal.OUTPUTS:
        known = ", ".join(terminal.OUTPUTS)
        raise StepError(f"drift_output must be one of {known}, not '{output}'.")
    for name in ("drift_fail", "drift_who", "drift_table"):
        value = run.value(name, default=False)
        try:
            boolean(value)
        except TypeError:
            raise StepError(f"{name} must be true or false, not '{value}'.") from None
    ignored.parse(run.value("drift_ignore"))
    page = run.value("drift_page", {})
    if not isinstance(page, Mapping):
        raise StepError("drift_page must be a mapping, such as {space: REL, title: Drift}.")
    unknown = [str(name) for name in page if name not in _PAGE_OPTIONS]
    if unknown:
        *first, last = _PAGE_OPTIONS
        raise StepError(
            f"drift_page has no {', '.join(unknown)}: its keys are {', '.join(first)} and {last}."
        )


def _make_folder(run: Run, named: Any) -> None:
    if not named and not isinstance(named, bool):
        return
    if not writing.is_path(named):
        text = f"Cannot write the report to '{named}': it is not a path. Set the path of a folder."
        raise StepError(text)
    problem = writing.problem(run.path(str(named)))
    if problem:
        raise StepError(problem)


def finish(run: Run, salt: str) -> Result:
    """Return the findings of a run, and the sealed plan."""
    plan = sealed.make(found_so_far(), salt, seal_key(run, "drift_plan_key"), run.hosts)
    return {**reported(run), "plan": plan, "report": {"plan": plan}}


def summarise(run: Run) -> Result:
    """Return the content of several reports."""
    given, named = run.value("summary_reports"), run.value("summary_folder")
    if not given or not named:
        raise StepError(
            "Cannot summarise reports without summary_reports and summary_folder. Set"
            " summary_reports to the folder with the report folders, and summary_folder to the"
            " folder of the summary."
        )
    _check_settings(run)
    _make_folder(run, named)
    folder, listed = run.path(str(named)), isinstance(given, list)
    paths = [run.path(str(path)) for path in (given if listed else [given])]
    limit = run.value("summary_max_age")
    found = summary.read(
        summary.report_paths(paths if listed else paths[0], folder),
        hosts_named(run, "summary_expected"),
        None if limit is None else age_of("summary_max_age", str(limit)),
        datetime.now(timezone.utc),
    )
    return {"report": {"summary": {"folder": str(folder), **found}}}


def hosts_named(run: Run, name: str) -> list[str]:
    """Return a variable with names of hosts: a list, or a text with commas or lines."""
    value = run.value(name, [])
    names = variables.entries_of(value) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(one, str | int) for one in names):
        raise StepError(
            f"{name} must be a list of names of hosts, or a text with commas, not"
            f" '{printable(str(value), 100)}'."
        )
    return list(map(str, names))


def warn(run: Run, message: str) -> Result:
    """Show a warning."""
    Display().warning(printable(message, LONGEST))
    return {}
