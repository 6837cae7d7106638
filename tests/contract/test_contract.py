# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify the rules for all modules: run the steps of each case file in both modes.

A case runs once in the worker, with a host for every flavour of the sandbox. A step of each module
also runs in a separate process, with a single flavour: it verifies that the module starts, gets its
options and returns the same result. All other steps differ only in the responses of the server.
`pytest --every-step` runs them in separate processes, too. Each run starts from the seeds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from sandbox.client import Sandbox
from tests.helpers import connections, openapi, playbook, scope_table
from tests.helpers.cases import CASES, promised, seed, settings
from tests.helpers.selection import parameters

ROOT = Path(__file__).resolve().parents[2]
#: The cases with the name of their module. Every module has one.
OWN = [name for name, case in CASES.items() if name == case["module"]]
VARIANTS = [(name, flavour) for name, case in CASES.items() for flavour in case["flavours"]]
#: The cases whose exchanges OpenAPI documents judge, with the edition of the server.
JUDGED = [
    (name, edition)
    for name, case in CASES.items()
    if (edition := openapi.edition_of(case)) is not None and "real" in case["flavours"]
]
#: Return values that differ between runs: times, and values that depend on a duration.
VARYING: dict[str, tuple[tuple[str, ...], ...]] = {
    "build_promote": (("promotion", "timestamp"),),
    "ci_artifact": (("build", "timestamp"),),
    "ci_branch_scan": (("http",), ("scan", "log")),
    "ci_build_stop": (("http",), ("build", "timestamp"), ("build", "duration")),
    "ci_job_build": (
        ("http",),
        ("build", "timestamp"),
        ("build", "duration"),
        ("builds", "build", "timestamp"),
    ),
    "ci_job_info": (("build", "timestamp"),),
    "ci_restart": (("http",), ("downtime",)),
    "oauth_consumer": (
        ("consumer", "public_key"),
        ("consumer", "certificate"),
        ("consumer", "not_after"),
        ("diff",),
    ),
    "release_bundle": (("bundle", "created"),),
    "release_bundle_distribute": (("distribution", "id"),),
    "release_bundle_info": (("bundles", "created"),),
    "release_bundle_promote": (("promotion", "created"), ("promotion", "created_millis")),
    **dict.fromkeys(
        ("ci_token", "repo_token", "tracker_token", "wiki_token"),
        (
            *((("token", name)) for name in ("id", "created", "expires", "value")),
            ("tokens",),
            ("diff",),
        ),
    ),
}
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
WAYS = {"in process": True, "separate": False}


@dataclass(frozen=True)
class Step:
    """A task of a case. `changed` is the expected return value, or None if the task must fail."""

    name: str
    arguments: Mapping[str, Any]
    changed: bool | None
    check: bool = False


def first_step(case: Mapping[str, Any]) -> str:
    """Return the name of the first step of a case, without prefixes and suffixes."""
    return next(step for step in ("create", "run", "update") if step in case)


def steps_of(case: Mapping[str, Any]) -> list[Step]:
    """Return the steps of a case in order. Skip steps for a module without required options or
    without a server.
    """
    steps = [Step("missing", case["missing"], None)] if "missing" in case else []
    for state in ("create", "update", "delete"):
        if state in case:
            steps += [
                Step(f"{state} in check mode", case[state], True, check=True),
                Step(state, case[state], True),
                Step(f"{state} again", case[state], False),
            ]
    if "run" in case:
        changed = case.get("run_changed", True)
        steps += [
            Step("run in check mode", case["run"], case.get("check_changed", changed), check=True),
            Step("run", case["run"], changed),
            Step("run again", case["run"], case.get("again_changed", False)),
        ]
    if "service" in case:
        wrong = connections.WRONG_LOGINS[case["service"]]
        steps.append(Step("wrong login", {**case[first_step(case)], **wrong}, None))
    return steps


@dataclass(frozen=True)
class Played:
    """A case with its runs by mode."""

    case: Mapping[str, Any]
    runs: Mapping[str, playbook.Run]
    steps: Mapping[str, Sequence[Step]]

    def ways(self, flavour: str) -> list[tuple[str, playbook.Run]]:
        """Return the modes in which the case ran on a flavour, with their runs."""
        return [(way, run) for way, run in self.runs.items() if flavour in flavours(self.case, way)]

    def events(self, flavour: str) -> Iterator[tuple[str, Step, playbook.Event]]:
        """Yield a label for messages, the step and the event, for all modes."""
        for way, run in self.ways(flavour):
            for step in self.steps[way]:
                yield f"{step.name} ({way})", step, run.event(step.name, flavour)


def separate_steps(case: Mapping[str, Any], every: bool) -> list[Step]:
    """Return the steps of a case that run in separate processes: `first_step` and what a server
    must carry out before it, or every step.
    """
    steps = steps_of(case)
    acting = [step for step in steps if step.changed is not None and not step.check]
    end = [step.name for step in acting].index(first_step(case)) + 1
    return steps if every else acting[:end]


def flavours(case: Mapping[str, Any], way: str) -> list[str]:
    """Return the flavours to run: all flavours in the worker, a single flavour in separate
    processes.

    The start of a module does not depend on the responses of the server, and separate processes
    take ten times as long.
    """
    known: list[str] = case["flavours"]
    return known if WAYS[way] else known[-1:]


def _play_of(name: str, way: str, steps: Sequence[Step]) -> dict[str, Any]:
    """Return the play of a case. It resets the sandbox to the seeds first."""
    case = CASES[name]
    service, module = case.get("service"), case["module"]
    defaults = {}
    if service is not None:
        options = connections.connection(service, f"{{{{ {service} }}}}", **case.get("login", {}))
        if "dialect" in case:
            options["dialect"] = f"{{{{ {case['dialect']}[inventory_hostname] }}}}"
        defaults[f"group/delivery.toolchain.{service}"] = options
    tasks = [
        playbook.task(module, step.arguments, step.name, check_mode=step.check, diff=True)
        for step in steps
    ]
    reset = settings(name)
    if openapi.edition_of(case) is not None:
        reset[case["service"]]["log_responses"] = True
    tasks[0]["vars"] = {"sandbox_reset": reset, "sandbox_seed": seed(name)}
    return playbook.play(
        tasks,
        hosts=flavours(case, way),
        module_defaults=defaults,
        vars={"toolchain_in_process": WAYS[way]},
    )


def _play(
    names: Sequence[str], sandboxes: Mapping[str, Sandbox], folder: Path, every: bool
) -> dict[str, Played]:
    """Run several cases together, so that they share the start of Ansible.

    :param every: whether every step also runs in a separate process
    """
    hosts = {
        flavour: {
            "ansible_connection": "local",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
            **sandbox.urls,
        }
        for flavour, sandbox in sandboxes.items()
    }
    inventory = folder / "inventory.json"
    inventory.write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
    controls = {flavour: sandbox.control for flavour, sandbox in sandboxes.items()}
    steps = {
        "in process": {name: steps_of(CASES[name]) for name in names},
        "separate": {name: separate_steps(CASES[name], every) for name in names if name in OWN},
    }
    runs = {}
    for way in (way for way in WAYS if steps[way]):
        # files that a module creates in this mode must not exist in the other mode
        (folder / way).mkdir()
        runs[way] = playbook.run_each(
            folder / way,
            {name: _play_of(name, way, each) for name, each in steps[way].items()},
            controls=controls,
            arguments=["-vvv", "-i", str(inventory)],
        )
    return {
        name: Played(
            CASES[name],
            {way: runs[way][name] for way in WAYS if name in steps[way]},
            {way: steps[way][name] for way in WAYS if name in steps[way]},
        )
        for name in names
    }


@pytest.fixture(scope="session")
def play(
    request: pytest.FixtureRequest,
    fresh: Callable[[str], Sandbox],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], Played]:
    """Return a function that runs a case by name: `play("analysis_role")`.

    The function also runs the other selected cases of the service, and runs a case once per
    session.
    """
    folder = tmp_path_factory.mktemp("contract")
    played: dict[str, Played] = {}
    wanted = parameters(request.session, "name")
    every: bool = request.config.getoption("--every-step")

    def once(name: str) -> Played:
        if name not in played:
            service = CASES[name].get("service")
            names = [
                case for case in CASES if CASES[case].get("service") == service and case in wanted
            ]
            used = sorted({flavour for each in names for flavour in CASES[each]["flavours"]})
            own = folder / str(service)
            own.mkdir()
            sandboxes = {flavour: fresh(flavour) for flavour in used}
            played.update(_play(names, sandboxes, own, every))
        return played[name]

    return once


Play = Callable[[str], Played]
each_variant = pytest.mark.parametrize(("name", "flavour"), VARIANTS)
each_case = pytest.mark.parametrize("name", CASES)
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
    for way, run in play(name).ways(flavour):
        known = {step.name for step in play(name).steps[way]}
        for state in _checked(known):
            checked = run.event(f"{state} in check mode", flavour).result["diff"]
            assert checked == run.event(state, flavour).result["diff"], f"{state} ({way})"


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
    for way, run in play(name).ways(flavour):
        known = {step.name for step in play(name).steps[way]}
        for state in _checked(known):
            checked, done = (
                _keys(run.event(step, flavour).result) - {"warnings"}
                for step in (f"{state} in check mode", state)
            )
            left = (checked ^ done) - UNFORESEEN.get(module, set())
            if module == "repo_repository":  # the server's own fields
                left = {key for key in left if not key.startswith("repository.")}
            assert left == set(), f"{state} ({way})"


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
    for way, run in play(name).ways(flavour):
        assert _part(run.event(first, flavour).result, expected) == expected, way


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
def test_both_modes_return_the_same(play: Play, name: str) -> None:
    runs = play(name).runs
    (flavour,) = flavours(CASES[name], "separate")
    for step in play(name).steps["separate"]:
        one, other = (
            _comparable(CASES[name]["module"], runs[way].event(step.name, flavour).result)
            for way in WAYS
        )
        assert one == other, step.name


def _comparable(module: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without the private keys of Ansible and without values that vary
    with time.
    """
    kept = {name: value for name, value in result.items() if not name.startswith("_ansible")}
    copy: dict[str, Any] = json.loads(json.dumps(kept))
    copy.get("http", {}).pop("seconds", None)
    for path in VARYING.get(module, ()):
        _drop(copy, path)
    return copy


def _drop(value: Any, path: tuple[str, ...]) -> None:
    """Remove a member from a result, in every entry of a list on the path."""
    member, *rest = path
    for each in value if isinstance(value, list) else [value]:
        if rest:
            _drop((each or {}).get(member), tuple(rest))
        else:
            (each or {}).pop(member, None)


@each_variant
def test_no_deprecated_part_of_ansible_is_used(play: Play, name: str, flavour: str) -> None:
    for label, _step, event in play(name).events(flavour):
        assert "deprecations" not in event.result, label


@each_module
def test_both_modes_were_used(play: Play, name: str) -> None:
    runs = play(name).runs
    assert "EXEC /bin/sh" not in runs["in process"].output
    assert "EXEC /bin/sh" in runs["separate"].output


@each_variant
def test_wrong_login_is_rejected(play: Play, name: str, flavour: str) -> None:
    for label, step, event in play(name).events(flavour):
        if step.name == "wrong login":
            assert event.status == "failed", label
            assert event.result["error"]["kind"] == "auth", f"{label}: {event.result['msg']}"
            assert all(request["status"] == 401 for request in event.requests), label


@each_case
def test_no_secret_is_shown(play: Play, name: str) -> None:
    case = CASES[name]
    secrets = list(case.get("secrets", []))
    if "service" in case:
        secrets += connections.secrets(connections.LOGINS[case["service"]])
        secrets += connections.secrets(connections.WRONG_LOGINS[case["service"]])
    for way, run in play(name).runs.items():
        assert play(name).steps[way][-1].name in run.output, way
        assert run.shows(secrets) == [], way
