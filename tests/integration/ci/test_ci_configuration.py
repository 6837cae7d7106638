# SPDX-License-Identifier: GPL-3.0-or-later
"""Test `ci_configuration` against the sandbox's plugin for configuration as code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.casc_comparison import (
    sections,
    without_failed,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_configuration import (
    CiConfigurationOperation,
    CiConfigurationOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import hidden
from sandbox.client import Sandbox
from tests.helpers.ci import Ci

NODES = "jenkins.nodes"


@pytest.fixture
def ci(fresh: Callable[[str], Sandbox]) -> Ci:
    return Ci(fresh("real"), CiConfigurationOperation, CiConfigurationOptions)


def live(ci: Ci) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(ci.text("configuration-as-code/export", "POST"))
    return found


def nodes(*names: str, **more: Any) -> dict[str, Any]:
    return {"jenkins": {"nodes": [{"permanent": {"name": name, **more}} for name in names]}}


def test_exported_configuration_is_unchanged(ci: Ci) -> None:
    found = ci.run(config=live(ci))
    assert not found["changed"]
    assert found["unknown"] == [
        "unclassified.broken",
        "unclassified.mailer.authentication.password",
    ]
    assert "cannot compare the configuration" in ci.warnings[0]


@pytest.mark.parametrize("action", ["configure", "apply"])
def test_only_different_paths_and_sections_are_sent(ci: Ci, action: str) -> None:
    ci.sandbox.settings("ci", casc=action)
    text = "jenkins: {systemMessage: New, numExecutors: '2'}\nunclassified:\n  location: {url: x}\n"
    done = ci.lives(config=text)
    assert [change["path"] for change in done["changes"]] == [
        "jenkins.systemMessage",
        "unclassified.location.url",
    ]
    assert done["changes"][0] == {
        "path": "jenkins.systemMessage",
        "before": "Delivery",
        "after": "New",
    }
    assert live(ci)["unclassified"]["location"] == {"adminAddress": "admin@example.org", "url": "x"}
    assert not ci.run(config={"jenkins": {"label": "", "views": []}})["changed"]


def test_export_as_the_plugin_writes_it_is_unchanged_in_the_second_run(ci: Ci) -> None:
    """The server leaves out defaults and empty values, sorts sets and resolves variables."""
    ci.sandbox.settings("ci", casc_variables={"TOOL_HOME": "/opt"})
    entries = [{"key": "HOME", "value": "/x"}, {"key": "EMPTY", "value": ""}]
    granted = [
        {"group": {"name": "all", "permissions": ["Overall/Read", "Job/Read"]}},
        {"user": {"name": "all", "permissions": ["Overall/Administer"]}},
    ]
    node = {"name": "linux-1", "mode": "NORMAL", "launcher": "jnlp", "nodeDescription": ""}
    config: dict[str, Any] = {
        "configuration-as-code": {"deprecated": "warn"},
        "jobs": [{"script": "folder('x')"}],
        "jenkins": {
            "markupFormatter": {"plainText": {}},
            "securityRealm": {"ldap": {"configurations": [{"server": "s", "userSearch": ""}]}},
            "authorizationStrategy": {"projectMatrix": {"entries": granted}},
            "globalNodeProperties": [
                {"envVars": {"env": [*entries, {"key": "TOOLS", "value": "${TOOL_HOME:-/usr}/a"}]}},
                {"toolLocation": {"locations": [{"key": "git", "home": "^${HOME}/git"}]}},
            ],
            "nodes": [
                {"dumb": {**node, "retentionStrategy": {"always": {}}}},
                {"permanent": {"name": "linux-2"}},
            ],
        },
    }
    done = ci.run(config=config)
    assert done["changed"]
    shown = live(ci)["jenkins"]
    assert shown["markupFormatter"] == "plainText"
    assert shown["globalNodeProperties"][0]["envVars"]["env"] == [
        *entries,
        {"key": "TOOLS", "value": "/opt/a"},
    ]
    assert (
        shown["globalNodeProperties"][1]["toolLocation"]["locations"][0]["home"] == "^${HOME}/git"
    )
    assert shown["nodes"][0]["permanent"] == {
        "labelString": "linux",
        "launcher": "inbound",
        "name": "linux-1",
        "numExecutors": 2,
        "remoteFS": "/srv",
        "retentionStrategy": "always",
    }
    assert [*shown["authorizationStrategy"]["projectMatrix"]["entries"][1]["group"].values()] == [
        "all",
        ["Job/Read", "Overall/Read"],
    ]
    never = [
        "configuration-as-code",
        "jobs",
        "jenkins.globalNodeProperties[0].envVars.env[TOOLS].value",
    ]
    defaults = ["jenkins.nodes[linux-1].mode", "jenkins.nodes[linux-1].nodeDescription"]
    for _run in range(2):
        again = ci.run(config=config)
        assert not again["changed"], again["changes"]
        assert set(never) < set(again["unknown"])
    assert {path.rpartition(".")[2] for path in defaults} <= {
        path.rpartition(".")[2] for path in again["unknown"]
    }


def test_refusal_contains_all_differences(ci: Ci) -> None:
    config = nodes("linux-1")
    config["jenkins"]["systemMessage"] = "Other"
    error = ci.fails("invalid", "would remove", config=config)
    assert {change["path"] for change in error.result["changes"]} >= {"jenkins.systemMessage"}
    assert error.result["configuration"]["name"] == "jenkins"


def test_list_loses_entries_only_if_named_in_replaces(ci: Ci) -> None:
    ci.fails("invalid", NODES, "linux-2", config=nodes("linux-1"))
    said = f"max_deletions is 0, but {NODES}[linux-2] would be removed: set max_deletions to 1"
    ci.fails("invalid", said, config=nodes("linux-1"), replaces=[NODES])
    ci.fails("invalid", "max_deletions", config=nodes("linux-1"), max_deletions=-1)
    given: dict[str, Any] = {"config": nodes("linux-1"), "replaces": [NODES], "max_deletions": 1}
    assert [change["path"] for change in ci.lives(**given)["changes"]] == [f"{NODES}[linux-2]"]


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ("unclassified: {location: }", "unclassified.location is empty"),
        ("unclassified: {location: {}}", "unclassified.location is empty"),
        ("unclassified: {location: []}", "unclassified.location is empty"),
        ("jenkins: ", "jenkins is empty"),
        ("jenkins: {nodes: {permanent: {name: linux-1}}}", f"{NODES} is a list"),
        ("jenkins: {nodes: }", f"{NODES} is a list"),
    ],
)
def test_empty_or_scalar_value_does_not_replace_a_section(ci: Ci, config: str, word: str) -> None:
    ci.fails("invalid", word, config=config, replaces=[NODES], max_deletions=5)


def test_entries_of_equal_name_are_numbered(ci: Ci) -> None:
    twins = {"unclassified": {"hooks": [{"name": "a", "url": "x"}, {"name": "a", "url": "y"}]}}
    assert ci.lives(config=twins)["changed"]
    one = {"unclassified": {"hooks": twins["unclassified"]["hooks"][:1]}}
    ci.fails("invalid", "unclassified.hooks", "would remove live 1 ", config=one)


def test_entries_of_lists_keep_unnamed_members(ci: Ci) -> None:
    done = ci.lives(config=nodes("linux-1", "linux-2", "linux-3", labelString="new"))
    assert len(done["changes"]) == 3
    first, _second, third = (node["permanent"] for node in live(ci)["jenkins"]["nodes"])
    assert (first["remoteFS"], first["labelString"]) == ("/srv", "new")
    assert "remoteFS" not in third


def test_nested_objects_keep_unnamed_members(ci: Ci) -> None:
    """The server creates nested objects again, so that a secret that is not sent is lost."""
    wanted = {"unclassified": {"mailer": {"authentication": {"username": "mailer"}}}}
    before = live(ci)["unclassified"]["mailer"]["authentication"]["password"]
    assert ci.lives(config=wanted)["changed"]
    assert live(ci)["unclassified"]["mailer"] == {
        "smtpHost": "mail.example.org",
        "authentication": {"username": "mailer", "password": before},
    }


def test_object_of_another_class_is_sent_alone() -> None:
    realm = {"jenkins": {"securityRealm": {"local": {"allowsSignup": False}}}}
    other = {"jenkins": {"securityRealm": {"ldap": {"server": "ldap.example.org"}}}}
    assert sections(realm, other) == realm


def test_unexportable_parts_are_not_sent_and_reported(ci: Ci) -> None:
    inner = {"b": "FAILED TO EXPORT b", "c": 1, "list": ["x", "FAILED TO EXPORT y"]}
    broken = {"unclassified": {"a": {"inner": inner, "e": 3}}}
    wanted = {"unclassified": {"a": {"d": 2}}}
    sent, lost = without_failed(sections(wanted, broken))
    kept = {"inner": {"c": 1, "list": ["x"]}, "e": 3, "d": 2}
    assert sent == {"unclassified": {"a": kept}}
    assert lost == ["unclassified.a.inner.b", "unclassified.a.inner.list[1]"]
    mailer = {"broken": "FAILED TO EXPORT it"}
    found = ci.run(config={"unclassified": {"mailer": mailer}})
    assert (found["changed"], found["unknown"]) == (False, ["unclassified.mailer.broken"])
    assert ci.run(config={"unclassified": {"mailer": {**mailer, "smtpHost": "x"}}})["changed"]
    assert "broken" not in live(ci)["unclassified"]["mailer"]
    assert any("cannot export unclassified.mailer.broken" in line for line in ci.warnings)


def test_secrets_are_neither_compared_nor_shown(ci: Ci) -> None:
    mailer = {"authentication": {"username": "ci", "password": "new-secret-1"}}
    assert not ci.run(config={"unclassified": {"mailer": mailer}})["changed"]
    mailer["authentication"]["username"] = "mailer"
    done = ci.lives(config={"unclassified": {"mailer": mailer, "api": {"token": "new-secret-2"}}})
    assert "new-secret" not in str(done["changes"]) + str(done["diff"])
    assert not ci.run(config={"unclassified": {"mailer": {"smtpHost": "${HOST}"}}})["changed"]


@pytest.mark.parametrize("key", ["key", "name"])
def test_variables_are_compared_by_name_without_showing_secrets(ci: Ci, key: str) -> None:
    def env(path: str, token: str) -> dict[str, Any]:
        entries = [{key: "PATH", "value": path}, {key: "DEPLOY_TOKEN", "value": token}]
        return {"config": {"unclassified": {"env": entries}}}

    ci.run(**env("/bin", "old-value-1"))
    done = ci.lives(**env("/usr/bin", "new-value-2"))
    path, token = done["changes"]
    assert path == {"path": "unclassified.env[PATH].value", "before": "/bin", "after": "/usr/bin"}
    secret_path = "unclassified.env[DEPLOY_TOKEN].value"
    assert token == {"path": secret_path, "before": "(secret)", "after": "(secret) (new)"}
    for secret in ("old-value-1", "new-value-2"):
        assert secret not in str(done["changes"]) + str(done["diff"])


def env_vars(**values: str) -> dict[str, Any]:
    entries = [{"key": key, "value": value} for key, value in values.items()]
    return {"jenkins": {"globalNodeProperties": [{"envVars": {"env": entries}}, {"env": entries}]}}


def test_items_without_a_name_have_a_number(ci: Ci) -> None:
    ci.run(config=env_vars(DB_PASSWORD="old-value-1", PATH="/bin"))
    wanted = env_vars(DB_PASSWORD="new-value-2", PATH="/bin")
    wanted["jenkins"]["globalNodeProperties"].append([{"key": "A_TOKEN", "value": "new-value-3"}])
    done = ci.lives(config=wanted)
    place = "jenkins.globalNodeProperties"
    assert [change["path"] for change in done["changes"]] == [
        f"{place}[0].envVars.env[DB_PASSWORD].value",
        f"{place}[1].env[DB_PASSWORD].value",
        f"{place}[2]",
    ]
    assert "-value-" not in str({**done, "config": None})
    fewer = {"jenkins": {"globalNodeProperties": wanted["jenkins"]["globalNodeProperties"][1:2]}}
    error = ci.fails("invalid", f"{place}: the server would remove live 0, live 2", config=fewer)
    assert "-value-" not in error.message


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({"apiTokens": ["{}-a", "{}-b"]}, "apiTokens"),
        ({"apiTokens": ["{}-a", {"x": "y"}]}, "apiTokens[0]"),
        ({"site": "https://u:{}@h.example"}, "site"),
        ({"sites": ["https://u:{}@h.example", {"x": "y"}]}, "sites[0]"),
        ({"script": "curl -H 'Authorization: Bearer {}'"}, "script"),
        ({"list": [{"key": "API_TOKEN", "value": "{}"}] * 2}, "list[0]"),
        ({"list": [{"id": "API_TOKEN", "value": "{}"}]}, "list[API_TOKEN].value"),
        ({"list": [{"name": "https://u:{}@h.example", "value": "x"}]}, "list[0]"),
    ],
)
def test_secrets_of_both_sides_are_never_shown(ci: Ci, content: Any, path: str) -> None:
    def filled(secret: str) -> dict[str, Any]:
        text = json.dumps({"unclassified": {"tool": content}})
        found: dict[str, Any] = json.loads(text.replace("{}", secret))
        return found

    ci.run(config=filled("old-value-123"))
    options: dict[str, Any] = {"replaces": [f"unclassified.tool.{path.partition('[')[0]}"]}
    done = ci.run(config=filled("new-value-456"), max_deletions=5, **options, check=True)
    assert done["changes"][0]["path"] == f"unclassified.tool.{path}"
    assert "-value-" not in hidden.mask(str({name: done[name] for name in ("changes", "diff")}))
    assert "-value-" not in "".join(ci.warnings)


def test_value_in_braces_is_compared(ci: Ci) -> None:
    def tool(user: str) -> dict[str, Any]:
        return {"unclassified": {"tool": {"user": user}}}

    ci.run(config=tool("{username}"))
    done = ci.lives(config=tool("{givenName}"))
    assert done["changes"] == [
        {"path": "unclassified.tool.user", "before": "{username}", "after": "{givenName}"}
    ]


def test_parts_of_paths_are_not_masked(ci: Ci) -> None:
    users = [{"id": "operator", "password": "operator"}, {"id": "viewer", "password": "pw-12345"}]
    realm = {"local": {"users": users, "passwordStrategy": "strategy-1"}}
    hidden.clear()
    ci.run(config={"jenkins": {"securityRealm": realm}}, check=True)
    assert "pw-12345" in hidden.forms
    assert not {"operator", "strategy-1"} & {*hidden.forms}


def test_value_of_the_own_files_of_the_server_is_rejected_with_a_hint(ci: Ci) -> None:
    own = {"jenkins": {"numExecutors": 2}, "unclassified": {"location": {"adminAddress": "x"}}}
    ci.sandbox.settings("ci", casc_files=own)
    assert ci.run(config={"jenkins": {"systemMessage": "New"}})["changed"]
    with pytest.raises(ToolchainError, match="CASC_MERGE_STRATEGY=override") as caught:
        ci.run(config={"unclassified": {"location": {"url": "https://x/"}}})
    assert caught.value.kind == "rejected"
    assert "Found conflicting configuration" in caught.value.message


def test_rejected_or_dropped_settings_are_reported(ci: Ci, tmp_path: Path) -> None:
    ci.fails("rejected", "nonsense", config={"nonsense": {"a": "b"}})
    ci.run(config={"jenkins": {"slaveAgentPort": 50000}}, check=True)
    assert "deprecated" in ci.warnings[0]
    ci.sandbox.settings("ci", casc_ignores=["jenkins.mode"])
    found = ci.run(config={"jenkins": {"mode": "EXCLUSIVE", "systemMessage": "x"}})
    assert (found["changed"], found["unknown"]) == (True, ["jenkins.mode"])
    assert "did not take jenkins.mode" in ci.warnings[-1]
    ci.sandbox.settings("ci", casc=None)
    ci.fails("not_found", "configuration-as-code", config={"jenkins": {"mode": "NORMAL"}})
    (tmp_path / "casc.yml").write_text("- 1", "utf-8")
    ci.fails("invalid", "src", src=str(tmp_path / "casc.yml"))
    ci.fails("invalid", "config", config="a: [")
