# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert the objects that issues refer to, such as versions and users, to JSON.

They follow server facts [tracker-3, tracker-8, tracker-16, tracker-26].
"""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any
from urllib.parse import quote

from sandbox.tracker.fields.fields import Field, Fields
from sandbox.tracker.visible import CATEGORIES, VisibleData

Json = dict[str, Any]

# Translations of names in the default seed, by language.
_WORDS = {
    "de": {
        "Open": "Offen",
        "In Progress": "In Arbeit",
        "Done": "Fertig",
        "Bug": "Fehler",
        "Summary": "Zusammenfassung",
        "Fix Version/s": "Lösungsversion(en)",
        "Labels": "Stichwörter",
    },
}
_ACCOUNT = "account-"


def user_date(day: str) -> str:
    """Format an ISO date like `31/May/24` [tracker-16]."""
    return date.fromisoformat(day).strftime("%d/%b/%y")


def account_name(account_id: str) -> str | None:
    """Return the user name of an account id of the cloud, or None if it is not an id."""
    return account_id.removeprefix(_ACCOUNT) if account_id.startswith(_ACCOUNT) else None


class References:
    """Convert the objects that issues refer to to JSON.

    :param base: base URL of the tracker
    :param cloud: whether users and URLs of attachments are those of the cloud
    :param language: language of names
    :param documents: whether texts are documents, as in version 3 of the interface
    """

    def __init__(
        self,
        visible: VisibleData,
        base: str,
        *,
        cloud: bool,
        language: str,
        documents: bool = False,
    ) -> None:
        self.visible = visible
        self.base = base
        self.cloud = cloud
        self.documents = documents
        self.words = _WORDS.get(language, {})
        self.catalogue = Fields(visible.store, self.words)

    def project(self, project: Json) -> Json:
        """Return a project. Leading blanks in its name stay [tracker-8]."""
        return {
            "self": f"{self.base}/rest/api/2/project/{project['id']}",
            "id": project["id"],
            "key": project["key"],
            "name": project["name"],
            "avatarUrls": {"48x48": f"{self.base}/secure/projectavatar?pid={project['id']}"},
            "projectTypeKey": "software",
        }

    def whole_project(self, project: Json) -> Json:
        """Return a project with its versions, components and issue types."""
        types = self.visible.store.keys("tracker.issuetype")
        components = self.visible.store.values("tracker.component", f"{project['key']}/")
        return {
            "expand": "description,lead,url,projectKeys",
            **self.project(project),
            "description": project.get("description", ""),
            "lead": self.user(project.get("lead")),
            "components": [
                self.component(project["key"], component["name"]) for component in components
            ],
            "issueTypes": [self.named("issuetype", name) for name in types],
            "versions": self.versions(project["key"]),
        }

    def versions(self, project: str) -> list[Json]:
        """Return the versions of a project in its order, not sorted by name [tracker-15]."""
        known = self.visible.store.values("tracker.version", f"{project}/")
        ordered = sorted(known, key=lambda entry: float(entry.get("sequence", entry["id"])))
        return [self.version(project, entry["name"]) for entry in ordered]

    def version(self, project: str, name: str) -> Json:
        """Return a version, without members that have no value [tracker-16]."""
        entry = self.visible.named("version", f"{project}/{name}")
        shown: Json = {
            "self": f"{self.base}/rest/api/2/version/{entry['id']}",
            "id": entry["id"],
            "name": name,
            "archived": bool(entry.get("archived", False)),
            "released": bool(entry.get("released", False)),
        }
        for member in ("description", "startDate", "releaseDate"):
            if entry.get(member):
                shown[member] = entry[member]
        for member, shown_as in (
            ("startDate", "userStartDate"),
            ("releaseDate", "userReleaseDate"),
        ):
            if member in shown:
                shown[shown_as] = user_date(shown[member])
        if "releaseDate" in shown and not shown["released"]:
            today = datetime.fromtimestamp(self.visible.now_ms / 1000, timezone.utc).date()
            shown["overdue"] = shown["releaseDate"] < today.isoformat()
        owner = self.visible.store.get("tracker.project", project)
        if owner is not None:
            shown["projectId"] = int(owner["id"])
        return shown

    def component(self, project: str, name: str) -> Json:
        return self._named("component", self.visible.named("component", f"{project}/{name}"), name)

    def whole_component(self, project: str, entry: Json) -> Json:
        """Return a component with all members, as in `/component/{id}` [tracker-29]."""
        kind = entry.get("assigneeType", "PROJECT_DEFAULT")
        shown: Json = {**self.component(project, entry["name"]), "name": entry["name"]}
        shown |= {"assigneeType": kind, "project": project}
        if entry.get("description"):
            shown["description"] = entry["description"]
        if entry.get("lead"):
            shown["lead"] = self.user(entry["lead"])
        if self.cloud:
            return {**shown, "isAssigneeTypeValid": True}
        return {**shown, "archived": bool(entry.get("archived"))}

    def attachment(self, item: Json) -> Json:
        """Return an attachment. It has no digest, and its name may not be unique [tracker-6]."""
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
        return cloud if self.cloud else self.secure(item)

    def secure(self, item: Json) -> str:
        """Return the download URL of an attachment on a server."""
        return f"{self.base}/secure/attachment/{item['id']}/{quote(item['filename'], safe='')}"

    def user(self, name: str | None) -> Json | None:
        """Return a user: name and key on a server, account id in the cloud [tracker-3]."""
        if name is None:
            return None
        known = self.visible.store.get("tracker.user", name) or {}
        mail = {"emailAddress": known.get("emailAddress", f"{name}@example.com")}
        shown = {
            "displayName": known.get("displayName", name),
            "active": known.get("active", True),
            "timeZone": "UTC",
        }
        if self.cloud:
            shown |= mail if known.get("shares_email") else {}
            return {"accountId": f"{_ACCOUNT}{name}", "accountType": "atlassian", **shown}
        return {
            "self": f"{self.base}/rest/api/2/user?username={quote(name)}",
            "name": name,
            "key": known.get("key", name),
            **({} if known.get("emailAddress") == "" else mail),
            **shown,
        }

    def named(self, kind: str, name: str | None) -> Json | None:
        """Return an issue type, a priority or a resolution."""
        return None if name is None else self._named(kind, self.visible.named(kind, name), name)

    def _named(self, kind: str, entry: Json, name: str) -> Json:
        return {
            "self": f"{self.base}/rest/api/2/{kind}/{entry['id']}",
            "id": entry["id"],
            "name": self.words.get(name, name),
        }

    def status(self, name: str) -> Json:
        entry = self.visible.named("status", name)
        key = entry.get("category", "indeterminate")
        number, category = CATEGORIES[key]
        shown = self._named("status", entry, name)
        return {**shown, "statusCategory": {"id": number, "key": key, "name": category}}

    def option(self, field: Field, value: str) -> Json:
        number = field.option_id(field.options.index(value))
        address = f"{self.base}/rest/api/2/customFieldOption/{number}"
        return {"self": address, "value": value, "id": number}

    def cascading(self, field: Field, value: str, child: str | None = None) -> Json:
        """Return a value of a cascading select. The child is absent if there is none."""
        shown = self.option(field, value)
        return shown if child is None else {**shown, "child": self.child(field, value, child)}

    def child(self, field: Field, option: str, child: str) -> Json:
        parent = field.option_id(field.options.index(option))
        return {"value": child, "id": f"{parent}{field.children_of(option).index(child)}"}

    def link_type(self, name: str) -> Json:
        entry = self.visible.named("linktype", name)
        shown = self._named("issueLinkType", entry, name)
        return {**shown, "inward": entry["inward"], "outward": entry["outward"]}
