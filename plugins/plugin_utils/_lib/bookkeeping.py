# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of the action `bookkeeping`, which the playbooks and roles of the collection run.

A step returns the result of its task. The key `report` of a result is for the report of the run:

`findings`: objects that differ, and that no module has compared;
`plan`: the sealed plan of the run;
`files`: the file of the desired state for each object;
`summary`: the content of several reports;
`reason`: why somebody runs the playbook;
`approvals`: the approvals of the sealed plan;
`restart`: whether the run has compared the servers with a sealed plan, and begins to write;
`is_known`: whether the report contains the failure of the step already.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleUndefinedVariable
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.release import __version__
from ansible.template import Templar
from ansible.utils.display import Display

from ...module_utils._lib.core.connection.options import SERVICES, environment_name, variable_name
from ...module_utils._lib.core.errors import ToolchainError, invalid, listed, printable, shorten
from ...module_utils._lib.core.secret import without_user_info
from ...module_utils._lib.core.times import age_of
from . import (
    adopted_objects,
    adoption,
    ansible_internals,
    applied,
    described,
    desired_schema,
    desired_state,
    enforcement,
    folder_edits,
    removals,
    role_variables,
    rotation,
    survey,
    unread_files,
    variables,
)
from .report import (
    approvals,
    contents,
    ignored,
    objects,
    sealed,
    summary,
    switch,
    terminal,
    tickets,
    writing,
)

Result = dict[str, Any]
_RESTS = ("fail", "skip")
_PAGE_OPTIONS = ("page_id", "space", "title", "parent_id", "section", "labels")
_KEY = "TOOLCHAIN_PLAN_KEY"
#: Maximum length of a message, which may name every error of a folder.
_LONGEST = 20_000
_UNUSABLE = (
    "Cannot plan issues: no readable drift report was found. Run drift first, and set drift_report"
    " to the folder of its report."
)


class StepError(Exception):
    """A step fails. The message is a sentence.

    :param report: value of the key `report` of the result
    :param kind: kind of the error, "" if the step has no kinds
    """

    def __init__(
        self, message: str, report: Mapping[str, Any] | None = None, kind: str = ""
    ) -> None:
        super().__init__(message)
        self.report, self.kind = dict(report or {}), kind


@dataclass(frozen=True)
class Run:
    """The variables of a task, and the functions of Ansible that read them.

    :param template: evaluates the templates in a value
    :param load: loads a YAML file, and decrypts its vaults
    :param check_mode: the task runs in check mode
    :param of_play: returns a function for each host of the play, which returns its run
    :param origins: returns where the variables come from
    """

    variables: Mapping[str, Any]
    template: Callable[[Any], Any]
    load: Callable[[str], Any]
    check_mode: bool = False
    of_play: Callable[[], Mapping[str, Callable[[], Run]]] = dict
    origins: Callable[[], role_variables.Origins] = role_variables.Origins

    def value(self, name: str, default: Any = None) -> Any:
        """Return the value of a variable, or `default` if it is undefined, empty or omitted."""
        value = variables.value_of(name, self.variables, self.template)
        return default if value is None else value

    def is_set(self, name: str) -> bool:
        """Return whether a variable has a value. Templates in a list or mapping stay unevaluated,
        because some of them refer to results of later tasks.
        """
        value = self.variables.get(name)
        return bool(self.value(name) if isinstance(value, str) else value)

    def path(self, name: str) -> Path:
        """Return the absolute path of a file or folder that a variable names."""
        return writing.resolved(name, self.variables)

    @property
    def report_folder(self) -> Any:
        """Return the folder in which the run writes its report, "" for no report."""
        return self.value("drift_report") or os.environ.get("TOOLCHAIN_REPORT") or ""

    @property
    def host(self) -> str:
        return str(self.variables.get("inventory_hostname"))

    @property
    def hosts(self) -> list[str]:
        """Return all hosts of the play, including failed hosts."""
        return list(map(str, self.variables.get("ansible_play_hosts_all") or [self.host]))


def run_of(
    task: Any, loader: Any, template: Callable[[Any], Any], variables: Mapping[str, Any]
) -> Run:
    """Return the run of a task."""

    def of_host(name: str, variables_of: Callable[[str], dict[str, Any]]) -> Run:
        values = variables_of(name)
        return run_of(task, loader, Templar(loader=loader, variables=values).template, values)

    def of_play() -> dict[str, Callable[[], Run]]:
        names, variables_of = ansible_internals.hosts_of_play(task, template)
        return {name: partial(of_host, name, variables_of) for name in names}

    def origins() -> role_variables.Origins:
        return role_variables.Origins(*ansible_internals.origins_of(task, variables))

    return Run(variables, template, loader.load_from_file, task.check_mode, of_play, origins)


# -- variables ------------------------------------------------------------------------------------


def check(run: Run, of: str, work: Sequence[str] = (), switches: Sequence[str] = ()) -> Result:
    """Reject unknown variables and services, and a run without work.

    :param of: name of a role or playbook
    :param work: variables of which at least one must be set
    :param switches: variables that are true or false, or not set
    """
    title = f"The {'role' if role_variables.is_role(of) else 'playbook'} {of}"
    unknown = role_variables.unknown(of, run.variables)
    if unknown:
        raise StepError(f"{title} does not know {', '.join(unknown)}.")
    _reject_internal(run, of, title)
    for check_of in (enforcement.problem_of_connections, enforcement.problem_of_included):
        if problem := check_of(of, run.variables, run.template):
            raise StepError(problem)
    wrong = next((name for name in switches if not enforcement.is_switch(run.value(name))), "")
    if wrong:
        raise StepError(
            f"{wrong} must be true or false, not '{printable(str(run.value(wrong)), 80)}'."
        )
    _reject_texts(run, of)
    if work and not any(map(run.is_set, work)):
        *first, last = work
        names = f"{', '.join(first)} or {last}" if first else last
        raise StepError(f"{title} has nothing to do: set {names}.")
    return {}


def _reject_texts(run: Run, of: str) -> None:
    """Reject a text for a list of entries, which a loop would take letter by letter."""
    for name in role_variables.LISTS_OF_ENTRIES.get(of, ()):
        value = _evaluated(run, run.variables.get(name))
        if value not in (None, "") and not isinstance(value, list | tuple):
            raise StepError(
                f"{name} must be a list of entries, each a mapping of options, not"
                f" '{printable(str(value), 100)}'."
            )


def forget(run: Run) -> Result:
    """Return nothing. The result replaces a registered result that has secrets."""
    return {}


def _reject_internal(run: Run, owner: str, title: str) -> None:
    names = role_variables.internal(owner, run.variables, run.origins())
    if names:
        raise StepError(
            f"{title} sets {', '.join(names)} itself: remove {'it' if len(names) == 1 else 'them'}"
            " from the variables of the run."
        )


def read_survey(run: Run, playbook: str) -> Result:
    """Return the variables that the answers of a survey set."""
    return {"answers": survey.answers(playbook, run.variables)}


def roles(run: Run, *, folder: bool = False) -> Result:
    """Return the task files that apply the desired state, as pairs of file and role.

    :param folder: the folder of the desired state has not been read
    """
    if folder:
        _reject_internal(run, "enforce", "The playbook enforce, which drift also runs,")
    reads = folder and "desired_state_folder" in run.variables
    described = enforcement.roles(run.variables, run.template)
    known = None if reads and run.value("enforce_roles") in (None, []) else described
    problem = enforcement.problem(run.variables, run.template, known)
    if problem:
        raise StepError(problem)
    if reads:
        return {"steps": [["hold_folder.yml", ""]]}
    return {"steps": [["hold_role.yml", role] for role in described]}


# -- the desired state ----------------------------------------------------------------------------


def _folder(run: Run, variable: str = "desired_state_folder") -> Path:
    named = run.value(variable)
    if not writing.is_path(named):
        raise desired_state.DesiredStateError(f"set {variable} to the path of a folder")
    folder = run.path(str(named))
    if writing.is_in_collection(folder):
        raise desired_state.DesiredStateError(
            f"{folder} is in the installed collection: use a folder of your own; in an imported"
            " playbook use inventory_dir instead of playbook_dir"
        )
    return folder


def _reading(run: Run) -> desired_state.Reading:
    def variable(name: str) -> Any:
        return run.template(run.variables[name]) if name in run.variables else None

    return desired_state.Reading(run.load, variable)


def _naming(run: Run) -> desired_state.Reading:
    """Return how to read folders of which only the names matter. Secrets need no variables."""
    return desired_state.Reading(run.load, lambda name: name, names_only=True)


def read_folder(run: Run) -> Result:
    """Return the variables that the folder of the desired state sets."""
    return {"variables": desired_state.variables(_state(run))}


def _state(run: Run) -> desired_state.State:
    environment = run.value("desired_state_environment")
    return desired_state.read(_folder(run), _reading(run), environment)


def validate_folder(run: Run) -> Result:
    """Validate the folder of the desired state. The result contains no values.

    Only the page of a report shows the files, so a run without a report does not pass them on.
    """
    state = _state(run)
    files = desired_state.files(state) if run.report_folder else []
    return {"variables": list(desired_state.variables(state)), "report": {"files": files}}


def describe(run: Run) -> Result:
    """Return what all hosts of the play describe: the names of objects, and no values.

    A host that cannot say it prevents deletions on its servers.
    """
    try:
        hosts = {**dict.fromkeys(run.hosts), **run.of_play()}
    except ansible_internals.Missing as missing:
        raise StepError(
            f"desired_state_previous cannot be used with ansible-core {__version__}, where the"
            f" other hosts of the play are not known: {missing}."
        ) from None
    found = described.Described()
    for name, run_of_host in hosts.items():
        state = found.hosts[name] = described.HostState()
        try:
            own = run if run_of_host is None or name == run.host else run_of_host()
            connections = own.value("enforce_connections")
            configured = _configured(own, connections)
            state.servers = {service: url for (_host, service), url in configured.items()}
            state.present = [found.add(values) for values in _present(own)]
            state.elsewhere = [found.add(values) for values in _parts(own)]
        except (desired_state.DesiredStateError, ToolchainError) as error:
            state.problem = str(error)
    return {"described": found.as_result()}


def find_removals(run: Run, known: Mapping[str, Any]) -> Result:
    """Return the objects that the previous folder names and the present one does not, by module.

    :param known: result of `describe`
    """
    _max_deletions(run)  # an invalid number must end the run before its first request
    previous, warnings = _previous(run)
    hosts = _described(run, known)
    found, staying = removals.removed(hosts.present(run.host), previous, hosts.elsewhere(run.host))
    shown = removals.by_module(removal.shown() for removal in found)
    return {"removals": shown, "messages": [*warnings, *staying]}


def _described(run: Run, known: Mapping[str, Any]) -> described.Described:
    hosts = described.Described.of_result(known["described"])
    problems = [hosts.hosts[run.host].problem, *hosts.problems(run.host)]
    for problem in filter(None, problems):
        raise desired_state.DesiredStateError(
            f"desired_state_previous: what must stay is not known: {problem}"
        )
    return hosts


def _previous(run: Run) -> tuple[described.Values, list[str]]:
    """Return the previous desired state, and warnings. The secrets in it need no variables."""
    environment = run.value("desired_state_environment")
    present, folder = _folder(run), _folder(run, "desired_state_previous")
    above = (present / desired_state.ENVIRONMENTS).resolve()
    if above in (folder.resolve(), *folder.resolve().parents):
        raise desired_state.DesiredStateError(
            f"desired_state_previous: {folder} is an environment of the present folder: set it to"
            " the whole folder of the last release"
        )
    reading = _naming(run)
    try:
        state = desired_state.read(folder, reading, environment)
    except desired_state.DesiredStateError as error:
        raise desired_state.DesiredStateError(f"desired_state_previous: {error}") from None
    known = {*desired_state.environments(folder), *desired_state.environments(present)}
    if problem := applied.problem(folder, environment, known):
        raise desired_state.DesiredStateError(f"desired_state_previous: {folder} {problem}")
    if unread := unread_files.unread(present, folder, state):
        raise desired_state.DesiredStateError(
            f"the objects of a file that is not read would count as removed: {'; '.join(unread)}"
        )
    doubt = applied.doubt(folder, environment, known)
    return desired_state.values(state), [doubt] if doubt else []


def _present(run: Run) -> list[described.Values]:
    """Return the objects of the present folder, and those of variables."""
    given = {
        service: {
            name: run.value(schema[desired_schema.VARIABLE])
            for name, schema in desired_schema.schema_of(service)["properties"].items()
        }
        for service in desired_schema.services()
    }
    if run.value("desired_state_folder") is None:
        return [given]
    reading = _naming(run)
    environment = run.value("desired_state_environment")
    return [desired_state.values(desired_state.read(_folder(run), reading, environment)), given]


def _parts(run: Run) -> list[described.Values]:
    """Return the objects of the base of the present folder, and those of each environment."""
    if run.value("desired_state_folder") is None:
        return []
    reading = _naming(run)
    return [desired_state.values(state) for state in desired_state.parts(_folder(run), reading)]


def deletable(
    run: Run,
    *,
    known: Mapping[str, Any],
    removed: Mapping[str, Any],
    results: Sequence[Mapping[str, Any]],
    content: Sequence[Mapping[str, Any]] = (),
    runs: Sequence[Mapping[str, Any]] = (),
    reports: bool = False,
) -> Result:
    """Return the objects that can be deleted, by module. Fails if there are too many of them.

    :param known: result of `describe`
    :param removed: result of `find_removals`
    :param results: results of the modules in check mode
    :param content: results with the content of projects and versions
    :param runs: results of all kinds, if they have run
    :param reports: report warnings and failures
    """
    hosts = _described(run, known)
    present = [*hosts.present(run.host), *hosts.elsewhere(run.host)]
    found = removals.checked(results, [*present, removals.pages_of_trees(runs)], content)
    limit = _max_deletions(run)
    if len(found.deletable) > limit:
        titles = [removal["title"] for removal in found.deletable]
        raise StepError(
            f"{len(titles)} objects that are not in the folder any more would be deleted"
            f" ({listed(titles)}), but desired_state_max_deletions is {limit}: check"
            " desired_state_previous, or increase the number (nothing was deleted)."
        )
    failures = [removals.failure(*each) for each in found.failed] if reports else []
    return {
        "removals": removals.by_module(
            removal for removal in found.deletable if _is_chosen(run, removal["digests"])
        ),
        "warnings": [*removed["messages"], *found.warnings] if reports else [],
        "failures": [finding["text"] for finding in failures],
        "report": {"findings": failures},
    }


def _max_deletions(run: Run) -> int:
    limit = run.value("desired_state_max_deletions", 10)
    text = str(limit).strip()
    if isinstance(limit, bool) or not (text.isascii() and text.isdecimal()):
        raise StepError(
            "desired_state_max_deletions must be a whole number, such as 10, not"
            f" '{printable(text, 100)}'."
        )
    return int(text)


def _is_chosen(run: Run, digests: Sequence[str]) -> bool:
    """Return whether a sealed plan allows a deletion. If it does not, the module reports that,
    unless other changes are to be skipped: a folder would fail because its jobs stay.
    """
    plan = _mapping(_mapping(run.variables.get("toolchain_sealed")).get("sealed"))
    skips = plan.get("rest") == "skip" and plan.get("writes") is not None and not run.check_mode
    return not skips or not set(digests).isdisjoint(plan["writes"])


def kinds(run: Run, known: Sequence[Mapping[str, Any]]) -> Result:
    """Return the kinds of objects whose list is not empty, in their order.

    :param known: all kinds, each with the end of the variable's name as `list`
    """
    if enforcement.lacks_folder(run.value("desired_state_unmanaged"), run.variables):
        raise StepError(
            "desired_state_unmanaged compares the servers with a folder; name it in"
            " desired_state_folder."
        )
    problem = enforcement.problem_of_previous(run.variables, run.template)
    if problem:
        raise StepError(problem)
    return {"kinds": [kind for kind in known if run.is_set(f"desired_state_{kind['list']}")]}


def unmanaged(run: Run, export: str) -> Result:
    """Return the objects in an export that the folder of the desired state does not name."""
    exported = Path(export)
    if not any(exported.iterdir()):  # no service could be exported
        return {"findings": []}
    there = desired_state.read(exported, _reading(run))
    found = desired_state.unmanaged(desired_state.values(_state(run)), desired_state.values(there))
    if run.value("desired_state_unmanaged") == "fail":
        found = [{**finding, "fails": True} for finding in found]
    return {"findings": found, "report": {"findings": found}}


# -- findings -------------------------------------------------------------------------------------


def findings(run: Run, results: Sequence[Mapping[str, Any]]) -> Result:
    """Return the objects that differ, and the messages of failed results.

    In check mode an object that its module refuses to change is a difference, and no failure.

    :param results: dicts with a `module` and its `results`
    """
    found, failures = [], []
    for each in results:
        for result in each["results"]:
            values = removals.with_options(result)
            refused = objects.refused(each["module"], values) if run.check_mode else []
            found += refused or objects.differing(each["module"], values)
            if result.get("failed") and not refused:
                failures.append(result.get("msg"))
    # a script has read the version of Java: the report has its result from no module
    of_roles = [finding for finding in found if finding["kind"] == "java"]
    return {"findings": found, "failures": failures, "report": {"findings": of_roles}}


def reported(run: Run, known: Sequence[Mapping[str, Any]] | None = None) -> Result:
    """Return findings as the report contains them: with `id` and `since`, and without those that
    `drift_ignore` accepts.

    :param known: the findings to return, by default those of all hosts of the play
    """
    chosen = list(_of_hosts(run) if known is None else known)
    found = switch.so_far()
    if found is None:
        result = contents.result_of(chosen)
        return {"findings": chosen, "mended": [], "servers": [], "unread": [], "result": result}
    # without the changes of earlier plays of the same run
    identities = set(map(_identity, chosen))
    return {
        "findings": [
            finding
            for finding in found.findings
            if finding["status"] == "failed" or _identity(finding) in identities
        ],
        "mended": found.mended,
        "servers": [asdict(row) for row in found.rows()],
        "unread": found.unread,
        "result": found.result(),
    }


def _of_hosts(run: Run) -> Iterator[dict[str, Any]]:
    for host in run.hosts:
        values = run.variables["hostvars"][host]
        for name in (*(f"{role}_drift" for role in enforcement.ROLES), "enforce_failures"):
            yield from ({**finding, "host": host} for finding in values.get(name) or ())


def _identity(finding: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(finding.get(name) for name in ("host", "service", "kind", "name"))


# -- reports --------------------------------------------------------------------------------------


def begin(run: Run, *, seals: bool = False) -> Result:
    """Check the settings of the report, and create its folder.

    :param seals: the run makes a sealed plan. Return the variable for the modules
    """
    _check_settings(run)
    _make_folder(run, run.report_folder)
    if seals:
        _key(run, "drift_plan_key")  # an invalid key must end the run before its first request
        who = boolean(run.value("drift_who", default=False))
        begun: Result = {
            "sealed": {"salt": secrets.token_hex(16), **({"who": True} if who else {})}
        }
    else:
        _approval_rules(run)  # invalid rules must end the run before its first request
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
        _hosts(run, "summary_expected"),
        None if limit is None else age_of("summary_max_age", str(limit)),
        datetime.now(timezone.utc),
    )
    return {"report": {"summary": {"folder": str(folder), **found}}}


def _hosts(run: Run, name: str) -> list[str]:
    """Return a variable with names of hosts: a list, or a text with commas or lines."""
    value = run.value(name, [])
    names = variables.entries_of(value) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(one, str | int) for one in names):
        raise StepError(
            f"{name} must be a list of names of hosts, or a text with commas, not"
            f" '{printable(str(value), 100)}'."
        )
    return list(map(str, names))


def plan_issues(run: Run, issues: Sequence[Mapping[str, Any]]) -> Result:
    """Return the issues to create, change and close.

    :param issues: the open issues of earlier runs
    """
    closed = str(run.value("tickets_close_status", "Done"))
    try:
        steps = tickets.steps_of(run.value("tickets_close_transition"), closed)
    except ValueError:
        raise StepError(
            "tickets_close_transition must be the name or id of a transition, or a list whose last"
            " entry is one, after statuses on the way, not"
            f" '{printable(str(run.value('tickets_close_transition')), 100)}'."
        ) from None
    try:
        if run.report_folder:
            file = run.path(str(run.report_folder)) / "report.json"
            report = json.loads(file.read_text("utf-8"))
        else:
            names = ("findings", "mended", "servers", "unread")
            report = {name: run.value(f"drift_{name}", []) for name in names}
        per, most = run.value("tickets_per", "finding"), run.value("tickets_max_new", 20)
        found = tickets.plan(report, issues, per, int(most))
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        found = None
    if found is None:
        raise StepError(_UNUSABLE)
    return {"plan": {**found, "steps": steps, "sentence": tickets.counted(report, found)}}


def warn(run: Run, message: str) -> Result:
    """Show a warning."""
    Display().warning(printable(message, _LONGEST))
    return {}


# -- sealed plans ---------------------------------------------------------------------------------


def finish(run: Run, salt: str) -> Result:
    """Return the findings of a run, and the sealed plan."""
    plan = sealed.make(_found(), salt, _key(run, "drift_plan_key"), run.hosts)
    return {**reported(run), "plan": plan, "report": {"plan": plan}}


def open_plan(run: Run) -> Result:
    """Check the sealed plan. Return the variable with which modules write this plan only."""
    rest, limit = run.value("enforce_plan_rest", "fail"), run.value("enforce_plan_max_age")
    if rest not in _RESTS:
        raise StepError(f"enforce_plan_rest must be {' or '.join(_RESTS)}, not '{rest}'.")
    max_age = None if limit is None else age_of("enforce_plan_max_age", str(limit))
    (plans, approved), key = _plans(run), _key(run, "enforce_plan_key")
    configured = _configured(run, run.value("enforce_connections"))
    for plan in plans.plans:
        at = datetime.now(timezone.utc)
        sealed.verify(plan, key=key, max_age=max_age, at=at, configured=configured)
    plans.require_hosts(run.hosts)
    if key is None and any(plan.get("seal") for plan in plans.plans):
        Display().warning(
            "The seal of the plan was not verified, because no key is set: set enforce_plan_key"
            f" or {_KEY} to the key of drift."
        )
    rest = "skip" if plans.only else rest
    names = [asdict(approval) for approval in approved]
    return {"sealed": {**plans.of_host(run.host), "rest": rest}, "report": {"approvals": names}}


def compare(run: Run) -> Result:
    """Compare the findings with the sealed plan, before the first write.

    Return a line for each change that is left out.
    """
    found = _found()
    unread = sealed.failed_comparison(found)
    if unread:
        raise StepError(unread, {"is_known": True})
    plans, _approved = _plans(run)
    differences = plans.differences(found, run.hosts)
    if differences and run.value("enforce_plan_rest", "fail") == "fail":
        raise StepError(sealed.conflict(differences, found))
    return {"left_out": differences, "report": {"restart": True}}


def _found() -> contents.Contents:
    return switch.so_far() or contents.Contents(check=True).since()


def _plans(run: Run) -> tuple[sealed.Plans, list[approvals.Approval]]:
    """Return the plans, and the approvals that they have."""
    plan, given = run.value("enforce_plan"), run.value("enforce_only")
    if plan is None:
        raise StepError(
            "enforce_only chooses findings of a sealed plan, but enforce_plan is not set: set it to"
            " the plan.json of drift, or leave enforce_only out."
        )
    only = variables.entries_of(given) if isinstance(given, str) else given
    if only == []:
        raise StepError(
            "enforce_only is an empty list: name ids of findings, or leave it out to apply the"
            " whole plan."
        )
    only = [] if only is None else only
    if not isinstance(only, list):
        raise StepError(
            f"enforce_only must be a list of ids of findings, not '{printable(str(given), 100)}'."
        )
    ids = [str(one).strip() for one in only]
    rules = _approval_rules(run)
    approved: list[approvals.Approval] = []
    if rules is None:
        return sealed.read(plan, run.path, ids), approved

    def approve(file: Path, content: bytes) -> None:
        approved.extend(approvals.verify(rules, file, content, Display().warning))

    return sealed.read(plan, run.path, ids, approve), approved


def _approval_rules(run: Run) -> approvals.Rules | None:
    """Return the approvals that the plan needs, or `None` if it needs none."""
    signers, requester = run.value("enforce_signers"), run.value("enforce_requester")
    number = run.template(run.variables.get("enforce_approvals", 0))
    if isinstance(number, bool) or not re.fullmatch(r"[0-9]{1,3}", str(number)):
        raise StepError(
            f"enforce_approvals must be a number of persons, or 0, not '{shorten(str(number))}'."
        )
    if int(number) == 0:
        if signers is not None or requester is not None:
            raise StepError(
                "enforce_signers and enforce_requester have no effect without enforce_approvals:"
                " set it to the number of persons who must approve the plan, or leave them out."
            )
        return None
    if run.value("enforce_plan") is None:
        raise StepError(
            "enforce_approvals approves a sealed plan, but enforce_plan is not set: set it to the"
            " plan.json of drift."
        )
    if not isinstance(requester, str) or not requester.isprintable() or not requester.strip():
        raise StepError(
            "enforce_approvals needs enforce_requester: set it to the name of the person who asks"
            " for the run, as in the file of signers."
        )
    if not isinstance(signers, str):
        raise StepError(
            "enforce_approvals needs enforce_signers: set it to a file in the format of"
            " allowed_signers of OpenSSH."
        )
    return approvals.Rules(int(number), run.path(signers), requester)


def _key(run: Run, name: str) -> str | None:
    """Return the key of the seal, or `None` if no key is set.

    An empty key is an error: a pipeline without access to the secret must not skip the seal.

    :param name: variable with the key
    """
    source: str = name
    if name in run.variables:
        key = run.template(run.variables[name])
    elif _KEY in os.environ:
        source, key = _KEY, os.environ[_KEY]
    else:
        return None
    # up to ansible-core 2.18, a value of a vault is an object of another type
    wrong = key is None or key == 0 or isinstance(key, bool | float | Mapping | list | tuple)
    if wrong or not str(key).strip():
        raise sealed.PlanError(
            f"has no valid key: {source} is set, but is empty or not a string. Set it to the key of"
            " the seal, or remove it"
        )
    return str(key)


def _configured(run: Run, given: Any) -> dict[tuple[str, str], str]:
    """Return the addresses that the host connects to, by host and service.

    :param given: connections of the playbook
    """
    connections = _mapping(given)
    found = {}
    for service in SERVICES:
        url = (
            _mapping(connections.get(service)).get("url")
            or run.value(variable_name(service, "url"))
            or os.environ.get(environment_name(service, "url"))
        )
        if url:
            address = without_user_info(str(url)).split("?")[0].rstrip("/")
            found[run.host, service] = address
    return found


def _mapping(given: Any) -> Mapping[str, Any]:
    """Return a mapping unchanged, and {} for other values, which `roles` rejects."""
    return given if isinstance(given, Mapping) else {}


# -- adopt ----------------------------------------------------------------------------------------


def _adopted(run: Run) -> tuple[Path, list[adoption.Finding]]:
    """Return the folder of the desired state, and the chosen findings of this host."""
    named = run.value("adopt_report") or run.report_folder or "."
    if not writing.is_path(named):
        raise invalid("adopt_report must be the path of the folder with the report of drift")
    report = adoption.report_of(run.path(str(named)))
    found = adoption.chosen(report["findings"], run.value("adopt_findings"))
    others = sorted({str(one["host"]) for one in found if one["host"] not in run.hosts})
    if others:
        raise invalid(
            f"adopt_findings names findings of {', '.join(others)}, which this play does not run"
            " on: set adopt_hosts"
        )
    own = [finding for finding in found if finding["host"] == run.host]
    connections = run.value("adopt_connections") or run.value("enforce_connections")
    configured = _configured(run, connections)
    addresses = {service: address for (_host, service), address in configured.items()}
    adoption.require_servers(report, own, addresses)
    return _folder(run), own


def choose_adopted(run: Run) -> Result:
    """Return the options of the exports that the chosen findings need, by service."""
    folder, found = _adopted(run)
    _edits(run, folder)
    return {"exports": adoption.exports(found), "count": len(found)}


def export_folder(run: Run) -> Result:
    """Create a temporary folder for an export. Those of runs that were killed are removed."""
    digest = hashlib.sha256(str(_folder(run).resolve()).encode()).hexdigest()[:12]
    prefix = f"toolchain-adopt-{digest}-"
    for old in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        process = old.name.removeprefix(prefix).partition("-")[0]
        state = old.lstat()
        is_own = stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid()
        if is_own and process.isdecimal() and not _is_running(int(process)):
            shutil.rmtree(old, ignore_errors=True)
    # the parent of this worker is the process of the run
    return {"path": tempfile.mkdtemp(prefix=f"{prefix}{os.getppid()}-")}


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _edits(run: Run, folder: Path) -> folder_edits.FolderEdits:
    environment = run.value("desired_state_environment")
    into = run.value("adopt_into", "base" if environment is None else "environment")
    if into not in ("base", "environment"):
        raise invalid(f"adopt_into must be environment or base, not '{shorten(str(into))}'")
    if into == "environment" and environment is None:
        raise invalid(
            "adopt_into: environment needs an environment: set desired_state_environment, or"
            " leave adopt_into out"
        )
    return folder_edits.FolderEdits.read(
        folder, environment, into_environment=into == "environment"
    )


def adopt(run: Run, export: str, exports: Mapping[str, Mapping[str, Any]]) -> Result:
    """Write the exported state of the chosen objects into the folder of the desired state.

    :param export: folder of the export
    :param exports: result of the export of each service
    """
    folder, found = _adopted(run)
    exported = adoption.Exported.read(Path(export), exports)
    deletions = variables.is_on("adopt_deletions", run.variables, run.template, default=False)

    def adopted(*, verify: bool) -> tuple[adopted_objects.Adoption, dict[Path, str | None]]:
        work = adopted_objects.Adoption(_edits(run, folder), exported, deletions)
        for finding in found:
            work.adopt(finding, verify=verify)
        return work, work.edits.texts()

    try:
        work, texts = adopted(verify=False)
    except ToolchainError:  # an edit that its file does not allow: find out of which finding
        work, texts = adopted(verify=True)
    edits = work.edits
    if not variables.is_on("adopt_force", run.variables, run.template, default=False):
        folder_edits.require_restorable(edits.folder, [*texts])
    patch = edits.patch(texts)
    if not run.variables.get("ansible_check_mode"):
        edits.write(texts)
    for note in work.notes:
        Display().warning(note)
    return {
        "changed": bool(texts),
        "diff": {"prepared": patch},
        "patch": patch,
        **work.result(texts),
        "lines": _lines_of(run, work, texts),
    }


def _lines_of(run: Run, work: adopted_objects.Adoption, texts: Iterable[Path]) -> list[str]:
    """Return the lines that are shown at the end of `adopt`."""
    start = "Check mode, nothing was written: " if run.variables.get("ansible_check_mode") else ""
    count = len(work.adopted)
    total = f"{count} of {count + len(work.failures) + work.left} findings adopted in"
    files = ", ".join(map(work.edits.shown, texts)) or "no file"
    return [
        f"{start}{total} {files}.",
        *(
            f"{each['kind']} {each['name']}: {', '.join(each['files']) or 'unchanged'}"
            for each in work.adopted
        ),
    ]


def require_adopted(run: Run, failures: Sequence[Mapping[str, str]]) -> Result:
    """Fail if some findings could not be adopted. The others have been written."""
    if not failures:
        return {}
    kinds = {each["error"] for each in failures}
    message = "; ".join(each["reason"].rstrip(".") for each in failures)
    raise StepError(f"{message}.", kind=kinds.pop() if len(kinds) == 1 else "failed")


# -- builds ---------------------------------------------------------------------------------------


def list_builds(
    run: Run, jobs: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]
) -> Result:
    """Return the builds of a loop over `ci_job_build`. Jobs after a failed job are skipped."""
    return {
        "builds": [
            {
                "job": job["job"],
                "build": result.get("build"),
                "queue_id": result.get("queue_id"),
                "joined": result.get("joined", False),
            }
            for job, result in zip(jobs, results, strict=False)
            if not result.get("skipped")
        ]
    }


def known_builds(run: Run) -> Result:
    """Return the entries of `release_builds` whose build is known before the release begins.

    Without its later promotions a build could look withdrawn, so all entries of a name are known,
    or none.

    :return: `builds`, and `by_results`: whether the result of a CI build may make others known
    """
    given = run.variables.get("release_builds")
    entries = given if isinstance(given, list) else _evaluated(run, given)
    entries = entries if isinstance(entries, list) else []
    known, unknown = [], []
    for entry in entries:
        build = _evaluated(run, entry)
        if isinstance(build, Mapping) and build.get("build_number") not in (None, ""):
            known.append(build)
        else:
            named = entry.get("build_name") if isinstance(entry, Mapping) else None
            unknown.append(_evaluated(run, named))
    return {
        "builds": [
            build
            for build in known
            if None not in unknown and build.get("build_name") not in unknown
        ],
        "by_results": bool(unknown) or "ci_build_results" in str(given),
    }


def _evaluated(run: Run, value: Any) -> Any:
    """Return the value of a template, `None` if it uses a name that is not defined yet."""
    try:
        return run.template(value)
    except AnsibleUndefinedVariable:
        return None


# -- the rotation of a login ----------------------------------------------------------------------


def exported(run: Run, place: str, results: Mapping[str, Mapping[str, Any]]) -> Result:
    """Return the lines that are shown at the end of an export.

    :param place: folder of the export
    :param results: result of the export of each service
    """
    services = {name: result for name, result in results.items() if "exported" in result}
    lines = [f"Exported to {place}:" if services else "Nothing was exported."]
    for name, result in services.items():
        counts = [_counted(kind, count) for kind, count in result["exported"].items() if count]
        left = len(result["left_out"])
        more = f" ({left:,} left out, listed at the top of {name}.yml)" if left else ""
        lines.append(f"  {name}: {', '.join(counts) or 'nothing'}{more}")
    return {"lines": [*lines, *(line for each in services.values() for line in each["untold"])]}


def _counted(kind: str, count: int) -> str:
    """Return a count with its noun, such as "1 repository" for `repositories`."""
    noun = _NOUNS.get(kind, kind.replace("_", " "))
    if count == 1:
        noun = f"{noun[:-3]}y" if noun.endswith("ies") else noun.removesuffix("s")
    return f"{count:,} {noun}"


def rotation_options(run: Run) -> Result:
    """Reject the lifetimes that the module of the issuer would reject, before any request."""
    names = ("expires_in", "renew_before")
    given = {name: run.value(f"login_rotation_{name}") for name in names}
    try:
        rotation.check_lifetimes(str(run.value("login_rotation_issuer", "repo")), **given)
    except ToolchainError as error:
        raise StepError(f"login_rotation_{error.message}.") from None
    return {}


def rotation_entries(
    run: Run,
    credentials: Sequence[Mapping[str, Any]],
    name: str,
    token: Mapping[str, Any] | None = None,
) -> Result:
    """Return the entries of `ci_credential` for the credentials of a login."""
    return {"entries": rotation.entries(credentials, name, token)}


def rotation_steps(run: Run, **given: Any) -> Result:
    """Return the steps of the rotation that are due."""
    return rotation.steps(**given)


#: Nouns of exported kinds whose names do not say what is counted.
_NOUNS = {"configuration": "configuration sections"}
_STEPS: tuple[Callable[..., Result], ...] = (
    *(check, forget, read_survey, roles, read_folder, validate_folder, kinds, unmanaged),
    *(describe, find_removals, deletable),
    *(findings, reported),
    *(begin, summarise, plan_issues, warn, finish, open_plan, compare),
    *(choose_adopted, export_folder, adopt, require_adopted),
    *(list_builds, known_builds, exported, rotation_options, rotation_entries, rotation_steps),
)
STEPS: Mapping[str, Callable[..., Result]] = {step.__name__: step for step in _STEPS}
#: The beginning of messages, by class of the error.
_PREFIXES: tuple[tuple[type[Exception], str], ...] = (
    (desired_state.DesiredStateError, "Cannot use the desired state: "),
    (sealed.PlanError, "The sealed plan "),
    (summary.SummaryError, "Cannot summarise the reports: "),
    (ignored.IgnoreError, ""),
    (survey.SurveyError, ""),
    (ToolchainError, ""),
)


def perform(step: str, run: Run, values: Mapping[str, Any]) -> Result:
    """Run a step. Raises `StepError`."""
    try:
        return STEPS[step](run, **values)
    except Exception as error:
        for kind, prefix in _PREFIXES:
            if isinstance(error, kind):
                message = printable(f"{prefix}{error}".rstrip("."), _LONGEST)
                raise StepError(f"{message}.", kind=getattr(error, "kind", "")) from None
        raise
