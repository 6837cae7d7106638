# SPDX-License-Identifier: GPL-3.0-or-later
"""Who runs slices: what may be written, and what a slip says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices import workers
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.workers import (
    SlicesError,
    Worker,
    settings,
)
from tests.helpers import playbook

TAKES = "a worker is local, ssh:HOST or receptor:NODE."
GOOD: list[tuple[Any, Any, tuple[int, list[str]]]] = [
    (None, "local, ssh:me@build1", (2, ["local", "ssh:me@build1"])),
    (7, ["receptor:node-1.example.com"], (7, ["receptor:node-1.example.com"])),
    (" 4 ", ["ssh:[::1]", "local", "local"], (4, ["ssh:[::1]", "local", "local"])),
    (1, None, (1, ["local"])),
]
SLIPS: list[tuple[Any, Any, str]] = [
    (0, None, "drift_slices is a whole number of at least 1, not 0."),
    (True, None, "drift_slices is a whole number of at least 1, not True."),
    (2.5, "local", "drift_slices is a whole number of at least 1, not 2.5."),
    ("", "local", "drift_slices is a whole number of at least 1, not ''."),
    ("many", "local", "drift_slices is a whole number of at least 1, not 'many'."),
    (None, "", f"drift_workers[0] is '': {TAKES}"),
    (None, [], f"drift_workers is a list of workers, not []: {TAKES}"),
    (None, 4, f"drift_workers is a list of workers, not 4: {TAKES}"),
    (None, ["local", "shh:a"], f"drift_workers[1] is 'shh:a' (is ssh meant?): {TAKES}"),
    (None, "local:a", f"drift_workers[0] is 'local:a': {TAKES}"),
    (None, "ssh", f"drift_workers[0] is 'ssh': {TAKES}"),
    (None, ["ssh:-oProxyCommand=x"], f"drift_workers[0] is 'ssh:-oProxyCommand=x': {TAKES}"),
    (None, ["ssh:a; reboot"], f"drift_workers[0] is 'ssh:a; reboot': {TAKES}"),
    (None, [{"name": "a"}], f"drift_workers[0] is {{'name': 'a'}}: {TAKES}"),
]


@pytest.mark.parametrize(("count", "named", "meant"), GOOD)
def test_workers_and_slices(count: Any, named: Any, meant: tuple[int, list[str]]) -> None:
    number, found = settings(count, named)
    assert (number, [str(each) for each in found]) == meant


@pytest.mark.parametrize(("count", "named", "sentence"), SLIPS)
def test_a_slip_is_one_sentence(count: Any, named: Any, sentence: str) -> None:
    with pytest.raises(SlicesError) as caught:
        settings(count, named)
    assert str(caught.value) == sentence


def test_connections_of_the_environment_are_in_the_stream_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOLCHAIN_CI_PASSWORD", "not-for-processes")
    monkeypatch.setenv("PATH", "/somewhere")
    environment = Worker("local").environment()
    assert "not-for-processes" not in environment.values()
    assert environment["PATH"].endswith(":/somewhere")
    assert playbook.collections_path() == Path(
        environment["ANSIBLE_COLLECTIONS_PATH"].split(":")[0]
    )


def test_whether_a_lost_slice_may_still_run() -> None:
    lost = "ERROR: Remote unit failed: exit status 143"
    assert Worker("local").has_ended(143, "")
    assert not Worker("local").has_ended(-9, "")  # its children go on
    assert Worker("ssh", "a").has_ended(1, "")
    assert not Worker("ssh", "a").has_ended(-15, "")
    assert not Worker("ssh", "a").has_ended(255, "Connection reset by peer")
    assert Worker("receptor", "a").has_ended(1, lost)
    assert not Worker("receptor", "a").has_ended(1, "ERROR: [Errno 111] Connection refused")


def test_the_command_of_a_machine_behind_ssh_is_a_script_for_its_shell(tmp_path: Path) -> None:
    runner = tmp_path / "ansible-runner"
    runner.write_text('#!/bin/sh\nls -ld "$TMPDIR"; echo "$@"; cat; exit 7\n')
    runner.chmod(0o755)
    folder = tmp_path / "toolchain-slice-1"
    command = Worker("ssh", "build1").command(str(folder))
    assert command[0] == "ssh"
    assert command[-2] == "build1"
    ran = subprocess.run(
        ["sh", "-c", command[-1]],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        input="the stream",
        text=True,
        capture_output=True,
        check=False,
    )
    listed, arguments, stream = ran.stdout.splitlines()
    assert listed.startswith("drwx------")
    assert (arguments, stream) == (
        f"worker --keepalive-seconds 20 --private-data-dir {folder}/data",
        "the stream",
    )
    assert (ran.returncode, folder.exists()) == (7, False)


def test_the_script_takes_no_folder_of_others(tmp_path: Path) -> None:
    there = tmp_path / "toolchain-slice-1"
    there.mkdir()
    (there / "kept").touch()
    for folder, status in ((there, 73), (tmp_path, 64)):
        ran = subprocess.run(
            ["sh", str(workers.SCRIPT), str(folder)], capture_output=True, check=False
        )
        assert ran.returncode == status
    assert (there / "kept").exists()


def test_what_a_worker_started_ends_with_it_whatever_grep_says(tmp_path: Path) -> None:
    """A process that ends while grep looks makes its status 2: what it has found counts."""
    folder = tmp_path / "toolchain-slice-1"
    left, grep = tmp_path / "left", shutil.which("grep")
    programs = {
        "ansible-runner": f"#!/bin/sh\nsleep 600 & echo $! >{left}\n",
        "grep": f'#!/bin/sh\n{grep} "$@"; exit 2\n',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    subprocess.run(
        ["sh", str(workers.SCRIPT), str(folder)],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )
    state = Path("/proc") / left.read_text("utf-8").strip() / "stat"
    # whoever takes care of orphans here may not have buried it yet
    assert not state.exists() or state.read_text("utf-8").rpartition(")")[2].split()[0] == "Z"
