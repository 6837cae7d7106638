# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that no fact and no registered result of a role or playbook has a secret at its end [C12].

Fact caches, callbacks and a `debug` of `hostvars` show them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, issuers, playbook
from tests.unit.test_roles import ROLES, options_of

Fresh = Callable[[str], Sandbox]
CANARY = "canary-secret-0123456789"
ADMIN = {"dialect": "jfrog", "token": "repo-admin-token-1234567890"}
#: Options whose entries may have secrets under any name.
FREE_FORM = {"arguments", "parameters", "config"}
SCRIPT = {"name": "message", "script": "[changed: false]", "has_dry_run": True}
JOB = {"job": "secret-parameters", "parameters": {"PASSWORD": CANARY}}
#: A folder with a secret in each list that has options for secrets or free content.
FOLDER: dict[str, Any] = {
    "analysis": {"users": [{"name": "eve", "password": {"from": "canary"}}]},
    "ci": {
        "scripts": [{**SCRIPT, "arguments": {"api_token": {"from": "canary"}}}],
        "credentials": [{"id": "own", "kind": "secret_text", "secret": {"from": "canary"}}],
        "configuration": [{"config": {"jenkins": {"systemMessage": {"from": "canary"}}}}],
    },
    "repo": {
        "users": [{"name": "eve", "email": "eve@example.com", "user_password": {"from": "canary"}}],
        "repositories": [
            {
                "key": "mirror",
                "rclass": "remote",
                "package_type": "generic",
                "remote_url": "https://example.com/x",
                "remote_username": "eve",
                "remote_password": {"from": "canary"},
            }
        ],
    },
}
#: Variables of each role that takes secrets. The canary is in none of the variables of the host.
SECRET: dict[str, dict[str, Any]] = {
    "analysis_config": {"analysis_config_users": [{"name": "eve", "password": CANARY}]},
    "ci_baseline": {
        "ci_baseline_scripts": [{**SCRIPT, "arguments": {"api_token": CANARY}}],
    },
    "ci_build": {"ci_build_jobs": [JOB]},
    "desired_state": {"desired_state_folder": "state", "canary": CANARY},
    "login_rotation": {},
}


def _write_folder(folder: Path) -> None:
    (folder / "state").mkdir()
    for service, content in FOLDER.items():
        (folder / f"state/{service}.yml").write_text(json.dumps(content), "utf-8")


def _has_secrets(options: dict[str, Any]) -> bool:
    return any(
        option.get("no_log") or name in FREE_FORM or _has_secrets(option.get("options", {}))
        for name, option in options.items()
    )


def _dump(name: str) -> dict[str, Any]:
    """Return a task that shows all variables of the host."""
    return {
        "name": f"Dump {name}",
        "ansible.builtin.debug": {"msg": "{{ hostvars['localhost'] | to_json }}"},
    }


def _include(role: str, variables: dict[str, Any]) -> dict[str, Any]:
    include = {"name": f"delivery.toolchain.{role}"}
    return {
        "block": [{"ansible.builtin.include_role": include, "vars": variables}],
        "always": [_dump(role)],
    }


def test_every_role_with_secrets_is_tested() -> None:
    assert {role.name for role in ROLES if _has_secrets(options_of(role))} | {
        "login_rotation"
    } == set(SECRET)


@pytest.mark.parametrize(
    ("arguments", "roles"),
    [
        # the playbooks run the role desired_state, too, and drift runs it and two others in check mode
        ([], ("analysis_config", "ci_baseline", "ci_build")),
        (["--check"], ("ci_build",)),
    ],
)
def test_roles_forget_their_secrets(
    fresh: Fresh, tmp_path: Path, arguments: list[str], roles: tuple[str, ...]
) -> None:
    sandbox = fresh("real")
    issuer = issuers.Issuer(sandbox, "repo")
    issuer.prepare()
    plays = [
        playbook.play(
            [_include(role, SECRET[role]) for role in roles],
            module_defaults=connections.module_defaults(sandbox.urls, repo=ADMIN),
            vars={"ci_baseline_check_java": False},
        ),
        playbook.play(
            [_include("login_rotation", issuer.variables)],
            module_defaults=issuer.module_defaults(),
        ),
    ]
    run = playbook.run(tmp_path, plays, arguments=arguments)
    assert run.code == 0, run.output
    for role in (*roles, "login_rotation"):
        assert f"{role}_" in run.event(f"Dump {role}").result["msg"]
    for shown in (run.output, run.recorded):
        assert CANARY not in shown
        assert not issuers.SECRETS.search(shown)


def test_playbooks_forget_the_secrets_of_a_folder(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    _write_folder(tmp_path)
    logins = {
        service: connections.connection(service, sandbox.urls[service])
        for service in ("repo", "ci", "analysis")
    }
    logins["repo"] |= ADMIN
    variables = {"enforce_connections": logins, **SECRET["desired_state"]}
    plays: list[dict[str, Any]] = []
    for name in ("drift", "enforce"):
        plays.append({"import_playbook": f"delivery.toolchain.{name}", "vars": variables})
        plays.append(playbook.play([_dump(name)]))
    run = playbook.run(tmp_path, plays)
    assert run.code == 0, run.output
    for name in ("drift", "enforce"):
        assert "desired_state_drift" in run.event(f"Dump {name}").result["msg"]
    assert run.shows([CANARY]) == []
