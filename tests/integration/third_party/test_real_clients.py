# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the sandbox with third-party clients in Java and JavaScript: every operation that a client
shares with the modules.

Needs Java and Maven (unpacked on Debian), and Node.js. The versions of the clients are
pinned below `tests/strangers`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.client import Sandbox
from tests.helpers import installed, strangers

java = pytest.mark.skipif(
    not installed.java(), reason="no Java and Maven on this machine: no client in Java asked"
)
BUILDER = ("builder", "builder-api-token-1234567890")
SHA1 = "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"
SHA256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


#: Flavour of the fixture `sandbox`.
FLAVOUR = "real"


@java
def test_jfrog_client_for_java(sandbox: Sandbox, in_java: strangers.RunClient) -> None:
    found = in_java("jfrog", sandbox.urls["repo"], "deployer", "deployer-password")
    gone = found.pop("moved away"), found.pop("deleted")
    assert all("status code: 404" in each for each in gone), gone
    assert found == {
        "ping": "true",
        "version": "7.77.5",
        "repositories": "generic-release-local generic-snapshot-local generic-staging-local",
        "upload": f"5 {SHA256}",
        "download": "hello",
        "info": f"5 /java/a.txt {SHA1}",
        "properties": "{build.name=[java]}",
        "set properties": "{build.name=[java], qa=[passed, twice], b=[x]}",
        "delete property": "null {build.name=[java], qa=[passed, twice]}",
        "folder": "/a.txt",
        "search name": "generic-staging-local/java/a.txt",
        "search property": "generic-staging-local/java/a.txt",
        "query": '{"results":[{"name":"a.txt","repo":"generic-staging-local","path":"java"}],'
        '"range":{"start_pos":0,"end_pos":1,"total":1}}',
        "repository": "generic-staging-local local true true",
        "checksum": "5",
        "archive": "3",
        "new folder": "/java/empty",
        "copy folder": "/copied/again.txt",
        "copy": "true",
        "move": "true",
        "delete": "null",
        "storage": "true",
    }


@java
def test_jfrog_library_of_ci_plugins(sandbox: Sandbox, in_java: strangers.RunClient) -> None:
    found = in_java("build-info", sandbox.urls["repo"], "deployer", "deployer-password")
    assert found == {
        "version": "7.77.5",
        "upload": f"/lib/a.txt 5 {SHA256}",
        "publish": "/1 /2 /3 /4",
        "record": f"library :: main 2 2500 library {SHA1} {{env=value}}",
        "pattern": "lib/a.txt",
        "fetch by build": "hello",
        "delete": "/1 /3 /4",
        "retention": "/1 /4",
    }


@java
def test_jenkins_rest(sandbox: Sandbox, in_java: strangers.RunClient) -> None:
    assert in_java("jenkins-rest", sandbox.urls["ci"], *BUILDER) == {
        "version": "2.479.3",
        "crumb": "true",
        "jobs": "delivery no-parameters",
        "create": "true",
        "create again": "false",
        "config": "true",
        "change": "true",
        "disable": "true false",
        "enable": "true true",
        "delete": "true",
        "missing": "null",
        "build": "SUCCESS CHANNEL=beta PUBLISH=true VERSION=3.1",
        "last build": "1",
        "log": "true",
        "stop": "ABORTED",
        "term": "true ABORTED",
        "kill": "true ABORTED",
        "term elsewhere": "false true",
        "queue": "offline true true",
        "artifact": "dist/app-1.0.0.txt app 1.0.0 ",
        "install": "true",
        "plugins": "true",
    }


@java
def test_jenkins_client_for_java(sandbox: Sandbox, in_java: strangers.RunClient) -> None:
    assert in_java("jenkins-client", sandbox.urls["ci"], *BUILDER) == {
        "running": "true",
        "version": "2.479.3",
        "jobs": "delivery no-parameters",
        "create": "made",
        "config": "true",
        "change": "new",
        "disable": "false",
        "enable": "true",
        "delete": "null",
        "build": "SUCCESS {PASSWORD=null, TARGET=staging}",
        "log": "true",
        "folder": "inner",
        "artifact": "dist/app-2.txt app 2 ",
        "stop": "ABORTED",
        "script": "1",
        "plugins": "true",
    }


def test_npm_jenkins(sandbox: Sandbox, tmp_path: Path) -> None:
    found = strangers.in_javascript("jenkins", tmp_path, sandbox.urls["ci"], *BUILDER)
    assert "<description>made</description>" in found.pop("config")
    assert found == {
        "jobs": ["delivery", "no-parameters"],
        "create": None,
        "exists": True,
        "change": None,
        "get": "new",
        "disable": None,
        "disabled": False,
        "enable": None,
        "copy": None,
        "delete": None,
        "deleted": False,
        "build": "SUCCESS",
        "log": True,
        "stop": "ABORTED",
        "queue": [["offline"], "jenkins: queue.cancel: failed to cancel: N", True],
        "plugins": True,
        "missing": "failed: jenkins: job.get: no such job not found",
    }


def test_npm_jira_client(sandbox: Sandbox, tmp_path: Path) -> None:
    login = ("reporter", "reporter-password")
    found = strangers.in_javascript("jira-client", tmp_path, sandbox.urls["tracker"], *login)
    assert "Field 'nonsense' does not exist" in found.pop("wrong search")
    assert "Issue Does Not Exist" in found.pop("missing")
    assert found == {
        "server": "Server",
        "me": "reporter",
        "project": "Releases",
        "components": ["client", "documentation", "server"],
        "fields": True,
        "find": "Deploy a folder of files in one task",
        "search": [130, 100, 30],
        "create": True,
        "update": None,
        "updated": "changed by node",
        "assign": None,
        "comment": "a comment",
        "comments": ["a comment"],
        "attach": 7,
        "download": "content",
        "transitions": ["Start", "Close"],
        "transition": None,
        "status": "In Progress",
        "changelog": True,
        "link": None,
        "links": ["REL-1"],
        "unlink": [],
        "versions": ["1.0.0", "1.1.0", "2.0.0"],
        "new version": False,
        "unresolved": 0,
        "release": True,
        "delete version": None,
    }


def test_npm_jira_js(sandbox: Sandbox, tmp_path: Path) -> None:
    login = ("", "tracker-token-1234567890")
    assert strangers.in_javascript("jira.js", tmp_path, sandbox.urls["tracker"], *login) == {
        "server": "Server",
        "me": "reporter",
        "project": "Releases",
        "search": [130, 120, 10],
        "create": True,
        "edit": "",
        "get": ["one", "two"],
        "comment": "a comment",
        "comments": 1,
        "transitions": ["11", "31"],
        "transition": "",
        "attach": 7,
        "link": "",
        "version": True,
        "fields": True,
        "permissions": True,
        "users": ["alice"],
        "download": "note.txt",
        "versions": [0, "8.8.8", False],
        "missing": "failed: Request failed with status code 404",
    }


def test_npm_confluence_js(sandbox: Sandbox, tmp_path: Path) -> None:
    login = ("", "wiki-token-1234567890")
    found = strangers.in_javascript("confluence.js", tmp_path, sandbox.urls["wiki"], *login)
    assert "Version must be incremented" in found.pop("old version")
    assert "No content found" in found.pop("missing")
    assert found == {
        "spaces": ["ARC", "REL"],
        "space": "Releases",
        "get": "<p>One page per version stands below.</p>",
        "find": ["1002"],
        "search": ["1002"],
        "create": 1,
        "update": 2,
        "labels": ["node"],
        "get labels": ["node"],
        "attach": ["note.txt"],
        "attachments": [["note.txt", 7]],
        "remove label": [],
        "properties": ["js", 2, 0],
        "move": ["1001", "1002"],
        "descendants": True,
        "children": ["Handbook", "Made by node", "Release notes"],
        "delete": "",
    }
