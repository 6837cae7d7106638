# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the acceptance suites on the sandbox, and their parts on servers that others wrote."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, hudson, installed, nginx
from tools import acceptance

Fresh = Callable[[str], Sandbox]

VALUES = {
    "analysis": {},
    "registry": {"repo": "docker-release-local", "image": "delivery/agent"},
    "ci": {},
    "repo": {"repo": "generic-staging-local"},
    "tracker": {"project": "REL"},
    "wiki": {"space": "REL", "title": "Handbook"},
}


def failed(outcomes: list[acceptance.Outcome]) -> list[acceptance.Outcome]:
    assert outcomes
    return [outcome for outcome in outcomes if not outcome.passed]


def test_every_service_has_a_suite() -> None:
    assert {file.stem for file in acceptance.SUITES.glob("*.yml")} == set(VALUES)


@pytest.mark.parametrize("service", VALUES)
def test_sandbox_passes(service: str, fresh: Fresh) -> None:
    sandbox = fresh("real")
    kind = acceptance.service_of(service)
    login = connections.connection(kind, sandbox.urls[kind])
    begin = sandbox.mark()
    assert failed(acceptance.run(service, login, VALUES[service], write=False)) == []
    assert [request for request in sandbox.requests(since=begin) if request["write"]] == []
    outcomes = acceptance.run(service, login, VALUES[service], write=True)
    assert failed(outcomes) == []
    deleted = any(outcome.step.name == "delete again" for outcome in outcomes)
    assert deleted == (service != "registry")


def test_objects_are_deleted_after_a_failure(fresh: Fresh) -> None:
    sandbox = fresh("real")
    sandbox.fault(service="wiki", method="PUT", status=403, times=9)
    login = connections.connection("wiki", sandbox.urls["wiki"])
    outcomes = acceptance.run("wiki", login, VALUES["wiki"], write=True, only=["wiki_page"])
    names = [one.step.name for one in failed(outcomes)]
    assert names == ["update", "update again"]
    assert "| wiki_page | update | FAILED | permission: " in acceptance.table(
        outcomes, sandbox.urls["wiki"]
    )


@pytest.mark.skipif(
    installed.java_files("hudson") is None, reason="no Java and Maven on this machine"
)
def test_another_ci_server_passes(ci_server: hudson.Hudson) -> None:
    login = {"url": ci_server.url, "username": hudson.USER, "password": hudson.PASSWORD}
    assert failed(acceptance.run("ci", login, {}, write=True, only=["ci_job"])) == []


@pytest.mark.skipif(nginx.PROGRAM is None, reason="no nginx on this machine")
def test_plain_store_passes(plain_store: nginx.Store) -> None:
    (plain_store.files / "accepted").mkdir()
    login = {"username": nginx.USER, "password": nginx.PASSWORD, "dialect": "generic"}
    outcomes = acceptance.run(
        "repo",
        {"url": plain_store.url, **login},
        {"repo": "accepted"},
        write=True,
        only=["artifact_deploy"],
    )
    # such a store shows no digests, and no list by which a deletion could be verified
    assert {one.step.name for one in failed(outcomes)} == {
        *("create again", "update again"),
        *("delete", "delete again"),
    }


def test_missing_and_unknown_values_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    for given, said in (
        (["wiki", "http://127.0.0.1:1", "title=x"], "give space=..., the key of a space"),
        (["ci", "http://127.0.0.1:1", "space=REL"], "space: not known"),
    ):
        with pytest.raises(SystemExit):
            acceptance.main(given)
        assert said in capsys.readouterr().err


def test_unavailable_server_fails_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert acceptance.main(["wiki", "http://127.0.0.1:1", "space=REL", "title=x"]) == 1
    printed = capsys.readouterr().out
    assert "| FAILED | " in printed
    assert "127.0.0.1:1" not in printed.splitlines()[2]
