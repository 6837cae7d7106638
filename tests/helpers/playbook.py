# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a playbook with `ansible-playbook` and return the results of its tasks."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers import installed
from tests.helpers.play_server import PlayServer

NAMESPACE = "delivery.toolchain"
_CALLBACKS = Path(__file__).parent / "callbacks"
_FOREIGN_PREFIXES = ("ANSIBLE_", "KLOCWORK_", "TOOLCHAIN_")
_SECONDS = 300
_servers: list[PlayServer] = []


@dataclass(frozen=True)
class Event:
    """Result of a task on a host. `seconds` is its wall time, `processor` that of all processors
    since its start, for all hosts. `requests` are those that the sandbox logged during the task.
    """

    task: str
    host: str
    status: str
    seconds: float
    result: dict[str, Any]
    requests: list[dict[str, Any]]
    play: str = ""
    processor: float = 0.0

    @property
    def writes(self) -> list[dict[str, Any]]:
        return [request for request in self.requests if request["write"]]

    @property
    def items(self) -> list[dict[str, Any]]:
        """Return the results of the items of a loop."""
        items: list[dict[str, Any]] = self.result["results"]
        return items


@dataclass(frozen=True)
class Run:
    """Exit code, complete output, and the events in order."""

    code: int
    output: str
    events: list[Event]
    recorded: str

    def event(self, task: str, host: str = "localhost") -> Event:
        """Return the only event of a task on a host."""
        found = [event for event in self.events if (event.task, event.host) == (task, host)]
        assert len(found) == 1, f"{len(found)} events of '{task}' in\n{self.output[-5000:]}"
        return found[0]

    def shows(self, secrets: Sequence[str]) -> list[str]:
        """Return those of `secrets` that appear in the output or in a result."""
        return [secret for secret in secrets if secret in self.output or secret in self.recorded]


def collections_path() -> Path:
    """Return the collections path through which the tests find the collection."""
    spec = importlib.util.find_spec("ansible_collections.delivery.toolchain.plugins")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations))).parents[3]


def documentation(plugin: str, part: str, kind: str = "modules") -> str:
    """Return `DOCUMENTATION`, `EXAMPLES` or `RETURN` of a plugin as a string; empty if
    it has none.
    """
    path = collections_path() / "ansible_collections/delivery/toolchain/plugins" / kind
    for node in ast.parse((path / f"{plugin}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == part:
            text: str = ast.literal_eval(node.value)
            return text
    return ""


def environment(folder: Path, collections: Path | None = None) -> dict[str, str]:
    """Return an environment without settings of the caller. Its home directory is in `folder`."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN_PREFIXES)
    }
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return {
        **inherited,
        "ANSIBLE_ASYNC_DIR": str(home / "async"),
        "ANSIBLE_CALLBACKS_ENABLED": "recorder",
        "ANSIBLE_CALLBACK_PLUGINS": str(_CALLBACKS),
        "ANSIBLE_COLLECTIONS_PATH": f"{collections or collections_path()}:{installed.CONTROLLER}",
        "ANSIBLE_HOME": str(home / "ansible"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_REMOTE_TEMP": str(home / "tmp"),
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }


@contextmanager
def served() -> Iterator[None]:
    """Let `execute` use a play server, with the settings of `environment`."""
    with tempfile.TemporaryDirectory(prefix="play-server-") as name:
        folder = Path(name)
        _servers.append(PlayServer(folder, environment(folder)))
        try:
            yield
        finally:
            _servers.pop().stop()


def task(module: str, arguments: Mapping[str, Any], name: str, **keywords: Any) -> dict[str, Any]:
    """Return a task with a module of the collection; the play continues if the task fails."""
    return {
        "name": name,
        f"{NAMESPACE}.{module}": dict(arguments),
        "ignore_errors": True,
        **keywords,
    }


def play(tasks: Sequence[Mapping[str, Any]], **keywords: Any) -> dict[str, Any]:
    return {"hosts": "localhost", "gather_facts": False, "tasks": list(tasks), **keywords}


def run(
    folder: Path,
    plays: Sequence[Mapping[str, Any]],
    *,
    controls: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    collections: Path | None = None,
    seconds: int = _SECONDS,
) -> Run:
    """Run plays in `folder`, with a limit of `seconds`.

    `controls` maps a host to the control address of the sandbox that logs the requests of a task.
    `arguments` are passed to the command, `variables` are added to its environment.
    """
    playbook = folder / "playbook.json"
    playbook.write_text(json.dumps(list(plays)), encoding="utf-8")
    recording = {
        "RECORDER_CONTROLS": json.dumps(dict(controls or {})),
        **environment(folder, collections),
        **(variables or {}),
    }
    return _run(folder, [str(playbook), *arguments], recording, seconds)


def run_each(
    folder: Path,
    plays: Mapping[str, Mapping[str, Any]],
    *,
    controls: Mapping[str, str],
    arguments: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> dict[str, Run]:
    """Run named plays in one command, each as a playbook in its own folder.

    `arguments` include at least `-vv`: Ansible then prints the start of each playbook. The output
    before the first playbook is part of each run.
    """
    playbooks = []
    for name, one in plays.items():
        playbook = folder / name / "playbook.json"
        playbook.parent.mkdir(exist_ok=True)
        playbook.write_text(json.dumps([{"name": name, **one}]), encoding="utf-8")
        playbooks.append(str(playbook))
    recording = {
        **environment(folder),
        "RECORDER_CONTROLS": json.dumps(dict(controls)),
        **(variables or {}),
    }
    whole = _run(folder, [*playbooks, *arguments], recording, _SECONDS * len(playbooks))
    before, *sections = re.split(r"^(?=PLAYBOOK: )", whole.output, flags=re.MULTILINE)
    assert len(sections) == len(plays), whole.output[-5000:]
    runs = {}
    for name, section in zip(plays, sections, strict=True):
        assert f"\nPLAY [{name}] " in section
        events = [event for event in whole.events if event.play == name]
        recorded = json.dumps([dataclasses.asdict(event) for event in events])
        runs[name] = Run(whole.code, before + section, events, recorded)
    return runs


def _run(
    folder: Path, arguments: Sequence[str], variables: Mapping[str, str], seconds: int = _SECONDS
) -> Run:
    record = folder / "record.jsonl"
    record.unlink(missing_ok=True)
    finished = execute(arguments, folder, {"RECORDER_FILE": str(record), **variables}, seconds)
    recorded = record.read_text(encoding="utf-8") if record.exists() else ""
    events = [Event(**json.loads(line)) for line in recorded.splitlines()]
    assert events or finished.returncode, f"nothing was recorded:\n{finished.stdout}"
    return Run(finished.returncode, finished.stdout, events, recorded)


def execute(
    arguments: Sequence[str], folder: Path, variables: Mapping[str, str], seconds: int = _SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run `ansible-playbook` with `arguments` in `folder`; return its exit code and output.

    Within `served`, a play server runs the commands that it supports.
    """
    command = [str(Path(sys.executable).parent / "ansible-playbook"), *arguments]
    for server in _servers:
        if server.supports(folder, variables):
            return server.run(command, folder, variables, seconds)
    return run_program(command, folder, variables, seconds)


def run_program(
    command: Sequence[str], folder: Path, variables: Mapping[str, str], seconds: int = _SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run a program in `folder`; return its exit code and its output with that for errors."""
    return subprocess.run(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
