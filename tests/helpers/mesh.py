# SPDX-License-Identifier: GPL-3.0-or-later
"""Run slices of a job on nodes of a mesh with the commands that AWX uses:

    ansible-runner transmit | <mesh> | ansible-runner worker | ansible-runner process

The mesh is Receptor if `receptor` and `receptorctl` are on PATH, otherwise each node is an OpenSSH
server. All nodes are on loopback and share their folders.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any

from tests.helpers import awx_variables, installed, playbook, programs
from tests.helpers.ssh_server import SshServer

_PROGRAMS = Path(sys.executable).parent
_RUNNER = str(_PROGRAMS / "ansible-runner")
#: Limit of a job in seconds.
_SECONDS = 590


@dataclass(frozen=True)
class Node:
    """A node of the mesh. `submit` runs `ansible-runner worker` on it, and passes on both streams.

    `end` kills the processes of the node.
    """

    submit: Sequence[str]
    end: Callable[[], None]
    environment: Mapping[str, str]
    submitted: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def kill(self) -> None:
        """Kill the node. Like AWX, wait no longer for its jobs: Receptor would wait for it."""
        self.end()
        for process in self.submitted:
            process.terminate()


@dataclass(frozen=True)
class Job:
    """The status and the artifacts that the controller has stored for a job, and its output."""

    status: str
    artifacts: dict[str, Any]
    output: str


@contextmanager
def nodes(count: int, folder: Path) -> Iterator[list[Node] | None]:
    """Start the nodes. Yield None if this machine has neither Receptor nor an OpenSSH server."""
    folder.mkdir()
    if which("receptor") and which("receptorctl"):
        with _receptors(count, folder) as running:
            yield running
        return
    sshd, ssh = installed.program("sshd"), installed.program("ssh")
    if sshd is None or ssh is None:
        yield None
        return
    with ExitStack() as stack:
        worker = ("env", f"PATH={_path()}", f"TMPDIR={folder}", "LC_ALL=C.UTF-8", _RUNNER, "worker")
        servers = [stack.enter_context(SshServer(sshd, {}, worker)) for _number in range(count)]
        yield [
            Node(_ssh(ssh, server.options), server.kill, server.environment) for server in servers
        ]


def _path() -> str:
    return os.pathsep.join((str(_PROGRAMS), os.environ.get("PATH", os.defpath)))


def _ssh(program: Path, options: Mapping[str, Any]) -> list[str]:
    address = ["-p", str(options["ssh_port"]), "-l", options["ssh_user"], options["ssh_host"]]
    hosts = f'UserKnownHostsFile="{options["ssh_known_hosts"]}"'
    login = ["-i", options["ssh_key"], "-o", "BatchMode=yes", "-o", hosts]
    return [str(program), "-F", "none", *login, *address, "ansible-runner worker"]


@contextmanager
def _receptors(count: int, folder: Path) -> Iterator[list[Node]]:
    """Run a node of Receptor that submits work, and nodes around it that run `ansible-runner`."""
    socket, port = folder / "receptor.sock", programs.free_port()
    center: list[dict[str, Any]] = [
        {"tcp-listener": {"bindaddr": "127.0.0.1", "port": port}},
        {"control-service": {"service": "control", "filename": str(socket)}},
    ]
    work = {"worktype": "ansible-runner", "command": _RUNNER, "params": "worker"}
    outer = [{"tcp-peer": {"address": f"127.0.0.1:{port}"}}, {"work-command": work}]
    environment = {**os.environ, "PATH": _path(), "TMPDIR": str(folder)}
    control = ["receptorctl", "--socket", str(socket)]
    names = [f"node{number}" for number in range(1, count + 1)]
    with ExitStack() as stack:

        def start(name: str, parts: list[dict[str, Any]]) -> programs.Program:
            place = folder / name
            place.mkdir()
            configuration = [{"node": {"id": name, "datadir": str(place)}}, *parts]
            (place / "receptor.conf").write_text(json.dumps(configuration), encoding="utf-8")
            command = ["receptor", "--config", "receptor.conf"]
            return stack.enter_context(programs.started(command, place, environment))

        def reached() -> bool | None:
            pings = ([*control, "ping", "--count", "1", name] for name in names)
            ended = [subprocess.run(ping, check=False, capture_output=True) for ping in pings]
            return all(ping.returncode == 0 for ping in ended) or None

        first = start("controller", center)
        running = [start(name, outer) for name in names]
        first.until(reached)
        submit = [*control, "work", "submit", "--follow", "--rm", "--payload", "-", "--node"]
        yield [
            Node(
                [*submit, name, "ansible-runner"],
                partial(programs.kill, one.process.pid),
                environment,
            )
            for name, one in zip(names, running, strict=True)
        ]


@dataclass
class Estate:
    """The servers of an inventory with their variables, and the jobs that check or change them.

    `given` are variables of all jobs, and `forks` is the number of servers that a job handles at a
    time. The report of a slice is in `reports`, in the folder of its first server.
    """

    folder: Path
    servers: Mapping[str, Mapping[str, Any]]
    slices: int
    given: Mapping[str, Any]
    forks: int = 5
    _jobs: int = field(default=0, init=False)

    def slice(self, number: int) -> list[str]:
        """Return the servers of a slice, dealt as in `Inventory.get_sliced_hosts` of AWX."""
        return sorted(self.servers)[number :: self.slices]

    def run(
        self,
        name: str,
        on: Sequence[Node],
        *,
        artifacts: Mapping[str, Any] | None = None,
        only: Sequence[int] | None = None,
    ) -> list[Future[Job]]:
        """Start the slices of a playbook, or only some. A node runs one job at a time."""
        pools = [ThreadPoolExecutor(max_workers=1) for _node in on]
        jobs = []
        for number in range(self.slices) if only is None else only:
            self._jobs += 1
            data = self._private_data(f"job{self._jobs}", name, number, artifacts or {})
            place = number % len(on)
            jobs.append(pools[place].submit(_run, on[place], data, self.forks))
        for pool in pools:
            pool.shutdown(wait=False)
        return jobs

    def _private_data(
        self, ident: str, name: str, number: int, artifacts: Mapping[str, Any]
    ) -> Path:
        """Write the private data of a job, with the variables of its template in `awx_setup`."""
        data = self.folder / ident
        reports = self.folder / "reports"
        reports.mkdir(exist_ok=True)
        environment = playbook.environment(self.folder)
        settings = {key: value for key, value in environment.items() if key.startswith("ANSIBLE_")}
        del settings["ANSIBLE_CALLBACKS_ENABLED"]
        template = awx_variables.sliced(name) if name == "drift" or artifacts else {}
        variables = {
            **self.given,
            **template,
            "enforce_hosts": "all",
            "drift_report": f"{reports}/{awx_variables.FIRST_HOST}",
            **artifacts,
        }
        hosts = {server: self.servers[server] for server in self.slice(number)}
        files = {
            "env/envvars": {**settings, "NO_PROXY": "127.0.0.1"},
            "env/extravars": variables,
            "inventory/hosts.json": {"all": {"hosts": hosts}},
            "project/site.yml": [{"import_playbook": f"delivery.toolchain.{name}"}],
        }
        for file, content in files.items():
            (data / file).parent.mkdir(parents=True, exist_ok=True)
            (data / file).write_text(json.dumps(content), encoding="utf-8")
        return data

    def summary(self) -> playbook.Run:
        """Merge the reports of all slices with `drift_summary`."""
        variables = {
            "summary_reports": "reports",
            "summary_folder": "reports/summary",
            "summary_expected": sorted(self.servers),
        }
        play = {"import_playbook": "delivery.toolchain.drift_summary", "vars": variables}
        return playbook.run(self.folder, [play])


def _run(node: Node, data: Path, forks: int) -> Job:
    """Run a job on a node, and store what it sends back."""
    transmit = [_RUNNER, "transmit", str(data), "-p", "site.yml", "--forks", str(forks)]
    log = data / "log"
    with (
        log.open("wb") as errors,
        # an SSH client would set the standard error of the tests to non-blocking
        subprocess.Popen(
            transmit, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        ) as sent,
        subprocess.Popen(
            node.submit,
            stdin=sent.stdout,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=node.environment,
        ) as mesh,
        subprocess.Popen(
            [_RUNNER, "process", str(data)], stdin=mesh.stdout, stdout=errors, stderr=errors
        ) as processed,
    ):
        node.submitted.append(mesh)
        try:
            for stream in (sent.stdout, mesh.stdout):
                assert stream is not None
                stream.close()
            processed.wait(_SECONDS)
        finally:
            for process in (sent, mesh, processed):
                process.kill()
    kept = data / "artifacts"
    status = kept / "status"
    return Job(
        status.read_text(encoding="utf-8") if status.exists() else "error",
        _artifacts(kept),
        log.read_text(encoding="utf-8", errors="replace"),
    )


def _artifacts(kept: Path) -> dict[str, Any]:
    """Return the statistics that a job has set, which the controller passes to the next job."""
    found: dict[str, Any] = {}
    for path in (kept / "job_events").glob("*.json"):
        event = json.loads(path.read_text(encoding="utf-8"))
        if event["event"] == "playbook_on_stats":
            found.update(event["event_data"].get("artifact_data", {}))
    return found


def results(jobs: Sequence[Future[Job]]) -> tuple[list[str], dict[str, Any]]:
    """Wait for jobs. Return their statuses, and their artifacts, merged as the controller does."""
    ended = [job.result() for job in jobs]
    merged = {name: value for job in ended for name, value in job.artifacts.items()}
    return [job.status for job in ended], merged
