# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that invalid options are rejected with one sentence, before the first request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.faults.turns import in_turn, of_every_service
from tests.helpers import connections, forked, playbook
from tests.helpers.cases import CASES, MODULES, connection_options, first_arguments
from tests.helpers.sentences import assert_one_sentence

FLAVOUR = "real"
SECRET = "input-secret-1234567890"
#: Options of a second login, in addition to the login of the tests.
SECOND_LOGINS: dict[str, dict[str, str]] = {
    "repo": {"api_key": SECRET},
    "tracker": {"username": "reporter", "password": SECRET},
    "wiki": {"username": "reporter", "password": SECRET},
    "ci": {"url": f"http://somebody:{SECRET}@127.0.0.1:1/ci"},
    "analysis": {"ltoken_file": "/nowhere/ltoken"},
}
#: Connection options that a module rejects, by the URL of its service; and words of the
#: message.
CONNECTIONS: dict[str, Callable[[str], tuple[dict[str, Any], str]]] = {
    "no address": lambda url: ({"url": ""}, "url"),
    "another scheme": lambda url: ({"url": url.replace("http:", "ftp:")}, "http://"),
    "a query in the address": lambda url: ({"url": f"{url}?page=1"}, "query"),
    "no host": lambda url: ({"url": "http://"}, "host"),
    "no port": lambda url: ({"url": "http://127.0.0.1:port/x"}, "address"),
    "no time": lambda url: ({"url": url, "timeout": 0}, "timeout"),
}
#: Options that a single module rejects: module, arguments, and words of the message.
OPTIONS: dict[str, tuple[str, dict[str, Any], str]] = {
    "two sources": (
        "artifact_deploy",
        {"repo": "generic", "path": "a", "src": "a.txt", "content": "a"},
        "mutually exclusive",
    ),
    "no source": ("artifact_deploy", {"repo": "generic", "path": "a"}, "src"),
    "a file that is not there": (
        "artifact_deploy",
        {"repo": "generic", "path": "a", "src": "/nowhere/a.txt"},
        "/nowhere/a.txt",
    ),
    "an archive by its checksum": (
        "artifact_deploy",
        {"repo": "generic", "src": "a.zip", "explode": True, "checksum_deploy": True},
        "checksum_deploy",
    ),
    "text without a name": ("artifact_deploy", {"repo": "generic", "content": "a"}, "path"),
    "a text that is not an archive": (
        "artifact_deploy",
        {"repo": "generic", "path": "a/b.txt", "content": "a", "explode": True},
        "explode",
    ),
    "one build and many": (
        "ci_job_build",
        {"job": "no-parameters", "builds": [{"job": "slow"}]},
        "mutually exclusive",
    ),
    "a job that is none among many": (
        "ci_job_build",
        {"builds": [{"job": "no-parameters"}, {"job": "a//b"}]},
        "job",
    ),
    "a source that is none": ("ci_job", {"job": "a", "copy_from": ".."}, "copy_from is '..'"),
    "places that are no list": (
        "ci_export",
        {"dest": "a", "accounts": {"places": {"jobs": "users[]"}}},
        "accounts: places.jobs must be a list",
    ),
    "a space that is none": ("wiki_space", {"key": ".."}, "key is '..'"),
    "restrictions of no page": (
        "wiki_restriction",
        {"page_id": "..", "state": "absent"},
        "page_id is '..'",
    ),
    "a tree below no page": (
        "wiki_export",
        {"dest": "a", "trees": [{"page_id": ".."}]},
        "trees[0]: page_id is '..'",
    ),
    "a build that is none": ("ci_build_stop", {"job": "slow", "build": "1/stop"}, "permalink"),
    "a value of no build": ("ci_job_info", {"job": "slow", "xpath": "//result"}, "build"),
    "a whole repository": (
        "artifact_deploy",
        {"repo": "generic-staging-local", "state": "absent"},
        "force",
    ),
    "parent folders": (
        "artifact_deploy",
        {"repo": "generic", "path": "../other/a.txt", "content": "a"},
        "..",
    ),
    "a cleanup of a whole repository": (
        "artifact_cleanup",
        {"rules": [{"repo": "generic-staging-local", "type": "folder"}]},
        "force",
    ),
    "an age in no unit": (
        "artifact_cleanup",
        {"rules": [{"repo": "generic-staging-local", "created_before": "30"}]},
        "created_before",
    ),
    "properties of a whole repository": (
        "artifact_properties",
        {"repo": "generic", "path": "/", "properties": {"a": "b"}, "recursive": True},
        "force",
    ),
    "two questions": (
        "artifact_info",
        {"aql": "items.find()", "pattern": "generic:*"},
        "mutually exclusive",
    ),
    "no question": ("artifact_info", {}, "pattern"),
    "the trash of a whole repository": (
        "artifact_trash",
        {"state": "clean", "repo": "generic"},
        "force",
    ),
    "neither status nor target": (
        "build_promote",
        {"build_name": "agent", "build_number": "12"},
        "target_repo",
    ),
    "no tag": (
        "docker_promote",
        {"repo": "docker-staging-local", "target_repo": "docker-release-local", "image": "a"},
        "all_tags",
    ),
    "one tag and all tags": (
        "docker_promote",
        {
            "repo": "docker-staging-local",
            "target_repo": "docker-release-local",
            "image": "a",
            "tag": "1",
            "all_tags": True,
        },
        "all_tags",
    ),
    "fewer than no results": ("jql_search", {"jql": "project = REL", "max_results": -1}, "max"),
    "pages of nothing": ("jql_search", {"jql": "project = REL", "page_size": 0}, "page_size"),
    "less than no depth": ("ci_job_info", {"job": "slow", "depth": -1}, "depth is -1"),
    "no version": (
        "wiki_page",
        {"page_id": "1002", "body": "", "expected_version": 0},
        "expected_version is 0",
    ),
    "no issue": ("tracker_issue_info", {}, "issue"),
    "one issue and several": (
        "tracker_issue_info",
        {"issue": "REL-1", "issues": ["REL-2"]},
        "mutually exclusive",
    ),
    "an issue on another path": ("tracker_issue_info", {"issue": ".."}, ".."),
    "a folder that is none": (
        "tracker_attachment",
        {"issue": "REL-2", "dest": "/dev/null"},
        "/dev/null",
    ),
    "fewer than no bytes": (
        "tracker_attachment",
        {"issue": "REL-2", "dest": "a", "max_size": -1},
        "max_size",
    ),
    "a key in no folder": (
        "oauth_consumer",
        {"private_key": "/nowhere/a.pem", "certificate": "a.crt", "common_name": "a"},
        "/nowhere",
    ),
    "body and file": (
        "wiki_page",
        {"page_id": "1002", "body": "<p/>", "src": "body.xml"},
        "mutually exclusive",
    ),
    "no page": ("wiki_page", {"body": "<p/>"}, "page_id"),
    "an open element": ("wiki_page", {"page_id": "1002", "body": "<p>\n <b>x</p>"}, "line 2"),
    "a body file that is not there": (
        "wiki_page",
        {"page_id": "1002", "src": "/nowhere/body.xml"},
        "/nowhere/body.xml",
    ),
    "a group without a name": ("analysis_group", {"name": ""}, "name"),
    "a new name for what is to be absent": (
        "analysis_build",
        {"project": "toolchain", "name": "a", "new_name": "b", "state": "absent"},
        "new_name",
    ),
    "an object in a list twice": (
        "analysis_config",
        {"users": [{"name": "a"}, {"name": "b"}, {"name": "a"}]},
        "listed twice",
    ),
    "what is needed and to be absent": (
        "analysis_config",
        {
            "roles": [{"name": "a", "state": "absent"}],
            "role_assignments": [{"name": "a", "account": "b"}],
        },
        "deletes or renames it",
    ),
    "a module without a name": ("analysis_module", {"project": "toolchain", "name": ""}, "name"),
    "a job without a name": ("ci_job_build", {"job": "delivery//x"}, "job"),
    "a job on another server": (
        "ci_job_build",
        {"job": "http://elsewhere.invalid/job/x"},
        "URL",
    ),
    "script and file": (
        "ci_script",
        {"script": "1", "src": "x.groovy"},
        "mutually exclusive",
    ),
    "no script": ("ci_script", {"unless": "true"}, "script"),
    "a script file that is not there": (
        "ci_script",
        {"src": "/nowhere/x.groovy"},
        "/nowhere/x.groovy",
    ),
    "no pattern": ("ci_script", {"script": "1", "changed_when_output": "("}, "changed_when_output"),
    "a permission in two ways": (
        "analysis_role",
        {"name": "a", "create_project": True, "permissions": {"Create project": False}},
        "create_project",
    ),
    "no yes or no": (
        "analysis_role",
        {"name": "a", "permissions": {"create_project": "maybe"}},
        "create_project",
    ),
}
#: Options with a name or a path that cannot be part of an address; and the start of the message.
OUTSIDE: dict[str, tuple[str, dict[str, Any]]] = {
    "build_name is '..'": ("build_record", {"build_name": "..", "build_numbers": ["1"]}),
    "build_name is '.'": ("build_retention", {"build_name": ".", "count": 1}),
    "build_number is '..'": (
        "build_publish",
        {"build_name": "a", "build_number": "..", "modules": [{"id": "m"}]},
    ),
    "sources.builds[0]: build_name is '..'": (
        "release_bundle",
        {
            "name": "a",
            "version": "1",
            "sources": {"builds": [{"build_name": "..", "build_number": "1"}]},
        },
    ),
    "name is '..'": ("repo_permission", {"name": "..", "state": "absent"}),
    "entries[1]: name is '..'": ("repo_group", {"entries": [{"name": "a"}, {"name": ".."}]}),
    "entries[0]: name is '..'": ("repo_user", {"entries": [{"name": "..", "state": "absent"}]}),
    "repo: 'a/b' is not a valid repository key: write": (
        "artifact_deploy",
        {"repo": "a/b", "path": "c", "content": "d"},
    ),
    "path: '../a' has an empty, '.' or '..' segment: write": (
        "artifact_deploy",
        {"repo": "a", "path": "../a", "content": "b"},
    ),
    "target_path: 'a/..' has": (
        "artifact_copy",
        {"repo": "a", "path": "b", "target_repo": "c", "target_path": "a/.."},
    ),
    "artifacts[0].path: '..' has": (
        "build_publish",
        {
            "build_name": "a",
            "build_number": "1",
            "artifacts": [{"repo": "a", "path": ".."}],
        },
    ),
    "list: path: '..' has": ("artifact_info", {"list": {"repo": "a", "path": ".."}}),
    "image: '..' has": ("docker_image_info", {"repo": "a", "image": ".."}),
    "target_image: '..' has": (
        "docker_promote",
        {"repo": "a", "target_repo": "b", "image": "c", "tag": "1", "target_image": ".."},
    ),
    "domain is '..'": (
        "ci_credential",
        {"id": "a", "domain": "..", "kind": "secret_text", "secret": SECRET},
    ),
    "name '..' is not a valid node name: write": ("ci_node", {"name": "..", "state": "absent"}),
    "name 'a/b' is not a valid view name: write": ("ci_view", {"name": "a/b", "state": "absent"}),
    "issue is '..'": ("tracker_attachment", {"issue": "..", "dest": "a"}),
    "issues[1] is '..'": ("tracker_issue_info", {"issues": ["REL-1", ".."]}),
    "project is '..'": ("tracker_project_info", {"project": ".."}),
    "page_id is '..'": ("wiki_page", {"page_id": "..", "body": ""}),
    "projects[0] is '..'": ("tracker_export", {"dest": "a", "projects": [".."]}),
    "entries[0]: project is '..'": (
        "tracker_version",
        {"entries": [{"project": "..", "name": "1"}]},
    ),
}
OPTIONS |= {start: (*slip, start) for start, slip in OUTSIDE.items()}
#: Messages of Ansible's own argument check; these results have no `error`.
ARGUMENT_CHECK = (
    "parameters are mutually exclusive",
    "one of the following is required",
    "state is present but any of the following are missing",
)
#: All modules share the code that checks the connection options.
IN_TURN = in_turn(CONNECTIONS, 2, MODULES)
pytestmark = pytest.mark.first


@pytest.fixture(scope="module")
def refused(
    fresh: Callable[[str], Sandbox], tmp_path_factory: pytest.TempPathFactory
) -> playbook.Run:
    """Run all cases in a single play. Retries are on, so that an unexpected request is noticed."""
    sandbox = fresh(FLAVOUR)
    tasks = []
    for module, what in IN_TURN:
        changed, _words = CONNECTIONS[what](sandbox.urls[CASES[module]["service"]])
        arguments = {**first_arguments(module), **connection_options(module, FLAVOUR), **changed}
        tasks.append(playbook.task(module, arguments, f"{module}: {what}"))
    for module in MODULES:
        arguments = {**first_arguments(module), **connection_options(module, FLAVOUR)}
        second = {**arguments, **SECOND_LOGINS[CASES[module]["service"]]}
        tasks.append(playbook.task(module, second, f"{module}: two logins"))
    for what, (module, arguments, _words) in OPTIONS.items():
        tasks.append(playbook.task(module, arguments, what))
    play = playbook.play(tasks, module_defaults=connections.module_defaults(sandbox.urls))
    return forked.run(tmp_path_factory.mktemp("input"), play, sandbox)


def _assert_refused(event: playbook.Event, words: str) -> None:
    message = event.result.get("msg", "")
    assert event.status == "failed", message
    assert words in message, message
    assert event.requests == [], message
    if "error" in event.result:
        assert event.result["error"]["kind"] == "invalid", message
        assert event.result["http"]["requests"] == 0, message
        assert_one_sentence(event.result, event.task)
    else:
        assert message.startswith(ARGUMENT_CHECK), message


def test_every_service_has_every_connection() -> None:
    assert of_every_service(IN_TURN, CONNECTIONS, MODULES)


@pytest.mark.parametrize(("module", "what"), IN_TURN)
def test_invalid_address_is_rejected(refused: playbook.Run, module: str, what: str) -> None:
    _changed, words = CONNECTIONS[what]("")
    _assert_refused(refused.event(f"{module}: {what}"), words)


@pytest.mark.parametrize("module", MODULES)
def test_two_credentials_are_rejected(refused: playbook.Run, module: str) -> None:
    _assert_refused(refused.event(f"{module}: two logins"), "")


@pytest.mark.parametrize("what", OPTIONS)
def test_contradictory_options_are_rejected(refused: playbook.Run, what: str) -> None:
    _module, _arguments, words = OPTIONS[what]
    _assert_refused(refused.event(what), words)


def test_no_secret_is_shown(refused: playbook.Run) -> None:
    logins = [
        secret for login in connections.LOGINS.values() for secret in connections.secrets(login)
    ]
    assert refused.shows([SECRET, *logins]) == []
