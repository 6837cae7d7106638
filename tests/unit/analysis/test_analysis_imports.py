# SPDX-License-Identifier: GPL-3.0-or-later
"""Test imports: started once, and followed until they end, whatever the server reports
about them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.client import (
    AnalysisClient,
    Call,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.resources import (
    import_polling,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.resources.import_polling import (
    Import,
    ImportPolling,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core import progress
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.progress import (
    PollInterval,
)
from tests.unit.analysis.server import Stub, lines, refusal, sent, task_for
from tests.unit.stub import Reply, Seen, Waits

DONE = Reply()
PROJECT = Import("importing the project 'fw'", Call("import_project", {"project": "fw"}), "fw")
SERVER = Import("importing the settings", Call("import_server_configuration"))
RUNNING = lines({"project": "fw", "status": "Running"})
COMPLETED = lines({"project": "fw", "status": "Completed"})
OTHERS = {"project": "other", "status": "Failed", "message": "not ours"}


class Clock:
    """A clock that only a pause moves."""

    def __init__(self) -> None:
        self.now = 1e9

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


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
def test_undocumented_states_are_unknown(record: dict[str, Any], state: str) -> None:
    assert import_polling.state_of(record) == state


def test_progress_is_shown_when_it_changes() -> None:
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


def test_running_import_is_joined() -> None:
    earlier = {"project": "fw", "status": "Failed", "message": "long ago"}
    running = {"project": "fw", "status": "Running"}
    _found, actions, _said = follow(
        lines(earlier, running), lines(earlier, {**running, "status": "Completed"})
    )
    assert actions == ["import_status", "import_status"]


def test_import_of_another_task_is_joined_before_it_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    monkeypatch.setattr(import_polling, "time", clock := Clock())
    unlisted = [lines()] * 4  # the last one is the list of projects
    replies = [lines(), DONE, *unlisted, RUNNING, COMPLETED, lines(), DONE]
    with Stub(*replies) as stub:

        def polling() -> ImportPolling:
            interval = PollInterval(60, 5, now=clock.time, sleep=clock.sleep)
            return ImportPolling(AnalysisClient(task_for(stub)[0]), PROJECT, interval)

        polling().start()
        assert import_polling.is_running(AnalysisClient(task_for(stub)[0]), "fw")
        second = polling()
        second.start()
        assert second.finish() == [{"project": "fw", "status": "Completed"}]
        polling().start()  # again, because the first has ended
        actions = [form["action"] for form in sent(stub)]
    assert [n for n, action in enumerate(actions) if action == "import_project"] == [1, 9]


def test_import_that_never_appears_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    monkeypatch.setattr(import_polling, "time", clock := Clock())
    with Stub(*[lines(), DONE] * 2) as stub:
        for _task in range(2):
            interval = PollInterval(60, 5, now=clock.time, sleep=clock.sleep)
            ImportPolling(AnalysisClient(task_for(stub)[0]), PROJECT, interval).start()
            clock.sleep(20)


def test_records_of_earlier_imports_are_ignored() -> None:
    earlier = {"project": "fw", "status": "Failed", "message": "long ago"}
    found, _actions, _said = follow(
        lines(earlier), DONE, lines(earlier, {"project": "fw", "status": "Completed"})
    )
    assert found == [{"project": "fw", "status": "Completed"}]


def test_existing_project_without_record_is_imported() -> None:
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


def test_missing_record_and_project_is_an_error() -> None:
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
def test_failed_import_has_the_error_of_the_server(record: dict[str, Any], words: str) -> None:
    record = {"project": "fw", "status": "Failed", **record}
    error = failed(lines(), DONE, lines(record), lines())
    assert (error.kind, error.detail) == ("failed", words)
    assert str(error) == f"importing the project 'fw': {words}"


def test_unavailable_server_is_awaited() -> None:
    _found, _actions, said = follow(
        lines(), DONE, Reply(cut=True), Reply(503), refusal(502, "proxy"), COMPLETED
    )
    assert said == ["importing the project 'fw': the server does not respond; still waiting"]


def test_other_error_ends_waiting() -> None:
    assert failed(lines(), DONE, refusal(401, "token expired")).kind == "auth"


def test_timeout_during_the_import_is_an_error() -> None:
    error = failed(lines(), DONE, *[RUNNING] * 3, timeout=1)
    assert error.kind == "timeout"
    assert "importing the project 'fw': the import has not finished (Running)" in str(error)


def test_lost_response_is_verified() -> None:
    _found, actions, _said = follow(lines(), Reply(cut=True), RUNNING, COMPLETED)
    assert actions.count("import_project") == 1
    _found, actions, _said = follow(
        lines(), Reply(cut=True), lines(), lines({"name": "fw"}), COMPLETED
    )
    assert actions.count("import_project") == 1


@pytest.mark.parametrize("shown", [(lines(), lines()), (refusal(500, "no"),)])
def test_lost_start_without_trace_is_an_error(shown: tuple[Reply, ...]) -> None:
    error = failed(lines(), Reply(cut=True), *shown)
    assert error.outcome_unknown


def test_every_new_record_counts_without_project() -> None:
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


def test_settings_without_record_are_imported_after_a_while() -> None:
    found, actions, _said = follow(lines(), DONE, *[lines()] * 8, wanted=SERVER)
    assert found == []
    assert "projects" not in actions


def test_project_with_unknown_status_is_imported_once_stable() -> None:
    def unknown(percent: int) -> Reply:
        return lines({"project": "fw", "status": "Phase 3", "progress": percent})

    found, actions, said = follow(
        lines(), DONE, unknown(5), unknown(50), *[unknown(99)] * 6, lines({"name": "fw"})
    )
    assert found == [{"project": "fw", "status": "Phase 3", "progress": 99}]
    assert actions[-2:] == ["import_status", "projects"]
    assert said[-1] == "importing the project 'fw': Phase 3 99 %"


def test_settings_with_unknown_status_are_imported_once_stable() -> None:
    unknown = {"name": "server", "status": "Phase 3"}
    found, _actions, _said = follow(lines(), DONE, *[lines(unknown)] * 8, wanted=SERVER)
    assert found == [unknown]


def test_delayed_settings_record_is_awaited() -> None:
    running, done = {"name": "server", "status": "Running"}, {"name": "server", "status": "Done"}
    found, _actions, _said = follow(
        lines(), DONE, lines(), lines(), lines(running), lines(done), wanted=SERVER
    )
    assert found == [done]


def test_missing_record_is_awaited_for_half_of_the_timeout() -> None:
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
    with Stub(response=server) as stub:
        polling = PollInterval(3600, 5, now=lambda: sum(waits), sleep=waits)
        following = ImportPolling(AnalysisClient(task_for(stub)[0]), wanted, polling)
        following.start()
        return following.finish()


@pytest.mark.parametrize("looks", [0, 1, 2])
@pytest.mark.parametrize("writes_over", [False, True])
def test_second_import_with_equal_result_is_distinguished(writes_over: bool, looks: int) -> None:
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
def test_second_import_with_equal_failure_fails(
    wanted: Import, writes_over: bool, looks: int
) -> None:
    end = {"name": "fw", "status": "Failed", "message": "login refused"}
    server = Listing(end, writes_over=writes_over, looks=looks)
    for _number in range(3):
        with pytest.raises(ToolchainError) as caught:
            run_against(server, wanted)
        assert (caught.value.kind, caught.value.detail) == ("failed", "login refused")


def test_old_failure_of_a_project_does_not_affect_settings() -> None:
    old = lines({"project": "fw", "status": "Failed", "message": "long ago"})
    found, _actions, _said = follow(old, DONE, *[old] * 8, wanted=SERVER)
    assert found == []


def test_running_import_of_a_project_does_not_affect_settings() -> None:
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


def test_lost_start_of_settings_without_record_has_unknown_outcome() -> None:
    assert failed(lines(), Reply(cut=True), lines(), wanted=SERVER).outcome_unknown


def test_error_of_a_failed_import_is_short() -> None:
    words = "Stack\n" * 999
    record = {"project": "fw", "status": "Failed", "message": words}
    error = failed(lines(), DONE, lines(record), lines())
    assert "Stack Stack" in str(error)
    assert len(str(error)) < 1000
