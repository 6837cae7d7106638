# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify the rules for all modules: run the steps of each case file.

A case runs in a fork of this process, for every flavour of the sandbox. Its first step also runs in
the worker of Ansible, in check mode and without it, on a single flavour: it verifies that the action
passes the options and returns what the module returned. All other steps differ only in the responses
of the server. `pytest --every-step` runs them in the worker, too. Each run starts from the seeds.

`tests/integration/execution/test_separate_processes.py` runs the first step in a separate process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from sandbox.client import Sandbox
from tests.helpers import connections, openapi, playbook, scope_table, steps
from tests.helpers.cases import CASES, promised
from tests.helpers.selection import parameters
from tests.helpers.steps import OWN, Step, comparable, first_step

ROOT = Path(__file__).resolve().parents[2]
VARIANTS = [(name, flavour) for name, case in CASES.items() for flavour in case["flavours"]]
#: The cases whose exchanges OpenAPI documents judge, with the edition of the server.
JUDGED = [
    (name, edition)
    for name, case in CASES.items()
    if (edition := openapi.edition_of(case)) is not None and "real" in case["flavours"]
]
#: Return keys that only a run can know: the server chooses them, or the file module adds them.
UNFORESEEN = {
    "analysis_group": {"group.readonly"},
    "analysis_role": {"role.readonly"},
    "analysis_user": {"user.readonly"},
    "analysis_view": {"view.is_public"},
    "build_publish": {"build.artifactoryPrincipal"},
    "jql_search": {"gid", "group", "mode", "owner", "size", "state", "uid"},
    **{
        f"{service}_token": {"token.value", "token.refresh_token"}
        for service in ("ci", "repo", "tracker", "wiki")
    },
}
ARGUMENT_ERRORS = ("missing required arguments", "one of the following is required")


@dataclass(frozen=True)
class Ran:
    """Steps of a case that ran together. `way` is for messages."""

    way: str
    steps: Sequence[Step]
    run: playbook.Run


@dataclass(frozen=True)
class Played:
    """A case with its runs by flavour. `in_worker` is missing for a further case of a module."""

    case: Mapping[str, Any]
    direct: Mapping[str, Ran]
    in_worker: Ran | None

    def runs(self, flavour: str) -> list[Ran]:
        """Return the runs of the case on a flavour."""
        is_there = self.in_worker is not None and flavour == self.case["flavours"][-1]
        return [self.direct[flavour], *([self.in_worker] if self.in_worker and is_there else [])]

    def events(self, flavour: str) -> Iterator[tuple[str, Step, playbook.Event]]:
        """Yield a label for messages, the step and the event, for all runs on a flavour."""
        for ran in self.runs(flavour):
            for step in ran.steps:
                yield f"{step.name} ({ran.way})", step, ran.run.event(step.name, flavour)


InWorker = Callable[[str], Ran | None]
Play = Callable[[str], Played]


@pytest.fixture(scope="session")
def in_worker(
    request: pytest.FixtureRequest,
    fresh: Callable[[str], Sandbox],
    tmp_path_factory: pytest.TempPathFactory,
) -> InWorker:
    """Return a function that runs a case by name in the worker of Ansible.

    The function also runs the other selected cases of the service, and runs a case once per
    session.
    """
    wanted = parameters(request.session, "name") & set(OWN)
    every: bool = request.config.getoption("--every-step")
    found: dict[str, Ran] = {}

    def once(name: str) -> Ran | None:
        if name in wanted - found.keys():
            service = CASES[name].get("service")
            chosen = {
                each: (steps.steps_of if every else steps.first_steps)(CASES[each])
                for each in sorted(wanted)
                if CASES[each].get("service") == service
            }
            sandboxes = {each: fresh(each) for each in map(steps.flavour_in_ansible, chosen)}
            folder = tmp_path_factory.mktemp(f"in-worker-{service}")
            runs = steps.run_in_ansible(chosen, sandboxes, folder, in_process=True)
            for each, run in runs.items():
                found[each] = Ran("in the worker", chosen[each], run)
        return found.get(name)

    return once


@pytest.fixture(scope="session")
def play(
    in_worker: InWorker,
    fresh: Callable[[str], Sandbox],
    tmp_path_factory: pytest.TempPathFactory,
) -> Play:
    """Return a function that runs a case by name, once per session: `play("analysis_role")`."""
    played: dict[str, Played] = {}

    def once(name: str) -> Played:
        if name not in played:
            case, folder = CASES[name], tmp_path_factory.mktemp(name)
            own = steps.steps_of(case)
            direct = {
                flavour: Ran("direct", own, steps.run(name, fresh(flavour), flavour, folder))
                for flavour in case["flavours"]
            }
            played[name] = Played(case, direct, in_worker(name))
        return played[name]

    return once


each_variant = pytest.mark.parametrize(("name", "flavour"), VARIANTS)
each_module = pytest.mark.parametrize("name", OWN)


def test_every_module_has_a_case() -> None:
    modules = {path.stem for path in (ROOT / "plugins" / "modules").glob("*.py")}
    assert modules
    assert {case["module"] for case in CASES.values()} == set(OWN) == modules


@each_variant
def test_missing_options_are_named_before_any_request(play: Play, name: str, flavour: str) -> None:
    documentation = yaml_load(playbook.documentation(CASES[name]["module"], "DOCUMENTATION"))
    required = {name for name, option in documentation["options"].items() if option.get("required")}
    assert not required or "missing" in CASES[name]
    for label, step, event in play(name).events(flavour):
        if step.name != "missing":
            continue
        assert event.status == "failed", label
        message = event.result["msg"]
        in_entry = re.fullmatch(r"\w+\[\d+\]: \w+ is missing: set it", message)
        assert in_entry or message.startswith(ARGUMENT_ERRORS), label
        for option in required - set(step.arguments):
            assert option in message, label
        assert event.result.get("error", {}).get("kind") == ("invalid" if in_entry else None), label
        assert event.requests == [], label


@each_variant
def test_changed_is_true_exactly_if_something_changed(play: Play, name: str, flavour: str) -> None:
    for label, step, event in play(name).events(flavour):
        if step.changed is not None:
            assert event.status == "ok", f"{label}: {event.result.get('msg')}"
            assert event.result["changed"] is step.changed, label


@each_variant
def test_check_mode_writes_nothing(play: Play, name: str, flavour: str) -> None:
    checked = 0
    for label, step, event in play(name).events(flavour):
        if step.check:
            assert event.writes == [], label
            assert event.result["http"]["writes"] == 0, label
            checked += 1
    assert checked


def _checked(known: Collection[str]) -> list[str]:
    """Return the steps that also run in check mode."""
    return [name for name in known if f"{name} in check mode" in known]


@each_variant
def test_check_mode_predicts_the_diff_of_the_run(play: Play, name: str, flavour: str) -> None:
    for ran in play(name).runs(flavour):
        for state in _checked({step.name for step in ran.steps}):
            checked = ran.run.event(f"{state} in check mode", flavour).result["diff"]
            assert checked == ran.run.event(state, flavour).result["diff"], f"{state} ({ran.way})"


def _keys(result: Mapping[str, Any]) -> set[str]:
    """Return the return keys, and those in each mapping, as `page.id`."""
    own = {name: value for name, value in result.items() if not name.startswith("_ansible")}
    below = {
        f"{name}.{key}"
        for name, value in own.items()
        if isinstance(value, dict) and name not in ("diff", "invocation")
        for key in value
    }
    return {*own, *below}


@each_variant
def test_check_mode_returns_the_keys_of_the_run(play: Play, name: str, flavour: str) -> None:
    module = CASES[name]["module"]
    for ran in play(name).runs(flavour):
        for state in _checked({step.name for step in ran.steps}):
            checked, done = (
                _keys(ran.run.event(step, flavour).result) - {"warnings"}
                for step in (f"{state} in check mode", state)
            )
            left = (checked ^ done) - UNFORESEEN.get(module, set())
            if module == "repo_repository":  # the server's own fields
                left = {key for key in left if not key.startswith("repository.")}
            assert left == set(), f"{state} ({ran.way})"


@each_variant
def test_check_mode_finds_what_the_run_changes(play: Play, name: str, flavour: str) -> None:
    for ran in play(name).runs(flavour):
        for state in _checked({step.name for step in ran.steps}):
            checked, done = (
                ran.run.event(step, flavour).result["findings"]
                for step in (f"{state} in check mode", state)
            )
            if name == "tracker_issue" and state == "create":
                done[0].pop("name")  # the server names the issue
            assert checked == done, f"{state} ({ran.way})"


@each_variant
def test_object_differs_exactly_if_the_task_changes_it(play: Play, name: str, flavour: str) -> None:
    is_reading = CASES[name]["module"] == "ci_plugin_info"
    for label, step, event in play(name).events(flavour):
        if step.changed is not None and event.result["findings"] and not is_reading:
            differs = any("action" in found for found in event.result["findings"])
            assert differs is step.changed, label


@each_variant
def test_diff_is_empty_exactly_if_unchanged(play: Play, name: str, flavour: str) -> None:
    for label, step, event in play(name).events(flavour):
        if step.changed is not None:
            diff = event.result["diff"]
            assert (diff["before"] != diff["after"]) is step.changed, label


@each_variant
def test_step_sends_the_expected_writes(play: Play, name: str, flavour: str) -> None:
    expected = CASES[name].get("writes", {})
    for label, step, event in play(name).events(flavour):
        if step.name in expected:
            assert len(event.writes) == expected[step.name], label
        elif step.name.endswith("again") and step.changed is False:
            assert event.writes == [], label


@each_variant
def test_step_sends_the_promised_number_of_requests(play: Play, name: str, flavour: str) -> None:
    for label, step, event in play(name).events(flavour):
        expected = promised(name, step.name, flavour)
        if expected is not None:
            assert len(event.requests) == expected, label


@each_variant
def test_requests_need_no_other_scopes_than_the_manual_lists(
    play: Play, name: str, flavour: str
) -> None:
    case = CASES[name]
    in_cloud = case.get("settings", {}).get("deployment") == "Cloud"
    if case["module"] in scope_table.REQUESTS and (in_cloud or case["service"] == "tracker"):
        listed = set(scope_table.scopes_of(case["module"]))
        for label, _step, event in play(name).events(flavour):
            for request in event.requests:
                needed = scope_table.scopes_of_request(
                    case["module"], request["method"], request["path"]
                )
                assert set(needed) <= listed, f"{label}: {request['method']} {request['path']}"


@each_variant
def test_reported_requests_equal_the_log(play: Play, name: str, flavour: str) -> None:
    for label, step, event in play(name).events(flavour):
        if step.changed is not None:
            assert event.result["http"]["requests"] == len(event.requests), label


@each_variant
def test_return_values_are_complete(play: Play, name: str, flavour: str) -> None:
    expected, first = CASES[name].get("after_create", {}), first_step(CASES[name])
    for ran in play(name).runs(flavour):
        assert _part(ran.run.event(first, flavour).result, expected) == expected, ran.way


@pytest.mark.parametrize(("name", "edition"), JUDGED)
def test_exchanges_follow_the_documents(
    request: pytest.FixtureRequest, play: Play, name: str, edition: str
) -> None:
    documents = openapi.load(request.config.getoption("--specs"))
    exchanges = [
        exchange
        for _label, _step, event in play(name).events("real")
        for exchange in event.requests
        if exchange["service"] == CASES[name]["service"]
    ]
    found = documents.departures(edition, exchanges)
    request.node.user_properties += [("difference", line) for line in found]
    judged = [line for line in found if documents.are_own or not openapi.is_about_sandbox(line)]
    assert "\n".join(judged) == ""


def _part(value: Any, shape: Any) -> Any:
    """Return `value` without the members that `shape` does not have, at every depth."""
    if isinstance(value, dict) and isinstance(shape, dict):
        return {name: _part(value.get(name), inner) for name, inner in shape.items()}
    if isinstance(value, list) and isinstance(shape, list) and len(value) == len(shape):
        return [_part(one, inner) for one, inner in zip(value, shape, strict=True)]
    return value


@each_module
def test_worker_returns_the_result_of_the_module(play: Play, name: str) -> None:
    flavour = steps.flavour_in_ansible(name)
    direct, in_worker = play(name).runs(flavour)
    for step in in_worker.steps:
        one, other = (
            comparable(name, ran.run.event(step.name, flavour).result)
            for ran in (direct, in_worker)
        )
        assert one == other, step.name


@each_variant
def test_sandbox_knows_every_request(play: Play, name: str, flavour: str) -> None:
    for label, _step, event in play(name).events(flavour):
        unknown = [each for each in event.requests if not each["routed"]]
        assert [f"{each['method']} {each['path']}" for each in unknown] == [], label


@each_variant
def test_no_deprecated_part_of_ansible_is_used(play: Play, name: str, flavour: str) -> None:
    for label, _step, event in play(name).events(flavour):
        assert "deprecations" not in event.result, label


@each_module
def test_module_starts_no_process(play: Play, name: str) -> None:
    _direct, in_worker = play(name).runs(steps.flavour_in_ansible(name))
    assert "EXEC /bin/sh" not in in_worker.run.output
    assert in_worker.steps[-1].name in in_worker.run.output


@each_variant
def test_wrong_login_is_rejected(play: Play, name: str, flavour: str) -> None:
    for label, step, event in play(name).events(flavour):
        if step.name == "wrong login":
            assert event.status == "failed", label
            assert event.result["error"]["kind"] == "auth", f"{label}: {event.result['msg']}"
            assert all(request["status"] == 401 for request in event.requests), label


@each_variant
def test_no_secret_is_shown(play: Play, name: str, flavour: str) -> None:
    case = CASES[name]
    secrets = list(case.get("secrets", []))
    if "service" in case:
        secrets += connections.secrets(connections.LOGINS[case["service"]])
        secrets += connections.secrets(connections.WRONG_LOGINS[case["service"]])
    for ran in play(name).runs(flavour):
        assert ran.steps[-1].name in str(ran.run.events), ran.way
        assert ran.run.shows(secrets) == [], ran.way
