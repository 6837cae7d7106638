# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the SSH command interface with a real OpenSSH server and simulated commands.

Needs the programs of Debian's packages openssh-server and openssh-client, and groovy for a single
test. Without these programs, a message reports that nothing was run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_plugin_info import (
    CiPluginInfoOperation,
    CiPluginInfoOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_script import (
    CiScriptOperation,
    CiScriptOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Operation
from tests.helpers import groovy, installed, playbook
from tests.helpers.options import build
from tests.helpers.ssh_server import SshServer
from tests.unit.ci.tasks import Run
from tests.unit.stub import Reply, Stub

SSHD, GROOVY = installed.program("sshd"), installed.program("groovy")
NOT_RUN = "no sshd on this machine: nothing was sent over SSH"
#: Nothing listens at this URL: commands over SSH need no HTTP.
NOWHERE = "http://127.0.0.1:9/ci"
SECRET = "script-argument-secret"
SEED: dict[str, Any] = {
    "plugins": [
        {"shortName": "git", "longName": "Git plugin", "version": "5.2.2", "hasUpdate": True},
        {"shortName": "ant", "longName": "Ant Plugin", "version": "1.13", "enabled": False},
    ],
    "scripts": [
        {"match": "isDone", "when": {"done": True}, "result": True},
        {"match": "isDone", "result": False},
        {"match": "makeDone", "output": "made ${what}\n", "sets": {"done": True}},
        {"match": "notCompiled", "throws": "MultipleCompilationErrorsException: startup failed"},
    ],
}
# Do the same as the server for `groovy =` [ci-17], with its default character set.
DRIVER = """
import java.nio.charset.Charset

def text = System.in.getText(Charset.defaultCharset().name())
def names = new Binding()
names.setProperty('out', new PrintWriter(System.out, true))
new GroovyShell(names).run(text, 'RemoteClass', [] as String[])
"""
#: Wrap the real client and record its arguments.
NOTING = """#!/bin/sh
printf '%s\\n' "$@" >>"{log}"
exec "{program}" "$@"
"""


@pytest.fixture(scope="module")
def running() -> Iterator[SshServer | None]:
    if SSHD is None:
        yield None
        return
    with SshServer(SSHD, SEED) as server:
        yield server


@pytest.fixture
def server(
    running: SshServer | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> SshServer | None:
    """Return the server with its first seed. The client in the path records its arguments."""
    if running is None:
        print(NOT_RUN)
        return None
    running.seed(SEED)
    _use_client(monkeypatch, tmp_path)
    return running


def _use_client(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    client = folder / "bin" / "ssh"
    client.parent.mkdir()
    program = installed.program("ssh")
    client.write_text(NOTING.format(log=folder / "called", program=program), encoding="utf-8")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{client.parent}{os.pathsep}{os.environ['PATH']}")
    for name, value in installed.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def scripts(given: Mapping[str, Any]) -> Callable[[Task], Operation]:
    options = build(CiScriptOptions, **given)
    return lambda task: CiScriptOperation(task, options)


def plugins(given: Mapping[str, Any]) -> Callable[[Task], Operation]:
    options = build(CiPluginInfoOptions, **given)
    return lambda task: CiPluginInfoOperation(task, options)


def play(
    operation: Callable[[Task], Operation],
    *,
    read_only: bool = False,
    timeout: float = 60,
    url: str = NOWHERE,
) -> tuple[dict[str, Any], Run]:
    run = Run(url, read_only, {"retries": 0, "timeout": timeout})
    return run.play(operation), run


def script(server: SshServer, text: str, **options: Any) -> dict[str, Any]:
    read_only = options.pop("read_only", False)
    values, run = play(scripts({**server.options, "script": text, **options}), read_only=read_only)
    assert run.warnings == []
    return values


def failure(operation: Callable[[Task], Operation]) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        play(operation)
    assert caught.value.url is not None
    assert caught.value.url.startswith("ssh://127.0.0.1:")
    return caught.value


def test_script_gets_arguments_and_returns_its_value(
    server: SshServer | None, tmp_path: Path
) -> None:
    if server is None:
        return
    arguments = {"name": "Zoë '\"$(id)\\", "api_token": SECRET}
    values = script(
        server, "println args.name\nreturn [changed: false, x: [1, args.name]]", arguments=arguments
    )
    assert values["output"] == arguments["name"]
    assert values["result"] == {"changed": False, "x": [1, arguments["name"]]}
    assert values["changed"] is False
    called = (tmp_path / "called").read_text(encoding="utf-8")
    assert called.endswith("--\n127.0.0.1\ngroovy =\n")
    assert SECRET not in called
    assert "BatchMode=yes" in called


def test_unless_and_check_mode_work_over_ssh(server: SshServer | None) -> None:
    if server is None:
        return
    options = {"unless": "isDone()", "arguments": {"what": "it"}}
    assert script(server, "makeDone()", read_only=True, **options)["changed"] is True
    assert server.state() == {}
    assert script(server, "makeDone()", **options)["output"] == "made it"
    assert server.state() == {"done": True}
    assert script(server, "makeDone()", **options)["changed"] is False


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "println 'before'\nthrow new IllegalStateException('no')",
            "IllegalStateException: no (line 2)",
        ),
        ("notCompiled()", "MultipleCompilationErrorsException"),
    ],
)
def test_exception_in_a_script_is_an_error(server: SshServer | None, text: str, words: str) -> None:
    if server is None:
        return
    error = failure(scripts({**server.options, "script": text}))
    assert error.kind == "failed"
    assert words in error.message
    assert error.status is None
    exited = failure(scripts({**server.options, "script": "System.exit(0)"}))
    assert exited.kind == "protocol"


def test_plugins_are_listed_with_updates(server: SshServer | None) -> None:
    if server is None:
        return
    required = {"git": "5.3", "ant": "1.13", "matrix-auth": "1.0"}
    values, run = play(plugins({**server.options, "required": required}))
    assert [(plugin["short_name"], plugin["has_update"]) for plugin in values["plugins"]] == [
        ("ant", False),
        ("git", True),
    ]
    assert values["missing"] == ["matrix-auth"]
    assert values["outdated"] == [{"name": "git", "installed": "5.2.2", "required": "5.3"}]
    assert values["inactive"] == []
    assert "does not report which plugins are disabled" in run.warnings[0]


def test_exit_status_decides_the_error_kind(server: SshServer | None) -> None:
    if server is None:
        return
    server.seed({"denied": True})
    error = failure(plugins(server.options))
    assert error.kind == "permission"
    assert "Overall/Administer" in error.message


def test_failed_connections_have_their_error_kind(server: SshServer | None, tmp_path: Path) -> None:
    if server is None:
        return
    strangers = tmp_path / "strangers"
    other = (server.folder / "other_key.pub").read_text(encoding="ascii")
    strangers.write_text(f"[127.0.0.1]:{server.port} {other}", encoding="ascii")
    empty = tmp_path / "empty"
    empty.touch()
    for options, kind, words in (
        ({"ssh_key": str(server.folder / "other_key")}, "auth", "check ssh_user and ssh_key"),
        ({"ssh_known_hosts": str(empty)}, "network", "not in known_hosts"),
        ({"ssh_known_hosts": None}, "network", "not in known_hosts"),
        ({"ssh_known_hosts": str(strangers)}, "network", "host"),
        ({"ssh_port": 9}, "network", "check ssh_host and ssh_port"),
    ):
        error = failure(scripts({**server.options, "script": "println 1", **options}))
        assert (error.kind, error.outcome_unknown) == (kind, False), error.message
        assert words in error.message


def test_slow_command_times_out(server: SshServer | None) -> None:
    if server is None:
        return
    server.seed({**SEED, "seconds": 3})
    with pytest.raises(ToolchainError) as caught:
        play(scripts({**server.options, "script": "println 1"}), timeout=1)
    assert caught.value.kind == "timeout"
    assert caught.value.outcome_unknown
    assert "is not known" in caught.value.message


def test_port_is_read_from_the_server(server: SshServer | None) -> None:
    if server is None:
        return
    headers = {"X-SSH-Endpoint": f"inner.example:{server.port}"}
    options = {**server.options, "ssh_port": None, "ssh_host": None}
    with Stub(Reply(200, "<html>Sign in</html>", headers)) as stub:
        values, _run = play(plugins(options), url=stub.url)
        assert [seen.path for seen in stub.seen] == ["/base/login"]
    assert len(values["plugins"]) == 2
    with (
        Stub(Reply(200, "<html>Sign in</html>")) as stub,
        pytest.raises(ToolchainError, match="set ssh_port") as caught,
    ):
        play(plugins(options), url=stub.url)
    assert caught.value.kind == "not_found"


def test_modules_connect_in_process_and_in_a_separate_process(
    server: SshServer | None, tmp_path: Path
) -> None:
    if server is None:
        return
    arguments = {"url": NOWHERE, **server.options, "timeout": 60}
    tasks = []
    for way in (True, False):
        variables = {"toolchain_in_process": way}
        arguments["script"] = "println 'über'\nreturn [changed: false]"
        tasks.append(playbook.task("ci_script", arguments, f"script {way}", vars=variables))
        listing = {name: value for name, value in arguments.items() if name != "script"}
        tasks.append(playbook.task("ci_plugin_info", listing, f"plugins {way}", vars=variables))
    run = playbook.run(tmp_path, [playbook.play(tasks)])
    for way in (True, False):
        done = run.event(f"script {way}").result
        assert (done["output"], done["changed"]) == ("über", False), done
        assert done["http"]["requests"] == 0
        assert len(run.event(f"plugins {way}").result["plugins"]) == 2


def test_real_groovy_runs_behind_real_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify complete output even if the server's character set lacks some characters."""
    if SSHD is None or GROOVY is None:
        print(NOT_RUN)
        return
    driver = tmp_path / "driver.groovy"
    driver.write_text(DRIVER, encoding="utf-8")
    variables = {
        **installed.environment(),
        "JAVA_OPTS": f"{groovy.OPTIONS} -Dfile.encoding=ISO-8859-1",
    }
    assigned = [f"{name}={value}" for name, value in variables.items()]
    command = ("env", *assigned, str(GROOVY), str(driver))
    _use_client(monkeypatch, tmp_path)
    with SshServer(SSHD, {}, command) as server:
        options = {"arguments": {"name": "größe 漢字"}}
        values = script(server, "println 'ü ' + args.name\n[a: args.name]", **options)
        assert values["output"] == "ü größe 漢字"
        assert values["result"] == {"a": "größe 漢字"}
        error = failure(scripts({**server.options, "script": "println 'ä'\nif ("}))
    assert error.kind == "failed"
    assert "MultipleCompilationErrorsException" in error.message
