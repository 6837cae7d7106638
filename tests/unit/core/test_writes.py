# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a write has at most one effect, and that its report matches the check of the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.messages import (
    Response,
    unexpected_body,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.transport import (
    Transport,
)
from tests.unit.stub import Reply, Stub, Waits, transport_to

PUT_OFF = [
    Reply(429),
    Reply(429, headers={"Retry-After": "2"}),
    Reply(503, "", {"Retry-After": "2"}),
]
PAGE = Reply(200, "<!DOCTYPE html><html><title>Welcome</title></html>")
#: Responses that leave open whether the server acted; the flag means that it may still be working.
DOUBTFUL = [
    (Reply(500), False),
    (Reply(503), False),
    (PAGE, False),
    (Reply(502), True),
    (Reply(504), True),
    (Reply(408), True),
    (Reply(cut=True), True),
]
NOTHING, OUTCOME_UNKNOWN = "nothing was changed", "whether it was done is not known"


def refuse_page(response: Response) -> None:
    if response.status == 200:
        raise unexpected_body(response, "JSON")


def fails(transport: Transport, method: str = "POST", **parts: Any) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        transport.write("creating x", method, "x", validate=refuse_page, **parts)
    return caught.value


def looks(*found: bool | None) -> Callable[[], bool | None]:
    """Return a check with the given results, in order; the last result repeats."""
    left = list(found)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


@pytest.mark.parametrize("reply", PUT_OFF)
def test_unverifiable_write_is_not_retried(reply: Reply) -> None:
    waits = Waits()
    with Stub(reply) as stub:
        error = fails(transport_to(stub.url, sleep=waits))
    assert (len(stub.seen), waits, error.outcome_unknown) == (1, [], True)
    assert error.message.endswith(f"; {OUTCOME_UNKNOWN}")


@pytest.mark.parametrize("reply", PUT_OFF)
@pytest.mark.parametrize("parts", [{"repeatable": True}, {"verify": looks(False)}])
def test_rejected_write_is_retried_if_harmless(reply: Reply, parts: dict[str, Any]) -> None:
    waits = Waits()
    with Stub(reply, Reply(201)) as stub:
        transport = transport_to(stub.url, sleep=waits)
        transport.write("creating", "POST", "x", body=b"content", **parts)
    assert [seen.body for seen in stub.seen] == [b"content"] * 2
    assert (transport.accounting.writes, transport.accounting.retries) == (2, 1)
    assert transport.accounting.acknowledged == 1
    assert waits[0] >= float(reply.headers.get("Retry-After", 0))


@pytest.mark.parametrize("reply", [*PUT_OFF, *(reply for reply, _late in DOUBTFUL)])
@pytest.mark.parametrize("repeatable", [True, False])
def test_completed_write_is_not_repeated(reply: Reply, repeatable: bool) -> None:
    with Stub(reply) as stub:
        transport = transport_to(stub.url)
        response = transport.write(
            "creating", "POST", "x", validate=refuse_page, verify=looks(True), repeatable=repeatable
        )
    assert (len(stub.seen), response.body, transport.accounting.acknowledged) == (1, b"", 1)


@pytest.mark.parametrize(("reply", "late"), DOUBTFUL)
def test_incomplete_write_is_reported(reply: Reply, late: bool) -> None:
    waits = Waits()
    with Stub(reply) as stub:
        transport = transport_to(stub.url, sleep=waits)
        error = fails(transport, verify=looks(False), repeatable=True)
    assert (len(stub.seen), error.outcome_unknown, error.verified_undone) == (1, True, True)
    assert error.message.endswith(f"; {NOTHING}")
    assert len(waits) == (3 if late else 0)
    assert (transport.accounting.acknowledged, transport.accounting.retries) == (0, 0)


@pytest.mark.parametrize("reply", [reply for reply, late in DOUBTFUL if late])
def test_verification_waits_for_a_slow_server(reply: Reply) -> None:
    with Stub(reply) as stub:
        transport = transport_to(stub.url)
        transport.write("creating", "POST", "x", verify=looks(False, False, True))
    assert (len(stub.seen), transport.accounting.acknowledged) == (1, 1)


@pytest.mark.parametrize("reply", [reply for reply, _late in DOUBTFUL])
@pytest.mark.parametrize("look", [None, looks(None)])
def test_undecided_verification_is_reported(reply: Reply, look: Callable[[], bool | None]) -> None:
    with Stub(reply) as stub:
        error = fails(transport_to(stub.url), verify=look)
    assert (len(stub.seen), error.verified_undone) == (1, False)
    assert error.message.endswith(f"; {OUTCOME_UNKNOWN}")


def test_failed_verification_leaves_outcome_unknown() -> None:
    with Stub(Reply(500), Reply(403)) as stub:
        transport = transport_to(stub.url)
        error = fails(transport, verify=lambda: bool(transport.read("looking", "x")))
    assert (error.status, error.message.endswith(OUTCOME_UNKNOWN)) == (500, True)


def test_last_response_is_verified_like_the_first() -> None:
    """Verify that the check decides even without a retry, or if the wait would be too long."""
    with Stub(Reply(429)) as stub:
        assert fails(transport_to(stub.url, retries=0), verify=looks(False)).message.endswith(
            NOTHING
        )
    for retries, after in ((0, "0"), (3, "3600")):
        with Stub(Reply(429, headers={"Retry-After": after})) as stub:
            transport_to(stub.url, retries=retries).write("x", "POST", "x", verify=looks(True))
        assert len(stub.seen) == 1


def test_object_gone_after_retry_was_deleted_by_first_attempt() -> None:
    with Stub(Reply(429), Reply(404)) as stub:
        transport = transport_to(stub.url)
        transport.write("deleting", "DELETE", "x", repeatable=True)
    assert transport.accounting.acknowledged == 1
    with Stub(Reply(404)) as stub:
        assert fails(transport_to(stub.url), "DELETE", repeatable=True).status == 404


def test_rejection_of_a_retry_is_marked_as_resent() -> None:
    with Stub(Reply(429), Reply(400, "the item does not exist")) as stub:
        error = fails(transport_to(stub.url), repeatable=True)
    assert (error.resent, error.outcome_unknown) == (True, False)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 501])
def test_rejection_is_not_verified(status: int) -> None:
    with Stub(Reply(status)) as stub:
        error = fails(transport_to(stub.url), verify=looks(True), repeatable=True)
    assert (error.status, error.outcome_unknown) == (status, False)
    assert NOTHING not in error.message


@pytest.mark.parametrize("done", [True, False, None])
def test_object_created_by_another_host_is_accepted(*, done: bool | None) -> None:
    with Stub(Reply(409, "it exists")) as stub:
        transport = transport_to(stub.url)
        if done:
            response = transport.write("creating x", "POST", "x", verify=looks(done))
            assert (response.status, response.body) == (204, b"")
        else:
            error = fails(transport, verify=looks(done))
            assert (error.kind, NOTHING in str(error)) == ("conflict", False)
        assert len(stub.seen) == 1


def test_conflicting_update_is_not_verified() -> None:
    with Stub(Reply(409, "it was changed meanwhile")) as stub:
        assert fails(transport_to(stub.url), "PUT", verify=looks(True)).kind == "conflict"


def test_earlier_changes_are_not_denied_in_the_error() -> None:
    with Stub(Reply(201), Reply(500)) as stub:
        transport = transport_to(stub.url)
        transport.write("creating", "POST", "a")
        error = fails(transport, verify=looks(False))
    assert error.message.endswith("; by this request nothing was changed")
