# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the role `login_rotation` in playbooks.

`tests/faults/rotation.py` has a fault at every request of a rotation, also runs that are killed, and
two runs at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import issuers, playbook

Fresh = Callable[[str], Sandbox]

ROLE = {"name": "delivery.toolchain.login_rotation"}


def _named(variables: Mapping[str, Any]) -> dict[str, Any]:
    return {f"login_rotation_{name}": value for name, value in variables.items()}


class Servers:
    """The issuer of the tokens, the CI server that uses them, and runs of the role."""

    def __init__(self, sandbox: Sandbox, folder: Path, issuer: str = "repo", **login: str) -> None:
        self.sandbox, self.folder = sandbox, folder
        self.issuer = issuers.Issuer(sandbox, issuer, **login)
        self.issuer.prepare()

    def _play(
        self, tasks: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]
    ) -> dict[str, Any]:
        return playbook.play(
            tasks,
            module_defaults=self.issuer.module_defaults(),
            vars={**self.issuer.variables, **variables},
        )

    def run(self, *arguments: str, times: int = 1, **changes: Any) -> playbook.Run:
        """Run the role in one play, or several."""
        plays = [self._play([{"ansible.builtin.include_role": ROLE}], changes)] * times
        return playbook.run(self.folder, plays, arguments=["-vv", *arguments])

    def run_each(self, changes: Sequence[Mapping[str, Any]]) -> playbook.Run:
        """Run the role with each set of variables. A task `Failure N` shows why the Nth failed."""
        tasks = [
            {
                "block": [{"ansible.builtin.include_role": ROLE, "vars": _named(one)}],
                "rescue": [
                    {
                        "name": f"Failure {number}",
                        "ansible.builtin.debug": {"msg": "{{ ansible_failed_result | to_json }}"},
                    }
                ],
            }
            for number, one in enumerate(changes)
        ]
        return playbook.run(self.folder, [self._play(tasks, {})])

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

    def require_sound(self) -> None:
        """Verify that a token is valid, and that no credential holds a revoked one."""
        assert self.issuer.unsound() is None


@pytest.fixture
def servers(fresh: Fresh, tmp_path: Path) -> Servers:
    return Servers(fresh("real"), tmp_path)


def test_rotation_is_predicted(servers: Servers) -> None:
    old = servers.add_token()
    checked = servers.run("--check")
    assert checked.code == 0, checked.output
    assert (servers.tokens(), servers.held()) == ([old], [])


@pytest.mark.parametrize("issuer", ["repo", "ci"])
def test_login_is_rotated_and_then_unchanged(fresh: Fresh, tmp_path: Path, issuer: str) -> None:
    """`tests/faults/test_rotation.py` runs the role for every issuer, and again."""
    servers = Servers(fresh("real"), tmp_path, issuer)
    old, other = servers.add_token(), servers.add_token(name="ci-deployer-2")
    begin = servers.sandbox.mark()
    run = servers.run(times=2 if issuer == "repo" else 1)
    assert run.code == 0, run.output
    # the second run has written nothing
    assert servers.steps(begin) == ["create", "distribute", "prove", "revoke"]
    (token,) = servers.tokens()
    assert token != old
    assert servers.held() == [token, token]
    assert not issuers.SECRETS.search(run.output)
    assert servers.tokens("ci-deployer-2") == [other]


#: Variables that are rejected, with words of the message: before the first request, and after reads.
INVALID: list[tuple[dict[str, Any], str]] = [
    *(
        (
            {"issuer": issuer, option: ["reader"]},
            f"login_rotation_{option} has no effect on a token of '{issuer}'",
        )
        for issuer, option in (("tracker", "username"), ("tracker", "scopes"), ("ci", "scopes"))
    ),
    ({"credentials": []}, "has nothing to do: set login_rotation_credentials"),
    ({"credentials": "deployer"}, "login_rotation_credentials"),
    ({"credentials": [{"id": "x", "usrname": "y"}]}, "usrname"),
    ({"proof": "nowhere"}, "login_rotation_proof"),
    ({"renew_befor": "14d"}, "login_rotation_renew_before"),
]
NOWHERE: list[tuple[dict[str, Any], str]] = [
    ({"credentials": [{"id": "x", "folder": "nowhere"}]}, "nowhere"),
    ({"credentials": [{"id": "x", "domain": "nowhere"}]}, "nowhere"),
    ({"proof": {"job": "nowhere"}}, "nowhere"),
]


@pytest.mark.parametrize(("cases", "reads"), [(INVALID, False), (NOWHERE, True)])
def test_missing_place_or_invalid_input_creates_nothing(
    servers: Servers, cases: list[tuple[dict[str, Any], str]], reads: bool
) -> None:
    servers.add_token()
    begin = servers.sandbox.mark()
    run = servers.run_each([changes for changes, _words in cases])
    assert run.code == 0, run.output
    for number, (changes, words) in enumerate(cases):
        assert words in run.event(f"Failure {number}").result["msg"], changes
    assert bool(servers.sandbox.requests(since=begin)) is reads
    assert servers.steps(begin) == []


FAULTS: dict[str, dict[str, Any]] = {
    "token": {"service": "repo", "method": "POST", "path": "/tokens"},
    "first credential": {"service": "ci", "write": True, "path": "redential"},
}


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
    assert old in servers.tokens()


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
