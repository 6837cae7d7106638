# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the export of credentials, nodes, views and the configuration of the server."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_export import (
    CiExportOperation,
    CiExportOptions,
)
from sandbox.client import Sandbox
from tests.helpers.ci import TOKEN, Ci

SECRET = "never-in-a-file-1"
APP = f"""<org.jenkinsci.plugins.github__branch__source.GitHubAppCredentials>
<id>app</id><appID>12</appID><privateKey>{SECRET}</privateKey>
</org.jenkinsci.plugins.github__branch__source.GitHubAppCredentials>"""
TEXT = f"""<org.jenkinsci.plugins.plaincredentials.impl.StringCredentialsImpl>
<scope>GLOBAL</scope><id>deploy</id><description>Deploys [toolchain pbkdf2:{"0" * 16}:{"1" * 32}]</description>
<secret>{SECRET}</secret></org.jenkinsci.plugins.plaincredentials.impl.StringCredentialsImpl>"""
LOGIN = f"""<com.cloudbees.plugins.credentials.impl.UsernamePasswordCredentialsImpl>
<scope>GLOBAL</scope><id>login</id><username>Ł</username><usernameSecret>true</usernameSecret>
<password>{SECRET}</password></com.cloudbees.plugins.credentials.impl.UsernamePasswordCredentialsImpl>"""
SEED: dict[str, Any] = {
    "nodes": [
        {"name": "up", "label": "linux docker"},
        {"name": "down", "offline_by": "admin", "reason": "New disk : slow"},
        {"name": "(built-in)", "offline_by": "admin", "reason": "Pause"},
    ],
    "views": [{"name": "Team"}, {"name": "Team", "folder": "delivery"}],
    "stored_credentials": [
        {"config": APP},
        {"config": TEXT, "folder": "delivery", "domain": "release"},
        {"config": LOGIN, "folder": "delivery"},
    ],
    "configuration": {
        "jenkins": {
            "systemMessage": "Hello",
            "labelAtoms": [{"name": "linux"}],
            "views": [{"all": {"name": "all"}}],
        },
        "credentials": {"system": {"domainCredentials": []}},
        "unclassified": {
            "mailer": {"smtpHost": "mail", "authentication": {"password": SECRET}},
            "broken": "FAILED TO EXPORT broken: java.lang.NullPointerException",
            "twins": [{"name": "a", "value": 1}, {"name": "a", "value": 2}],
            "hooks": [{"url": f"https://u:{SECRET}@h/", "name": "x"}, {"url": "https://h/"}],
            "logins": [{"user": "u", "token": SECRET}],
            "apiTokens": [SECRET],
            "env": [{"key": "PATH", "value": "/bin"}, {"key": "DEPLOY_TOKEN", "value": SECRET}],
            "named": [{"name": "DEPLOY_TOKEN", "value": SECRET}],
            "git": {"credentialsId": "git-login"},
            "empty": {},
        },
    },
}
KINDS = ("configuration", "credentials", "nodes", "views")


@pytest.fixture
def ci(fresh: Callable[[str], Sandbox]) -> Ci:
    sandbox = fresh("real")
    sandbox.seed({"ci": SEED})
    return Ci(sandbox, CiExportOperation, CiExportOptions)


def export(ci: Ci, folder: Path, **given: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return `ci.yml`, and what is left out: name to reason, by kind and name."""
    before = ci.sandbox.mark()
    done = ci.lives(dest=str(folder), **given)
    assert ci.writes(before) == []
    left_out = {f"{one['kind']} {one['name']}": one["reason"] for one in done["left_out"]}
    return yaml.safe_load((folder / "ci.yml").read_text("utf-8")), left_out


def test_every_kind_is_exported_without_secrets(ci: Ci, tmp_path: Path) -> None:
    found, left_out = export(ci, tmp_path / "state")
    assert found["credentials"] == [
        {
            "id": "git-login",
            "kind": "username_password",
            "scope": "global",
            "description": "Reads the sources",
            "login_username": "git",
        },
        {"id": "login", "folder": "delivery", "kind": "username_password", "description": ""},
        {
            "id": "deploy",
            "folder": "delivery",
            "domain": "release",
            "kind": "secret_text",
            "description": "Deploys",
        },
    ]
    assert found["nodes"] == [
        {"name": "(built-in)", "offline": True, "offline_reason": "Pause"},
        {
            "name": "down",
            "offline": True,
            "offline_reason": "New disk : slow",
            "src": "ci/nodes/down.xml",
        },
        {"name": "up", "offline": False, "src": "ci/nodes/up.xml"},
    ]
    assert found["views"] == [
        {"name": "Team", "src": "ci/views/Team.xml"},
        {"name": "Team", "folder": "delivery", "src": "ci/views/delivery-Team.xml"},
    ]
    assert "linux docker" in (tmp_path / "state/ci/nodes/up.xml").read_text("utf-8")
    for file in (tmp_path / "state").rglob("*.*"):
        assert SECRET not in file.read_text("utf-8")
    assert "GitHubAppCredentials can only be exported as XML" in left_out["credential app"]
    assert "does not show" in left_out["credential field delivery/login"]
    assert {"secret git-login", "secret delivery/domain:release/deploy"} <= set(left_out)


def test_unrepresentable_configuration_is_omitted(ci: Ci, tmp_path: Path) -> None:
    found, left_out = export(ci, tmp_path, jobs=[], plugins=False)
    assert found["configuration"] == [
        {"config": {"jenkins": {"systemMessage": "Hello"}}},
        {
            "config": {
                "unclassified": {
                    "mailer": {"smtpHost": "mail"},
                    "hooks": [{"name": "x"}, {"url": "https://h/"}],
                    "named": [{"name": "DEPLOY_TOKEN"}],
                    "git": {"credentialsId": "git-login"},
                    "empty": {},
                }
            }
        },
    ]
    reasons = {
        name.removeprefix("configuration "): reason
        for name, reason in left_out.items()
        if name.startswith("configuration")
    }
    assert reasons == {
        "jenkins.labelAtoms": "it is exported in the list nodes",
        "jenkins.views": "it is exported in the list views",
        "credentials": "it is exported in the list credentials",
        "unclassified.mailer.authentication.password": "it is a secret",
        "unclassified.broken": "the server cannot export it",
        "unclassified.twins": "items of the list have the same name",
        "unclassified.hooks[x].url": "it is a secret",
        "unclassified.logins[0].token": "it is a secret",
        "unclassified.logins": "an item of the list cannot be exported",
        "unclassified.apiTokens[0]": "it is a secret",
        "unclassified.apiTokens": "an item of the list cannot be exported",
        "unclassified.env[DEPLOY_TOKEN].value": "it is a secret",
        "unclassified.env": "an item of the list cannot be exported",
        "unclassified.named[DEPLOY_TOKEN].value": "it is a secret",
    }


def test_node_with_secrets_is_exported_by_options(ci: Ci, tmp_path: Path) -> None:
    secret = f'<launcher class="x.Launcher"><password>{SECRET}</password></launcher>'
    xml = re.sub(r"<launcher.*</launcher>", secret, ci.text("computer/up/config.xml"), flags=re.S)
    assert SECRET in xml
    xml = xml.partition("?>")[2]
    ci.text("computer/up/config.xml", "POST", data=xml.encode())
    found, left_out = export(ci, tmp_path, jobs=[], configuration=False)
    assert found["nodes"][-1]["labels"] == ["docker", "linux"]
    assert "secrets" in left_out["configuration of the node up"]
    assert SECRET not in str(found)


@pytest.mark.parametrize("text", ["Zürich", "Zürich \N{RIGHTWARDS ARROW} Łódź?", "Who?"])
def test_description_beyond_ascii_is_exported(ci: Ci, tmp_path: Path, text: str) -> None:
    """[ci-40]: the XML of a credential is ISO-8859-1 without a declaration."""
    place = "credentials/store/system/domain/_/credential/git-login/config.xml"
    xml = ci.text(place).replace("Reads the sources", text)
    ci.text(place, "POST", data=xml.encode(), headers={"Content-Type": "application/xml"})
    found, _left_out = export(ci, tmp_path, jobs=[], configuration=False)
    assert found["credentials"][0]["description"] == text


@pytest.mark.parametrize("kind", KINDS)
def test_kind_can_be_excluded(ci: Ci, tmp_path: Path, kind: str) -> None:
    found, _left_out = export(ci, tmp_path, jobs=["delivery"], **{kind: False})
    assert kind not in found
    assert set(KINDS) - {kind} <= set(found)


def test_objects_in_excluded_folders_are_omitted(ci: Ci, tmp_path: Path) -> None:
    found, _left_out = export(ci, tmp_path, exclude=["delivery"])
    assert [credential["id"] for credential in found["credentials"]] == ["git-login"]
    assert [view["name"] for view in found["views"]] == ["Team"]


def test_missing_plugin_is_an_error_if_its_kind_is_requested(ci: Ci, tmp_path: Path) -> None:
    ci.sandbox.settings("ci", casc=None)
    found, left_out = export(ci, tmp_path, jobs=[])
    assert "configuration" not in found
    assert "configuration-as-code" in left_out["configuration *"]
    ci.fails("not_found", "plugin configuration-as-code", dest=str(tmp_path), configuration=True)


def test_missing_permission_is_an_error_if_its_kind_is_requested(ci: Ci, tmp_path: Path) -> None:
    seen = [f"hudson.model.{name}" for name in ("Hudson.Read", "Item.Read", "Item.ExtendedRead")]
    account = {"password": "x", "api_tokens": [TOKEN], "permissions": seen}
    ci.sandbox.seed({"ci": {"credentials": {"users": {"builder": account}}}})
    found, left_out = export(ci, tmp_path / "state", jobs=["delivery"], plugins=False)
    assert ([*found], found["views"]) == (["jobs", "nodes", "views"], [])
    hidden = ("configuration *", "credential *", "credential delivery/*", "view Team", "node up")
    for name in hidden:
        assert "lacks the permission" in left_out[name], (name, left_out)
    assert [node["name"] for node in found["nodes"]] == ["(built-in)"]
    for kind in KINDS:
        folder = tmp_path / kind
        ci.fails(
            "permission", "lacks the permission", dest=str(folder), plugins=False, **{kind: True}
        )
        assert not folder.exists()


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/api/json", {"primaryView": None}, "has no list of views"),
        ("/credentials/store/system/domain/_/api/json", {}, "has no list of credentials"),
        ("/computer/up/config.xml", "<slave><name>up</na", "node 'up'"),
        ("/view/Team/config.xml", "<html><body>busy</body></html>", "view 'Team'"),
        ("/credentials/.*/config.xml", "", "credential 'git-login'"),
    ],
)
def test_damaged_response_fails_and_keeps_the_files_of_earlier_exports(
    ci: Ci, tmp_path: Path, path: str, body: Any, words: str
) -> None:
    given: dict[str, Any] = {"jobs": [], "plugins": False, "configuration": False}
    export(ci, tmp_path, **given)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.*")}
    ci.sandbox.fault(service="ci", path=f"^{path}$", times=99, status=200, body=body)
    ci.fails("protocol", words, dest=str(tmp_path), **given)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.*")} == before
