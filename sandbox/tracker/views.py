# SPDX-License-Identifier: GPL-3.0-or-later
"""Issues and projects as the tracker shows them
[W2.2, tracker-5, tracker-7, tracker-8, tracker-9]."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from urllib.parse import quote

from sandbox.tracker.world import Issue, World

Json = dict[str, Any]

ALL, NAVIGABLE = "*all", "*navigable"
_NOT_NAVIGABLE = ("attachment", "comment")
_TYPES = {
    "attachment": "array",
    "comment": "comments-page",
    "created": "datetime",
    "fixVersions": "array",
    "issuetype": "issuetype",
    "labels": "array",
    "priority": "priority",
    "project": "project",
    "resolution": "resolution",
    "status": "status",
    "updated": "datetime",
    "assignee": "user",
    "reporter": "user",
    "summary": "string",
    "description": "string",
}
_NAMES = {"issuetype": "Issue Type", "fixVersions": "Fix Version/s"}
_CATEGORIES = {"new": (2, "To Do"), "indeterminate": (4, "In Progress"), "done": (3, "Done")}
# Names of statuses and types in another language than that of the seed.
_WORDS = {
    "de": {"Open": "Offen", "In Progress": "In Arbeit", "Done": "Fertig", "Bug": "Fehler"},
}


def comma_list(values: Sequence[str]) -> list[str]:
    """`fields=a,b&fields=c` is one list [tracker-10]."""
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


class Views:
    """Shows what is in `world`; `base` is the tracker's address, `cloud` its user objects and
    addresses of attachments, `language` that of names."""

    def __init__(self, world: World, base: str, *, cloud: bool, language: str) -> None:
        self.world = world
        self.base = base
        self.cloud = cloud
        self.words = _WORDS.get(language, {})

    def written_issue(self, issue: Issue, fields: Sequence[str] | None) -> Json:
        """Written interface [W2.2], and nothing else."""
        whole = {
            "summary": issue["summary"],
            "status": {"name": issue["status"]},
            "issuetype": {"name": issue["issuetype"]},
            "updated": issue["updated"],
            "created": issue["created"],
            "attachment": [
                {"id": item["id"], "content": self._secure(item)} for item in issue["attachments"]
            ],
        }
        names = _selection(whole, fields if fields else [ALL])
        return {"key": issue["key"], "fields": {name: whole[name] for name in names}}

    def issue(self, issue: Issue, fields: Sequence[str], properties: Collection[str]) -> Json:
        """Server facts [tracker-5]; what was not asked for is absent, not null."""
        whole = self._fields(issue)
        shown = {
            "expand": "operations,editmeta,changelog,transitions,renderedFields",
            "id": issue["id"],
            "self": f"{self.base}/rest/api/2/issue/{issue['id']}",
            "key": issue["key"],
            "fields": {name: whole[name] for name in _selection(whole, fields)},
        }
        if properties:
            known = issue.get("properties", {})
            shown["properties"] = {name: known[name] for name in properties if name in known}
        return shown

    def _fields(self, issue: Issue) -> Json:
        project = self.world.projects[issue["project"]]
        return {
            "summary": issue["summary"],
            "description": issue.get("description"),
            "status": self._status(issue["status"]),
            "issuetype": self._named("issuetype", issue["issuetype"]),
            "priority": self._named("priority", issue.get("priority")),
            "resolution": self._named("resolution", issue.get("resolution")),
            "project": self.project(project),
            "labels": issue.get("labels", []),
            "fixVersions": [
                self.version(issue["project"], name) for name in issue.get("fixVersions", [])
            ],
            "assignee": self.user(issue.get("assignee")),
            "reporter": self.user(issue.get("reporter")),
            "created": issue["created"],
            "updated": issue["updated"],
            "attachment": [self.attachment(item) for item in issue["attachments"]],
            "comment": {"comments": [], "maxResults": 0, "total": 0, "startAt": 0},
        }

    def project(self, project: Json) -> Json:
        """Server fact [tracker-8]; names keep their leading blanks."""
        return {
            "self": f"{self.base}/rest/api/2/project/{project['id']}",
            "id": project["id"],
            "key": project["key"],
            "name": project["name"],
            "avatarUrls": {"48x48": f"{self.base}/secure/projectavatar?pid={project['id']}"},
            "projectTypeKey": "software",
        }

    def whole_project(self, project: Json) -> Json:
        """One project with its versions and issue types."""
        versions = self.world.store.values("tracker.version", f"{project['key']}/")
        types = self.world.store.keys("tracker.issuetype")
        return {
            "expand": "description,lead,url,projectKeys",
            **self.project(project),
            "description": project.get("description", ""),
            "lead": self.user(project.get("lead")),
            "components": [],
            "issueTypes": [self._named("issuetype", name) for name in types],
            "versions": [self.version(project["key"], entry["name"]) for entry in versions],
        }

    def version(self, project: str, name: str) -> Json:
        entry = self.world.named("version", f"{project}/{name}")
        released = bool(entry.get("released", False))
        return {
            "self": f"{self.base}/rest/api/2/version/{entry['id']}",
            "id": entry["id"],
            "name": name,
            "archived": False,
            "released": released,
        }

    def attachment(self, item: Json) -> Json:
        """Server fact [tracker-6]: no checksum, equal names are possible."""
        return {
            "self": f"{self.base}/rest/api/2/attachment/{item['id']}",
            "id": item["id"],
            "filename": item["filename"],
            "author": self.user(item.get("author")),
            "created": item["created"],
            "size": item["size"],
            "mimeType": item["mimeType"],
            "content": self._content(item),
        }

    def _content(self, item: Json) -> str:
        cloud = f"{self.base}/rest/api/2/attachment/content/{item['id']}"
        return cloud if self.cloud else self._secure(item)

    def _secure(self, item: Json) -> str:
        return f"{self.base}/secure/attachment/{item['id']}/{quote(item['filename'], safe='')}"

    def user(self, name: str | None) -> Json | None:
        """Server fact [tracker-3]: names on a server, account ids in the cloud."""
        if name is None:
            return None
        known = self.world.store.get("tracker.user", name) or {}
        shown = {"displayName": known.get("displayName", name), "active": True, "timeZone": "UTC"}
        if self.cloud:
            return {"accountId": f"account-{name}", "accountType": "atlassian", **shown}
        return {
            "self": f"{self.base}/rest/api/2/user?username={quote(name)}",
            "name": name,
            "key": name,
            "emailAddress": known.get("emailAddress", f"{name}@example.com"),
            **shown,
        }

    def _named(self, kind: str, name: str | None) -> Json | None:
        if name is None:
            return None
        entry = self.world.named(kind, name)
        return {
            "self": f"{self.base}/rest/api/2/{kind}/{entry['id']}",
            "id": entry["id"],
            "name": self.words.get(name, name),
        }

    def _status(self, name: str) -> Json:
        entry = self.world.named("status", name)
        key = entry.get("category", "indeterminate")
        number, category = _CATEGORIES[key]
        return {
            "self": f"{self.base}/rest/api/2/status/{entry['id']}",
            "id": entry["id"],
            "name": self.words.get(name, name),
            "statusCategory": {"id": number, "key": key, "name": category},
        }


def names() -> dict[str, str]:
    """Display names of the fields, by id."""
    return {field: _NAMES.get(field, field.capitalize()) for field in sorted(_TYPES)}


def schema() -> dict[str, Json]:
    return {field: {"type": _TYPES[field], "system": field} for field in sorted(_TYPES)}


def field_list() -> list[Json]:
    """All fields, as clients ask for them before they search."""
    return [
        {
            "id": field,
            "name": name,
            "custom": False,
            "orderable": True,
            "navigable": field not in _NOT_NAVIGABLE,
            "searchable": True,
            "clauseNames": [field],
            "schema": schema()[field],
        }
        for field, name in names().items()
    ]


def _selection(whole: Collection[str], asked: Sequence[str]) -> list[str]:
    """`*all`, `*navigable`, names, and `-name` to leave one out."""
    wanted = [name for name in asked if not name.startswith("-")] or [ALL]
    unwanted = {name[1:] for name in asked if name.startswith("-")}
    navigable = NAVIGABLE in wanted
    return [
        name
        for name in whole
        if name not in unwanted
        and (ALL in wanted or name in wanted or (navigable and name not in _NOT_NAVIGABLE))
    ]
