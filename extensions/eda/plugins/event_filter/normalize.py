# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describe the event of a webhook with the same keys for every service."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

DOCUMENTATION = r"""
---
short_description: Describe a webhook's event with the same keys for every service.
description:
  - Adds keys to the event of a webhook of the CI server (Notification plugin), the issue tracker, the wiki or the repository
    manager. The webhook's body stays in C(payload).
  - C(service) is C(ci), C(tracker), C(wiki) or C(repo). C(kind) is C(build), C(issue), C(version), C(page), C(artifact) or C(image).
  - C(name) is the job, the key of the issue, the name of the version, the title of the page, C(repository/path),
    C(build name/number) or C(repository/image:tag).
  - C(state) is the result of a build that has ended, else its phase; the status of an issue; else what happened, as C(released).
  - C(job) and C(branch) of a CI build, C(project) and C(project_id) of an issue or a version, C(space) of a page, and
    C(repository) of a file or an image say what the event is about. A rule compares them, because a webhook often reports the
    events of neighbours too.
  - C(project) is the key of the project; of a version its numeric id if the tracker sends no key.
  - A key that does not apply is none; C(branch) and C(repository) are empty for a build that does not name them.
  - All keys are none for an event in an unknown form, and for an event with a string that Ansible would take for a template, or
    with control characters or bidirectional formatting.
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

_KEYS = (
    *("service", "kind", "name", "state"),
    *("job", "branch", "project", "project_id", "space", "repository"),
)
# Rejects template syntax, which Ansible would run, and control characters, which steer a terminal.
# The other characters invisibly change the order or the display of a name: bidirectional
# formatting, zero-width characters, and line separators.
_REFUSED = re.compile(
    r"\{\{|\{%|\{#"
    r"|[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
_MAX_LENGTH = 1024
Words = dict[str, Any]


def main(event: dict[str, Any]) -> dict[str, Any]:
    """Add the keys to an event.

    :param event: event of a webhook source, with the body in `payload`
    """
    event.update({**dict.fromkeys(_KEYS), **_words(event.get("payload"))})
    return event


def _words(payload: Any) -> Words:
    if isinstance(payload, dict):
        for read in _READERS:
            try:
                found = read(payload)
            except (KeyError, TypeError, AttributeError, ValueError):
                continue
            if all(found[key] for key in _KEYS[:4]) and all(map(_is_plain, found.values())):
                return found
    return {}


def _is_plain(word: Any) -> bool:
    if isinstance(word, str):
        return len(word) <= _MAX_LENGTH and not _REFUSED.search(word)
    return word is None or (isinstance(word, int) and not isinstance(word, bool))


def _named(**words: Any) -> Words:
    """Return the words of an event; a name that is not a string raises `TypeError`."""
    for key in _KEYS[:4]:
        if not isinstance(words[key], str):
            raise TypeError(key)
    return words


def _ci(payload: dict[str, Any]) -> Words:
    build = payload["build"]
    ended = build["phase"] in ("COMPLETED", "FINALIZED")
    job = _job(payload["url"]) if "url" in payload else payload["name"]
    state = build["status"] if ended else build["phase"]
    branch = build.get("scm", {}).get("branch", "")
    return _named(service="ci", kind="build", name=job, state=state, job=job, branch=branch)


def _job(url: str) -> str:
    """Return the job with its folders: `name` of the payload is only the last part.

    Raises:
        KeyError: the address does not belong to a job.
    """
    parts = url.strip("/").split("/")
    if len(parts) % 2 or set(parts[::2]) != {"job"}:
        raise KeyError(url)
    return unquote("/".join(parts[1::2]))


def _tracker(payload: dict[str, Any]) -> Words:
    event = payload["webhookEvent"].removeprefix("jira:")
    if event.startswith("version_"):
        version = payload["version"]
        number = _number(version.get("projectId"))
        return _named(
            service="tracker",
            kind="version",
            name=version["name"],
            state=event.removeprefix("version_"),
            project=version.get("project") or number,
            project_id=number,
        )
    issue = payload["issue"]
    key, fields = issue["key"], issue["fields"]
    # excluded fields are left out of the body, but a key always begins with the key of its project
    project = fields.get("project") or {"key": key.rpartition("-")[0]}
    return _named(
        service="tracker",
        kind="issue",
        name=key,
        state=fields["status"]["name"],
        project=project["key"],
        project_id=_number(project.get("id")),
    )


def _number(value: Any) -> int | None:
    """Return an id of the tracker, which sends some as strings."""
    return None if value is None else int(value)


def _wiki(payload: dict[str, Any]) -> Words:
    page, state = payload["page"], payload["event"].removeprefix("page_")
    return _named(
        service="wiki", kind="page", name=page["title"], state=state, space=page.get("spaceKey")
    )


def _repo(payload: dict[str, Any]) -> Words:
    data, domain, state = payload["data"], payload["domain"], payload["event_type"]
    if domain == "build":
        name = f"{data['build_name']}/{data['build_number']}"
        return _named(service="repo", kind="build", name=name, state=state, repository="")
    repository = data["repo_key"]
    if domain == "docker":
        kind, name = "image", f"{repository}/{data['image_name']}:{data['tag']}"
    else:
        kind, name = "artifact", f"{repository}/{data['path']}"
    return _named(service="repo", kind=kind, name=name, state=state, repository=repository)


_READERS: tuple[Callable[[dict[str, Any]], Words], ...] = (_ci, _tracker, _wiki, _repo)
