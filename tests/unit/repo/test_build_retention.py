# SPDX-License-Identifier: GPL-3.0-or-later
"""Test listing, discarding and deleting build records: predictions, requests and verification
reads.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core import times
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds import (
    build_retention,
    records,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds.build_info import (
    BuildInfoOperation,
    read_list,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds.build_record import (
    BuildRecordOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds.build_retention import (
    BuildRetentionOperation,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

LIST = "GET /api/build/app"
REPOSITORIES = "GET /api/repositories"
RETAIN = "POST /api/build/retention/app?async=false"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_REWRITE", 0)
    monkeypatch.setattr(build_retention, "_CHECK_INTERVALS", (0.0, 0.0))


def listed(*numbers: str) -> Reply:
    """Return a list of builds of January; "3@7" is number 3, started on the 7th."""
    entries = []
    for each in numbers:
        number, _at, day = each.partition("@")
        started = f"2026-01-{int(day or number):02}T00:00:00.000+0000"
        entries.append({"uri": f"/{quote(number)}", "started": started})
    return Reply(body={"buildsNumbers": entries})


def record(*statuses: str) -> Reply:
    found = [{"status": status, "timestamp": "2026-01-01T00:00:00.000+0000"} for status in statuses]
    return Reply(body={"buildInfo": {"name": "app", **({"statuses": found} if found else {})}})


def retention(**given: Any) -> dict[str, Any]:
    return {"build_name": "app", **given}


def removal(*numbers: str, **given: Any) -> dict[str, Any]:
    return {"build_name": "app", "build_numbers": list(numbers), **given}


# --- listing


def test_builds_are_listed_newest_first_with_decoded_numbers_and_utc_times(server: Server) -> None:
    entries = [
        {"uri": "/1.0%2B5", "started": "2026-01-02T03:04:05.678+0200"},
        {"uri": "/odd", "started": "yesterday"},
        {"uri": "/7", "started": "2026-02-01T00:00:00.000+0000"},
    ]
    server.on[LIST] = Reply(body={"buildsNumbers": entries})
    values = server.run(BuildInfoOperation, {"build_name": "app"})[1]
    assert [(build["number"], build["started"]) for build in values["builds"]] == [
        ("7", "2026-02-01T00:00:00.000Z"),
        ("1.0+5", "2026-01-02T01:04:05.678Z"),
        ("odd", "yesterday"),
    ]


def test_record_without_properties_has_an_empty_dictionary(server: Server) -> None:
    server.on |= {LIST: listed("7"), f"{LIST}/7": record("released")}
    values = server.run(BuildInfoOperation, {"build_name": "app", "build_number": "7"})[1]
    assert values["build"]["properties"] == {}
    assert values["build"]["statuses"][0]["status"] == "released"


def test_missing_record_is_not_found_and_newest_builds_are_named(server: Server) -> None:
    server.on[LIST] = listed("1", "2")
    with pytest.raises(ToolchainError, match="the newest builds are 2, 1") as caught:
        server.run(BuildInfoOperation, {"build_name": "app", "build_number": "7"})[1]
    assert caught.value.kind == "not_found"


def test_name_without_builds_is_not_found(server: Server) -> None:
    with pytest.raises(ToolchainError) as caught:
        server.run(BuildInfoOperation, {"build_name": "app"})[1]
    assert caught.value.kind == "not_found"


# --- discarding


def test_discarded_builds_are_planned_by_count_age_and_exceptions(server: Server) -> None:
    server.on |= {LIST: listed("1", "2", "3", "4", "5")}
    server.on |= {f"{LIST}/{number}": record() for number in "1235"}
    options = retention(count=3, minimum_build_date="2026-01-04", keep=["2"])
    plan, values = server.run(BuildRetentionOperation, options, check=True)
    assert plan.before == {"builds": ["5", "4", "3", "2", "1"]}
    assert plan.after == {"builds": ["5", "4", "2"]}
    assert values["discarded"] == ["3", "1"]
    assert all(asked.startswith("GET") for asked in server.asked)


def test_request_has_the_documented_format(server: Server) -> None:
    server.on |= {
        LIST: [listed("1", "2", "3"), listed("3")],
        RETAIN: Reply(204),
        f"{LIST}/1": record(),
        f"{LIST}/2": record(),
    }
    options = retention(count=1, minimum_build_date="2026-01-02", keep=["3"], delete_artifacts=True)
    _plan, values = server.run(BuildRetentionOperation, options)
    assert server.bodies(RETAIN) == [
        {
            "deleteBuildArtifacts": True,
            "count": 1,
            "minimumBuildDate": 1767312000000,
            "buildNumbersNotToBeDiscarded": ["3"],
        }
    ]
    assert values == {
        "changed": True,
        "discarded": ["2", "1"],
        "kept": ["3"],
        "promoted": [],
        "verified": True,
    }


def test_missing_build_to_keep_prevents_discarding(server: Server) -> None:
    server.on |= {LIST: listed("1", "2", "3"), f"{LIST}/1": record(), f"{LIST}/2": record()}
    error = server.fails(BuildRetentionOperation, retention(count=1, keep=["2", "2.1"]))
    assert (error.kind, "#2.1" in error.message) == ("not_found", True)
    assert RETAIN not in server.asked
    assert not server.run(BuildRetentionOperation, retention(count=3, keep=["2.1"]))[0].changed


def test_absent_build_of_unknown_name_gives_a_warning(server: Server) -> None:
    server.on[LIST] = Reply(404, {"errors": [{"message": "No build was found for 'app'"}]})
    wanted = {"build_name": "app", "build_numbers": ["1"]}
    assert not server.run(BuildRecordOperation, wanted)[0].changed
    assert server.warnings == ["there are no builds of 'app' outside projects: set project"]
    server.on[LIST] = listed("1", "2")
    error = server.fails(BuildRecordOperation, {**wanted, "build_numbers": ["1*"]})
    assert (error.kind, "pattern" in error.message) == ("invalid", True)


def test_builds_are_not_absent_at_the_address_of_another_server(server: Server) -> None:
    wanted = {"build_name": "app", "build_numbers": ["1"], "delete_artifacts": False}
    assert server.fails(BuildRecordOperation, wanted).kind == "not_found"
    assert server.fails(BuildRetentionOperation, retention(count=1)).kind == "not_found"


def test_age_is_measured_by_the_clock_of_the_server(server: Server) -> None:
    early = "Sun, 04 Jan 2026 00:00:00 GMT"
    server.on[LIST] = Reply(body=listed("1", "2", "3").body, headers={"Date": early})
    server.on |= {f"{LIST}/{number}": record() for number in "123"}
    _plan, values = server.run(BuildRetentionOperation, retention(max_age="36h"), check=True)
    assert values["discarded"] == ["2", "1"]
    assert read_list(server.client(), "app").now == datetime(2026, 1, 4, tzinfo=timezone.utc)


def test_age_is_measured_by_the_local_clock_if_server_sends_no_date(server: Server) -> None:
    server.on |= {LIST: listed("1"), f"{LIST}/1": record()}
    _plan, values = server.run(BuildRetentionOperation, retention(max_age="1d"), check=True)
    assert values["discarded"] == ["1"]
    assert "max_age is based on the local clock" in server.warnings[0]


def test_unreadable_record_does_not_prevent_discarding(server: Server) -> None:
    server.on |= {LIST: listed("1", "2")}
    _plan, values = server.run(BuildRetentionOperation, retention(count=1), check=True)
    assert (values["discarded"], values["promoted"]) == (["1"], [])
    server.on[f"{LIST}/1"] = Reply(500)
    assert server.fails(BuildRetentionOperation, retention(count=1)).kind == "server"


@pytest.mark.parametrize("after", [listed("2", "3"), Reply(500)])
def test_partial_rejection_reports_the_discarded_builds(server: Server, after: Reply) -> None:
    refusal = {"errors": [{"status": 400, "message": "1 is in use"}], "error massages": []}
    server.on |= {LIST: [listed("1", "2", "3"), after], RETAIN: Reply(400, refusal)}
    error = server.fails(BuildRetentionOperation, retention(count=1))
    assert "1 is in use" in error.message
    reported = {"changed": True, "discarded": ["1"], "kept": ["3", "2"], "verified": True}
    assert error.result == (reported if after.status == 200 else {})


@pytest.mark.parametrize(
    "body", [*({"buildsNumbers": odd} for odd in (7, {"uri": "/1"}, "1")), {"error": "no"}]
)
def test_malformed_list_is_a_protocol_error(server: Server, body: dict[str, Any]) -> None:
    server.on[LIST] = Reply(body=body)
    assert server.fails(BuildRetentionOperation, retention(count=1)).kind == "protocol"


def test_documented_404_means_name_without_builds(server: Server) -> None:
    server.on[LIST] = Reply(
        404, {"errors": [{"status": 404, "message": "No build was found for app"}]}
    )
    plan, _values = server.run(BuildRetentionOperation, retention(count=1, missing_ok=True))
    assert not plan.changed
    assert server.asked == [LIST]


def test_listed_builds_have_their_promotions(server: Server) -> None:
    server.on |= {LIST: listed("1", "2", "3"), f"{LIST}/1": record("staged", "released")}
    server.on |= {f"{LIST}/2": record(), f"{LIST}/3": Reply(404, "No build was found")}
    _plan, values = server.run(BuildInfoOperation, {"build_name": "app"})
    assert [build["status"] for build in values["builds"]] == [None, None, "released"]
    assert [build["promotions"] for build in values["builds"]][:2] == [None, []]
    assert [promotion["status"] for promotion in values["builds"][2]["promotions"]] == [
        "staged",
        "released",
    ]
    given = {"build_name": "app", "build_number": "1"}
    _plan, values = server.run(BuildInfoOperation, given)
    assert values["build"]["statuses"]


def test_runs_of_one_number_have_separate_promotions(server: Server) -> None:
    server.on[LIST] = Reply(
        body={
            "buildsNumbers": [
                {"uri": "/1", "started": "2026-01-01T00:00:00.000+0000"},
                {"uri": "/1", "started": "2026-01-02T00:00:00.000+0000"},
            ]
        }
    )
    server.on[f"{LIST}/1?started=2026-01-01T00:00:00.000+0000"] = record("old")
    server.on[f"{LIST}/1?started=2026-01-02T00:00:00.000+0000"] = record("new")
    _plan, values = server.run(BuildInfoOperation, {"build_name": "app"})
    assert [build["status"] for build in values["builds"]] == ["new", "old"]


def test_promoted_builds_are_returned_and_not_predicted(server: Server) -> None:
    server.on |= {LIST: listed("1", "2", "3"), f"{LIST}/1": record(), f"{LIST}/2": record("ok")}
    _plan, values = server.run(BuildRetentionOperation, retention(count=1), check=True)
    assert values["discarded"] == ["1"]
    assert values["promoted"] == ["2"]
    assert values["kept"] == ["3", "2"]


def test_nothing_to_discard_writes_nothing(server: Server) -> None:
    server.on |= {LIST: listed("1", "2"), f"{LIST}/1": record("released")}
    plan, values = server.run(BuildRetentionOperation, retention(count=1))
    assert not plan.changed
    assert values["promoted"] == ["1"]
    assert server.asked == [LIST, f"{LIST}/1"]


def test_name_without_builds_is_unchanged_with_a_warning(server: Server) -> None:
    server.on[REPOSITORIES] = Reply(body=b"[]")
    plan, _values = server.run(BuildRetentionOperation, retention(count=1, missing_ok=True))
    assert not plan.changed
    assert server.warnings == ["there are no builds of 'app'"]


def test_old_run_of_a_number_is_discarded_and_new_run_kept(server: Server) -> None:
    before, after = listed("3@1", "3@9", "4@8"), listed("3@9", "4@8")
    server.on |= {LIST: [before, after], RETAIN: Reply(204), f"{LIST}/3": record()}
    _plan, values = server.run(BuildRetentionOperation, retention(count=2))
    assert values["discarded"] == ["3"]
    assert values["kept"] == ["3", "4"]


def test_missing_effect_is_an_error(server: Server) -> None:
    server.on |= {LIST: listed("1", "2"), RETAIN: Reply(204), f"{LIST}/1": record()}
    error = server.fails(BuildRetentionOperation, retention(count=1))
    assert error.kind == "failed"
    assert "the builds 1 of 'app' still exist" in error.message
    assert error.result["discarded"] == []
    assert error.result["changed"] is False


def test_actual_deletions_are_returned_with_a_warning_for_the_rest(server: Server) -> None:
    lists = [listed("1", "2", "3"), listed("1", "3"), listed("1", "3"), listed("1", "3")]
    server.on |= {LIST: list(lists), RETAIN: Reply(204)}
    server.on |= {f"{LIST}/{number}": record() for number in "12"}
    _plan, values = server.run(BuildRetentionOperation, retention(count=1))
    assert values["discarded"] == ["2"]
    assert values["kept"] == ["3", "1"]
    assert values["changed"] is True
    assert "the builds 1 of 'app' still exist" in server.warnings[0]


def test_builds_with_unknown_promotions_are_kept(server: Server) -> None:
    server.dialect = "generic"
    server.on |= {LIST: listed("1", "2"), RETAIN: Reply(200), f"{LIST}/1": record()}
    _plan, values = server.run(BuildRetentionOperation, retention(count=1))
    assert values["changed"] is False
    assert "still exist" in server.warnings[0]


def test_asynchronous_run_is_not_verified(server: Server) -> None:
    sent = "POST /api/build/retention/app?async=true"
    server.on |= {LIST: listed("1", "2"), sent: Reply(204), f"{LIST}/1": record()}
    _plan, values = server.run(BuildRetentionOperation, retention(count=1, wait=False))
    assert values["discarded"] == ["1"]
    assert values["verified"] is False
    assert server.asked == [LIST, f"{LIST}/1", sent]


def test_lost_response_is_verified_and_not_resent(server: Server) -> None:
    lists = [listed("1", "2"), listed("1", "2"), listed("2")]
    server.on |= {LIST: lists, RETAIN: Reply(cut=True), f"{LIST}/1": record()}
    server.retries = 1
    _plan, values = server.run(BuildRetentionOperation, retention(count=1))
    assert values["discarded"] == ["1"]
    assert server.asked.count(RETAIN) == 1


def test_lost_response_without_effect_is_an_error(server: Server) -> None:
    server.on |= {LIST: listed("1", "2"), RETAIN: Reply(cut=True), f"{LIST}/1": record()}
    error = server.fails(BuildRetentionOperation, retention(count=1))
    assert error.outcome_unknown
    assert error.message.endswith("; nothing was changed")
    assert (error.result["changed"], error.result["discarded"]) == (False, [])


def test_each_check_after_a_lost_response_reads_the_list_once(server: Server) -> None:
    server.on |= {LIST: listed("1", "2", "3", "4"), RETAIN: Reply(cut=True)}
    server.on |= {f"{LIST}/{number}": record() for number in "123"}
    server.fails(BuildRetentionOperation, retention(count=3))
    single = server.asked.count(LIST)
    server.fails(BuildRetentionOperation, retention(count=1))
    assert server.asked.count(LIST) == 2 * single


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"count": 0}, "count is 0: set it to 1 or more"),
        ({"max_age": "0d"}, "max_age: '0d' is not an age"),
        ({"max_age": "90 days"}, "is not an age"),
        ({"minimum_build_date": "soon"}, "minimum_build_date: 'soon' is neither a date"),
    ],
)
def test_invalid_options_are_rejected_before_any_request(
    server: Server, options: dict[str, Any], words: str
) -> None:
    error = server.fails(BuildRetentionOperation, retention(**options))
    assert error.kind == "invalid"
    assert words in error.message
    assert server.asked == []


def test_response_without_record_is_a_protocol_error(server: Server) -> None:
    server.on[LIST] = Reply(body={"buildsNumbers": []})
    server.on["GET /api/build/app/7"] = Reply(body={"error": "no"})
    with pytest.raises(ToolchainError) as caught:
        server.run(BuildInfoOperation, {"build_name": "app", "build_number": "7"})[1]
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize("started", [None, "", "yesterday"])
def test_build_without_start_time_is_kept(server: Server, started: str | None) -> None:
    """The server may count such a build, so the request names every build that must stay."""
    before, after = listed("1", "2", "3"), listed("2", "3")
    undated = {"uri": "/odd", "started": started}
    for reply in (before, after):
        body: Any = reply.body
        body["buildsNumbers"].append(undated)
    server.on |= {LIST: [before, after], RETAIN: Reply(204), f"{LIST}/1": record()}
    _plan, values = server.run(BuildRetentionOperation, retention(count=2))
    assert server.bodies(RETAIN)[0]["buildNumbersNotToBeDiscarded"] == ["2", "3", "odd"]
    assert (values["discarded"], values["kept"]) == (["1"], ["3", "2", "odd"])
    assert "the builds odd of 'app' have no start time" in server.warnings[0]


@pytest.mark.parametrize(("text", "hours"), [("4w", 672), ("30d", 720), ("12h", 12), ("60 m", 1)])
def test_age_is_parsed(text: str, hours: int) -> None:
    assert times.age_of("max_age", text).total_seconds() == 3600 * hours


# --- deleting


class Store:
    """Builds that disappear when they are deleted; `split` is whether commas separate numbers."""

    def __init__(self, server: Server, *numbers: str, split: bool = True) -> None:
        self.numbers, self.split = list(numbers), split
        server.on[LIST] = lambda _seen: listed(*(f"{number}@1" for number in self.numbers))
        self.on = server.on

    def deleting(self, query: str, reply: Reply | None = None) -> None:
        """Handle the deletion with this query."""
        wanted = query.split(",") if self.split else [query]

        def response(_seen: Seen) -> Reply:
            if not set(wanted) <= set(self.numbers):
                return Reply(404, "Could not find builds")
            self.numbers = [number for number in self.numbers if number not in wanted]
            return reply or Reply(200, "The following builds has been deleted successfully")

        self.on[f"DELETE /api/build/app?buildNumbers={query}"] = response


def writes(server: Server) -> list[str]:
    return [asked for asked in server.asked if not asked.startswith("GET")]


def test_existing_builds_are_deleted_in_one_request(server: Server) -> None:
    store = Store(server, "1", "2", "3")
    store.deleting("1,3")
    plan, values = server.run(BuildRecordOperation, removal("1", "3", "9", "1"))
    assert plan.after == {"builds": ["2"]}
    assert values["deleted"] == ["1", "3"]
    assert writes(server) == ["DELETE /api/build/app?buildNumbers=1,3"]


def test_artifacts_are_deleted_only_on_request(server: Server) -> None:
    store = Store(server, "1")
    store.deleting("1")
    query = "DELETE /api/build/app?buildNumbers=1"
    server.on[f"{query}&artifacts=1"] = server.on.pop(query)
    server.run(BuildRecordOperation, removal("1", delete_artifacts=True))
    assert writes(server) == [f"{query}&artifacts=1"]


def test_rejected_deletion_of_a_single_build_is_an_error(server: Server) -> None:
    store = Store(server, "1")
    store.on["DELETE /api/build/app?buildNumbers=1"] = Reply(400, "no such parameter")
    error = server.fails(BuildRecordOperation, removal("1"))
    assert (error.kind, error.status) == ("rejected", 400)


def test_absent_builds_cause_no_write(server: Server) -> None:
    server.on[REPOSITORIES] = Reply(body=b"[]")
    plan, values = server.run(BuildRecordOperation, removal("1"))
    assert not plan.changed
    assert values["deleted"] == []
    assert server.asked == [LIST, REPOSITORIES]


@pytest.mark.parametrize(
    ("make", "given"),
    [(BuildRetentionOperation, retention(count=1)), (BuildRecordOperation, removal("1"))],
)
def test_wrong_address_is_not_a_name_without_builds(
    server: Server, make: Any, given: dict[str, Any]
) -> None:
    error = server.fails(make, given)
    assert error.kind == "not_found"
    assert "there is no repository manager at this address" in error.message


def test_server_without_lists_gets_one_request_per_number(server: Server) -> None:
    store = Store(server, "1", "2", split=False)
    for query in ("1,2", "1", "2"):
        store.deleting(query)
    _plan, values = server.run(BuildRecordOperation, removal("1", "2"))
    assert values["deleted"] == ["1", "2"]
    assert len(writes(server)) == 3


def test_server_ignoring_lists_gets_one_request_per_number(server: Server) -> None:
    store = Store(server, "1", "2", split=False)
    for query in ("1", "2"):
        store.deleting(query)
    server.on["DELETE /api/build/app?buildNumbers=1,2"] = Reply(204)
    _plan, values = server.run(BuildRecordOperation, removal("1", "2"))
    assert values["deleted"] == ["1", "2"]
    assert len(writes(server)) == 3


def test_number_with_comma_is_sent_in_the_body(server: Server) -> None:
    store = Store(server, "1", "1,2")

    def response(_seen: Seen) -> Reply:
        store.numbers.remove("1,2")
        return Reply(200)

    server.on["POST /api/build/delete"] = response
    server.run(BuildRecordOperation, removal("1,2"))
    assert store.numbers == ["1"]
    assert server.bodies("POST /api/build/delete") == [
        {
            "buildName": "app",
            "buildNumbers": ["1,2"],
            "deleteArtifacts": False,
            "deleteAll": False,
        }
    ]


def test_number_with_comma_is_sent_alone_without_body_support(server: Server) -> None:
    server.dialect = "generic"
    store = Store(server, "3", "4", "1,2", split=False)
    for query in ("3", "1,2"):
        store.deleting(query)
    server.run(BuildRecordOperation, removal("3", "1,2"))
    assert writes(server) == [
        "DELETE /api/build/app?buildNumbers=3",
        "DELETE /api/build/app?buildNumbers=1,2",
    ]


def test_number_whose_parts_are_other_builds_is_rejected(server: Server) -> None:
    server.dialect = "generic"
    Store(server, "2", "1,2")
    error = server.fails(BuildRecordOperation, removal("1,2"))
    assert error.kind == "invalid"
    assert "and delete '2'" in error.message
    assert writes(server) == []


def lost(store: Store) -> None:
    store.deleting("1", Reply(cut=True))


def gone_meanwhile(store: Store) -> None:
    def response(_seen: Seen) -> Reply:
        store.numbers.clear()
        return Reply(404, "Could not find builds")

    store.on["DELETE /api/build/app?buildNumbers=1"] = response


@pytest.mark.parametrize("prepare", [lost, gone_meanwhile])
def test_lost_response_or_concurrent_deletion_is_verified(
    server: Server, prepare: Callable[[Store], None]
) -> None:
    prepare(Store(server, "1"))
    _plan, values = server.run(BuildRecordOperation, removal("1"))
    assert values["deleted"] == ["1"]
    assert len(writes(server)) == 1


def test_remaining_build_is_an_error(server: Server) -> None:
    server.on |= {LIST: listed("1"), "DELETE /api/build/app?buildNumbers=1": Reply(200)}
    error = server.fails(BuildRecordOperation, removal("1"))
    assert error.kind == "failed"
    assert error.result == {"deleted": [], "changed": False}


@pytest.mark.parametrize("numbers", [[], ["1", " "]])
def test_missing_numbers_are_rejected(server: Server, numbers: list[str]) -> None:
    error = server.fails(BuildRecordOperation, removal(*numbers))
    assert error.kind == "invalid"
    assert server.asked == []
