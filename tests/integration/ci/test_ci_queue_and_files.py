# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the cancellation of queue items, and builds with file parameters."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds.ci_artifact import (
    CiArtifactOperation,
    CiArtifactOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds.ci_build_stop import (
    CiBuildStopOperation,
    CiBuildStopOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds.ci_job_build import (
    CiJobBuildOperation,
    CiJobBuildOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs.ci_job import (
    CiJobOperation,
    CiJobOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from sandbox.client import Sandbox
from tests.helpers.options import build as options_of
from tests.unit.ci.tasks import Run

TOKEN = "builder-api-token-1234567890"


class Ci:
    """Run tasks against a sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.played = Run("")

    def play(self, operation: Any, options: Any, check: bool, **given: Any) -> dict[str, Any]:
        self.played = Run(self.sandbox.urls["ci"], check, token=TOKEN)
        chosen = options_of(options, **given)
        return self.played.play(lambda task: operation(task, chosen))

    def build(self, *, check: bool = False, **given: Any) -> dict[str, Any]:
        given = {"poll_interval": 0.05, **given}
        return self.play(CiJobBuildOperation, CiJobBuildOptions, check, **given)

    def cancel(self, *, check: bool = False, **given: Any) -> dict[str, Any]:
        return self.play(CiBuildStopOperation, CiBuildStopOptions, check, **given)

    def fetch(self, **given: Any) -> dict[str, Any]:
        return self.play(CiArtifactOperation, CiArtifactOptions, False, **given)

    def writes(self) -> list[str]:
        return [request["path"] for request in self.sandbox.requests("ci", writes=True)]


@pytest.fixture
def ci(fresh: Callable[[str], Sandbox]) -> Ci:
    return Ci(fresh("real"))


# --- queue items ----------------------------------------------------------------------------------


def test_queued_item_is_cancelled_once(ci: Ci) -> None:
    item = ci.build(job="offline", wait=False)["queue_id"]
    planned = ci.cancel(check=True, job="offline", queue_id=item)
    assert (planned["changed"], planned["build"]) == (True, None)
    made = ci.cancel(job="offline", queue_id=item)
    assert (made["changed"], made["build"]) == (True, None)
    assert made["diff"] == planned["diff"]
    again = ci.cancel(job="offline", queue_id=item)
    assert (again["changed"], again["build"]) == (False, None)
    assert ci.writes()[1:] == ["/queue/cancelItem"]


@pytest.mark.parametrize("seconds", [300, 0])
def test_started_item_is_not_stopped(ci: Ci, seconds: int) -> None:
    """Verify the result if the server still has the queue item, and if it has only the builds."""
    ci.sandbox.settings("ci", queue_item_seconds=seconds)
    built = ci.build(job="no-parameters")
    found = ci.cancel(job="no-parameters", queue_id=built["queue_id"])
    assert found["changed"] is False
    assert (found["build"]["number"], found["build"]["result"]) == (1, "SUCCESS")
    assert len(ci.writes()) == 1


def test_item_started_concurrently_is_reported(ci: Ci) -> None:
    item = ci.build(job="offline", wait=False)["queue_id"]
    run = Run(ci.sandbox.urls["ci"], token=TOKEN)
    options = options_of(CiBuildStopOptions, job="offline", queue_id=item)
    operation = CiBuildStopOperation(run.task, options)
    plan = operation.plan()
    ci.cancel(job="offline", queue_id=item)
    assert operation.apply(plan) == {"changed": True, "build": None}


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"job": "no-parameters"}, "invalid"),
        ({"job": "offline", "queue_id": 999}, "not_found"),
        ({"job": "offline", "queue_id": 0}, "invalid"),
    ],
)
def test_items_of_other_jobs_and_unknown_items_are_rejected(
    ci: Ci, given: dict[str, Any], kind: str
) -> None:
    item = ci.build(job="offline", wait=False)["queue_id"]
    for check in (True, False):
        with pytest.raises(ToolchainError) as caught:
            ci.cancel(check=check, **{"queue_id": item, **given})
        assert caught.value.kind == kind
    assert len(ci.writes()) == 1


def test_lost_response_to_a_cancellation_is_verified(ci: Ci) -> None:
    item = ci.build(job="offline", wait=False)["queue_id"]
    ci.sandbox.fault(service="ci", path="/queue/cancelItem", after=True, cut=True)
    assert ci.cancel(job="offline", queue_id=item)["changed"] is True
    item = ci.build(job="offline", wait=False)["queue_id"]
    ci.sandbox.fault(service="ci", path="/queue/cancelItem", cut=True)
    with pytest.raises(ToolchainError, match="nothing was changed"):
        ci.cancel(job="offline", queue_id=item)


def test_ambiguous_response_of_old_servers_is_verified(ci: Ci) -> None:
    ci.sandbox.settings("ci", version="2.200")
    item = ci.build(job="offline", wait=False)["queue_id"]
    assert ci.cancel(job="offline", queue_id=item)["changed"] is True
    assert ci.cancel(job="offline", queue_id=item)["changed"] is False


# --- file parameters ------------------------------------------------------------------------------


def test_file_parameter_reaches_the_build(ci: Ci, tmp_path: Path) -> None:
    settings = tmp_path / 'zoë\'s "own".ini'
    settings.write_bytes(b"[main]\n" * 1000)
    given: dict[str, Any] = {"job": "delivery/package", "files": {"SETTINGS": str(settings)}}
    assert ci.build(check=True, **given)["changed"]
    assert ci.writes() == []
    built = ci.build(**given, parameters={"VERSION": "3.0"})
    assert built["build"]["parameters"] == {"VERSION": "3.0", "SETTINGS": None}
    dest = tmp_path / "dest"
    fetched = ci.fetch(job="delivery/package", dest=str(dest))
    assert (dest / "settings.ini").read_bytes() == settings.read_bytes()
    assert (dest / "dist/app-3.0.txt").read_text() == "app 3.0\n"
    assert len(fetched["files"]) == 3


def test_parameters_beside_a_file_keep_characters_beyond_ascii(ci: Ci, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    given: dict[str, Any] = {"job": "delivery/package", "files": {"SETTINGS": str(tmp_path / "x")}}
    built = ci.build(**given, parameters={"VERSION": "1.0-zürich-€"})
    assert built["build"]["parameters"]["VERSION"] == "1.0-zürich-€"


def test_value_that_the_server_trims_is_built_once(ci: Ci) -> None:
    """[ci-7]: a parameter with `trim` is stored without outer blanks."""
    config = """<project><canRoam>true</canRoam><properties>
      <hudson.model.ParametersDefinitionProperty><parameterDefinitions>
      <hudson.model.StringParameterDefinition><name>NOTE</name><trim>true</trim>
      </hudson.model.StringParameterDefinition></parameterDefinitions>
      </hudson.model.ParametersDefinitionProperty></properties></project>"""
    ci.play(CiJobOperation, CiJobOptions, False, job="trimmed", config=config)
    given: dict[str, Any] = {"job": "trimmed", "parameters": {"NOTE": "  one\r\ntwo\r\n"}}
    built = ci.build(**given)
    assert built["build"]["parameters"] == {"NOTE": "one\r\ntwo"}
    again = ci.build(**given, trigger="unless_successful")
    assert (again["changed"], again["build"]["number"]) == (False, 1)


def test_file_parameters_are_not_compared(ci: Ci, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    given: dict[str, Any] = {"job": "delivery/package", "files": {"SETTINGS": str(tmp_path / "x")}}
    ci.build(**given)
    again = ci.build(**given, trigger="unless_successful")
    assert again["changed"] is False
    assert "SETTINGS" in ci.played.warnings[0]


def test_many_builds_accept_files(ci: Ci, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    builds = [
        {"job": "delivery/package", "files": {"SETTINGS": str(tmp_path / name)}} for name in "ab"
    ]
    made = ci.build(builds=builds, parallel=1)
    found = set()
    for build in made["builds"]:
        dest = tmp_path / str(build["build"]["number"])
        ci.fetch(job="delivery/package", build=str(build["build"]["number"]), dest=str(dest))
        found.add((dest / "settings.ini").read_bytes())
    assert found == {b"a", b"b"}


@pytest.mark.parametrize(
    ("given", "words", "kind"),
    [
        ({"files": {"OTHER": "x"}}, "no file parameter OTHER: it has SETTINGS", "rejected"),
        ({"files": {"VERSION": "x"}}, "no file parameter VERSION", "rejected"),
        ({"job": "no-parameters", "files": {"A": "x"}}, "it has none", "rejected"),
        ({"parameters": {"SETTINGS": "x"}}, "set its path in files", "rejected"),
        ({"files": {"SETTINGS": "nowhere"}}, "files.SETTINGS", "invalid"),
        ({"files": {"SETTINGS": "."}}, "is not a readable file", "invalid"),
        ({"files": {"SETTINGS": "fifo"}}, "is not a readable file", "invalid"),
    ],
)
def test_invalid_files_are_rejected(  # noqa: PLR0917
    ci: Ci, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: Any, words: str, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x").write_bytes(b"x")
    os.mkfifo("fifo")
    for check in (True, False):
        with pytest.raises(ToolchainError, match=words) as caught:
            ci.build(check=check, **{"job": "delivery/package", **given})
        assert caught.value.kind == kind
    assert ci.writes() == []


def test_trigger_with_file_is_not_resent_after_a_lost_response(ci: Ci, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    ci.sandbox.fault(service="ci", path="/buildWithParameters", after=True, cut=True)
    built = ci.build(job="delivery/package", files={"SETTINGS": str(tmp_path / "x")})
    assert (built["changed"], built["build"]["number"]) == (True, 1)
    assert len(ci.writes()) == 1


# --- check mode does not wait ---------------------------------------------------------------------


def test_check_mode_does_not_wait_for_a_running_build(ci: Ci) -> None:
    ci.build(job="slow", wait=False)
    joined = ci.build(check=True, job="slow", trigger="unless_successful", wait_timeout=3600)
    assert (joined["changed"], joined["joined"], joined["build"]["result"]) == (False, True, None)
    many = ci.build(
        check=True, builds=[{"job": "slow"}], trigger="unless_successful", wait_timeout=3600
    )
    assert (many["changed"], many["builds"][0]["joined"]) == (False, True)
    for found in (joined, many["builds"][0]):
        assert found["queue_id"] or found["build"]["number"]
