# SPDX-License-Identifier: GPL-3.0-or-later
"""Test imports: started once, and followed until they end, whatever the server reports
about them.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils.analysis.client import (
    AnalysisClient,
    Call,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.analysis.resources import (
    import_polling,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.analysis.resources.import_polling import (
    Import,
    ImportPolling,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core import progress
from ansible_collections.delivery.toolchain.plugins.module_utils.core.errors import ToolchainError
from ansible_collections.delivery.toolchain.plugins.module_utils.core.polling import PollInterval
from tests.unit.analysis.server import lines, refusal, sent, task_for
from tests.unit.stub import Reply, Seen, Stub, Waits

DONE = Reply()
PROJECT = Import("importing the project 'fw'", Call("import_project", {"project": "fw"}), "fw")
SERVER = Import("importing the settings", Call("import_server_configuration"))
RUNNING = lines({"project": "fw", "status": "Running"})
COMPLETED = lines({"project": "fw", "status": "Completed"})
OTHERS = {"project": "other", "status": "Failed", "message": "not ours"}


def follow(
    *replies: Reply, wanted: Import = PROJECT, timeout: float = 3600
) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """Start and finish; return the final records, the actions sent and the lines of progress."""
    said: list[str] = []
    waits = Waits()
    with Stub(*replies) as stub, progress.progress_to(said.append):
        task, _warnings = task_for(stub)
        polling = PollInterval(timeout, 5, now=lambda: sum(waits), sleep=waits)
        following = ImportPolling(AnalysisClient(task), wanted, polling)
        following.start()
        found = following.finish()
        assert stub.replies == []
    return found, [form["action"] for form in sent(stub)], said


def failed(*replies: Reply, **options: Any) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        follow(*replies, **options)
    return caught.value


@pytest.mark.parametrize(
    ("record", "state"),
    [
        ({"status": "Queued"}, "running"),
        ({"status": "Running", "progress": 100}, "running"),
        ({"status": "Completed"}, "done"),
        ({"status": "FINISHED"}, "done"),
        ({"status": "Failed"}, "failed"),
        ({"status": "ERROR", "progress": 100}, "failed"),
        ({"status": "Incomplete"}, "unknown"),
        ({"status": None}, "unknown"),
        ({"project": "completed"}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_other_states_than_the_usual_ones_are_unknown(record: dict[str, Any], state: str) -> None:
    assert import_polling.state_of(record) == state


def test_progress_is_told_where_it_is_new() -> None:
    found, actions, said = follow(
        lines(OTHERS),
        DONE,
        lines(OTHERS, {"name": "fw", "status": "Queued"}),
        lines(OTHERS, {"name": "fw", "status": "Queued"}),
        lines(OTHERS, {"name": "fw", "status": "Running", "progress": 40}),
        lines(OTHERS, {"name": "fw", "status": "Finished"}),
    )
    assert found == [{"name": "fw", "status": "Finished"}]
    assert actions == ["import_status", "import_project", *["import_status"] * 4]
    assert said == [
        "importing the project 'fw': Queued",
        "importing the project 'fw': Running 40 %",
    ]


def test_an_import_that_runs_already_is_joined() -> None:
    earlier = {"project": "fw", "status": "Failed", "message": "long ago"}
    running = {"project": "fw", "status": "Running"}
    _found, actions, _said = follow(
        lines(earlier, running), lines(earlier, {**running, "status": "Completed"})
    )
    assert actions == ["import_status", "import_status"]


def test_what_earlier_imports_left_does_not_count() -> None:
    earlier = {"project": "fw", "status": "Failed", "message": "long ago"}
    found, _actions, _said = follow(
        lines(earlier), DONE, lines(earlier, {"project": "fw", "status": "Completed"})
    )
    assert found == [{"project": "fw", "status": "Completed"}]


def test_a_project_that_is_there_and_of_which_nothing_is_told_has_been_imported() -> None:
    found, actions, _said = follow(
        lines(), DONE, lines(), lines(), RUNNING, lines(), lines({"name": "fw"})
    )
    assert found == []
    assert actions == [
        "import_status",
        "import_project",
        *["import_status", "projects"],
        "import_status",
        *["import_status", "projects"],
    ]


def test_neither_a_record_nor_a_project_is_a_failure_in_the_end() -> None:
    error = failed(lines(), DONE, *[lines()] * 17)
    assert error.kind == "failed"
    assert "neither the import nor the project" in str(error)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"message": "no space left"}, "no space left"),
        ({}, "Failed"),
    ],
)
def test_a_failed_import_is_told_in_the_servers_words(record: dict[str, Any], words: str) -> None:
    record = {"project": "fw", "status": "Failed", **record}
    error = failed(lines(), DONE, lines(record), lines())
    assert (error.kind, error.detail) == ("failed", words)
    assert str(error) == f"importing the project 'fw': {words}"


def test_a_server_that_does_not_answer_for_a_while_is_waited_for() -> None:
    _found, _actions, said = follow(
        lines(), DONE, Reply(cut=True), Reply(503), refusal(502, "proxy"), COMPLETED
    )
    assert said == ["importing the project 'fw': the server does not respond, still waiting"]


def test_another_trouble_ends_the_waiting() -> None:
    assert failed(lines(), DONE, refusal(401, "token expired")).kind == "auth"


def test_time_is_up_while_the_import_goes_on() -> None:
    error = failed(lines(), DONE, *[RUNNING] * 3, timeout=1)
    assert error.kind == "timeout"
    assert "importing the project 'fw': it has not finished (Running)" in str(error)


def test_a_lost_answer_is_looked_up() -> None:
    _found, actions, _said = follow(lines(), Reply(cut=True), RUNNING, COMPLETED)
    assert actions.count("import_project") == 1
    _found, actions, _said = follow(
        lines(), Reply(cut=True), lines(), lines({"name": "fw"}), COMPLETED
    )
    assert actions.count("import_project") == 1


@pytest.mark.parametrize("shown", [(lines(), lines()), (refusal(500, "no"),)])
def test_a_lost_start_of_which_nothing_is_seen_fails(shown: tuple[Reply, ...]) -> None:
    error = failed(lines(), Reply(cut=True), *shown)
    assert error.outcome_unknown


def test_without_a_project_all_that_is_new_counts() -> None:
    before = {"project": "old", "status": "Running"}
    found, actions, _said = follow(
        lines(before),
        DONE,
        lines(before, {"project": "a", "status": "Running"}),
        lines(before, {"project": "a", "status": "Completed"}),
        wanted=SERVER,
    )
    assert found == [{"project": "a", "status": "Completed"}]
    assert actions[1] == "import_server_configuration"


def test_settings_of_which_nothing_is_told_for_a_while_have_been_imported() -> None:
    found, actions, _said = follow(lines(), DONE, *[lines()] * 8, wanted=SERVER)
    assert found == []
    assert "projects" not in actions


def test_a_project_with_an_unknown_status_is_imported_if_it_exists_and_nothing_changes() -> None:
    def unknown(percent: int) -> Reply:
        return lines({"project": "fw", "status": "Phase 3", "progress": percent})

    found, actions, said = follow(
        lines(), DONE, unknown(5), unknown(50), *[unknown(99)] * 6, lines({"name": "fw"})
    )
    assert found == [{"project": "fw", "status": "Phase 3", "progress": 99}]
    assert actions[-2:] == ["import_status", "projects"]
    assert said[-1] == "importing the project 'fw': Phase 3 99 %"


def test_settings_with_an_unknown_status_are_waited_for_until_nothing_changes() -> None:
    unknown = {"name": "server", "status": "Phase 3"}
    found, _actions, _said = follow(lines(), DONE, *[lines(unknown)] * 8, wanted=SERVER)
    assert found == [unknown]


def test_settings_may_be_told_of_late() -> None:
    running, done = {"name": "server", "status": "Running"}, {"name": "server", "status": "Done"}
    found, _actions, _said = follow(
        lines(), DONE, lines(), lines(), lines(running), lines(done), wanted=SERVER
    )
    assert found == [done]


def test_nothing_is_waited_for_longer_than_half_of_the_time() -> None:
    found, actions, _said = follow(lines(), DONE, *[lines()] * 3, wanted=SERVER, timeout=2)
    assert (found, actions.count("import_status")) == ([], 4)


class Listing:
    """A server that lists imports; every import is running at the first read.

    It adds a record for each import, or replaces the last record (`writes_over`).
    """

    def __init__(self, end: dict[str, Any], *, writes_over: bool, looks: int) -> None:
        self.records: list[dict[str, Any]] = []
        self._end, self._writes_over, self._looks = end, writes_over, looks
        self._left = 0

    def __call__(self, seen: Seen) -> Reply:
        action = seen.form["action"]
        if action == "projects":
            return lines()
        if action != "import_status":
            kept = [] if self._writes_over else self.records
            self.records = [*kept, {**self._end, "status": "Running"}]
            self._left = self._looks
            return DONE
        if self._left == 0 and self.records:
            self.records[-1] = self._end
        self._left = max(0, self._left - 1)
        return lines(*self.records)


def run_against(server: Listing, wanted: Import) -> list[dict[str, Any]]:
    waits = Waits()
    with Stub(answer=server) as stub:
        polling = PollInterval(3600, 5, now=lambda: sum(waits), sleep=waits)
        following = ImportPolling(AnalysisClient(task_for(stub)[0]), wanted, polling)
        following.start()
        return following.finish()


@pytest.mark.parametrize("looks", [0, 1, 2])
@pytest.mark.parametrize("writes_over", [False, True])
def test_a_second_import_that_ends_as_the_first_one_is_told_apart(
    writes_over: bool, looks: int
) -> None:
    end = {"name": "server", "status": "Completed"}
    server = Listing(end, writes_over=writes_over, looks=looks)
    assert run_against(server, SERVER) == [end]
    for _number in range(2):  # a record that was never seen running looks like the earlier record
        assert run_against(server, SERVER) == ([] if writes_over and looks == 0 else [end])


@pytest.mark.parametrize(
    ("wanted", "writes_over", "looks"),
    [
        *((PROJECT, writes_over, looks) for writes_over in (False, True) for looks in (0, 1, 2)),
        *((SERVER, writes_over, looks) for writes_over in (False, True) for looks in (1, 2)),
        (SERVER, False, 0),
    ],
)
def test_an_import_that_fails_as_the_one_before_fails_again(
    wanted: Import, writes_over: bool, looks: int
) -> None:
    end = {"name": "fw", "status": "Failed", "message": "login refused"}
    server = Listing(end, writes_over=writes_over, looks=looks)
    for _number in range(3):
        with pytest.raises(ToolchainError) as caught:
            run_against(server, wanted)
        assert (caught.value.kind, caught.value.detail) == ("failed", "login refused")


def test_the_failure_of_a_project_long_ago_is_none_of_settings() -> None:
    old = lines({"project": "fw", "status": "Failed", "message": "long ago"})
    found, _actions, _said = follow(old, DONE, *[old] * 8, wanted=SERVER)
    assert found == []


def test_an_import_of_others_that_ran_before_is_none_of_settings() -> None:
    found, _actions, _said = follow(
        lines({"project": "fw", "status": "Running", "progress": 10}),
        DONE,
        lines({"project": "fw", "status": "Running", "progress": 90}, {"name": "server"}),
        lines(
            {"project": "fw", "status": "Failed", "message": "not ours"},
            {"name": "server", "status": "Completed"},
        ),
        wanted=SERVER,
    )
    assert found == [{"name": "server", "status": "Completed"}]


def test_lost_settings_of_which_nothing_is_told_are_not_known() -> None:
    assert failed(lines(), Reply(cut=True), lines(), wanted=SERVER).outcome_unknown


def test_the_words_of_a_failed_import_are_short() -> None:
    words = "Stack\n" * 999
    record = {"project": "fw", "status": "Failed", "message": words}
    error = failed(lines(), DONE, lines(record), lines())
    assert "Stack Stack" in str(error)
    assert len(str(error)) < 1000
