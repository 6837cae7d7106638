# SPDX-License-Identifier: GPL-3.0-or-later
"""The event filter of the rulebooks: four words for every service, and nothing for what is no event."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PATH = Path(__file__).resolve().parents[2] / "extensions/eda/plugins/event_filter/normalize.py"
NOTHING = (None, None, None, None)


def _load() -> ModuleType:
    """As ansible-rulebook does: by its path, it is no part of a package."""
    spec = importlib.util.spec_from_file_location("normalize", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FILTER = _load()
BUILD = {"number": 7, "phase": "FINALIZED", "status": "SUCCESS"}
ISSUE = {"key": "REL-1", "fields": {"status": {"name": "In Review"}}}
FILE = {"repo_key": "generic-release-local", "path": "app/1.0/app.zip", "name": "app.zip"}
IMAGE = {"repo_key": "docker-release-local", "image_name": "delivery/app", "tag": "1.0"}
EVENTS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "a build that has ended": (
        {"name": "toolchain", "url": "job/delivery/job/toolchain/", "build": BUILD},
        ("ci", "build", "delivery/toolchain", "SUCCESS"),
    ),
    "a build that has begun": (
        {"name": "toolchain", "build": {"number": 7, "phase": "STARTED"}},
        ("ci", "build", "toolchain", "STARTED"),
    ),
    "a version": (
        {"webhookEvent": "jira:version_released", "version": {"name": "1.0.0"}},
        ("tracker", "version", "1.0.0", "released"),
    ),
    "an issue": (
        {"webhookEvent": "jira:issue_updated", "issue": ISSUE},
        ("tracker", "issue", "REL-1", "In Review"),
    ),
    "a page": (
        {"event": "page_updated", "page": {"id": 1, "title": "Größe"}},
        ("wiki", "page", "Größe", "updated"),
    ),
    "a file": (
        {"domain": "artifact", "event_type": "deleted", "data": FILE},
        ("repo", "artifact", "generic-release-local/app/1.0/app.zip", "deleted"),
    ),
    "an image": (
        {"domain": "docker", "event_type": "pushed", "data": IMAGE},
        ("repo", "image", "docker-release-local/delivery/app:1.0", "pushed"),
    ),
    "a build record": (
        {
            "domain": "build",
            "event_type": "promoted",
            "data": {"build_name": "app", "build_number": "7"},
        },
        ("repo", "build", "app/7", "promoted"),
    ),
    "something else": ({"hello": "world"}, NOTHING),
    "a list": ([1, 2], NOTHING),
    "no payload": (None, NOTHING),
    "half an event": ({"webhookEvent": "jira:issue_updated", "issue": {"key": "REL-1"}}, NOTHING),
    "a template": ({"name": "{{ lookup('pipe', 'id') }}", "build": BUILD}, NOTHING),
    "a statement": (
        {"webhookEvent": "jira:version_released", "version": {"name": "{% raw %}"}},
        NOTHING,
    ),
    "a control character": ({"event": "page_updated", "page": {"title": "a\x1b[2J"}}, NOTHING),
    "a number for a name": ({"name": 7, "build": BUILD}, NOTHING),
    "an endless name": ({"name": "n" * 5000, "build": BUILD}, NOTHING),
}


@pytest.mark.parametrize("what", EVENTS)
def test_an_event_in_four_words(what: str) -> None:
    payload, expected = EVENTS[what]
    event = FILTER.main({"payload": payload, "meta": {"endpoint": "x"}})
    assert tuple(event[word] for word in ("service", "kind", "name", "state")) == expected
    assert event["payload"] == payload
