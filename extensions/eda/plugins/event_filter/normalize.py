# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say of an event what happened to what, in the same four words for every service."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

DOCUMENTATION = r"""
---
short_description: Tell service, kind, name and state of a webhook's event.
description:
  - Adds C(service), C(kind), C(name) and C(state) to the event of a webhook of the CI server (Notification plugin), the issue
    tracker, the wiki or the repository manager. What it was sent stays in C(payload).
  - C(service) is C(ci), C(tracker), C(wiki) or C(repo). C(kind) is C(build), C(issue), C(version), C(page), C(artifact) or C(image).
  - C(name) is the job, the key of the issue, the name of the version, the title of the page, C(repository/path),
    C(build name/number) or C(repository/image:tag).
  - C(state) is the result of a build that has ended, else its phase; the status of an issue; else what happened, as C(released).
  - All four are none for an event that is of another form, and for one with a text that Ansible would take for a template.
options: {}
"""

EXAMPLES = r"""
- eda.builtin.webhook:
    host: 0.0.0.0
    port: 5000
    hmac_secret: "{{ eda_secret }}"
  filters:
    - delivery.toolchain.normalize:
"""

#: Ansible would run what stands in such a text, and a control character steers a terminal.
_REFUSED = re.compile(r"\{\{|\{%|\{#|[\x00-\x1f\x7f]")
_LONGEST = 1024
Words = tuple[str, str, Any, Any]


def main(event: dict[str, Any]) -> dict[str, Any]:
    """Add the four words to an event."""
    words = _words(event.get("payload"))
    event.update(zip(("service", "kind", "name", "state"), words, strict=True))
    return event


def _words(payload: Any) -> tuple[str | None, ...]:
    if isinstance(payload, dict):
        for read in _READERS:
            try:
                found = read(payload)
            except (KeyError, TypeError, AttributeError):
                continue
            if all(_is_plain(word) for word in found):
                return found
    return (None, None, None, None)


def _is_plain(word: Any) -> bool:
    return isinstance(word, str) and 0 < len(word) <= _LONGEST and not _REFUSED.search(word)


def _ci(payload: dict[str, Any]) -> Words:
    build = payload["build"]
    ended = build["phase"] in ("COMPLETED", "FINALIZED")
    # `url` has every folder of a job; `name` only the last part of it
    job = "/".join(payload["url"].strip("/").split("/")[1::2]) if "url" in payload else ""
    return "ci", "build", job or payload["name"], build["status"] if ended else build["phase"]


def _tracker(payload: dict[str, Any]) -> Words:
    event = payload["webhookEvent"].removeprefix("jira:")
    if event.startswith("version_"):
        return "tracker", "version", payload["version"]["name"], event.removeprefix("version_")
    issue = payload["issue"]
    return "tracker", "issue", issue["key"], issue["fields"]["status"]["name"]


def _wiki(payload: dict[str, Any]) -> Words:
    event = payload["event"]
    return "wiki", "page", payload["page"]["title"], event.removeprefix("page_")


def _repo(payload: dict[str, Any]) -> Words:
    data, domain, state = payload["data"], payload["domain"], payload["event_type"]
    if domain == "build":
        return "repo", "build", f"{data['build_name']}/{data['build_number']}", state
    if domain == "docker":
        return "repo", "image", f"{data['repo_key']}/{data['image_name']}:{data['tag']}", state
    return "repo", "artifact", f"{data['repo_key']}/{data['path']}", state


_READERS: tuple[Callable[[dict[str, Any]], Words], ...] = (_ci, _tracker, _wiki, _repo)
