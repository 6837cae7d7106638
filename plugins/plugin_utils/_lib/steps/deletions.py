# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the objects that left the folder of the desired state, and choose those to delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible.release import __version__

from ....module_utils._lib.core.errors import ToolchainError, listed, printable
from .. import (
    ansible_internals,
    applied,
    described,
    desired_schema,
    desired_state,
    kinds,
    removals,
    unread_files,
)
from .folder import accounts_of, folder_of, run_module
from .run import Result, Run, StepError, mapping


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
            state.servers = own.addresses(connections)
            state.present = [found.add(values) for values in _present(own)]
            state.elsewhere = [found.add(values) for values in _parts(own)]
        except (desired_state.DesiredStateError, ToolchainError) as error:
            state.problem = str(error)
    return {"described": found.as_result()}


def find_removals(run: Run, known: Mapping[str, Any]) -> Result:
    """Return the objects that the previous folder names and the present one does not, children
    before their containers.

    :param known: result of `describe`
    """
    _max_deletions(run)  # an invalid number must end the run before its first request
    previous, warnings = _previous(run)
    hosts = _described(run, known)
    found, staying = removals.removed(hosts.present(run.host), previous, hosts.elsewhere(run.host))
    return {"removals": [removal.shown() for removal in found], "messages": [*warnings, *staying]}


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
    present, folder = folder_of(run), folder_of(run, "desired_state_previous")
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
    state = accounts_of(run).apply(state, names_only=True)
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
    state = desired_state.read(folder_of(run), reading, environment)
    return [desired_state.values(accounts_of(run).apply(state, names_only=True)), given]


def _parts(run: Run) -> list[described.Values]:
    """Return the objects of the base of the present folder, and those of each environment."""
    if run.value("desired_state_folder") is None:
        return []
    states = desired_state.parts(folder_of(run), _naming(run))
    # the same names stand for the same accounts; other environments may have more names
    known = replace(accounts_of(run), required=False)
    return [desired_state.values(known.apply(state, names_only=True)) for state in states]


def _naming(run: Run) -> desired_state.Reading:
    """Return how to read folders of which only the names matter. Secrets need no variables."""
    return desired_state.Reading(run.load, lambda name: name, names_only=True)


def delete(run: Run, removal: Mapping[str, Any]) -> Result:
    """Delete an object that left the folder, never with force.

    :param removal: what `find_removals` or `deletable` returned for it
    """
    options: dict[str, Any] = dict(removal["options"])
    if removal["service"] == "analysis":
        # the entries have their state
        options["protect"] = run.value("analysis_config_protect", [])
    elif "folder" in kinds.find(removal["service"], removal["list"]).key:
        # as an entry, because the name in the report contains the folder then
        options = {"entries": [{**options, "state": "absent"}]}
    else:
        options["state"] = "absent"
    return run_module(run, removal["module"], options, removal["name"], removal["options"])


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
    """Return the objects that can be deleted. Fails if there are too many of them.

    :param known: result of `describe`
    :param removed: result of `find_removals`
    :param results: results of the modules in check mode
    :param content: results with the content of projects and versions
    :param runs: results of `apply`, if it has run
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
        "removals": [removal for removal in found.deletable if _is_chosen(run, removal["digests"])],
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
    plan = mapping(mapping(run.variables.get("toolchain_sealed")).get("sealed"))
    skips = plan.get("rest") == "skip" and plan.get("writes") is not None and not run.check_mode
    return not skips or not set(digests).isdisjoint(plan["writes"])
