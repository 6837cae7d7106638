# SPDX-License-Identifier: GPL-3.0-or-later
"""Test plugins of the sandbox's CI server: install, wait, enable, disable, remove. Verify that no
task restarts the server.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server import update_centre
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_plugin import (
    CiPluginOperation,
    CiPluginOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.transport import (
    Transport,
)
from sandbox.client import Sandbox
from tests.helpers.options import build as options_of
from tests.unit.ci.tasks import Run

TOKEN = "builder-api-token-1234567890"


class Ci:
    """Run `ci_plugin` tasks against a sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.played = Run("")

    def run(self, *plugins: Any, check: bool = False, **options: Any) -> dict[str, Any]:
        self.played = Run(self.sandbox.urls["ci"], check, token=TOKEN)
        listed = [{"name": plugin} if isinstance(plugin, str) else plugin for plugin in plugins]
        given = {"plugins": listed or None, "poll_interval": 0.05, **options}
        chosen = options_of(CiPluginOptions, **given)
        return self.played.play(lambda task: CiPluginOperation(task, chosen))

    def fails(self, *plugins: Any, **options: Any) -> ToolchainError:
        with pytest.raises(ToolchainError) as caught:
            self.run(*plugins, **options)
        return caught.value

    def posts(self) -> list[str]:
        return [request["path"] for request in self.sandbox.requests("ci", writes=True)]


@pytest.fixture
def ci(fresh: Callable[[str], Sandbox]) -> Ci:
    sandbox = fresh("real")
    sandbox.settings("ci", install_seconds=0.05)
    return Ci(sandbox)


def actions(values: dict[str, Any]) -> dict[str, tuple[Any, Any, str]]:
    return {
        plugin["name"]: (plugin["before"], plugin["after"], plugin["action"])
        for plugin in values["plugins"]
    }


def test_plugins_are_installed_with_dependencies(ci: Ci) -> None:
    predicted = ci.run("slack", check=True)
    assert predicted["changed"]
    assert ci.posts() == []
    made = ci.run("slack")
    assert actions(made) == actions(predicted)
    assert actions(made) == {
        "slack": (None, "741.v00f9591c586d", "installed"),
        "plain-credentials": (None, "183.va_de8f1dd5a_2b_", "installed"),
    }
    assert [plugin["implied"] for plugin in made["plugins"]] == [False, True]
    assert made["diff"] == predicted["diff"]
    assert set(made["diff"][1]) == {"slack", "plain-credentials"}
    assert made["restart_required"] is False
    assert ci.posts() == ["/pluginManager/installPlugins"]
    assert any("installing plugins" in line for line in ci.played.lines)
    assert not ci.run("slack", "plain-credentials")["changed"]


def test_update_awaiting_restart_is_not_installed_again(ci: Ci) -> None:
    wanted = {"name": "git", "version": "5.6"}
    made = ci.run(wanted)
    assert actions(made) == {"git": ("5.2.2", "5.7.0", "updated")}
    assert made["restart_required"] is True
    again = ci.run(wanted)
    assert not again["changed"]
    assert actions(again) == {"git": ("5.2.2", "5.7.0", "unchanged")}
    late = ci.run("late")
    assert actions(late) == {"late": (None, "2.0", "installed")}
    assert not ci.run("late")["changed"]
    assert len(ci.posts()) == 2


def test_installations_of_other_tasks_are_not_dependencies(ci: Ci) -> None:
    ci.run("slack")
    assert set(actions(ci.run({"name": "ant", "state": "enabled"}))) == {"ant"}
    ci.sandbox.settings("ci", install_seconds=0.5)
    ci.run("timestamper", wait=False)
    assert set(actions(ci.run("timestamper"))) == {"timestamper"}
    ci.sandbox.fault(service="ci", path="makeDisabled", method="POST", status=403)
    error = ci.fails({"name": "ant", "state": "disabled"}, "late", wait=False)
    assert set(actions(error.result)) == {"ant", "late"}


def test_every_failed_installation_is_named(ci: Ci) -> None:
    error = ci.fails("broken", "timestamper")
    assert error.kind == "failed"
    assert "broken: java.io.IOException: Failed to download" in error.message
    assert error.result["changed"] is True
    assert {plugin["name"]: plugin["after"] for plugin in error.result["plugins"]} == {
        "broken": None,
        "timestamper": "1.28",
    }
    assert actions({"plugins": error.result["plugins"]})["broken"] == (None, None, "failed")
    assert ci.run("broken", check=True)["changed"]


def test_changed_is_false_if_every_installation_failed(ci: Ci) -> None:
    error = ci.fails("broken")
    assert error.result["changed"] is False
    assert [plugin["action"] for plugin in error.result["plugins"]] == ["failed"]


@pytest.mark.parametrize("version", ["latest", ">=5.0", "~5", "[5.0,6.0)", "5.x", "5.*", "5 or so"])
def test_invalid_version_is_rejected(version: str) -> None:
    wanted = options_of(CiPluginOptions, plugins=[{"name": "git", "version": version}])
    with pytest.raises(ToolchainError, match=r"^plugins\[0\]\.version is '") as caught:
        Run("http://127.0.0.1:9").play(lambda task: CiPluginOperation(task, wanted))
    assert caught.value.kind == "invalid"
    assert "a minimum version" in caught.value.message


def test_plugins_missing_in_the_update_site_are_rejected_before_any_write(ci: Ci) -> None:
    both = [{"name": "nonsense"}, {"name": "git", "version": "99"}, {"name": "timestamper"}]
    for check in (True, False):
        error = ci.fails(*both, check=check)
        assert error.kind == "not_found"
        assert "nonsense is unknown; git 99 is required, but the newest is 5.7.0" in error.message
        old = ci.fails({"name": "ant", "version": "2"}, check=check)
        assert old.kind == "rejected"
        assert "nothing newer than 1.13" in old.message
    assert ci.posts() == []


def test_first_update_site_with_the_wanted_version_decides(ci: Ci) -> None:
    ci.sandbox.settings("ci", update_sites=["default", "company", "with.dot"])
    offers = [
        {"name": "both", "version": "2", "site": "company", "dependencies": {"base": "5"}},
        {"name": "both", "version": "1"},
        {"name": "base", "version": "6", "site": "company"},
        {"name": "base", "version": "4"},
        {"name": "own", "version": "3", "site": "company"},
        {"name": "own", "version": "9", "site": "with.dot"},
        {"name": "git", "version": "9", "site": "company"},
    ]
    ci.sandbox.seed({"ci": {"update_site": offers}})
    predicted = ci.run("both", check=True)
    assert actions(predicted) == {"both": (None, "1", "installed")}
    wanted = [{"name": "both", "version": "2"}, "own", {"name": "git", "version": "5.5"}]
    expected = {
        "both": (None, "2", "installed"),
        "own": (None, "3", "installed"),
        "git": ("5.2.2", "5.7.0", "updated"),
        "base": (None, "6", "installed"),
    }
    assert actions(ci.run(*wanted, check=True)) == expected
    assert actions(ci.run(*wanted)) == expected
    error = ci.fails({"name": "both", "version": "3"})
    assert "both 3 is required, but nothing newer than 2" in error.message
    newest = ci.fails(
        {"name": "scm-x", "version": "1"}, {"name": "own", "version": "8"}, check=True
    )
    assert newest.kind == "not_found"


def test_plugin_installed_concurrently_is_unchanged(
    ci: Ci, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = update_centre.read_offers

    def later(server: Transport) -> Any:
        monkeypatch.undo()
        assert ci.run("timestamper")["changed"]
        return read(server)

    monkeypatch.setattr(update_centre, "read_offers", later)
    assert not ci.run("timestamper")["changed"]


@pytest.mark.parametrize(
    ("plugin", "waits"),
    [
        ({"name": "git", "version": "5.6"}, True),
        ({"name": "git", "state": "disabled"}, True),
        ({"name": "git", "state": "absent"}, True),
        ({"name": "ant", "state": "enabled"}, True),
        ({"name": "ant", "state": "disabled"}, False),
        ({"name": "slack"}, False),
    ],
)
def test_restart_is_predicted(ci: Ci, plugin: dict[str, str], waits: bool) -> None:
    predicted = ci.run(plugin, check=True)
    assert predicted["restart_required"] is waits
    assert ci.run(plugin)["restart_required"] is waits


def test_reverted_change_needs_no_restart(ci: Ci) -> None:
    ci.run({"name": "ant", "state": "enabled"})
    back = {"name": "ant", "state": "disabled"}
    assert ci.run(back, check=True)["restart_required"] is False
    assert ci.run(back)["restart_required"] is False


def test_update_site_is_fetched_first(ci: Ci) -> None:
    ci.sandbox.settings("ci", site_fetched=False)
    assert ci.run("timestamper", check=True)["changed"]
    assert actions(ci.run("timestamper"))["timestamper"][1] == "1.28"
    assert ci.posts()[0] == "/pluginManager/checkUpdatesServer"


def test_plugins_are_enabled_disabled_and_removed(ci: Ci) -> None:
    made = ci.run({"name": "ant", "state": "enabled"}, {"name": "credentials", "state": "disabled"})
    assert made["restart_required"] is True
    assert "credentials is a dependency of git" in ci.played.warnings[0]
    assert [plugin["action"] for plugin in made["plugins"]] == ["enabled", "disabled"]
    assert not ci.run({"name": "ant", "state": "enabled"})["changed"]
    gone = ci.run({"name": "git", "state": "absent"})
    assert actions(gone) == {"git": ("5.2.2", None, "removed")}
    assert not ci.run({"name": "git", "state": "absent"})["changed"]
    assert ci.fails("git").kind == "conflict"
    assert ci.fails({"name": "nonsense", "state": "disabled"}).kind == "not_found"


@pytest.mark.parametrize("step", ["makeEnabled", "makeDisabled", "doUninstall"])
def test_redirect_to_login_page_is_an_auth_error(ci: Ci, step: str) -> None:
    login = {"Location": "/login?from=%2FpluginManager"}
    ci.sandbox.fault(service="ci", path=step, method="POST", status=302, headers=login)
    name, state = {
        "makeEnabled": ("ant", "enabled"),
        "makeDisabled": ("credentials", "disabled"),
        "doUninstall": ("git", "absent"),
    }[step]
    assert ci.fails({"name": name, "state": state}).kind == "auth"


def test_server_is_never_restarted(ci: Ci) -> None:
    ci.run({"name": "git", "version": "5.6"}, {"name": "ant", "state": "enabled"})
    assert not [path for path in ci.posts() if "estart" in path]


def test_lock_file_selects_the_plugins(ci: Ci, tmp_path: Path) -> None:
    lock = tmp_path / "plugins.txt"
    lock.write_text("git:5.2.2\ntimestamper:1.28\n", encoding="utf-8")
    assert actions(ci.run(lock_file=str(lock))) == {
        "git": ("5.2.2", "5.2.2", "unchanged"),
        "timestamper": (None, "1.28", "installed"),
    }
    lock.write_text("# nothing\n", encoding="utf-8")
    assert ci.fails(lock_file=str(lock)).kind == "invalid"


def test_unawaited_installation_returns_the_expected_versions(ci: Ci) -> None:
    ci.sandbox.settings("ci", install_seconds=30)
    made = ci.run("timestamper", wait=False)
    assert actions(made) == {"timestamper": (None, "1.28", "installed")}
    joined = ci.run("timestamper", check=True)
    assert actions(joined) == {"timestamper": (None, "1.28", "unchanged")}
    late = ci.fails("timestamper", wait_timeout=0.1)
    assert late.kind == "timeout"
    assert late.result["changed"] is False
    assert len(ci.posts()) == 1


@pytest.mark.parametrize(
    "plugins",
    [
        [{"name": "git@5.2"}],
        [{"name": "git:5.2"}],
        ["git", "git"],
        [{"name": "git", "version": "1", "state": "absent"}],
        [{"name": "git", "version": ">=5"}],
        [{"name": "git", "version": "newest"}],
        [{"name": "g*", "state": "absent"}],
    ],
)
def test_invalid_plugins_are_rejected(ci: Ci, plugins: list[Any]) -> None:
    assert ci.fails(*plugins).kind == "invalid"
    assert ci.sandbox.requests("ci") == []
