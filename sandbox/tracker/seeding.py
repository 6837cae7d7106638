# SPDX-License-Identifier: GPL-3.0-or-later
"""Seed data of the issue tracker.

- `statuses`: {name: category}, or {name: {category, editable}}
- `users`: {name: {displayName, active?, key?, emailAddress?, shares_email?}}. The cloud shows an
  address only if its owner shares it. A server hides an empty one
- `projects`: [{key, name, anonymous?, lead?, screens?: {create, edit}, required?}]
- `versions`: {PROJECT: {name: {released, ...}}}
- `components`: {PROJECT: [name]}, or {PROJECT: {name: {description, lead, ...}}}
- `groups`: {name: [member]}; `roles`: {PROJECT: {role: {users: [name], groups: [name]}}}
- `fields`: {customfield_N: {name, type, items?, options?, projects?}}; the `options` of a cascading
  select are {option: [child]}
- `link_types`: {name: {inward, outward}}
- `workflows`: see `sandbox.tracker.issues.workflow`
- `issues`: list, see `_Seeding.issue`
- `series`: many similar issues: `{project, count, first?, summary, types, statuses, days}`. In the
  summary, `{n}` is replaced by the number

Statuses, versions and other values are declared automatically if an issue has them.
"""

from __future__ import annotations

import base64
from datetime import datetime, timedelta, timezone
from typing import Any

from sandbox.context import Context
from sandbox.tracker.call import FIRST_ID
from sandbox.tracker.visible import LISTS

Json = dict[str, Any]

_OF_PROJECTS = ("version", "component")
_EPOCH = "2026-01-05T09:00:00.000+0000"


def seed(context: Context, data: Json) -> None:
    """Merge seed data. An existing issue, project or user with the same key is replaced."""
    seeding = _Seeding(context)
    seeding.declarations(data)
    for project in data.get("projects", []):
        seeding.project(project)
    seeding.of_projects(data)
    for issue in data.get("issues", []):
        seeding.issue(issue)
    for series in data.get("series", []):
        for issue in _expand(series):
            seeding.issue(issue)


def _expand(series: Json) -> list[Json]:
    """Return the issues of a series.

    They take their values from the lists in turn. `days`: between the creation of two issues.
    """
    first = int(series.get("first", 1))
    start = datetime.fromisoformat(series.get("created", _EPOCH)).astimezone(timezone.utc)
    issues = []
    for index in range(int(series["count"])):
        number = first + index
        created = start + timedelta(days=index * float(series.get("days", 1)))
        issues.append(
            {
                "key": f"{series['project']}-{number}",
                "summary": series["summary"].format(n=number),
                "type": _nth(series.get("types", ["Task"]), index),
                "status": _nth(series.get("statuses", ["Open"]), index),
                "fixVersions": _nth(series.get("fixVersions", [[]]), index),
                "created": created.strftime("%Y-%m-%dT%H:%M:%S.000+0000"),
            }
        )
    return issues


def _nth(values: list[Any], index: int) -> Any:
    return values[index % len(values)]


class _Seeding:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.store = context.store

    def declare(self, kind: str, key: str, more: Json | None = None) -> None:
        """Store a status, issue type or other named value, unless it is known.

        :param key: its name, or `PROJECT/name` for a version or component
        :param more: further members, which replace those of a known value
        """
        known = self.store.get(f"tracker.{kind}", key)
        if known is not None and more is None:
            return
        number = known["id"] if known is not None else str(self._next(kind))
        name = key.partition("/")[2] if kind in _OF_PROJECTS else key
        self.store.put(f"tracker.{kind}", key, {**(more or {}), "id": number, "name": name})

    def declarations(self, data: Json) -> None:
        """Store statuses, link types, users, fields and workflows."""
        for name, status in data.get("statuses", {}).items():
            whole = status if isinstance(status, dict) else {"category": status}
            self.declare("status", name, whole)
        for name, phrases in data.get("link_types", {}).items():
            self.declare("linktype", name, phrases)
        for kind, member in (("user", "users"), ("field", "fields"), ("workflow", "workflows")):
            for name, document in data.get(member, {}).items():
                self.store.put(f"tracker.{kind}", name, document)

    def _next(self, kind: str) -> int:
        return FIRST_ID + self.store.next_id(f"tracker.{kind}")

    def project(self, project: Json) -> None:
        known = self.store.get("tracker.project", project["key"])
        number = known["id"] if known is not None else str(self._next("project"))
        self.store.put("tracker.project", project["key"], {"id": number, **project})

    def of_projects(self, data: Json) -> None:
        """Store versions, components, groups and the actors of roles."""
        for project, versions in data.get("versions", {}).items():
            for name, version in versions.items():
                self.declare("version", f"{project}/{name}", version)
        for project, names in data.get("components", {}).items():
            for name in names:
                component = names[name] if isinstance(names, dict) else {}
                self.declare("component", f"{project}/{name}", component)
        for name, members in data.get("groups", {}).items():
            self.store.put("tracker.group", name, {"members": members})
        for project, roles in data.get("roles", {}).items():
            for role, actors in roles.items():
                self.store.put("tracker.role", f"{project}/{role}", actors)

    def issue(self, data: Json) -> None:
        """Store an issue: `{key, summary, type?, status?, resolution?, priority?, fixVersions?,
        labels?, assignee?, reporter?, description?, versions?, components?, duedate?, custom?: {id:
        value}, created?, updated?, attachments?, properties?, former_keys?}`.
        """
        issue = dict(data)
        key = issue["key"]
        issue["project"] = key.rpartition("-")[0]
        issue["issuetype"] = issue.pop("type", "Task")
        issue.setdefault("status", "Open")
        issue.setdefault("created", _EPOCH)
        issue.setdefault("updated", issue["created"])
        known = self.store.get("tracker.issue", key)
        issue["id"] = known["id"] if known is not None else str(self._next("issue"))
        issue["attachments"] = [
            self._attachment(issue, item) for item in issue.get("attachments", [])
        ]
        for kind in ("status", "issuetype", "resolution", "priority"):
            if issue.get(kind) is not None:
                self.declare(kind, issue[kind])
        for kind, member in LISTS.values():
            for name in issue.get(member, []):
                self.declare(kind, f"{issue['project']}/{name}")
        self._account(issue)
        for other in (issue["id"], *issue.pop("former_keys", [])):
            self.store.put("tracker.other_key", other, {"key": key})
        self.store.put("tracker.issue", key, issue)

    def _account(self, issue: Json) -> None:
        for role in ("assignee", "reporter"):
            name = issue.get(role)
            if name is not None and self.store.get("tracker.user", name) is None:
                self.store.put("tracker.user", name, {"displayName": name})

    def _attachment(self, issue: Json, data: Json) -> Json:
        """Store an attachment: `{filename, content | content_base64, id?, mimeType?, author?}`."""
        encoded = data.get("content_base64")
        content = base64.b64decode(encoded) if encoded else str(data["content"]).encode()
        blob = self.store.blobs.put(content)
        item = {
            "id": str(data.get("id") or self._next("attachment")),
            "filename": data["filename"],
            "mimeType": data.get("mimeType", "text/plain"),
            "author": data.get("author", issue.get("reporter")),
            "created": data.get("created", issue["created"]),
            "size": blob.size,
            "sha256": blob.sha256,
        }
        self.store.put("tracker.attachment", item["id"], {**item, "issue": issue["key"]})
        return item
