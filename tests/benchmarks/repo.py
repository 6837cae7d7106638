# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare deployments and downloads with `curl` and `jf`: wall time, bytes, connections, memory.

There are two servers. The first stores nothing; it takes 1 to 20 ms for a file, and a tenth of that
for another response. The second is the sandbox, which does not wait for a disk. No real server
responds in 0 ms. The speedup of an unchanged deployment over the first deployment only counts for a
slow server. A deployment is a task of a playbook, including its digests, its listing and its
comparison. The time of curl and jf includes their start, the time of the task excludes that of the playbook.

For 1,000 small files, a task has the same overhead as any client of its kind. It is forked, it
reads every file for two digests (40 ms of processor time), and its result has a row for each file
(12 ms to write, 45 ms for Ansible to read and display). Curl does none of this.

The digests of a large file are computed before its first byte is sent, because the request contains
them. The server can then reject a body that was damaged in transit, and content that the server
already has is not sent at all. For 2 GiB, SHA-256 takes 1.4 s, in addition to 1.0 s for SHA-1 and
0.4 s for reading. Sending takes another 1.0 s, as with curl. The total is at least 2.3 times the
time of curl on two processors. If the digests were computed during the transfer, a damaged body
would be in the repository before anybody noticed. A minimal program that sends 2 GiB in that mode
takes 2.2 times the time of curl, or 1.5 times with SHA-256 alone.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks import costs, servers
from tests.benchmarks.costs import Cost
from tests.helpers import connections, deploying, fetching, playbook
from tests.helpers.discarding import Counts, Server
from tests.helpers.sizes import size
from tools import tree

FILES, FILE_BYTES = size(1000, 10), 16 * 1024
BIG_BYTES, HUGE_BYTES = size(2 * 1024**3, 1024**2), size(4 * 1024**3, 1024**2)
#: A large file is sent only once: the transfer of its bytes dominates the time.
ROUNDS, BIG_ROUNDS = size(5, 1), 1
PARALLEL = 4
#: Seconds that the server takes for a file. Other responses take a tenth of that.
DELAYS = (0.001, 0.005, 0.01, 0.02)
#: From these delays on, a transfer must not be slower than jf, and an unchanged folder is compared
#: with its first deployment.
_REAL_DELAY, _SLOW = 0.005, 0.01
PROMISED_MEMORY, PROMISED_FETCH_MEMORY = 120.0, 64.0
#: Number of small files in a folder, and limits in MiB for its deployments.
MANY_FILES = size(50_000, 50)
PROMISED_MEMORY_FIRST, PROMISED_MEMORY_AGAIN = 150.0, 100.0
SERIAL, SIDE_BY_SIDE, JF = "curl -T", f"curl -T --parallel ({PARALLEL})", "jf rt upload"
CURL_FETCH, JF_FETCH = f"curl --parallel ({PARALLEL})", "jf rt download"
FIRST, AGAIN = "artifact_deploy", "artifact_deploy, unchanged"
FETCH, FETCH_AGAIN = "artifact_download", "artifact_download, unchanged"


@dataclass(frozen=True)
class Target:
    """A server: how to empty it before each method, and how to read its counts if it has any."""

    name: str
    url: str
    options: Mapping[str, Any]
    repo: str
    empty: Callable[[], object]
    counts: Callable[[], Counts | None]
    #: Seconds to store a file; None: without an artificial delay.
    delay: float | None = None

    @property
    def token(self) -> str | None:
        return self.options.get("token")


@dataclass
class Measured:
    """Cost of each round, and the counts of the server in the last round."""

    rounds: list[Cost] = field(default_factory=list)
    counts: Counts | None = None

    @property
    def median(self) -> Cost:
        return costs.median(self.rounds)


@dataclass(frozen=True)
class Bench:
    """A working folder, and the collections path for playbooks."""

    folder: Path
    collections: Path

    def measure(self, target: Target, source: Path, rounds: int) -> dict[str, Measured]:
        """Deploy a folder or a file with every method. Every round starts with an empty server."""
        ways: dict[str, Callable[[], Cost]] = {
            SERIAL: lambda: self._curl(target, source),
            SIDE_BY_SIDE: lambda: self._curl(
                target, source, "--parallel", "--parallel-max", str(PARALLEL)
            ),
        }
        jf = find_jf()
        if jf is not None:
            ways[JF] = lambda: self._jf(jf, target, source)
        ways[FIRST] = lambda: self._task(target, source, changed=True)
        ways[AGAIN] = lambda: self._task(target, source, changed=False)
        measured = {name: Measured() for name in ways}
        for number in range(rounds):
            print(f"{target.name}: round {number + 1} of {rounds} ...", file=sys.stderr, flush=True)
            for name, way in ways.items():
                if name != AGAIN:
                    target.empty()
                measured[name].rounds.append(way())
                measured[name].counts = target.counts()
        return measured

    def _curl(self, target: Target, source: Path, *flags: str) -> Cost:
        files = sorted(path for path in source.rglob("*") if path.is_file()) or [source]
        base = source if source.is_dir() else source.parent
        lines = [f'oauth2-bearer = "{target.token}"'] if target.token else []
        for path in files:
            url = f"{target.url}/{target.repo}/bench/{path.relative_to(base)}"
            lines += [f'upload-file = "{path}"', f'url = "{url}"', f'output = "{os.devnull}"']
        config = self.folder / "curl.conf"
        config.write_text("\n".join(lines), encoding="utf-8")
        curl = shutil.which("curl")
        assert curl is not None
        return _timed([curl, "--silent", "--fail", *flags, "--config", str(config)], self.folder)

    def _jf(self, jf: Path, target: Target, source: Path) -> Cost:
        folder, pattern = (source, "*") if source.is_dir() else (source.parent, source.name)
        return self._jf_run(jf, target, folder, "upload", pattern, f"{target.repo}/bench/")

    def _jf_run(self, jf: Path, target: Target, folder: Path, what: str, *paths: str) -> Cost:
        command = [str(jf), "rt", what, *paths, "--flat=false"]
        command += [f"--url={target.url}/", f"--threads={PARALLEL}", "--quiet"]
        command += [f"--access-token={target.token}"] if target.token else []
        home = {
            "CI": "true",
            "JFROG_CLI_HOME_DIR": str(self.folder / "jfrog"),
            "JFROG_CLI_REPORT_USAGE": "false",
            "JFROG_CLI_AVOID_NEW_VERSION_WARNING": "true",
        }
        return _timed(command, folder, **home)

    def measure_fetching(self, server: Server, target: Target) -> dict[str, Measured]:
        """Download the files of the server with every method. Every round starts with an empty folder."""
        server.fill(FILES, FILE_BYTES)
        names = [f"{number % 10}/{number}.bin" for number in range(FILES)]
        return self._measure_fetching(target, names, ROUNDS)

    def measure_fetching_one(self, server: Server, target: Target) -> dict[str, Measured]:
        """Download a large file."""
        server.have_huge(BIG_BYTES)
        return self._measure_fetching(target, ["huge.bin"], BIG_ROUNDS)

    def _measure_fetching(
        self, target: Target, names: Sequence[str], rounds: int
    ) -> dict[str, Measured]:
        dest = self.folder / "fetched"
        arguments = {"repo": target.repo, "path": "bench/", "dest": f"{dest}/"}
        fetch = functools.partial(self._run, "artifact_download", target, arguments)
        ways: dict[str, Callable[[], Cost]] = {
            CURL_FETCH: lambda: self._curl_fetch(target, dest, names),
            FETCH: lambda: fetch(changed=True),
            FETCH_AGAIN: lambda: fetch(changed=False),
        }
        jf = find_jf()
        if jf is not None:
            remote, local = f"{target.repo}/bench/", f"{dest}/"
            ways[JF_FETCH] = lambda: self._jf_run(
                jf, target, self.folder, "download", remote, local
            )
        measured = {name: Measured() for name in ways}
        for number in range(rounds):
            print(f"{target.name}: fetching, round {number + 1} ...", file=sys.stderr, flush=True)
            for name, way in ways.items():
                if name != FETCH_AGAIN:
                    shutil.rmtree(dest, ignore_errors=True)
                target.counts()
                measured[name].rounds.append(way())
                measured[name].counts = target.counts()
        shutil.rmtree(dest, ignore_errors=True)
        return measured

    def _curl_fetch(self, target: Target, dest: Path, names: Sequence[str]) -> Cost:
        lines = []
        for path in names:
            lines += [
                f'url = "{target.url}/{target.repo}/bench/{path}"',
                f'output = "{dest}/{path}"',
            ]
        config = self.folder / "curl.conf"
        config.write_text("\n".join(lines), encoding="utf-8")
        curl = shutil.which("curl")
        assert curl is not None
        flags = ["--create-dirs", "--parallel", "--parallel-max", str(PARALLEL)]
        return _timed([curl, "--silent", "--fail", *flags, "--config", str(config)], self.folder)

    def _task(self, target: Target, source: Path, *, changed: bool) -> Cost:
        """Return the cost of a deployment in its playbook."""
        src = f"{source}/" if source.is_dir() else str(source)
        arguments = {"repo": target.repo, "path": "bench/", "src": src}
        return self._run("artifact_deploy", target, arguments, changed=changed)

    def _run(
        self, module: str, target: Target, arguments: Mapping[str, Any], *, changed: bool
    ) -> Cost:
        """Return the cost of a task in its playbook."""
        name = "measured"
        options = {**target.options, **arguments, "parallel": PARALLEL}
        task = playbook.task(module, options, name)
        run = playbook.run(self.folder, [playbook.play([task])], collections=self.collections)
        event = run.event(name)
        if event.status != "ok" or event.result["changed"] is not changed:
            raise SystemExit(f"the task did not do what it should:\n{run.output[-3000:]}")
        return costs.of_task(event)


def find_jf() -> Path | None:
    """Return the program jf, from the path or from the folder where `make bench` installs the
    peers.
    """
    found = shutil.which("jf", path=f"{os.defpath}:{os.environ['PATH']}:{sys.prefix}/peers/bin")
    return None if found is None else Path(found)


def _timed(command: list[str], folder: Path, **variables: str) -> Cost:
    run = functools.partial(
        subprocess.run,
        command,
        cwd=folder,
        env={**os.environ, "NO_PROXY": "127.0.0.1", **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return costs.of_processes(run)


@contextmanager
def _discarding(delay: float) -> Iterator[Target]:
    with Server() as server, _target_of(server, delay) as target:
        yield target


@contextmanager
def _target_of(server: Server, delay: float) -> Iterator[Target]:
    server.delay(delay)
    name = f"{1000 * delay:g} ms for each file" if delay else "a server without delay"
    options = {"url": server.url, "dialect": "jfrog"}
    yield Target(name, server.url, options, "repo", server.forget, server.counts, delay)


@contextmanager
def _sandbox() -> Iterator[Target]:
    with servers.sandbox() as sandbox:
        url = sandbox.urls["repo"]
        options = connections.connection("repo", url, dialect="jfrog")
        repo = "generic-staging-local"
        yield Target("the sandbox", url, options, repo, sandbox.reset, lambda: None)


def _print_table(title: str, measured: Mapping[str, Measured], way: str = FIRST) -> None:
    rounds = len(measured[way].rounds)
    print(f"\n{title}, median of {rounds} rounds\n")
    print(f"{'way':<30}{costs.HEAD}{'ratio':>8}{'bytes':>14}{'requests':>10}{'connections':>13}")
    fastest = _of_curl(measured).wall
    for name, one in measured.items():
        line = f"{name:<30}{one.median}{one.median.wall / fastest:>7.2f}x"
        if one.counts is not None:
            counts = one.counts
            line += f"{counts.body_bytes:>14,}{counts.requests:>10,}{counts.connections:>13}"
        print(line)


def _of_curl(measured: Mapping[str, Measured]) -> Cost:
    return measured[SIDE_BY_SIDE if SIDE_BY_SIDE in measured else CURL_FETCH].median


def _verdict(promise: str, kept: bool, seen: str) -> bool:
    print(f"{promise}: {seen}: {'yes' if kept else 'NO'}")
    return kept


def _as_fast_as_peers(
    work: str, measured: Mapping[str, Measured], *, files: str = "1,000 files", with_jf: bool = True
) -> bool:
    """Return whether a transfer costs at most the promised multiple of that with curl, and, if jf
    is installed, takes no longer than with jf.
    """
    way, theirs = (FIRST, JF) if FIRST in measured else (FETCH, JF_FETCH)
    ours = measured[way].median
    kept = costs.judge(f"{work}, against curl", ours / _of_curl(measured))
    if theirs in measured and with_jf:
        kept = costs.judge(f"{files}, against jf", ours / measured[theirs].median) and kept
    return kept


def _unchanged_is_cheap(what: str, measured: Mapping[str, Measured]) -> bool:
    first, again = measured[FIRST], measured[AGAIN]
    assert first.counts is not None
    assert again.counts is not None
    faster = "deploy 1,000 files again, faster than at first"
    kept = costs.judge(faster, first.median / again.median)
    promise = f"{what}: unchanged sends nothing, changed uses {PARALLEL} connections at most"
    seen = f"{again.counts.body_bytes} bytes, {first.counts.connections} connections"
    frugal = again.counts.body_bytes == 0 and first.counts.connections <= PARALLEL
    return _verdict(promise, frugal, seen) and kept


def _memory(folder: Path) -> list[bool]:
    """Return whether a huge file is deployed and downloaded completely within the memory limits."""
    huge, dest = _sparse(folder / "huge.bin", HUGE_BYTES), folder / "fetched.bin"
    with Server() as server:
        (deployed,) = deploying.deploy_all(server.url, [huge])
        huge.unlink()
        server.have_huge(HUGE_BYTES)
        fetched = fetching.fetch(server.url, "bench/huge.bin", str(dest))
    size = f"{HUGE_BYTES / 1024**3:g} GiB"
    kept = deployed.sent == HUGE_BYTES and deployed.peak < PROMISED_MEMORY
    promise = f"{size} deployed in less than {PROMISED_MEMORY:g} MiB"
    verdicts = [_verdict(promise, kept, f"{deployed.peak:.0f} MiB")]
    whole = fetched.received == dest.stat().st_size == HUGE_BYTES
    dest.unlink()
    promise = f"{size} fetched in less than {PROMISED_FETCH_MEMORY:g} MiB"
    kept = whole and fetched.peak < PROMISED_FETCH_MEMORY
    return [*verdicts, _verdict(promise, kept, f"{fetched.peak:.0f} MiB")]


def _many_in_little(folder: Path) -> list[bool]:
    """Return whether a folder of many files is deployed, and found unchanged, within the memory
    limits.
    """
    source = folder / "crowd"
    for number in range(MANY_FILES):
        path = source / f"{number % 500}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d" % number)
    with Server() as server:
        (first,), (again,) = (deploying.deploy_all(server.url, [source]) for _time in range(2))
    what = f"{MANY_FILES:,} files"
    kept = first.changed and first.peak < PROMISED_MEMORY_FIRST
    promise = f"{what} deployed in less than {PROMISED_MEMORY_FIRST:g} MiB"
    found = [_verdict(promise, kept, f"{first.peak:.0f} MiB in {first.seconds:.1f} s")]
    promise = f"{what} unchanged in less than {PROMISED_MEMORY_AGAIN:g} MiB"
    kept = not again.changed and again.peak < PROMISED_MEMORY_AGAIN
    found.append(_verdict(promise, kept, f"{again.peak:.0f} MiB"))
    unchanged = Cost(again.seconds, again.processor)
    return [*found, costs.judge("deploy 50,000 files again", unchanged)]


def _sparse(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


def _make_many(folder: Path) -> Path:
    for number in range(FILES):
        path = folder / f"{number % 10}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(FILE_BYTES))
    return folder


def _deploy_many(bench: Bench, target: Target, source: Path) -> list[bool]:
    what = f"{FILES:,} files of {FILE_BYTES // 1024} KiB, {target.name}"
    measured = bench.measure(target, source, ROUNDS)
    _print_table(what, measured)
    if target.delay is None:
        return [_as_fast_as_peers("deploy 1,000 files to the sandbox", measured)]
    is_real = target.delay >= _REAL_DELAY
    work = f"deploy 1,000 files, {1000 * target.delay:g} ms each"
    kept = _as_fast_as_peers(work, measured, with_jf=is_real)
    is_slow = target.delay >= _SLOW
    return [kept, *([_unchanged_is_cheap(what, measured)] if is_slow else [])]


def _fetch_many(bench: Bench, delay: float) -> list[bool]:
    """Compare downloads. The server takes a tenth of its delay for requests that only read."""
    with Server() as server, _target_of(server, delay * 10) as target:
        what = f"fetching {FILES:,} files of {FILE_BYTES // 1024} KiB, {1000 * delay:g} ms for each"
        measured = bench.measure_fetching(server, target)
        _print_table(what, measured, FETCH)
    again = measured[FETCH_AGAIN].counts
    assert again is not None
    promise = f"{what}: unchanged without a request for a file"
    frugal = _verdict(promise, again.requests <= 2, f"{again.requests} requests")
    work = f"download 1,000 files, {1000 * delay:g} ms each"
    return [_as_fast_as_peers(work, measured, with_jf=delay >= _REAL_DELAY), frugal]


def _fetch_big(bench: Bench) -> list[bool]:
    with Server() as server, _target_of(server, 0) as target:
        what = f"fetching one file of {BIG_BYTES / 1024**3:g} GiB"
        measured = bench.measure_fetching_one(server, target)
    _print_table(what, measured, FETCH)
    one = "a file of 2 GiB"
    return [_as_fast_as_peers(f"download {one}", measured, files=one)]


def _deploy_big(bench: Bench, target: Target, source: Path) -> list[bool]:
    what = f"one file of {BIG_BYTES / 1024**3:g} GiB, {target.name}"
    measured = bench.measure(target, source, BIG_ROUNDS)
    _print_table(what, measured)
    one = "a file of 2 GiB"
    return [_as_fast_as_peers(f"deploy {one}", measured, files=one)]


def run() -> bool:
    """Run the benchmarks. Return whether the promises are kept."""
    if find_jf() is None:
        print("jf is not there: neither on the path nor in peers/bin; nothing is compared with it")
    kept: list[bool] = []
    with tempfile.TemporaryDirectory(prefix="toolchain-bench-") as name:
        folder = Path(name)
        collections = folder / "collections"
        tree.link_tree(collections)
        bench = Bench(folder, collections)
        many, big = _make_many(folder / "many"), _sparse(folder / "big.bin", BIG_BYTES)
        for server in (*map(_discarding, DELAYS), _sandbox()):
            with server as target:
                kept += _deploy_many(bench, target, many)
        for delay in DELAYS:
            kept += _fetch_many(bench, delay)
        for server in (_discarding(0), _sandbox()):
            with server as target:
                kept += _deploy_big(bench, target, big)
        big.unlink()
        kept += _fetch_big(bench)
        kept += _memory(folder)
        kept += _many_in_little(folder)
    return all(kept)
