# SPDX-License-Identifier: GPL-3.0-or-later
"""Test every login method, from a task and from the environment, with servers that
require a login.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

#: By service: a module and arguments that change nothing and cost a single request after the login
#: (the CI server also gets a request for a crumb).
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "repo": (
        "artifact_deploy",
        {"repo": "generic-staging-local", "path": "not/there.txt", "state": "absent"},
    ),
    "tracker": ("jql_search", {"jql": "key = REL-1", "fields": ["summary"]}),
    "wiki": ("wiki_page", {"page_id": "1002", "title": "Handbook"}),
    "ci": ("ci_script", {"script": "Jenkins.get().systemMessage", "changed_when_output": "^x"}),
    "analysis": ("analysis_role", {"name": "Developer"}),
}
USERS = {
    "repo": ("deployer", "deployer-password"),
    "tracker": ("reporter", "reporter-password"),
    "wiki": ("reporter", "reporter-password"),
    "ci": ("builder", "builder-password"),
}
ACCESS_TOKENS = {"tracker": "tracker-access-token", "wiki": "wiki-access-token"}
ACCESS_SECRET = "access-secret-1234567890"
API_KEY = "repo-api-key-1234567890"
IDENTITY_TOKEN = "eyJ.identity-token.1234567890"
CLIENT_SECRETS = {name: f"{name}-client-secret-1234567890" for name in ACCESS_TOKENS}


@dataclass(frozen=True)
class Login:
    """Options in addition to the URL, environment variables, or user info in the URL."""

    service: str
    options: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    user_info: str = ""


def _of_users() -> dict[str, Login]:
    """Return the logins with user and password, which four services have, for all
    possible sources.
    """
    logins: dict[str, Login] = {}
    for service, (user, password) in USERS.items():
        prefix = f"TOOLCHAIN_{service.upper()}"
        variables = {f"{prefix}_USERNAME": user, f"{prefix}_PASSWORD": password}
        logins |= {
            f"{service}: password": Login(service, {"username": user, "password": password}),
            f"{service}: alias": Login(service, {"user": user, "password": password}),
            f"{service}: address": Login(service, user_info=f"{user}:{password}@"),
            f"{service}: file": Login(service, {"credentials_file": f"{service}.netrc"}),
            f"{service}: environment": Login(service, environment=variables),
        }
    return logins


def _of_oauth(service: str) -> Login:
    return Login(
        service,
        {
            "oauth_consumer_key": "toolchain",
            "oauth_private_key": "key.pem",
            "oauth_access_token": ACCESS_TOKENS[service],
            "oauth_access_token_secret": ACCESS_SECRET,
        },
    )


EXCHANGES = {"/access/api/v1/oidc/token", "/oauth/token"}


def _of_client(service: str) -> Login:
    """Return a login whose token service is the service itself; the task adds its address."""
    secret = CLIENT_SECRETS[service]
    return Login(service, {"oauth2_client_id": "toolchain", "oauth2_client_secret": secret})


#: Login files are next to the playbook, in the working directory of modules.
LOGINS: dict[str, Login] = {
    **_of_users(),
    "repo: token": Login("repo", connections.LOGINS["repo"]),
    "repo: API key": Login("repo", {"api_key": API_KEY}),
    "repo: OIDC": Login("repo", {"oidc_provider": "gitlab", "oidc_token": IDENTITY_TOKEN}),
    "repo: OIDC again": Login("repo", {"oidc_provider": "gitlab", "oidc_token": IDENTITY_TOKEN}),
    "repo: OIDC file": Login("repo", {"oidc_provider": "gitlab", "oidc_token_file": "identity"}),
    "repo: OIDC environment": Login(
        "repo",
        environment={
            "TOOLCHAIN_REPO_OIDC_PROVIDER": "gitlab",
            "TOOLCHAIN_REPO_OIDC_TOKEN": IDENTITY_TOKEN,
        },
    ),
    "tracker: client": _of_client("tracker"),
    "wiki: client": _of_client("wiki"),
    "tracker: token": Login("tracker", connections.LOGINS["tracker"]),
    "tracker: OAuth": _of_oauth("tracker"),
    "wiki: token": Login("wiki", connections.LOGINS["wiki"]),
    "wiki: OAuth": _of_oauth("wiki"),
    "ci: API token": Login("ci", connections.LOGINS["ci"]),
    "analysis: token": Login("analysis", connections.LOGINS["analysis"]),
    "analysis: file": Login("analysis", {"ltoken_file": "ltoken"}),
    "analysis: printed": Login(
        "analysis", {"token_json": "{{ lookup('pipe', 'cat printed.json') }}"}
    ),
    "analysis: environment": Login("analysis", environment={"KLOCWORK_LTOKEN": "ltoken"}),
}
SECRETS = [
    *(password for _user, password in USERS.values()),
    *ACCESS_TOKENS.values(),
    *(secret for login in connections.LOGINS.values() for secret in connections.secrets(login)),
    ACCESS_SECRET,
    API_KEY,
    IDENTITY_TOKEN,
    *CLIENT_SECRETS.values(),
    "eyJ.exchanged.",
    "BEGIN PRIVATE KEY",
]


def _write_files(folder: Path, sandbox: Sandbox) -> None:
    """Write the files of the logins. Register the key of the OAuth consumer on the servers."""
    for service, (user, password) in USERS.items():
        text = f"machine 127.0.0.1 login {user} password {password}\n"
        (folder / f"{service}.netrc").write_text(text, encoding="ascii")
    text = f"127.0.0.1;{sandbox.port};analyst;{connections.LTOKEN}\n"
    (folder / "ltoken").write_text(text, encoding="ascii")
    (folder / "identity").write_text(f"{IDENTITY_TOKEN}\n", encoding="ascii")
    printed = {"user": "analyst", "token": connections.LTOKEN}
    (folder / "printed.json").write_text(json.dumps(printed), encoding="ascii")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    for service in ACCESS_TOKENS:
        sandbox.settings(service, oauth_public_key=public.decode())


@pytest.fixture(scope="module")
def logged_in(
    fresh: Callable[[str], Sandbox], tmp_path_factory: pytest.TempPathFactory
) -> playbook.Run:
    """Run a task for every login method."""
    folder = tmp_path_factory.mktemp("logins")
    sandbox = fresh("real")
    _write_files(folder, sandbox)
    tasks = []
    for name, login in LOGINS.items():
        module, arguments = TASKS[login.service]
        url = sandbox.urls[login.service].replace("://", f"://{login.user_info}")
        dialect = {"dialect": "jfrog"} if login.service == "repo" else {}
        if "oauth2_client_id" in login.options:
            dialect = {"oauth2_url": sandbox.urls[login.service]}
        tasks.append(
            playbook.task(
                module,
                {**arguments, **dialect, **login.options, "url": url},
                name,
                environment=login.environment,
            )
        )
    return playbook.run(
        folder,
        [playbook.play(tasks)],
        controls={"localhost": sandbox.control},
        arguments=["-vvv"],
    )


@pytest.mark.parametrize("name", LOGINS)
def test_login_is_accepted(logged_in: playbook.Run, name: str) -> None:
    event = logged_in.event(name)
    assert event.status == "ok", event.result["msg"]
    assert event.requests
    assert {request["status"] for request in event.requests} <= {200, 404}


@pytest.mark.parametrize("name", LOGINS)
def test_login_is_sent_with_the_first_request(logged_in: playbook.Run, name: str) -> None:
    event = logged_in.event(name)
    service = LOGINS[name].service
    for request in event.requests:
        if request["path"] in EXCHANGES:
            assert "***" in request["body"]
        elif service == "analysis":
            assert "ltoken=***" in request["body"]
        else:
            header = "x-jfrog-art-api" if "API key" in name else "authorization"
            assert header in request["headers"]


def test_one_exchange_serves_the_workers_of_a_run(logged_in: playbook.Run) -> None:
    exchanges = {
        name: [
            request["path"] for request in logged_in.event(name).requests if not request["write"]
        ]
        for name in ("repo: OIDC", "repo: OIDC again")
    }
    assert exchanges["repo: OIDC"][0] in EXCHANGES
    assert not EXCHANGES.intersection(exchanges["repo: OIDC again"])


def test_no_secret_is_shown(logged_in: playbook.Run) -> None:
    assert logged_in.shows(SECRETS) == []
