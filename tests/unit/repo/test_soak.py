# SPDX-License-Identifier: GPL-3.0-or-later
"""Test how long builds, images and bundles must stay in a stage before a promotion [C2.6]."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds import records
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds.build_promote import (
    BuildPromoteOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.bundles.release_bundle_promote import (
    ReleaseBundlePromoteOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.images.docker_promote import (
    DockerPromoteOperation,
)
from tests.helpers import in_process
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply

RECORD = "GET /api/build/app/7"
PROMOTE = "POST /api/build/promote/app/7"
#: Now, by the clock of the server.
NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
SOAK = {"status": "staged", "for": "2h"}
DIGEST = "sha256:" + "1" * 64


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_REWRITE", 0)


def at(age: timedelta) -> str:
    return f"{NOW - age:%Y-%m-%dT%H:%M:%S}.000+0000"


def staged(timestamp: Any, **more: Any) -> dict[str, Any]:
    return {"status": "staged", "repository": "old", "timestamp": timestamp, **more}


def record(*statuses: Any, date: str | None = None, **fields: Any) -> Reply:
    info = {"name": "app", "number": "7", "statuses": list(statuses), **fields}
    shown = format_datetime(NOW, usegmt=True) if date is None else date
    return Reply(body={"buildInfo": info}, headers={"Date": shown})


def options(**given: Any) -> dict[str, Any]:
    return {"build_name": "app", "build_number": "7", "status": "released", "soak": SOAK, **given}


def waits(server: Server, check: bool, **given: Any) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        server.run(BuildPromoteOperation, options(**given), check=check)
    assert PROMOTE not in server.asked
    return caught.value


@pytest.mark.parametrize("check", [True, False])
def test_young_build_waits(server: Server, check: bool) -> None:
    """The newest promotion to the status counts, wherever it is in the record."""
    old, young = staged(at(timedelta(days=9))), staged(at(timedelta(minutes=90)))
    server.on[RECORD] = record(young, old, {"status": "tested", "timestamp": at(timedelta())})
    error = waits(server, check)
    assert error.kind == "waiting"
    reason = "the build 'app' #7 must stay in 'staged' for 2h, since 2026-03-01T10:30:00.000Z"
    assert error.result["waiting"] == {"reason": reason, "until": "2026-03-01T12:30:00.000Z"}
    assert error.message == f"{reason}: wait until 2026-03-01T12:30:00.000Z"


@pytest.mark.parametrize(
    ("timestamp", "passes"),
    [
        (at(timedelta(hours=2)), True),
        (at(timedelta(hours=2, seconds=-1)), False),
        # the same moments in other zones
        ("2026-03-01T12:00:00.000+0200", True),
        ("2026-03-01T12:00:01+02:00", False),
        ("2026-03-01T05:00:00.000-0500", True),
        ("2026-03-01T10:00:00Z", True),
        # the clock of the server was set back
        (at(timedelta(days=-400)), False),
    ],
)
def test_clock_of_the_server_decides(server: Server, timestamp: str, passes: bool) -> None:
    server.on[RECORD] = [
        record(staged(timestamp)),
        record(staged(timestamp)),
        record(staged(timestamp), {"status": "released", "timestamp": at(timedelta())}),
    ]
    server.on[PROMOTE] = Reply(200, {"messages": []})
    if passes:
        plan, _values = server.run(BuildPromoteOperation, options())
        assert plan.changed
        assert server.asked.count(PROMOTE) == 1
    else:
        assert waits(server, check=False).kind == "waiting"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        *(
            (record(staged(at(timedelta(days=9))), staged(odd)), "protocol")
            for odd in (
                *(None, "", "yesterday", "2026-03-01", "2026-02-30T10:00:00.000+0000"),
                # without a zone, or with none that exists
                *("2026-01-01T10:00:00", "2026-01-01T10:00:00.000+2500", "2026-01-01T10:00:00 CET"),
                # seconds would be a time in 1970
                *(1767261600, 1767261600000, 1.5, True, ["2026-01-01T10:00:00Z"]),
            )
        ),
        *(
            (record(staged(at(timedelta(days=9))), date=odd), "protocol")
            for odd in ("", "now", "Sun, 01 Mar 2026 12:00:00", "Sun, 01 Mar 2026 12:00:00 CEST")
        ),
        (record(), "not_found"),
        (record({"status": "Staged", "timestamp": at(timedelta(days=9))}), "not_found"),
        (record({"status": None, "timestamp": at(timedelta(days=9))}), "not_found"),
        (record("staged"), "protocol"),
        (Reply(body={"buildInfo": {"name": "app", "statuses": {"status": "staged"}}}), "protocol"),
        (Reply(body={"buildInfo": {"name": "app"}}), "not_found"),
        (replace(record(staged(at(timedelta(days=9)))), truncate=60), "network"),
        (Reply(body='{"buildInfo": {"statuses": ['), "protocol"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_unreadable_response_never_passes(
    server: Server, reply: Reply, kind: str, check: bool
) -> None:
    """The first response is readable: the record has changed, or the gate has to be stricter."""
    server.on[RECORD] = [record(), reply]
    error = waits(server, check)
    assert error.kind == kind
    assert "waiting" not in error.result


@pytest.mark.parametrize(
    ("soak", "message"),
    [
        ({"status": "staged"}, "for"),
        ({"for": "2h"}, "status"),
        ({"status": "staged", "for": ""}, "soak.for"),
        ({"status": "staged", "for": " "}, "soak.for"),
        ({"status": " ", "for": "2h"}, "soak.status"),
        ({"status": "staged", "for": 1.5}, "soak.for"),
        ({"status": "staged", "for": 2}, "soak: for: '2' is not an age"),
        ({"status": "staged", "for": "0h"}, "soak: for: '0h' is not an age"),
        ({"status": "staged", "for": "-2h"}, "soak: for: '-2h' is not an age"),
        ({"status": "staged", "for": "2 hours"}, "soak: for: '2 hours' is not an age"),
        ({"status": 1.5, "for": "2h"}, "soak.status"),
        ({"status": "staged", "for": "2h", "form": "x"}, "form"),
        ({"environment": "QA", "for": "2h"}, "environment"),
        ("staged", "soak"),
    ],
)
def test_invalid_soak_is_rejected(soak: Any, message: str) -> None:
    arguments = {**options(soak=soak), "url": "http://127.0.0.1:1"}
    result = in_process.run("build_promote", arguments)
    assert result["failed"]
    assert message in result["msg"]
    assert result.get("http", {}).get("requests", 0) == 0


def test_build_that_is_promoted_already_does_not_wait(server: Server) -> None:
    """A second run changes nothing, even if the build was staged again meanwhile."""
    done = {"status": "released", "timestamp": at(timedelta(minutes=5)), "repository": "rel"}
    server.on[RECORD] = record(staged(at(timedelta(minutes=9))), done)
    for given in ({}, {"soak": {**SOAK, "check_only": True}}):
        plan, values = server.run(BuildPromoteOperation, options(**given))
        assert not plan.changed
        assert values["promoted"]
    server.on[RECORD] = record(done, staged(at(timedelta(minutes=1))))
    assert not server.run(BuildPromoteOperation, options())[0].changed
    assert waits(server, check=False, force=True).kind == "waiting"


@pytest.mark.parametrize("check", [True, False])
def test_check_only_promotes_nothing(server: Server, check: bool) -> None:
    only = {**SOAK, "check_only": True}
    server.on[RECORD] = record(staged(at(timedelta(hours=3))))
    plan, values = server.run(BuildPromoteOperation, options(soak=only), check=check)
    assert not plan.changed
    assert not values["promoted"]
    server.on[RECORD] = record(staged(at(timedelta(hours=1))))
    assert waits(server, check, soak=only).kind == "waiting"


def test_each_build_of_an_aggregated_build_waits(server: Server) -> None:
    """The build that becomes ready last decides how long the task has to wait."""
    modules = [{"type": "build", "id": "part/1"}, {"type": "build", "id": "part/2"}]
    server.on[RECORD] = record(staged(at(timedelta(hours=3))), modules=modules)
    for number, minutes in ((1, 30), (2, 60)):
        server.on[f"GET /api/build/part/{number}"] = record(staged(at(timedelta(minutes=minutes))))
    error = waits(server, check=False, aggregated="follow")
    assert error.result["waiting"]["until"] == "2026-03-01T13:30:00.000Z"
    assert "'part' #1" in error.message


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run of Ansible, whose tasks know what earlier tasks would create."""
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))


@pytest.mark.usefixtures("run")
def test_check_mode_waits_for_a_promotion_of_the_same_run(server: Server) -> None:
    """The run would wait, too: it has just promoted the build to the status."""
    server.on[RECORD] = record(staged(at(timedelta(days=9))))
    given = {"build_name": "app", "build_number": "7", "status": "staged", "force": True}
    made = server.operation(BuildPromoteOperation, given, check=True)
    made.predict(made.plan())
    error = waits(server, check=True)
    assert error.kind == "waiting"
    assert error.result["waiting"]["until"] is not None


# --- images


def image(server: Server, **properties: Any) -> None:
    server.on["HEAD /api/docker/src/v2/team/app/manifests/1"] = Reply(
        headers={"Docker-Content-Digest": DIGEST}
    )
    shown = {"X-Checksum-Sha1": "1" * 40, "X-Checksum-Sha256": "1" * 64, "Content-Length": "0"}
    server.on["HEAD /src/team/app/1/manifest.json"] = Reply(headers=shown)
    body = json.dumps({"uri": "x", "properties": properties})
    server.on["GET /api/storage/src/team/app/1/manifest.json?properties"] = Reply(body=body)
    server.on["GET /api/repositories/dst"] = Reply(body={"key": "dst", "rclass": "local"})


BUILT = {"build.name": ["app"], "build.number": ["7"]}


def promoted_image(server: Server, *, check: bool = True, **soak: Any) -> Any:
    given: dict[str, Any] = {"repo": "src", "target_repo": "dst", "image": "team/app", "tag": "1"}
    given |= {"attached": False, "soak": {**SOAK, **soak}}
    return server.run(DockerPromoteOperation, given, check=check)


def test_image_waits_by_its_build(server: Server) -> None:
    image(server, **BUILT)
    server.on[RECORD] = record(staged(at(timedelta(minutes=1))))
    with pytest.raises(ToolchainError) as caught:
        promoted_image(server)
    assert caught.value.kind == "waiting"
    assert caught.value.result["waiting"]["until"] == "2026-03-01T13:59:00.000Z"
    server.on[RECORD] = record(staged(at(timedelta(hours=2))))
    assert promoted_image(server)[0].changed
    assert not promoted_image(server, check_only=True)[0].changed


def test_build_of_an_image_may_be_in_a_project(server: Server) -> None:
    image(server, **BUILT)
    server.on["GET /api/repositories?project=p"] = Reply(body="[]")
    server.on[f"{RECORD}?project=p"] = record(staged(at(timedelta(hours=2))))
    assert promoted_image(server, project="p")[0].changed


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({}, "not_found"),
        ({"build.name": ["app"]}, "not_found"),
        ({"build.name": ["app"], "build.number": [" "]}, "not_found"),
        ({"build.name": ["app", "other"], "build.number": ["7"]}, "conflict"),
        ({"build.name": ["app"], "build.number": ["6", "7"]}, "conflict"),
        ({"build.name": ["app"], "build.number": ["8"]}, "not_found"),
    ],
)
def test_image_without_a_build_fails(server: Server, properties: Any, kind: str) -> None:
    image(server, **properties)
    server.on[RECORD] = record(staged(at(timedelta(hours=2))))
    with pytest.raises(ToolchainError) as caught:
        promoted_image(server)
    assert caught.value.kind == kind


def test_image_that_does_not_exist_yet(server: Server) -> None:
    """Before the first write of a release, the promotion of the image decides later."""
    for repo in ("src", "dst"):
        server.on[f"GET /api/repositories/{repo}"] = Reply(body={"key": repo, "rclass": "local"})
    assert not promoted_image(server, check_only=True)[0].changed
    given = {"repo": "src", "target_repo": "dst", "image": "team/app", "tag": "1", "soak": SOAK}
    for check, kind in ((True, "waiting"), (False, "not_found")):
        with pytest.raises(ToolchainError) as caught:
            server.run(DockerPromoteOperation, {**given, "pending": True}, check=check)
        assert caught.value.kind == kind


# --- release bundles

BUNDLE = "GET /lifecycle/api/v2/promotion/records/agent/1?include=MSG&offset=0&limit=100"


def row(environment: str, created: Any, status: str = "COMPLETED") -> dict[str, Any]:
    shown = {"environment": environment, "created": created, "status": status}
    return {**shown, "created_millis": 1772366400000}


def bundle(server: Server, *rows: Any, date: str | None = None) -> Callable[..., Any]:
    shown = {"Date": format_datetime(NOW, usegmt=True) if date is None else date}
    server.on[BUNDLE] = Reply(body={"promotions": list(rows), "total": len(rows)}, headers=shown)
    api = "GET /lifecycle/api/v2/release_bundle"
    server.on[f"{api}/existence/agent/1"] = Reply(body={"exists": True})
    server.on[f"{api}/statuses/agent/1"] = Reply(body={"status": "COMPLETED"})
    given = {"name": "agent", "version": "1", "environment": "PROD"}

    def promote(**soak: Any) -> Any:
        gate = {"environment": "QA", "for": "2h", **soak}
        return server.run(ReleaseBundlePromoteOperation, {**given, "soak": gate}, check=True)

    return promote


def test_bundle_waits_for_its_time_in_an_environment(server: Server) -> None:
    old, young = (row("QA", at(timedelta(hours=hours))) for hours in (2, 1))
    failed = row("QA", at(timedelta()), "FAILED")
    promote = bundle(server, failed, old)
    assert promote()[0].changed
    assert not promote(check_only=True)[0].changed
    with pytest.raises(ToolchainError) as caught:
        bundle(server, young, old)()
    assert caught.value.kind == "waiting"
    assert caught.value.result["waiting"]["until"] == "2026-03-01T13:00:00.000Z"


@pytest.mark.parametrize(
    ("rows", "date", "kind"),
    [
        ([], None, "not_found"),
        ([row("DEV", at(timedelta(days=1)))], None, "not_found"),
        ([row("QA", at(timedelta(days=1)), "REJECTED")], None, "not_found"),
        ([row("QA", "then"), row("QA", at(timedelta(days=1)))], None, "protocol"),
        ([row("QA", None)], None, "protocol"),
        ([row("QA", "2026-01-01T00:00:00")], None, "protocol"),
        ([row("QA", at(timedelta(days=1)))], "then", "protocol"),
        ([row("QA", at(timedelta(days=1)), "PROCESSING")], None, "waiting"),
    ],
)
def test_unreadable_promotions_of_a_bundle_never_pass(
    server: Server, rows: Any, date: str | None, kind: str
) -> None:
    with pytest.raises(ToolchainError) as caught:
        bundle(server, *rows, date=date)()
    assert caught.value.kind == kind
