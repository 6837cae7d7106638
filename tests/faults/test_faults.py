# SPDX-License-Identifier: GPL-3.0-or-later
"""Test every module with misbehaving servers: right kind of error, no repeated write, no partial
change.

One play has all selected faults of a module. First come the faults of every request, one after the
other. All modules share the transport that recognizes these, so a module has only a part of them, but
a service has them all. Then come the faults of its write, each from the state of the seeds: a part of
the rejections, and all lost responses.

`-m first` selects all faults of every service, and a lost response of every module that writes.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.faults.turns import in_turn, marked, of_every_service
from tests.faults.writes import WRITERS, arguments
from tests.helpers import connections, forked, playbook
from tests.helpers.cases import (
    CASES,
    FAULT_CASES,
    connection_options,
    first_arguments,
    module_of,
    seed,
    settings,
)
from tests.helpers.selection import combinations
from tests.helpers.sentences import assert_one_sentence

FLAVOUR = "real"
LOST = 1.0  # seconds; longer than the timeout of the tasks
PAGE = "<!DOCTYPE html><html><head><title>Welcome</title></head><body><p>Hello</p></body></html>"
LOGIN_PAGE = (
    "<!DOCTYPE html><html><head><title>Log in</title></head>"
    '<body><form><input name="user"><input type="password" name="secret"></form></body></html>'
)
ERROR_PAGE = (
    "<html><head><title>Error</title></head><body><h1>Internal error</h1>"
    + "<p>Call the help desk.</p>" * 200
    + "</body></html>"
)


@dataclass(frozen=True)
class Trouble:
    """A fault or a wrong connection option, and the kind of error that it is reported as."""

    kind: str
    fault: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    words: str = ""


#: Faults of every request of a module.
TROUBLES = {
    "an HTML answer": Trouble("protocol", {"body": PAGE, "content_type": "text/html"}),
    "a login page": Trouble("auth", {"body": LOGIN_PAGE, "content_type": "text/html"}),
    "an error page": Trouble(
        "server", {"status": 500, "body": ERROR_PAGE, "content_type": "text/html"}, words="500"
    ),
    "a truncated answer": Trouble(
        "network", {"body": '{"name": "what follows got lost"}', "truncate": 9}
    ),
    "a cut connection": Trouble("network", {"cut": True}),
    "silence": Trouble("timeout", {"delay": LOST}, {"timeout": 0.2}, words="0.2 s"),
    "no permission": Trouble("permission", {"status": 403, "body": "not yours"}, words="403"),
    "a redirect to the login page": Trouble("auth", {"redirect": "/login.jsp?then=x"}),
    "a redirect to another host": Trouble(
        "protocol", {"redirect": "http://elsewhere.invalid/x"}, words="elsewhere.invalid"
    ),
    "an overloaded server": Trouble("server", {"status": 503, "body": "overloaded"}),
    "a longer pause than wanted": Trouble(
        "rate_limited",
        {"status": 429, "headers": {"Retry-After": "3600"}},
        {"retry_max_wait": 5, "retries": 3},
        words="3600 s",
    ),
    "a longer break than wanted": Trouble(
        "rate_limited",
        {"status": 503, "headers": {"Retry-After": "3600"}},
        {"retry_max_wait": 5, "retries": 3},
        words="retry_max_wait",
    ),
}
#: Temporary faults: the request is sent again.
HICCUPS: dict[str, dict[str, Any]] = {
    "too many requests once": {"status": 429, "headers": {"Retry-After": "0"}},
    "a short break": {"status": 503, "headers": {"Retry-After": "0"}},
}
#: Modules that write into a local folder. A task would find the files of the previous task there.
FOLDERS = [name for name in FAULT_CASES if "dest" in first_arguments(name)]
#: Faults of the write alone.
WRITE_TROUBLES = {
    "a redirected write": Trouble("protocol", {"redirect": "/repo/api/system/ping"}),
    "a write redirected with its body": Trouble(
        "protocol", {"redirect": "/repo/api/system/ping", "status": 307}
    ),
    "a write redirected to the login page": Trouble("auth", {"redirect": "/login.action"}),
    "a failed write": Trouble("server", {"status": 500, "body": "it broke"}, words="it broke"),
    "a write to an overloaded server": Trouble("server", {"status": 503}),
    "a forbidden write": Trouble("permission", {"status": 403, "body": "not yours"}),
}
#: Server fact [ci-6]: a CI server that queues nothing responds to a trigger with 302. Other
#: requests get 302 even if they succeed [ci-21, ci-22, ci-41]: a verification read shows that they
#: failed.
KINDS = {
    ("ci_branch_scan", "a redirected write"): "timeout",
    ("ci_build_delete", "a redirected write"): "failed",
    ("ci_build_input", "a redirected write"): "failed",
    ("ci_job", "a redirected write"): "failed",
    ("ci_job_build", "a redirected write"): "rejected",
    ("ci_node", "a redirected write"): "failed",
    ("ci_plugin", "a redirected write"): "failed",
}
#: The response is lost, but the server may have acted.
LOST_ANSWERS = {
    "a lost answer": Trouble("network", {"cut": True, "after": True}),
    "a write cut off": Trouble("network", {"cut": True}),
    "a late answer": Trouble("timeout", {"delay": LOST}, {"timeout": 0.3}),
}
ON_WRITE = {**WRITE_TROUBLES, **LOST_ANSWERS}


NOWHERE = {"nobody listens": "port", "a host without a name": "host name", "a wrong path": ""}
TROUBLED = in_turn(TROUBLES, 3)
UNREACHABLE = in_turn(NOWHERE, 1)
HICCUPED = in_turn(HICCUPS, 1)
REJECTED = sorted({*in_turn(WRITE_TROUBLES, 2, WRITERS), *KINDS})
#: Each module meets all of them. `make test` runs the first one of each module.
UNANSWERED = [
    (module, [*LOST_ANSWERS][(number + turn) % len(LOST_ANSWERS)])
    for number, module in enumerate(WRITERS)
    for turn in range(len(LOST_ANSWERS))
]
#: Modules whose tests about all of their faults run first.
LEADING = {pair.values[0] for pair in marked(TROUBLED) if pair.marks}
each_module = pytest.mark.parametrize(
    "module",
    [
        pytest.param(name, marks=[pytest.mark.first] if name in LEADING else [])
        for name in FAULT_CASES
    ],
)


def _closed_port() -> int:
    """Return a port of this machine on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _tasks(module: str, url: str, chosen: Collection[str]) -> list[dict[str, Any]]:
    """Return the tasks of a module: those of the chosen faults, and one before and after those of
    every request.
    """
    given = arguments(module)
    fresh = {"sandbox_reset": settings(module), "sandbox_seed": seed(module)}

    def one(
        name: str, faults: list[Mapping[str, Any]], options: Mapping[str, Any], **variables: Any
    ) -> dict[str, Any]:
        variables["sandbox_faults"] = [
            {"service": CASES[module]["service"], "times": 99, **fault} for fault in faults
        ]
        return playbook.task(
            module_of(module), {**given, **options}, name, vars=variables, diff=True
        )

    def calm(name: str, **variables: Any) -> dict[str, Any]:
        return {**one(name, [], {}, **variables), "check_mode": True}

    def apart(name: str) -> dict[str, str]:
        return {"dest": name} if module in FOLDERS else {}

    troubles = [
        one(name, [TROUBLES[name].fault], TROUBLES[name].options)
        for each, name in TROUBLED
        if each == module
    ]
    addresses = {
        "nobody listens": f"http://127.0.0.1:{_closed_port()}/x",
        "a wrong path": f"{url}/nowhere",
        "a host without a name": "http://host.invalid/wiki",
    }
    nowhere = [
        one(name, [], {"url": addresses[name]}) for each, name in UNREACHABLE if each == module
    ]
    hiccups = [
        one(name, [{**HICCUPS[name], "times": 1}], {"retries": 2, **apart(name)}, **fresh)
        for each, name in HICCUPED
        if each == module
    ]
    on_write = [
        one(name, [{**each.fault, "write": True}], each.options, **fresh)
        for name, each in (ON_WRITE if module in WRITERS else {}).items()
    ]
    found = [calm("before", **fresh), *troubles, *nowhere, calm("after"), *hiccups, *on_write]
    return [task for task in found if task["name"] in {*chosen, "before", "after"}]


Troubled = Callable[[str], playbook.Run]


def _play(module: str, urls: Mapping[str, str], chosen: Collection[str]) -> dict[str, Any]:
    service = CASES[module]["service"]
    options = {"retries": 0, **connection_options(module, FLAVOUR)}
    defaults = connections.module_defaults(urls, **{service: options})
    return playbook.play(_tasks(module, urls[service], chosen), module_defaults=defaults)


@pytest.fixture(scope="session")
def troubled(
    request: pytest.FixtureRequest,
    fresh: Callable[[str], Sandbox],
    tmp_path_factory: pytest.TempPathFactory,
) -> Troubled:
    """Return a function that runs a module with all selected faults, once per session."""
    folder = tmp_path_factory.mktemp("faults")
    runs: dict[str, playbook.Run] = {}
    selected = combinations(request.session, "module", "name")

    def once(module: str) -> playbook.Run:
        if module not in runs:
            sandbox = fresh(FLAVOUR)
            (folder / module).mkdir()
            chosen = {str(name) for each, name in selected if each == module}
            play = _play(module, sandbox.urls, chosen)
            runs[module] = forked.run(folder / module, play, sandbox)
        return runs[module]

    return once


def _assert_failed(event: playbook.Event, trouble: Trouble) -> None:
    label = f"{event.task}: {event.result.get('msg')}"
    assert event.status == "failed", label
    assert event.result["error"]["kind"] == trouble.kind, label
    assert trouble.words in event.result["msg"], label
    assert_one_sentence(event.result, event.task)


@pytest.mark.first
def test_every_service_has_every_fault() -> None:
    for pairs, names in ((TROUBLED, TROUBLES), (UNREACHABLE, NOWHERE), (HICCUPED, HICCUPS)):
        assert of_every_service(pairs, names)
    assert of_every_service(REJECTED, WRITE_TROUBLES, WRITERS)
    assert of_every_service(UNANSWERED, LOST_ANSWERS, WRITERS)


@pytest.mark.parametrize(("module", "name"), marked(TROUBLED))
def test_fault_has_its_error_kind(troubled: Troubled, module: str, name: str) -> None:
    event = troubled(module).event(name)
    _assert_failed(event, TROUBLES[name])
    assert event.result["changed"] is False
    assert event.result["http"]["retries"] == 0


@pytest.mark.parametrize(("module", "name"), marked(UNREACHABLE))
def test_unreachable_address_is_reported(troubled: Troubled, module: str, name: str) -> None:
    event = troubled(module).event(name)
    if name == "a wrong path":
        _assert_failed(event, Trouble("not_found", words="check url"))
    else:
        _assert_failed(event, Trouble("network", words=NOWHERE[name]))
        assert event.requests == []


@each_module
def test_fault_leaves_no_partial_change(troubled: Troubled, module: str) -> None:
    before, after = (troubled(module).event(name).result for name in ("before", "after"))
    assert (after["changed"], after["diff"]) == (before["changed"], before["diff"])


@pytest.mark.parametrize(("module", "name"), marked(HICCUPED))
def test_temporary_fault_is_retried(troubled: Troubled, module: str, name: str) -> None:
    run = troubled(module)
    event = run.event(name)
    assert event.status == "ok", event.result.get("msg")
    assert event.result["changed"] is run.event("before").result["changed"]
    assert event.result["http"]["retries"] == 1
    assert len(event.requests) == event.result["http"]["requests"]


def test_case_writes_exactly_if_its_descriptor_says_so() -> None:
    writing = {
        name
        for name in FAULT_CASES
        if "create" in CASES[name] or any(CASES[name].get("writes", {}).values())
    }
    # These modules write local files; on the server, they only read.
    assert writing - set(FOLDERS) == set(WRITERS)


@pytest.mark.parametrize(("module", "name"), marked(REJECTED))
def test_rejected_write_is_sent_once(troubled: Troubled, module: str, name: str) -> None:
    event = troubled(module).event(name)
    trouble = WRITE_TROUBLES[name]
    _assert_failed(event, replace(trouble, kind=KINDS.get((module, name), trouble.kind)))
    assert len(event.writes) == 1
    assert not [each for each in event.requests if each["path"] == "/api/system/ping"]
    assert event.result["changed"] is False


@pytest.mark.parametrize(("module", "name"), marked(UNANSWERED, every_module=True))
def test_unanswered_write_is_not_resent(troubled: Troubled, module: str, name: str) -> None:
    event = troubled(module).event(name)
    sent = Counter((each["path"], each["query"], each["body"]) for each in event.writes)
    assert set(sent.values()) == {1}, sent
    if event.status == "failed":
        _assert_failed(event, LOST_ANSWERS[name])
        sentences = ("nothing was changed", "whether it was done is not known")
        assert [each in event.result["msg"] for each in sentences].count(True) == 1
    else:
        assert event.result["changed"] is True
        assert name != "a write cut off"


@each_module
def test_no_secret_is_shown(troubled: Troubled, module: str) -> None:
    case = CASES[module]
    login = connections.LOGINS[case["service"]]
    assert troubled(module).shows([*case.get("secrets", []), *connections.secrets(login)]) == []
