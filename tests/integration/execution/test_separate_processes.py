# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the first step of a module of each service in a separate process, instead of in the worker.

The step returns the same as the module that the contract test calls. All modules of a service share
its connection, and all modules the runner. `tests/unit/test_architecture.py` verifies that Ansible finds every file
that a module needs. `pytest --every-step` runs all steps of the case of every module.
"""

from __future__ import annotations

import base64
import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, playbook, steps
from tests.helpers.cases import CASES
from tests.helpers.selection import parameters
from tests.helpers.steps import OWN, Step, comparable

#: The first module of each service.
FIRST = {CASES[name].get("service"): name for name in OWN[::-1]}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        every = metafunc.config.getoption("--every-step")
        metafunc.parametrize("name", OWN if every else sorted(FIRST.values()))


def chosen_steps(request: pytest.FixtureRequest, name: str) -> list[Step]:
    """Return the steps of a case to run: the first one, or every step."""
    if request.config.getoption("--every-step"):
        return steps.steps_of(CASES[name])
    return [step for step in steps.first_steps(CASES[name]) if not step.check]


@pytest.fixture(scope="session")
def separate(
    request: pytest.FixtureRequest,
    fresh: Callable[[str], Sandbox],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, playbook.Run]:
    """Return the runs of the selected modules in separate processes."""
    chosen = {
        name: chosen_steps(request, name)
        for name in sorted(parameters(request.session, "name") & set(OWN))
    }
    sandboxes = {flavour: fresh(flavour) for flavour in map(steps.flavour_in_ansible, chosen)}
    folder = tmp_path_factory.mktemp("separate")
    return steps.run_in_ansible(chosen, sandboxes, folder, in_process=False)


def test_separate_process_returns_the_result_of_the_module(
    request: pytest.FixtureRequest,
    separate: dict[str, playbook.Run],
    fresh: Callable[[str], Sandbox],
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
) -> None:
    case, flavour = CASES[name], steps.flavour_in_ansible(name)
    folder, chosen = tmp_path_factory.mktemp(name), chosen_steps(request, name)
    direct = steps.run(name, fresh(flavour), flavour, folder, chosen)
    run = separate[name]
    assert "EXEC /bin/sh" in run.output
    for step in chosen:
        one, other = (
            comparable(name, each.event(step.name, flavour).result) for each in (direct, run)
        )
        assert one == other, step.name
        event = run.event(step.name, flavour)
        assert event.status == ("failed" if step.changed is None else "ok"), event.result
        assert not (event.writes and step.check), step.name
    secrets = list(case.get("secrets", []))
    if "service" in case:
        secrets += connections.secrets(connections.LOGINS[case["service"]])
        secrets += connections.secrets(connections.WRONG_LOGINS[case["service"]])
    assert run.shows(secrets) == []


def test_process_gets_bytecode_of_its_sources(tmp_path: Path) -> None:
    task = playbook.task("build_info", {}, "fails", vars={"toolchain_in_process": False})
    kept = {"ANSIBLE_KEEP_REMOTE_FILES": "1", "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote")}
    playbook.run(tmp_path, [playbook.play([task])], variables=kept)
    (program,) = (tmp_path / "remote").rglob("AnsiballZ_build_info.py")
    payload = re.search(r"(?:zip_data=|ZIPDATA = )['\"]+([^'\"]+)", program.read_text("utf-8"))
    assert payload is not None
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(payload[1]))) as archive:
        names = set(archive.namelist())
    sources = {name for name in names if name.endswith(".py")}
    assert len(sources) > 50
    assert names - sources == {f"{name}c" for name in sources}
