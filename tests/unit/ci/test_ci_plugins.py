# SPDX-License-Identifier: GPL-3.0-or-later
"""Test plugins in the server's responses, against a baseline and a lock file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.client import server_of
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server import (
    installed_plugins,
    update_centre,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_plugin_info import (
    CiPluginInfoOperation,
    CiPluginInfoOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.installed_plugins import (
    Plugin,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.update_centre import (
    CentreState,
    Installation,
    Offer,
    PluginEntry,
    PluginPlan,
    compared,
    require_offers,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.helpers.options import build as options_of
from tests.unit.ci.tasks import Run
from tests.unit.stub import Reply, Seen, Stub

SERVER: list[Any] = [
    {
        "shortName": "git",
        "longName": "Git plugin",
        "version": "5.2.2",
        "enabled": True,
        "active": True,
        "deleted": False,
        "hasUpdate": True,
    },
    {
        "shortName": "ant",
        "longName": "Ant Plugin",
        "version": "1.13",
        "enabled": False,
        "active": False,
        "deleted": False,
        "hasUpdate": False,
    },
    {"shortName": "broken", "version": "1.0-beta", "enabled": "true", "active": "false"},
    {},
    None,
    "git",
]
LOCK = "ant:1.13\nbroken:1.0-beta\ngit:5.2.2\n"


def run(options: dict[str, Any], *, read_only: bool = False, reply: Reply | None = None) -> Run:
    response = Reply(body={"plugins": SERVER}) if reply is None else reply
    with Stub(response=lambda seen: response) as stub:
        played = Run(stub.url, read_only)
        chosen = options_of(CiPluginInfoOptions, **options)
        values.clear()
        values.update(played.play(lambda task: CiPluginInfoOperation(task, chosen)))
        seen.clear()
        seen.extend(stub.seen)
    return played


values: dict[str, Any] = {}
seen: list[Seen] = []


def test_list_is_read_in_one_request() -> None:
    run({})
    assert [plugin["short_name"] for plugin in values["plugins"]] == ["ant", "broken", "git"]
    assert values["plugins"][2] == {
        "short_name": "git",
        "long_name": "Git plugin",
        "version": "5.2.2",
        "enabled": True,
        "active": True,
        "has_update": True,
    }
    assert values["plugins"][1]["active"] is False
    assert values["plugins"][1]["has_update"] is None
    assert (values["changed"], values["compliant"]) == (False, True)
    assert (values["missing"], values["outdated"], values["inactive"]) == ([], [], [])
    assert [(request.method, request.path) for request in seen] == [
        ("GET", "/base/pluginManager/api/json")
    ]


REQUIRED = {"git": "5.3", "ant": "1.13", "broken": "1.0", "matrix-auth": "3.2"}


@pytest.mark.parametrize(
    "required",
    [REQUIRED, [{"name": name, "version": version} for name, version in REQUIRED.items()]],
)
def test_baseline_lists_missing_outdated_and_inactive_plugins(required: Any) -> None:
    run({"required": required})
    assert values["missing"] == ["matrix-auth"]
    assert values["outdated"] == [
        {"name": "broken", "installed": "1.0-beta", "required": "1.0"},
        {"name": "git", "installed": "5.2.2", "required": "5.3"},
    ]
    assert values["inactive"] == ["ant", "broken"]
    assert values["compliant"] is False


@pytest.mark.parametrize(
    "required", [{"git": None}, {"git": "5.2.2"}, {"git": "latest"}, [{"name": "git"}], [], {}]
)
def test_satisfied_baseline_is_compliant(required: Any) -> None:
    played = run({"required": required})
    assert values["compliant"] is True
    assert played.warnings == []


@pytest.mark.parametrize(
    "required",
    [
        "git",
        1,
        [{"version": "1"}],
        ["git"],
        [{"name": "git", "x": 1}],
        [{"name": ["git"]}],
        {"git": []},
        {"git": True},
        {"git": 1.1},
        {"git": ">=5.0"},
        [{"name": "git", "version": "5.x"}],
        [{"name": "git", "version": "5"}, {"name": "git"}],
        [{"name": "git", "version": "5", "state": "absent"}],
        [{"name": "git", "state": "gone"}],
    ],
)
def test_invalid_baseline_is_rejected_before_any_request(required: Any) -> None:
    options = options_of(CiPluginInfoOptions, required=required)
    with Stub() as stub:
        with pytest.raises(ToolchainError, match="required") as caught:
            Run(stub.url).play(lambda task: CiPluginInfoOperation(task, options))
        assert stub.seen == []
    assert caught.value.kind == "invalid"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("git", "required[1] is a string: expected a mapping of name, version, state"),
        ({"nme": "git"}, "required[1].nme is not an option"),
        ({"version": "1"}, "required[1]: name is missing"),
        ({"name": " "}, "required[1].name is empty"),
    ],
)
def test_invalid_entry_of_the_baseline_is_named_by_its_position(entry: Any, message: str) -> None:
    with pytest.raises(ToolchainError) as caught:
        run({"required": [{"name": "ant"}, entry]})
    assert message in caught.value.message


def test_baseline_lists_unwanted_plugins() -> None:
    wanted = [
        {"name": "git", "state": "disabled"},
        {"name": "ant", "state": "disabled"},
        {"name": "broken", "state": "absent"},
        {"name": "gone", "state": "absent"},
        {"name": "none", "state": "disabled"},
    ]
    run({"required": wanted})
    assert values["unwanted"] == [
        {"name": "broken", "installed": "1.0-beta", "state": "absent"},
        {"name": "git", "installed": "5.2.2", "state": "disabled"},
    ]
    assert (values["missing"], values["inactive"], values["compliant"]) == (["none"], [], False)


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("absent", {"deleted": True}),
        ("disabled", {"deleted": True}),
        ("disabled", {"enabled": False}),
    ],
)
def test_plugin_that_a_restart_removes_or_disables_is_not_unwanted(
    state: str, shown: dict[str, Any]
) -> None:
    plugin = {"shortName": "git", "version": "5", "enabled": True, "active": True, **shown}
    reply = Reply(body={"plugins": [plugin]})
    run({"required": [{"name": "git", "state": state}]}, reply=reply)
    assert (values["unwanted"], values["compliant"]) == ([], True)


def test_missing_permission_is_named() -> None:
    headers = {
        "X-You-Are-Authenticated-As": "viewer",
        "X-Required-Permission": "hudson.model.Hudson.SystemRead",
    }
    with pytest.raises(ToolchainError) as caught:
        run({}, reply=Reply(403, "<html>Access Denied</html>", headers))
    assert caught.value.kind == "permission"
    assert "viewer lacks the permission hudson.model.Hudson.SystemRead" in caught.value.message


@pytest.mark.parametrize("body", ["{}", '{"plugins": null}', "[]", "hello"])
def test_response_without_plugins_is_not_an_empty_list(body: str) -> None:
    with pytest.raises(ToolchainError) as caught:
        run({"required": {"git": None}}, reply=Reply(body=body))
    assert caught.value.kind == "protocol"


def test_lock_file_is_written_once(tmp_path: Path) -> None:
    file = tmp_path / "plugins.txt"
    options = {"lock_file": str(file), "lock": "write"}
    run(options, read_only=True)
    predicted = values["diff"]
    assert values["changed"] is True
    assert not file.exists()
    played = run(options)
    assert (values["changed"], values["diff"]) == (True, predicted)
    assert "ant, broken" in played.warnings[0]
    text = file.read_text(encoding="utf-8")
    assert text.startswith("#")
    assert text.endswith("delivery.toolchain.ci_plugin_info\ngit:5.2.2\n")
    run({"lock_file": str(file), "lock": "check"})
    assert values["compliant"] is True
    assert predicted == ("", text)
    before = os.stat(file).st_mtime_ns
    run(options)
    assert values["changed"] is False
    assert values["diff"] == (text, text)
    assert os.stat(file).st_mtime_ns == before
    file.write_text("git:1.0\n", encoding="utf-8")
    run(options)
    assert values["diff"] == ("git:1.0\n", text)
    assert os.listdir(tmp_path) == ["plugins.txt"]


def test_unwritable_lock_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="nowhere"):
        run({"lock_file": str(tmp_path / "nowhere" / "plugins.txt"), "lock": "write"})


def test_lock_file_is_compared_in_all_directions(tmp_path: Path) -> None:
    file = tmp_path / "plugins.txt"
    options = {"lock_file": str(file), "lock": "check"}
    file.write_text(f"# by hand\n\n{LOCK}  # the end\n", encoding="utf-8")
    run(options)
    assert (values["missing"], values["outdated"]) == ([], [])
    assert (values["extra"], values["newer"]) == ([], [])
    assert (values["changed"], values["diff"]) == (False, ({}, {}))
    text = (
        "git:5.2.0:https://example.com/git.hpi\n"
        "ant:latest\n"
        "gone:1.0\n"
        "broken:incrementals;org.example;1.0\n"
    )
    file.write_text(text, encoding="utf-8")
    run(options)
    assert values["missing"] == ["gone"]
    assert values["newer"] == [{"name": "git", "installed": "5.2.2", "required": "5.2.0"}]
    assert values["outdated"] == [{"name": "broken", "installed": "1.0-beta", "required": "1.0"}]
    assert values["extra"] == []
    file.write_text("git:5.2.2\n", encoding="utf-8")
    run(options)
    assert values["extra"] == ["ant", "broken"]
    assert values["compliant"] is True


@pytest.mark.parametrize("content", [b"git 5.2.2\n", b"git:>=5\n", b":1.0\n", b"\xff\n", None])
def test_unreadable_lock_file_is_rejected(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "plugins.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ToolchainError, match=r"plugins\.txt") as caught:
        run({"lock_file": str(file), "lock": "check"})
    assert caught.value.kind == "invalid"


def test_two_baselines_are_rejected(tmp_path: Path) -> None:
    file = tmp_path / "plugins.txt"
    file.write_text(LOCK, encoding="utf-8")
    with pytest.raises(ToolchainError, match="cannot be combined with lock=check"):
        run({"lock_file": str(file), "lock": "check", "required": {"git": None}})


def test_output_of_list_plugins_is_parsed() -> None:
    output = (
        "workflow-aggregator Pipeline                        600.vb_57cdd26fdd7\n"
        "git                 Git plugin                      5.2.2 (5.3.0)\r\n"
        "green-balls         Green Balls (not blue)          1.15\n"
        "own                 Our own: 1.0 of it              1.5-SNAPSHOT (private-9f5b9c2f-me)\n"
        "old                 An older one  1.12-SNAPSHOT (private-08/24/2008 12:13-hudson) (1.12)\n"
        "nameless                                            1.0\n"
        "\n"
        "short\n"
    )
    found = installed_plugins.listed(output)
    assert [(one.short_name, one.long_name, one.version, one.has_update) for one in found] == [
        ("git", "Git plugin", "5.2.2", True),
        ("green-balls", "Green Balls (not blue)", "1.15", False),
        ("nameless", "", "1.0", False),
        ("old", "An older one", "1.12-SNAPSHOT (private-08/24/2008 12:13-hudson)", True),
        ("own", "Our own: 1.0 of it", "1.5-SNAPSHOT (private-9f5b9c2f-me)", False),
        ("workflow-aggregator", "Pipeline", "600.vb_57cdd26fdd7", False),
    ]
    assert {(one.enabled, one.active, one.waits) for one in found} == {(None, None, False)}


@pytest.mark.parametrize(
    ("enabled", "active", "deleted", "waits"),
    [
        (True, True, False, False),
        (True, False, False, True),
        (False, True, False, True),
        (False, False, False, False),
        (True, True, True, True),
        (False, False, True, False),
        (None, None, None, False),
    ],
)
def test_plugin_waiting_for_restart_is_detected(
    enabled: bool | None, active: bool | None, deleted: bool | None, waits: bool
) -> None:
    plugin = installed_plugins.Plugin("x", "X", "1", enabled, active, deleted, False)
    assert plugin.waits is waits


def test_lock_file_round_trips() -> None:
    found = [installed_plugins.Plugin("git", "Git plugin", "5.2.2", True, True, False, False)]
    assert installed_plugins.of_lock(installed_plugins.lock_of(found), "x") == {"git": "5.2.2"}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(403), "permission"),
        # older servers do not know the request; their response is not a denial
        (Reply(404), ""),
        (Reply(500, "<html>Oops!</html>"), ""),
        (Reply(body="[]"), ""),
    ],
)
def test_permission_to_change_plugins_is_checked_by_a_dry_run(reply: Reply, kind: str) -> None:
    def response(seen: Seen) -> Reply:
        return Reply(404) if "crumbIssuer" in seen.path else reply

    reported = ""
    with Stub(response=response) as stub:
        try:
            update_centre.require_right(server_of(Run(stub.url, read_only=True).task))
        except ToolchainError as error:
            reported = error.kind
    assert reported == kind
    assert (stub.seen[-1].method, stub.seen[-1].body) == ("POST", b"<jenkins/>")


def _installed(name: str, version: str) -> Plugin:
    return Plugin(name, name, version, True, True, False, False)


@pytest.mark.parametrize(
    ("there", "needs", "expected"),
    [
        ([], {"b": "1"}, ["b", "c"]),
        ([_installed("b", "1")], {"b": "1"}, []),
        ([_installed("b", "1")], {"b": "2"}, ["b", "c"]),
        ([_installed("c", "1")], {"b": "1"}, ["b"]),
        ([], {"unknown": "1"}, []),
        ([], {"a": "1"}, []),
    ],
)
def test_dependencies_are_installed_with_the_plugin(
    there: list[Plugin], needs: dict[str, str], expected: list[str]
) -> None:
    offers = {
        "a": [Offer("1", needs)],
        "b": [Offer("2", {"c": "1"})],
        "c": [Offer("1", {"a": "1"})],
    }
    centre = CentreState((), False)
    changes = compared([PluginEntry("a")], there, centre)
    found = PluginPlan(changes, there, centre, offers).implied
    assert [change.name for change in found] == expected
    assert all(change.implied for change in found)


def test_installed_optional_dependencies_are_updated() -> None:
    optional = {"b": "2", "c": "2", "d": "2"}
    offers = {
        "a": [Offer("1", {}, optional=optional)],
        **{name: [Offer("2", {})] for name in "bcd"},
    }
    there = [_installed("b", "1"), _installed("c", "2")]
    centre = CentreState((), False)
    planned = PluginPlan(compared([PluginEntry("a")], there, centre), there, centre, offers)
    assert [change.name for change in planned.implied] == ["b"]


@pytest.mark.parametrize(
    ("least", "requested"), [(None, "a.company"), ("1", "a.company"), ("2", "a")]
)
def test_first_update_site_decides(least: str | None, requested: str) -> None:
    planned = _planned(least)
    require_offers(planned.changes, planned.offers)
    assert planned.requests == {"a": requested}


@pytest.mark.parametrize(
    ("least", "reason"),
    [
        ("3", "site 'x.y', and a request cannot name a site with a dot"),
        ("4", "a 4 is required, but the newest is 3"),
    ],
)
def test_no_update_site_can_be_asked(least: str, reason: str) -> None:
    planned = _planned(least)
    with pytest.raises(ToolchainError, match=reason) as caught:
        require_offers(planned.changes, planned.offers)
    assert caught.value.kind == "rejected"


@pytest.mark.parametrize(
    ("there", "least", "kind", "reason"),
    [
        ([], None, "not_found", "b is unknown"),
        ([_installed("b", "1")], "2", "rejected", "b 2 is required, but nothing newer than 1"),
    ],
)
def test_plugin_that_no_update_site_has(
    there: list[Plugin], least: str | None, kind: str, reason: str
) -> None:
    changes = compared([PluginEntry("b", least)], there, CentreState((), False))
    with pytest.raises(ToolchainError, match=reason) as caught:
        require_offers(changes, {"a": [Offer("1", {})]})
    assert caught.value.kind == kind


def test_disabled_plugin_stays_disabled() -> None:
    there = [Plugin("a", "a", "1", False, False, False, False)]
    entries = [PluginEntry("a", state="disabled")]
    (change,) = compared(entries, there, CentreState((), False))
    assert (change.switch, change.action) == (None, "unchanged")


@pytest.mark.parametrize(("state", "action"), [("Failure", "failed"), ("Success", "installed")])
def test_row_says_whether_the_installation_failed(state: str, action: str) -> None:
    planned = _planned(None)
    centre = CentreState((Installation(1, "a", "1", state, ""),), False)
    assert [row["action"] for row in planned.rows([], centre, ["a"])] == [action]


def _planned(least: str | None) -> PluginPlan:
    offers = {"a": [Offer("1", {}, "company"), Offer("2", {}), Offer("3", {}, "x.y")]}
    centre = CentreState((), False)
    return PluginPlan(compared([PluginEntry("a", least)], [], centre), [], centre, offers)


def test_dependency_waiting_for_restart_is_not_installed_again() -> None:
    offers = {"a": [Offer("1", {"b": "2"})], "b": [Offer("2", {})]}
    waiting = Installation(1, "b", "2", "SuccessButRequiresRestart", "")
    centre = CentreState((waiting,), True)
    changes = compared([PluginEntry("a")], [], centre)
    assert PluginPlan(changes, [_installed("b", "1")], centre, offers).implied == []
