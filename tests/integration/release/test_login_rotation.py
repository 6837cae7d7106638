# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the role `login_rotation` in playbooks. `tests/faults/rotation.py` has a fault at every
request of a rotation.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import issuers, playbook, programs

Fresh = Callable[[str], Sandbox]

_SECONDS = 120
#: Seconds for which a server holds back a response; the run is killed before.
_HELD_BACK = 60.0


class Servers:
    """The issuer of the tokens, the CI server that uses them, and runs of the role."""

    def __init__(self, sandbox: Sandbox, folder: Path, issuer: str = "repo", **login: str) -> None:
        self.sandbox, self.folder = sandbox, folder
        self.issuer = issuers.Issuer(sandbox, issuer, **login)
        self.issuer.prepare()

    def _play(self, variables: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "hosts": "localhost",
            "gather_facts": False,
            "module_defaults": self.issuer.module_defaults(**options),
            "roles": [{"role": "delivery.toolchain.login_rotation"}],
            "vars": {**self.issuer.variables, **variables},
        }

    def run(
        self, *arguments: str, options: Mapping[str, Any] | None = None, **changes: Any
    ) -> playbook.Run:
        """Run the role; `options` are further options of the connections."""
        play = self._play(changes, options or {})
        return playbook.run(self.folder, [play], arguments=["-vv", *arguments])

    def kill(self, fault: Mapping[str, Any]) -> None:
        """Run the role, and kill all of its processes while a server holds back a response."""
        path = self.folder / "killed.json"
        path.write_text(json.dumps([self._play({}, {})]), encoding="utf-8")
        self.sandbox.fault(**fault, late=_HELD_BACK)
        environment = playbook.environment(self.folder)
        del environment["ANSIBLE_CALLBACKS_ENABLED"]
        with subprocess.Popen(
            [str(Path(sys.executable).parent / "ansible-playbook"), str(path)],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                deadline = time.monotonic() + _SECONDS
                while self.sandbox.pending_faults() and process.poll() is None:
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
                assert process.poll() is None
            finally:
                programs.kill(process.pid)

    def add_token(self, name: str = issuers.NAME) -> str:
        return str(self.issuer.add(name=name)["id"])

    def tokens(self, name: str = issuers.NAME) -> list[str]:
        return self.issuer.tokens(name)

    def steps(self, since: int) -> list[str]:
        """Return the steps of a rotation after a mark, in the order of their writes."""
        names = {"redential": "distribute", "/revoke": "revoke", "/job/": "prove"}
        found: list[str] = []
        for write in self.sandbox.requests(since=since, writes=True):
            other = "revoke" if write["method"] == "DELETE" else "create"
            step = next((names[part] for part in names if part in write["path"]), other)
            found += [step] if found[-1:] != [step] else []
        return found

    def held(self) -> list[str]:
        return self.issuer.held()

    def require_rotated(self, old: str, runs: int = 2) -> None:
        """Verify that the next runs end with exactly one token, which all credentials hold."""
        for _run in range(runs):
            run = self.run()
            assert run.code == 0, run.output
            self.require_sound()
            if self.issuer.unfinished(old) is None:
                return
        assert self.issuer.unfinished(old) is None

    def require_sound(self) -> None:
        """Verify that a token is valid, and that no credential holds a revoked one."""
        assert self.issuer.unsound() is None


@pytest.fixture
def servers(fresh: Fresh, tmp_path: Path) -> Servers:
    return Servers(fresh("real"), tmp_path)


@pytest.mark.parametrize("issuer", issuers.LISTS)
def test_login_is_rotated_and_then_unchanged(fresh: Fresh, tmp_path: Path, issuer: str) -> None:
    servers = Servers(fresh("real"), tmp_path, issuer)
    old, other = servers.add_token(), servers.add_token(name="ci-deployer-2")
    checked = servers.run("--check")
    assert checked.code == 0, checked.output
    assert (servers.tokens(), servers.held()) == ([old], [])
    begin = servers.sandbox.mark()
    run = servers.run()
    assert run.code == 0, run.output
    assert servers.steps(begin) == ["create", "distribute", "prove", "revoke"]
    (token,) = servers.tokens()
    assert token != old
    assert servers.held() == [token, token]
    assert not issuers.SECRETS.search(run.output)
    begin = servers.sandbox.mark()
    run = servers.run()
    assert run.code == 0, run.output
    assert [request for request in servers.sandbox.requests(since=begin) if request["write"]] == []
    assert servers.tokens() == [token]
    assert servers.tokens("ci-deployer-2") == [other]


@pytest.mark.parametrize(
    ("issuer", "option"), [("tracker", "username"), ("tracker", "scopes"), ("ci", "scopes")]
)
def test_options_of_another_issuer_are_refused(servers: Servers, issuer: str, option: str) -> None:
    begin = servers.sandbox.mark()
    given: dict[str, Any] = {
        "login_rotation_issuer": issuer,
        f"login_rotation_{option}": ["reader"],
    }
    run = servers.run(**given)
    assert run.code == 2
    assert f"login_rotation_{option} has no effect on a token of '{issuer}'" in run.output
    assert servers.sandbox.requests(since=begin) == []


FAULTS: dict[str, dict[str, Any]] = {
    "token": {"service": "repo", "method": "POST", "path": "/tokens"},
    "first credential": {"service": "ci", "write": True, "path": "redential"},
    "second credential": {"service": "ci", "write": True, "path": "redential", "skip": 1},
}


def test_killed_run_is_continued(servers: Servers) -> None:
    old = servers.add_token()
    servers.kill(FAULTS["second credential"])
    servers.require_sound()
    servers.require_rotated(old)


def test_stopped_run_is_continued(servers: Servers) -> None:
    old = servers.add_token()
    servers.sandbox.fault(**FAULTS["first credential"], status=500, times=99)
    assert servers.run().code == 2
    servers.require_sound()
    servers.sandbox.clear_faults()
    run = servers.run()
    assert run.code == 0, run.output
    (token,) = servers.tokens()
    assert token != old
    assert servers.held() == [token, token]


def test_failed_proof_revokes_nothing(servers: Servers) -> None:
    old = servers.add_token()
    servers.sandbox.fault(service="ci", write=True, path="/build", status=403, times=9)
    assert servers.run().code == 2
    servers.require_sound()
    assert len(servers.tokens()) == 2
    (new,) = set(servers.tokens()) - {old}
    servers.sandbox.clear_faults()
    run = servers.run()
    assert run.code == 0, run.output
    assert servers.tokens() == [new]


def test_missing_place_or_invalid_input_creates_nothing(servers: Servers) -> None:
    servers.add_token()
    begin = servers.sandbox.mark()
    places: list[tuple[dict[str, Any], str]] = [
        ({"credentials": [{"id": "x", "folder": "nowhere"}]}, "nowhere"),
        ({"credentials": [{"id": "x", "domain": "nowhere"}]}, "nowhere"),
        ({"proof": {"job": "nowhere"}}, "nowhere"),
        ({"credentials": []}, "has nothing to do: set login_rotation_credentials"),
        ({"credentials": "deployer"}, "login_rotation_credentials"),
        ({"credentials": [{"id": "x", "usrname": "y"}]}, "usrname"),
        ({"proof": "nowhere"}, "login_rotation_proof"),
        ({"renew_befor": "14d"}, "login_rotation_renew_before"),
    ]
    for changes, words in places:
        run = servers.run(**{f"login_rotation_{name}": one for name, one in changes.items()})
        assert run.code == 2, words
        assert words in run.output
    assert servers.steps(begin) == []


def test_nothing_is_built_without_a_proof(servers: Servers) -> None:
    begin = servers.sandbox.mark()
    run = servers.run(login_rotation_proof=None)
    assert run.code == 0, run.output
    assert servers.steps(begin) == ["create", "distribute"]


def test_reason_of_a_refused_token_is_shown(servers: Servers) -> None:
    refusal = {"errors": [{"code": "FORBIDDEN", "message": "no more tokens"}]}
    servers.sandbox.fault(**FAULTS["token"], status=403, body=refusal, times=9)
    run = servers.run()
    assert run.code == 2
    assert "no more tokens" in run.output


def test_new_token_that_is_due_already_is_an_error(servers: Servers) -> None:
    old = servers.add_token()
    run = servers.run(login_rotation_expires_in="{{ omit }}", login_rotation_renew_before="400d")
    assert run.code == 2
    assert "set a longer login_rotation_expires_in" in run.output
    servers.require_sound()
    assert old not in servers.tokens()


def test_rotation_keeps_the_token_of_its_login(servers: Servers) -> None:
    made = servers.issuer.add(token_username="admin")
    own = Servers(servers.sandbox, servers.folder, token=made["value"])
    run = own.run(login_rotation_username="admin")
    assert run.code == 0, run.output
    assert "because the task is logged in with it" in run.output
    assert made["id"] in servers.tokens()
    assert len(servers.tokens()) == 2


def test_concurrent_runs_keep_every_used_token(servers: Servers, tmp_path: Path) -> None:
    """Verify that neither revokes a token that a credential holds, and that the next run mends."""
    servers.add_token()
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    both = [Servers(servers.sandbox, folder) for folder in folders]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda each: each.run(), both))
    servers.require_sound()
    run = servers.run()
    assert run.code == 0, run.output
    (token,) = servers.tokens()
    assert servers.held() == [token, token]
