# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a case of the contract test, and the plays that run them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    ansible_internals,
    run_folder,
)
from sandbox.client import Sandbox
from tests.helpers import connections, forked, openapi, playbook
from tests.helpers.cases import CASES, connection_options, seed, settings

#: The cases with the name of their module. Every module has one.
OWN = [name for name, case in CASES.items() if name == case["module"]]
#: Return values that differ between runs: times, and values that depend on a duration.
VARYING: dict[str, tuple[tuple[str, ...], ...]] = {
    "analysis_server_import": (("http",),),
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


def first_steps(case: Mapping[str, Any]) -> list[Step]:
    """Return the step `first_step` of a case in check mode and without it, and what a server must
    carry out before it.
    """
    name = first_step(case)
    steps = [step for step in steps_of(case) if step.changed is not None]
    end = [step.name for step in steps].index(name) + 1
    in_check_mode = f"{name} in check mode"
    return [step for step in steps[:end] if step.name == in_check_mode or not step.check]


def flavour_in_ansible(name: str) -> str:
    """Return the single flavour of the steps that Ansible runs.

    Ansible and the start of a module do not depend on the responses of the server.
    """
    return str(CASES[name]["flavours"][-1])


def run(
    name: str, sandbox: Sandbox, flavour: str, folder: Path, chosen: Sequence[Step] = ()
) -> playbook.Run:
    """Run the chosen steps of a case, or all, in `folder`, without Ansible."""
    play = _play_of(name, chosen or steps_of(CASES[name]), sandbox, flavour)
    # as the action does
    with mock.patch.dict(os.environ, {run_folder.VARIABLE: str(folder / f"run-{flavour}")}):
        return forked.run(folder, play, sandbox, flavour)


def run_in_ansible(
    chosen: Mapping[str, Sequence[Step]],
    sandboxes: Mapping[str, Sandbox],
    folder: Path,
    *,
    in_process: bool,
) -> dict[str, playbook.Run]:
    """Run steps of several cases in Ansible together, so that they share its start.

    :param chosen: the steps by the name of their case
    :param in_process: whether the modules run in the worker, or in separate processes
    """
    local = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        "toolchain_in_process": in_process,
    }
    inventory = folder / "inventory.json"
    hosts = dict.fromkeys(sandboxes, local)
    inventory.write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
    plays = {}
    for name, steps in chosen.items():
        flavour = flavour_in_ansible(name)
        plays[name] = _play_of(name, steps, sandboxes[flavour], flavour)
    return playbook.run_each(
        folder,
        plays,
        controls={flavour: sandbox.control for flavour, sandbox in sandboxes.items()},
        arguments=["-vvv", "-i", str(inventory)],
    )


def _play_of(name: str, steps: Sequence[Step], sandbox: Sandbox, flavour: str) -> dict[str, Any]:
    """Return a play with steps of a case. It resets the sandbox to the seeds first."""
    case = CASES[name]
    service, module = case.get("service"), case["module"]
    defaults = {}
    if service is not None:
        options = connection_options(name, flavour)
        connection = connections.connection(service, sandbox.urls[service], **options)
        defaults[f"group/delivery.toolchain.{service}"] = connection
    tasks = [
        playbook.task(
            module,
            {**step.arguments, ansible_internals.REPORTS: True},
            step.name,
            check_mode=step.check,
            diff=True,
        )
        for step in steps
    ]
    reset = settings(name)
    if openapi.edition_of(case) is not None:
        reset[case["service"]]["log_responses"] = True
    tasks[0]["vars"] = {"sandbox_reset": reset, "sandbox_seed": seed(name)}
    return playbook.play(tasks, hosts=flavour, module_defaults=defaults)


def comparable(module: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without the private keys of Ansible and without values that vary
    with time.

    Ansible takes the messages out of the warnings that a module prints.
    """
    kept = {name: value for name, value in result.items() if not name.startswith("_ansible")}
    copy: dict[str, Any] = json.loads(json.dumps(kept))
    copy.get("http", {}).pop("seconds", None)
    for number, warning in enumerate(copy.get("warnings", [])):
        if isinstance(warning, dict):  # since core 2.19
            copy["warnings"][number] = warning["event"]["msg"]
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
