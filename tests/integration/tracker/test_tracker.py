# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the tracker modules in playbooks, with the special cases of real servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

CONTENTS = {
    "server log-501.txt": "12:00 upload\n12:01 broken pipe\n",
    "server log-502.txt": "13:00 upload\n",
    "größe & maß.csv": "a;b\n1;2\n",
}
TOKEN = connections.LOGINS["tracker"]
WRONG = connections.WRONG_LOGINS["tracker"]
BASIC = {"username": "reporter", "password": "reporter-password"}
NO_TOKEN = {"attachment_logins": ["basic"]}
MIDWAY = {"service": "tracker", "path": "/secure/attachment/501/", "truncate": 5}
GERMAN = {"account_language": "de"}


def _task(
    name: str, module: str, arguments: dict[str, Any], settings: dict[str, Any], **variables: Any
) -> dict[str, Any]:
    variables["sandbox_reset"] = {"tracker": settings}
    return playbook.task(f"tracker_{module}", arguments, name, vars=variables)


def _download(name: str, settings: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Return a task that downloads into the folder `name`. `faults` are injected before
    the task.
    """
    faults = options.pop("faults", [])
    arguments = {"issue": "REL-2", "dest": name, **(options or TOKEN)}
    return _task(name, "attachment", arguments, settings, sandbox_faults=faults)


def _issue(name: str, settings: dict[str, Any], **options: Any) -> dict[str, Any]:
    arguments = {"issue": "REL-2", "fields": ["status"], **TOKEN, **options}
    return _task(name, "issue_info", arguments, settings)


TASKS = [
    _download("server", {}),
    _download("cloud", {"deployment": "Cloud"}),
    _download("token", NO_TOKEN),
    _download("basic", NO_TOKEN, **BASIC),
    _download("nobody", {"anonymous_on_bad_login": True}, **WRONG),
    _download("locked", {"captcha": True}, **BASIC),
    _download("midway", {}, faults=[MIDWAY], retries=1, **TOKEN),
    _download("broken", {}, faults=[{**MIDWAY, "times": 9}]),
    _issue("german", GERMAN),
    _issue("english", GERMAN, accept_language="en"),
    _issue("moved", {}, issue="OLD-1"),
    _task("no project", "project_info", {"key": "NOPE", **TOKEN}, {}),
    _task("a project", "project_info", {"key": "REL", **TOKEN}, {}),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tracker")


@pytest.fixture(scope="module")
def played(fresh: Callable[[str], Sandbox], folder: Path) -> playbook.Run:
    sandbox = fresh("real")
    defaults = {"url": sandbox.urls["tracker"], "retries": 0}
    play = playbook.play(TASKS, module_defaults={"group/delivery.toolchain.tracker": defaults})
    return playbook.run(folder, [play], controls={"localhost": sandbox.control})


def there(folder: Path) -> dict[str, str]:
    """Return names and contents of the files in a folder."""
    if not folder.exists():
        return {}
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["server", "cloud", "basic", "midway"])
def test_attachments_are_downloaded_completely(
    played: playbook.Run, folder: Path, name: str
) -> None:
    event = played.event(name)
    assert event.status == "ok", event.result.get("msg")
    assert event.result["changed"] is True
    assert there(folder / name) == CONTENTS
    assert {
        Path(attachment["path"]).name: attachment["size"]
        for attachment in event.result["attachments"]
    } == {file: len(text.encode()) for file, text in CONTENTS.items()}


def test_media_host_of_the_cloud_gets_no_credentials(played: playbook.Run) -> None:
    event = played.event("cloud")
    media = [request for request in event.requests if request["path"].startswith("/media/")]
    others = [request for request in event.requests if request not in media]
    assert len(media) == len(CONTENTS)
    assert all("authorization" not in record["headers"] for record in media)
    assert all("authorization" in other["headers"] for other in others)
    assert event.result["http"]["requests"] == len(event.requests) <= 1 + 2 * len(CONTENTS)


def test_interrupted_download_is_counted_as_a_retry(played: playbook.Run) -> None:
    assert played.event("midway").result["http"]["retries"] == 1
    assert len(played.event("midway").requests) <= 2 + len(CONTENTS)


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("token", "auth", "username and password"),
        ("nobody", "auth", "Login Required"),
        ("locked", "auth", "CAPTCHA_CHALLENGE"),
        ("broken", "network", "connection was lost"),
    ],
)
def test_incomplete_download_leaves_no_file(
    played: playbook.Run, folder: Path, name: str, kind: str, words: str
) -> None:
    event = played.event(name)
    assert event.status == "failed"
    assert event.result["error"]["kind"] == kind
    assert words in event.result["msg"]
    assert there(folder / name).items() <= CONTENTS.items()
    assert "server log-501.txt" not in there(folder / name)
    assert event.result["changed"] is (there(folder / name) != {})


def test_rejected_login_is_not_retried(played: playbook.Run) -> None:
    assert len(played.event("nobody").requests) == len(played.event("locked").requests) == 1


@pytest.mark.parametrize(("name", "expected"), [("german", "Fertig"), ("english", "Done")])
def test_names_have_the_requested_language(played: playbook.Run, name: str, expected: str) -> None:
    (issue,) = played.event(name).result["issues"]
    assert issue["fields"]["status"]["name"] == expected


def test_moved_issue_is_found_by_its_new_key(played: playbook.Run) -> None:
    assert [issue["key"] for issue in played.event("moved").result["issues"]] == ["REL-1"]


def test_project_is_returned_with_its_versions(played: playbook.Run) -> None:
    (project,) = played.event("a project").result["projects"]
    assert [version["name"] for version in project["versions"]] == ["1.0.0", "1.1.0", "2.0.0"]
    failed = played.event("no project")
    assert failed.result["error"]["kind"] == "not_found"
    assert "'NOPE'" in failed.result["msg"]


def test_consumer_key_logs_in(fresh: Callable[[str], Sandbox], tmp_path: Path) -> None:
    """Verify that a registered key of `oauth_consumer` signs requests, also after renewal."""
    sandbox = fresh("real")
    files = {"private_key": "consumer.pem", "certificate": "consumer.crt"}
    login = {
        "url": sandbox.urls["tracker"],
        "oauth_consumer_key": "{{ made.consumer.consumer_key }}",
        "oauth_private_key": "consumer.pem",
        "oauth_access_token": "tracker-access-token",
        "oauth_access_token_secret": "access-secret-1234567890",
        "retries": 0,
    }
    consumer = {**files, "common_name": "toolchain"}
    download = {"issue": "REL-2", "dest": "signed", **login}
    search = {"jql": 'summary ~ "R&D" and labels = properties', **login}

    def register(value: str, name: str) -> dict[str, Any]:
        body = {"tracker": {"oauth_public_key": f"{{{{ made.consumer.{value} }}}}"}}
        request = {"url": f"{sandbox.control}/settings", "method": "PATCH", "body_format": "json"}
        return {"name": name, "ansible.builtin.uri": {**request, "body": body}}

    renewal = {**consumer, "valid_days": 3650, "renew_before": 400}
    run = playbook.run(
        tmp_path,
        [
            playbook.play(
                [
                    playbook.task("oauth_consumer", consumer, "make", register="made"),
                    playbook.task("tracker_project_info", login, "unregistered"),
                    register("public_key", "register the key"),
                    playbook.task("tracker_project_info", login, "signed"),
                    playbook.task("jql_search", search, "signed with a query"),
                    playbook.task("oauth_consumer", renewal, "renew", register="made"),
                    playbook.task("tracker_project_info", login, "signed after renewal"),
                    register("certificate", "register the certificate"),
                    playbook.task("tracker_attachment", download, "download"),
                ]
            )
        ],
    )
    assert run.event("unregistered").result["error"]["kind"] == "auth"
    for name in ("signed", "signed with a query", "signed after renewal", "download"):
        assert run.event(name).status == "ok", run.event(name).result.get("msg")
    assert run.event("signed with a query").result["issue_keys"] == ["REL-3"]
    assert run.event("renew").result["changed"] is True
    assert there(tmp_path / "signed") == CONTENTS
    assert run.shows(["PRIVATE KEY-----", "access-secret-1234567890"]) == []
