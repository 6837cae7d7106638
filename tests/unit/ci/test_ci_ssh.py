# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the command line of the SSH client and the interpretation of its exit, with a simulated
client.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.ssh_commands import (
    SshCommands,
    SshOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.helpers.options import build as options_of
from tests.unit.ci.tasks import TOKEN, Run

CLIENT = """#!/bin/sh
printf '%s\\n' "$@" >{folder}/called
cat >{folder}/given
cat {folder}/output
cat {folder}/words >&2
exit "$(cat {folder}/code)"
"""


class Client:
    """A fake `ssh` program on the PATH. `says` sets its exit status and output."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        program = folder / "ssh"
        program.write_text(CLIENT.format(folder=folder), encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        self.says()

    def says(self, code: int = 0, output: str = "", words: str = "") -> None:
        for name, text in (("code", str(code)), ("output", output), ("words", words)):
            (self.folder / name).write_text(text, encoding="utf-8")

    @property
    def called(self) -> list[str]:
        return (self.folder / "called").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    return Client(tmp_path, monkeypatch)


def run(*, reads: bool = True, read_only: bool = False, stdin: str = "", **options: Any) -> str:
    chosen = options_of(SshOptions, ssh_port=2222, **options)
    task = Run("https://ci.example:8443/ci", read_only).task
    return SshCommands(task, chosen).run("doing it", "groovy =", reads=reads, stdin=stdin).output


def failure(**options: Any) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        run(**options)
    return caught.value


def test_connection_provides_the_defaults(client: Client) -> None:
    client.says(output="größe\n")
    assert run(stdin="ein größerer Text") == "größe\n"
    assert (client.folder / "given").read_text(encoding="utf-8") == "ein größerer Text"
    assert client.called[-5:] == ["-l", "builder", "--", "ci.example", "groovy ="]
    assert client.called[client.called.index("-p") + 1] == "2222"
    for option in ("BatchMode=yes", "StrictHostKeyChecking=yes", "ConnectTimeout=5"):
        assert option in client.called
    assert not [each for each in client.called if each.startswith(("Identity", "UserKnown"))]
    assert TOKEN not in "\n".join(client.called)


def test_file_names_are_passed_literally(client: Client) -> None:
    file = client.folder / "a key 100%"
    file.touch()
    run(ssh_key=str(file), ssh_known_hosts=str(file), ssh_host="ssh.example", ssh_user="u@x")
    shown = str(file).replace("%", "%%")
    assert f'IdentityFile="{shown}"' in client.called
    assert "IdentitiesOnly=yes" in client.called
    assert f'UserKnownHostsFile="{shown}"' in client.called
    assert client.called[-4:] == ["u@x", "--", "ssh.example", "groovy ="]


def test_writing_command_is_not_sent_in_check_mode(client: Client) -> None:
    assert failure(reads=False, read_only=True).kind == "invalid"
    assert not (client.folder / "called").exists()
    assert run(reads=True, read_only=True) == ""


@pytest.mark.parametrize(
    ("code", "words", "kind", "lost"),
    [
        (255, "u@h: Permission denied (publickey).", "auth", False),
        (255, "Received disconnect: 2: Too many authentication failures", "auth", False),
        (255, "Host key verification failed.", "network", False),
        (255, "ssh: connect to host h port 22: Connection refused", "network", False),
        (255, "ssh: Could not resolve hostname h: Name or service not known", "network", False),
        (255, "ssh: connect to host h port 22: Connection timed out", "timeout", False),
        (255, "Connection to h closed by remote host.", "network", True),
        (1, "ERROR: Unexpected exception", "failed", False),
        (2, "ERROR: No such command", "failed", False),
        (6, "ERROR: u is missing the Overall/Administer permission", "permission", False),
        (7, "ERROR: bad credentials", "auth", False),
    ],
)
def test_exit_status_decides_kind_and_outcome(
    client: Client, code: int, words: str, kind: str, lost: bool
) -> None:
    client.says(code, "", f"{words}\n")
    for reads in (True, False):
        error = failure(reads=reads)
        assert (error.kind, error.outcome_unknown) == (kind, lost and not reads)
        assert words in error.message
        assert error.detail == words
        assert error.url == "ssh://ci.example:2222"
        assert ("is not known" in error.message) is (lost and not reads)


@pytest.mark.parametrize(("code", "begun"), [(0, 1), (1, 1), (2, 0), (6, 0), (7, 0), (255, 0)])
def test_command_that_did_not_start_changed_nothing(client: Client, code: int, begun: int) -> None:
    client.says(code)
    task = Run("https://ci.example").task
    with suppress(ToolchainError):
        SshCommands(task, SshOptions(ssh_port=2222)).run("doing it", "groovy =", reads=False)
    assert task.accounting.acknowledged == begun


def test_secret_in_the_output_is_not_shown(client: Client) -> None:
    client.says(1, "", f"no {TOKEN}\n")
    assert TOKEN not in failure().message


@pytest.mark.parametrize(
    "options",
    [
        {"ssh_host": "-oProxyCommand=x"},
        {"ssh_host": "a b"},
        {"ssh_host": "$(id)"},
        {"ssh_user": "-x"},
        {"ssh_user": ""},
        {"ssh_key": "/no/such/key"},
        {"ssh_known_hosts": "/no/such/file"},
    ],
)
def test_invalid_options_are_rejected(client: Client, options: dict[str, Any]) -> None:
    assert failure(**options).kind == "invalid"
    assert not (client.folder / "called").exists()


def test_missing_client_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = failure()
    assert error.kind == "invalid"
    assert "OpenSSH" in error.message
