# SPDX-License-Identifier: GPL-3.0-or-later
"""Test job configurations that the server returns in an unreadable form."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs.ci_job import (
    CiJobOperation,
    CiJobOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.helpers.options import build as options_of
from tests.unit.ci.tasks import Run
from tests.unit.stub import Reply, Seen, Stub

OLD = "<project><description>old</description></project>"
NEW = "<project><description>new</description></project>"
UNREADABLE = {
    "empty": Reply(body=""),
    "json": Reply(body={"name": "agent"}),
    "half": Reply(body="<project><description>"),
    "doctype": Reply(body='<!DOCTYPE project [<!ENTITY a "b">]><project/>'),
}


@dataclass
class Server:
    """A server whose configuration is unreadable from the start, or after the first write."""

    unreadable: Reply
    before: Reply
    write: Reply = field(default_factory=Reply)
    writes: int = 0

    def __call__(self, seen: Seen) -> Reply:
        if seen.method == "POST":
            self.writes += 1
            return self.write
        if "crumbIssuer" in seen.path:
            return Reply(404)
        if seen.path.endswith("config.xml"):
            return self.unreadable if self.writes else self.before
        return Reply(body={"jobs": []})


def _error(server: Server) -> ToolchainError:
    options = options_of(CiJobOptions, job="agent", config=NEW)
    with Stub(response=server) as stub, pytest.raises(ToolchainError) as caught:
        Run(stub.url).play(lambda task: CiJobOperation(task, options))
    return caught.value


@pytest.mark.parametrize("what", UNREADABLE)
@pytest.mark.parametrize("before", [Reply(body=OLD), Reply(404, headers={"X-Jenkins": "2.479.3"})])
def test_unreadable_verification_is_a_protocol_error(what: str, before: Reply) -> None:
    server = Server(UNREADABLE[what], before)
    error = _error(server)
    assert (error.kind, server.writes) == ("protocol", 1)
    assert "cannot be read back" in str(error)


@pytest.mark.parametrize("what", UNREADABLE)
def test_lost_response_with_unreadable_verification_is_not_resent(what: str) -> None:
    server = Server(UNREADABLE[what], Reply(body=OLD), Reply(cut=True))
    error = _error(server)
    assert server.writes == 1
    assert "whether it was done is not known" in str(error)


@pytest.mark.parametrize("what", UNREADABLE)
def test_unreadable_configuration_is_not_replaced(what: str) -> None:
    server = Server(UNREADABLE[what], UNREADABLE[what])
    error = _error(server)
    assert (error.kind, server.writes) == ("protocol", 0)
    assert "cannot parse the server's configuration: " in str(error)


@pytest.mark.parametrize("name", ["a@b", "a<b", "x|y", "a;b", "folder/a&b", "end.", "a!"])
def test_invalid_new_job_name_is_rejected_before_any_request(name: str) -> None:
    options = options_of(CiJobOptions, job=name, config=NEW)
    with Stub() as stub, pytest.raises(ToolchainError, match="cannot be the name") as caught:
        Run(stub.url).play(lambda task: CiJobOperation(task, options))
    assert caught.value.kind == "invalid"
    assert stub.seen == []


@pytest.mark.parametrize(("saves", "words"), [(True, None), (False, "nothing was changed")])
def test_encrypted_secrets_show_whether_a_lost_save_was_done(
    saves: bool, words: str | None
) -> None:
    shown = ["{AQAABBBBBBBBBBBB}", "{AQAACCCCCCCCCCCC}"]
    writes = 0

    def response(seen: Seen) -> Reply:
        nonlocal writes
        writes += seen.method == "POST"
        secret = shown[1 if writes and saves else 0]
        body = f"<project><token>{secret}</token></project>"
        if seen.method == "POST":
            return Reply(cut=True)
        return Reply(404) if "crumbIssuer" in seen.path else Reply(body=body)

    config = "<project><token>new-secret</token></project>"
    options = options_of(CiJobOptions, job="agent", config=config, update_secrets="always")
    with Stub(response=response) as stub:
        run = Run(stub.url)
        if words is None:
            assert run.play(lambda task: CiJobOperation(task, options))["changed"]
        else:
            with pytest.raises(ToolchainError, match=words):
                run.play(lambda task: CiJobOperation(task, options))


@pytest.mark.parametrize(
    ("before", "warned"),
    [(None, True), ("<canRoam>true</canRoam>", True), ("", False)],
)
def test_warning_names_a_job_that_becomes_pinned(before: str | None, warned: bool) -> None:
    def response(seen: Seen) -> Reply:
        if seen.path.endswith("config.xml") and before is not None:
            return Reply(body=f"<project><description>old</description>{before}</project>")
        is_folder = seen.path.endswith("api/json") and "/job/" not in seen.path
        return (
            Reply(body={"jobs": []}) if is_folder else Reply(404, headers={"X-Jenkins": "2.479.3"})
        )

    options = options_of(CiJobOptions, job="agent", config=NEW)
    with Stub(response=response) as stub:
        run = Run(stub.url, read_only=True)
        assert CiJobOperation(run.task, options).plan().changed
    assert any("canRoam" in warning for warning in run.warnings) == warned


def test_new_secret_is_a_change_although_another_element_is_lost() -> None:
    sealed = ["{AQAAABAAAAAQ%s=}" % ("abcdefgh" * number) for number in (3, 4)]

    def response(seen: Seen) -> Reply:
        if seen.method == "POST":
            sealed.pop(0)
            return Reply()
        body = f"<project><token>{sealed[0]}</token></project>"
        return Reply(404) if "crumbIssuer" in seen.path else Reply(body=body)

    config = "<project><token>new-secret</token><unknown>x</unknown></project>"
    options = options_of(CiJobOptions, job="agent", config=config, update_secrets="always")
    with Stub(response=response) as stub, pytest.raises(ToolchainError, match="unknown") as caught:
        Run(stub.url).play(lambda task: CiJobOperation(task, options))
    assert (caught.value.kind, caught.value.result["changed"]) == ("rejected", True)


@pytest.mark.parametrize(
    ("shown", "contains"),
    [
        ({"builds": []}, ""),
        ({"jobs": []}, ""),
        ({"builds": [], "jobs": []}, ""),
        ({"builds": [{"number": 1}]}, "builds,"),
        ({"builds": [None]}, "builds,"),
        ({"jobs": [{"name": "x"}]}, "jobs,"),
        ({"jobs": [{"name": None}]}, "jobs,"),
        ({}, "builds (the server does not show"),
        ({"builds": None}, "builds (the server does not show"),
        ({"builds": None, "jobs": []}, "builds (the server does not show"),
        ({"jobs": None}, "jobs (the server does not show"),
        ({"jobs": {}}, "jobs (the server does not show"),
    ],
)
def test_job_whose_content_is_not_shown_is_not_deleted(
    shown: dict[str, object], contains: str
) -> None:
    deleted: list[str] = []

    def respond(seen: Seen) -> Reply:
        if seen.method == "POST":
            deleted.append(seen.path)
            return Reply(302, headers={"Location": "/"})
        if "crumbIssuer" in seen.path or (deleted and "/job/agent" in seen.path):
            return Reply(404, headers={"X-Jenkins": "2.479.3"})
        if seen.path.endswith("config.xml"):
            return Reply(body=OLD)
        return Reply(body={"fullName": "agent", "name": "agent", **shown})

    options = options_of(CiJobOptions, job="agent", state="absent")
    with Stub(response=respond) as stub:
        if contains:
            with pytest.raises(ToolchainError) as caught:
                Run(stub.url).play(lambda task: CiJobOperation(task, options))
            assert caught.value.kind == "invalid"
            assert f"it contains {contains}" in caught.value.message
        else:
            Run(stub.url).play(lambda task: CiJobOperation(task, options))
    assert bool(deleted) is not bool(contains)
