# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the event filter of the rulebooks: the same keys for every service, and no keys for other
data.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PATH = Path(__file__).resolve().parents[2] / "extensions/eda/plugins/event_filter/normalize.py"
KEYS = (
    *("service", "kind", "name", "state"),
    *("job", "branch", "project", "project_id", "space", "repository"),
)
NOTHING: dict[str, Any] = {}


def _load() -> ModuleType:
    """Load the filter by its path, as ansible-rulebook does: it is not part of a package."""
    spec = importlib.util.spec_from_file_location("normalize", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FILTER = _load()
BUILD = {"number": 7, "phase": "FINALIZED", "status": "SUCCESS"}
FIELDS = {"status": {"name": "In Review"}}
ISSUE = {"key": "REL-1", "fields": FIELDS}
FILE = {"repo_key": "generic-release-local", "path": "app/1.0/app.zip", "name": "app.zip"}
IMAGE = {"repo_key": "docker-release-local", "image_name": "delivery/app", "tag": "1.0"}
VERSION = {"name": "1.0.0", "projectId": 10000, "id": "10001", "released": True}
RELEASED = {"webhookEvent": "jira:version_released", "version": VERSION}
PAGE = {"id": 1, "title": "Größe", "spaceKey": "REL"}


def _words(service: str, kind: str, name: str, state: str, **about: Any) -> dict[str, Any]:
    return {"service": service, "kind": kind, "name": name, "state": state, **about}


EVENTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "a build that has ended": (
        {"name": "toolchain", "url": "job/delivery/job/toolchain/", "build": BUILD},
        _words("ci", "build", "delivery/toolchain", "SUCCESS", job="delivery/toolchain", branch=""),
    ),
    "a build of a branch": (
        {
            "name": "my job",
            "url": "job/my%20job/",
            "build": {**BUILD, "scm": {"branch": "origin/main"}},
        },
        _words("ci", "build", "my job", "SUCCESS", job="my job", branch="origin/main"),
    ),
    "a build that has begun": (
        {"name": "toolchain", "build": {"number": 7, "phase": "STARTED"}},
        _words("ci", "build", "toolchain", "STARTED", job="toolchain", branch=""),
    ),
    "a build below a view": ({"name": "a", "url": "view/x/job/a/", "build": BUILD}, NOTHING),
    "a version": (
        RELEASED,
        _words("tracker", "version", "1.0.0", "released", project=10000, project_id=10000),
    ),
    "a version with the key of its project": (
        {**RELEASED, "version": {**VERSION, "project": "REL"}},
        _words("tracker", "version", "1.0.0", "released", project="REL", project_id=10000),
    ),
    "a version of no project": (
        {**RELEASED, "version": {"name": "1.0.0"}},
        _words("tracker", "version", "1.0.0", "released"),
    ),
    "a version of a project without a number": (
        {**RELEASED, "version": {**VERSION, "projectId": "x"}},
        NOTHING,
    ),
    "an issue": (
        {"webhookEvent": "jira:issue_updated", "issue": ISSUE},
        _words("tracker", "issue", "REL-1", "In Review", project="REL"),
    ),
    "an issue with its project": (
        {
            "webhookEvent": "jira:issue_updated",
            "issue": {
                **ISSUE,
                "fields": {**FIELDS, "project": {"id": "10000", "key": "REL"}},
            },
        },
        _words("tracker", "issue", "REL-1", "In Review", project="REL", project_id=10000),
    ),
    "a page": (
        {"event": "page_updated", "page": PAGE},
        _words("wiki", "page", "Größe", "updated", space="REL"),
    ),
    "a file": (
        {"domain": "artifact", "event_type": "deleted", "data": FILE},
        _words(
            "repo",
            "artifact",
            "generic-release-local/app/1.0/app.zip",
            "deleted",
            repository="generic-release-local",
        ),
    ),
    "an image": (
        {"domain": "docker", "event_type": "pushed", "data": IMAGE},
        _words(
            "repo",
            "image",
            "docker-release-local/delivery/app:1.0",
            "pushed",
            repository="docker-release-local",
        ),
    ),
    "a build record": (
        {
            "domain": "build",
            "event_type": "promoted",
            "data": {"build_name": "app", "build_number": "7"},
        },
        _words("repo", "build", "app/7", "promoted", repository=""),
    ),
    "something else": ({"hello": "world"}, NOTHING),
    "a list": ([1, 2], NOTHING),
    "no payload": (None, NOTHING),
    "half an event": ({"webhookEvent": "jira:issue_updated", "issue": {"key": "REL-1"}}, NOTHING),
    "a template": ({"name": "{{ lookup('pipe', 'id') }}", "build": BUILD}, NOTHING),
    "a template in an address": (
        {"name": "a", "url": "job/%7B%7B x %7D%7D/", "build": BUILD},
        NOTHING,
    ),
    "a template in a space": (
        {"event": "page_updated", "page": {**PAGE, "spaceKey": "{{ x }}"}},
        NOTHING,
    ),
    "a statement": ({**RELEASED, "version": {**VERSION, "name": "{% raw %}"}}, NOTHING),
    "a control character": ({"event": "page_updated", "page": {"title": "a\x1b[2J"}}, NOTHING),
    "a number for a name": ({"name": 7, "build": BUILD}, NOTHING),
    "an endless name": ({"name": "n" * 5000, "build": BUILD}, NOTHING),
}
#: Bidirectional formatting, and invisible characters.
UNSEEN = "\u061c\u200b\u200e\u200f\u2028\u202a\u202d\u202e\u2066\u2069\ufeff\x9b"


@pytest.mark.parametrize("what", EVENTS)
def test_events_of_every_service_have_the_same_keys(what: str) -> None:
    payload, expected = EVENTS[what]
    event = FILTER.main({"payload": payload, "meta": {"endpoint": "x"}})
    assert {key: event[key] for key in KEYS} == {**dict.fromkeys(KEYS), **expected}
    assert event["payload"] == payload


@pytest.mark.parametrize("character", UNSEEN)
def test_name_with_invisible_character_is_not_an_event(character: str) -> None:
    version = {**VERSION, "name": f"1.0.0{character}"}
    event = FILTER.main({"payload": {**RELEASED, "version": version}})
    assert [event[key] for key in KEYS] == [None] * len(KEYS)
