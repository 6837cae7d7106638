# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a real OpenSSH server on loopback. Its logins run the simulated commands of the CI server.

The server listens on its own port, with its own keys. If it runs as root, it needs an account and a
folder for privilege separation. It gets them in a separate mount namespace, so that the system
stays unchanged.
"""

from __future__ import annotations

import json
import os
import pwd
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.helpers import installed, programs

ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 60.0
_CONFIGURATION = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AuthorizedKeysFile {folder}/authorized_keys
ForceCommand {command}
"""
# In a mount namespace: add an account for privilege separation, and mount an empty /run.
_AS_ROOT = """\
mount --bind {folder}/passwd /etc/passwd
mount -t tmpfs tmpfs /run
mkdir /run/sshd
exec {command}
"""


# Newer servers run separate programs for a session. Their paths are compiled in.
_HELPERS = {"SshdSessionPath": "sshd-session", "SshdAuthPath": "sshd-auth"}


class SshServer:
    """A running server, a context manager; `options` connect to it with a key that it accepts.

    :param command: the command that a login runs. By default, it is the simulation of the CI
        server's commands, whose output depends on `seed`
    """

    def __init__(
        self, program: Path, seed: Mapping[str, Any], command: Sequence[str] | None = None
    ) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="sshd-")
        self.folder = Path(self._place.name)
        self.seed_file = self.folder / "seed.json"
        self.seed(seed)
        self.environment = {**os.environ, **installed.environment()}
        for name in ("host_key", "key", "other_key"):
            self._make_key(self.folder / name)
        (self.folder / "authorized_keys").write_bytes((self.folder / "key.pub").read_bytes())
        stand_in = ("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "sandbox.ci.commands")
        forced = (*stand_in, str(self.seed_file)) if command is None else command
        self.port = _free_port()
        self.known_hosts = self.folder / "known hosts"
        host_key = (self.folder / "host_key.pub").read_text(encoding="ascii")
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {host_key}", encoding="ascii")
        self._errors = (self.folder / "errors").open("wb")
        self._process = subprocess.Popen(
            self._command(program, forced),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
        )

    @property
    def options(self) -> dict[str, Any]:
        """Return the options of `ci_script` and `ci_plugin_info` for this server."""
        return {
            "transport": "ssh",
            "ssh_host": "127.0.0.1",
            "ssh_port": self.port,
            "ssh_user": pwd.getpwuid(os.getuid()).pw_name,
            "ssh_key": str(self.folder / "key"),
            "ssh_known_hosts": str(self.known_hosts),
        }

    def seed(self, seed: Mapping[str, Any]) -> None:
        """Set the data for the output of the commands; see `sandbox.ci.commands`."""
        self.seed_file.write_text(json.dumps(dict(seed)), encoding="utf-8")

    def state(self) -> dict[str, Any]:
        """Return the state that scripts changed."""
        found: dict[str, Any] = json.loads(self.seed_file.read_text(encoding="utf-8"))["state"]
        return found

    def wait(self) -> None:
        """Wait until the server listens. Raise RuntimeError with its error output if it
        does not.
        """
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError((self.folder / "errors").read_text(encoding="utf-8", errors="replace"))

    def _make_key(self, file: Path) -> None:
        program = installed.program("ssh-keygen")
        subprocess.run(
            [str(program), "-q", "-t", "ed25519", "-N", "", "-f", str(file)],
            env=self.environment,
            check=True,
            timeout=_START_SECONDS,
        )

    def _command(self, program: Path, forced: Sequence[str]) -> Sequence[str]:
        """Return the command that runs the server in the foreground. sshd requires its absolute
        path.
        """
        configuration = self.folder / "sshd_config"
        text = _CONFIGURATION.format(port=self.port, folder=self.folder, command=shlex.join(forced))
        for keyword, name in _HELPERS.items():
            helper = program.parents[1] / "lib" / "openssh" / name
            text += f"{keyword} {helper}\n" if helper.exists() else ""
        configuration.write_text(text, encoding="utf-8")
        command = [str(program), "-D", "-e", "-f", str(configuration)]
        if os.getuid() != 0:
            return command
        accounts = Path("/etc/passwd").read_text(encoding="utf-8")
        if "\nsshd:" not in accounts:
            accounts += "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"
        (self.folder / "passwd").write_text(accounts, encoding="utf-8")
        script = _AS_ROOT.format(folder=self.folder, command=shlex.join(command))
        return ["unshare", "--mount", "sh", "-e", "-c", script]

    def __enter__(self) -> SshServer:
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def kill(self) -> None:
        """Kill the server and all commands that run on it."""
        programs.kill(self._process.pid)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=_START_SECONDS)
        self._errors.close()
        self._place.cleanup()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
