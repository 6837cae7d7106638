# SPDX-License-Identifier: GPL-3.0-or-later
"""Test a server that has only the features that the written interface lists.

It has no queue and no log. Its responses to a trigger are empty, results are only in the list of
all builds, and parameters only at a build.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.unit.ci.server import STARTED, Played
from tests.unit.stub import Reply, Seen, Stub

_LISTED = ("id", "number", "duration", "timestamp", "builtOn")
_WHOLE = ("id", "number", "duration", "timestamp", "building", "result", "queueId")


@dataclass
class Written:
    """A simulated server. `status`: status of the response to a trigger; `late`: number of reads
    before a build appears; `results`: whether builds have a result.
    """

    status: int = 201
    late: int = 0
    results: bool = True
    reads: int = 0
    builds: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, seen: Seen) -> Reply:
        path = seen.path.removeprefix("/base")
        if path == "/crumbIssuer/api/json":
            return Reply(body={"crumbRequestField": "Crumb", "crumb": "c"})
        if re.fullmatch(r"/job/j/build(WithParameters)?", path) and seen.method == "POST":
            self._start(seen)
            return Reply(self.status)
        self.reads += 1
        there = [build for build in self.builds if build["from"] <= self.reads]
        for build in there:
            if self.reads > build["from"] + 2:
                build.update(building=False, result="SUCCESS", duration=1500)
        if path == "/job/j/api/json":
            return self._list(seen, there)
        found = re.fullmatch(r"/job/j/(\d+)/api/json", path)
        if found is None or int(found[1]) > len(there):
            return Reply(404)
        values = self.builds[int(found[1]) - 1]["values"]
        entries = [{"name": name, "value": value} for name, value in values.items()]
        return Reply(body={"actions": [{}, {"parameters": entries}]})

    def _start(self, seen: Seen) -> None:
        number = len(self.builds) + 1
        build = {"id": str(number), "number": number, "duration": 0, "timestamp": STARTED}
        values = seen.form if seen.body else {}
        more = {"building": True, "result": None, "queueId": 20 + number, "builtOn": ""}
        self.builds.append({**build, **more, "values": values, "from": self.reads + self.late})

    def _list(self, seen: Seen, there: list[dict[str, Any]]) -> Reply:
        (tree,) = parse_qs(urlsplit(seen.target).query)["tree"]
        name = "allBuilds" if "allBuilds[" in tree else "builds"
        names = _WHOLE if name == "allBuilds" and self.results else _LISTED
        listed = [{each: build[each] for each in names} for build in reversed(there)]
        return Reply(body={name: listed})


def play(server: Written, **options: Any) -> tuple[dict[str, Any], Played]:
    with Stub(response=server) as stub:
        played = Played(stub, {"job": "j", "console_lines": 0, **options})
        return played.run(), played


@pytest.mark.parametrize("status", [200, 201])
@pytest.mark.parametrize("given", [{}, {"A": "1"}])
def test_build_is_followed_to_its_end(status: int, given: dict[str, Any]) -> None:
    values, played = play(Written(status), parameters=given)
    assert (values["changed"], values["build"]["result"]) == (True, "SUCCESS")
    assert (values["build"]["number"], values["build"]["parameters"]) == (1, given)
    name = "buildWithParameters" if given else "build"
    assert [post.path for post in played.posts] == [f"/base/job/j/{name}"]


def test_delayed_build_is_awaited() -> None:
    values, played = play(Written(late=12))
    assert values["build"]["number"] == 1
    assert len(played.posts) == 1


def test_no_build_is_started_after_a_successful_one() -> None:
    server = Written()
    play(server, parameters={"A": "1"})
    options = {"parameters": {"A": "1"}, "trigger": "unless_successful"}
    values, played = play(server, **options)
    assert (values["changed"], values["build"]["number"], played.posts) == (False, 1, [])


def test_missing_results_are_reported_immediately() -> None:
    with pytest.raises(ToolchainError) as caught:
        play(Written(results=False))
    assert caught.value.kind == "protocol"
    assert "cannot follow build #1: the server reports neither its result" in caught.value.message
    assert caught.value.result["build"]["number"] == 1


def test_waiting_for_a_build_that_never_starts_is_bounded() -> None:
    for limit, spent in ((5.0, 5.0), (3600.0, 30.0)):
        with Stub(response=Written(late=10_000)) as stub:
            played = Played(stub, {"job": "j", "wait_timeout": limit})
            with pytest.raises(ToolchainError) as caught:
                played.run()
            assert caught.value.kind == "protocol"
            assert "not repeated" in caught.value.message
            assert played.clock.time == pytest.approx(spent)


def test_many_builds_are_followed() -> None:
    entries = [{"job": "j", "parameters": {"A": each}} for each in ("1", "2")]
    values, played = play(Written(), job=None, builds=entries, parallel=1)
    rows = [(row["build"]["number"], row["build"]["parameters"]["A"]) for row in values["builds"]]
    assert rows == [(1, "1"), (2, "2")]
    assert all(row["build"]["result"] == "SUCCESS" for row in values["builds"])
    assert len(played.posts) == 2
