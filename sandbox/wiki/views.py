# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON representation of pages [W2.3, wiki-1, wiki-7, wiki-18]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from sandbox.wiki import attachments
from sandbox.wiki.pages import Pages
from sandbox.wiki.tree import children

Json = dict[str, Any]

GET_DEFAULT = ("space", "history", "version")
POST_DEFAULT = ("body.storage", "ancestors", *GET_DEFAULT)
OPERATIONS = ("read", "update")
_CHILDREN = ("page", "attachment", "comment")
#: Server fact [wiki-11]: maximum number of entries in an embedded list.
_EMBEDDED = 25
_EXPANDABLE = ("ancestors", "body", "children", "container", "descendants", "history", "metadata")
_ALSO_EXPANDABLE = ("operations", "restrictions", "space", "version")


def written_page(page: Json) -> Json:
    """Return the JSON of a page with the members of the written interface only [W2.3]."""
    return {
        "id": page["id"],
        "type": page["type"],
        "title": page["title"],
        "space": {"key": page["space"]},
        "body": {"storage": {"value": page["body"], "representation": "storage"}},
        "version": {"number": page["version"]["number"]},
    }


class Views:
    """Convert pages and spaces to JSON. `base`: base URL of the wiki."""

    def __init__(self, pages: Pages, base: str) -> None:
        self.pages = pages
        self.base = base
        self.settings = pages.settings

    def page(self, page: Json, expand: Sequence[str]) -> Json:
        """Return a page with expanded members. `_expandable` lists the other members."""
        expanded = set(expand)
        shown = self._short(page)
        if {"space", "space.homepage"} & expanded:
            home = ("homepage",) if "space.homepage" in expanded else ()
            shown["space"] = self.space(page["space"], home)
        if "version" in expanded:
            shown["version"] = self._version(page)
        if any(name.startswith("history") for name in expanded):
            shown["history"] = self.history(page, whole="history.lastUpdated" in expanded)
        embedded = {
            kind: self.embedded(page, kind) for kind in _CHILDREN if f"children.{kind}" in expanded
        }
        if embedded:
            shown["children"] = embedded
        if "ancestors" in expanded:
            shown["ancestors"] = [self._short(above) for above in self.pages.ancestors(page)]
        if "body.storage" in expanded:
            storage = {"value": page["body"], "representation": "storage", "_expandable": {}}
            shown["body"] = {"storage": storage, "_expandable": {"view": "", "editor": ""}}
        metadata = self._metadata(page, expanded)
        if metadata:
            shown["metadata"] = metadata
        if "operations" in expanded:
            shown["operations"] = self._operations(page)
        if any(name.startswith("restrictions.") for name in expanded):
            shown["restrictions"] = self.restrictions(page)
        others = [name for name in (*_EXPANDABLE, *_ALSO_EXPANDABLE) if name not in shown]
        shown["_expandable"] = dict.fromkeys(others, "")
        return shown

    def _operations(self, page: Json) -> list[Json]:
        """Return the operations that the account may perform on a page [wiki-18]."""
        access = self.pages.access
        may = {"read": True, "update": access.edits(page), "delete": access.deletes(page)}
        names = [name for name, allowed in may.items() if allowed]
        return [{"operation": name, "targetType": page["type"]} for name in names]

    def restrictions(self, page: Json) -> Json:
        """Return the users and groups that may read or update a page [wiki-19]."""
        return {operation: self.restriction(page, operation) for operation in OPERATIONS}

    def restriction(self, page: Json, operation: str, start: int = 0) -> Json:
        """Return the users and groups of an operation, from `start` on [wiki-19]."""
        limit = self.settings["list_limit"]

        def members(stored: str, show: Callable[[str], Json]) -> Json:
            names = (page.get(stored) or {}).get(operation) or []
            return {
                **listing([show(name) for name in names[start : start + limit]]),
                "limit": limit,
            }

        members_of = {
            "user": members("restrictions", self.user),
            "group": members("restricted_groups", self.group),
        }
        shown = {"operation": operation, "restrictions": members_of}
        if self.pages.cloud:  # as its document says [wiki-19]
            del members_of["group"]["_links"]
            address = (
                f"{self.base}/rest/api/content/{page['id']}/restriction/byOperation/{operation}"
            )
            shown |= {"_expandable": {"content": ""}, "_links": {"self": address}}
        return shown

    def _short(self, page: Json) -> Json:
        title = quote_plus(page["title"])
        return {
            "id": page["id"],
            "type": page["type"],
            "status": page["status"],
            "title": page["title"],
            "extensions": {"position": _position(page)},
            "_links": {
                "webui": f"/display/{quote(page['space'])}/{title}",
                "self": f"{self.base}/rest/api/content/{page['id']}",
                "base": self.base,
                "context": "/wiki",
            },
        }

    def space(self, key: str, expand: Sequence[str]) -> Json:
        space = self.pages.store.get("wiki.space", key) or {}
        shown: Json = {
            "id": space["id"],
            "key": key,
            "name": space["name"],
            "type": "personal" if key.startswith("~") else "global",
            "status": "current",
            "_links": {
                "self": f"{self.base}/rest/api/space/{quote(key)}",
                "webui": f"/display/{quote(key)}",
            },
        }
        home = self.pages.store.get("wiki.page", str(space.get("home")))
        if "homepage" in expand and home is not None and home["status"] == "current":
            shown["homepage"] = self._short(home)
        if "description.plain" in expand:
            text = space.get("description", "")
            embedded: Json = {"embeddedContent": []} if self.pages.cloud else {}
            plain = {"value": text, "representation": "plain", **embedded}
            shown["description"] = {"plain": plain}
        others = [name for name in ("description", "homepage", "metadata") if name not in shown]
        return {**shown, "_expandable": dict.fromkeys(others, "")}

    def embedded(self, page: Json, kind: str) -> Json:
        """Return the list of children of a kind that an expanded page contains.

        Server fact [wiki-11]: it has at most 25 entries, and a `next` link.
        """
        whole = children(self.pages, page["space"], page["id"]) if kind == "page" else []
        shown = [self._short(child) for child in whole[:_EMBEDDED]]
        if kind == "attachment":
            whole = page["attachments"]
            shown = [self.attachment(page, file, version=True) for file in whole[:_EMBEDDED]]
        response = {**listing(shown), "limit": _EMBEDDED}
        if len(whole) > _EMBEDDED and self.settings["next_links"]:
            address = f"/rest/api/content/{page['id']}/child/{kind}"
            response["_links"] = {"next": f"{address}?limit={_EMBEDDED}&start={_EMBEDDED}"}
        return response

    def attachment(self, page: Json, file: Json, *, version: bool) -> Json:
        shown = attachments.view(self.base, page, file, version=version)
        if self.pages.cloud:
            del shown["metadata"]
        return shown

    def user(self, name: str) -> Json:
        """Return the JSON of a user: name and key on a server, account id in the cloud."""
        shown = {"type": "known", "displayName": name.capitalize()}
        if self.pages.cloud:
            return {**shown, "accountId": f"account-{name}"}
        return {**shown, "username": name, "userKey": f"key-{name}"}

    def group(self, name: str) -> Json:
        """Return the JSON of a group, which has an id in the cloud only [wiki-19]."""
        return {"type": "group", "name": name, **({"id": f"id-{name}"} if self.pages.cloud else {})}

    def _version(self, page: Json) -> Json:
        version = page["version"]
        hidden = {} if self.pages.cloud else {"hidden": False}
        return {**version, "by": self.user(version["by"]), **hidden}

    def history(self, page: Json, *, whole: bool) -> Json:
        """Return the author of the page, and its newest version if `whole` is set."""
        shown: Json = {
            "latest": page["status"] != "historical",
            "createdBy": self.user(page["created"]["by"]),
            "createdDate": page["created"]["when"],
        }
        if whole:
            shown["lastUpdated"] = self._version(page)
        return shown

    def _metadata(self, page: Json, expanded: set[str]) -> Json:
        metadata: Json = {}
        if "metadata.labels" in expanded:
            metadata["labels"] = listing([label(name) for name in page["labels"]])
        prefix = "metadata.properties."
        wanted = {name.split(".")[2] for name in expanded if name.startswith(prefix)}
        if wanted:
            metadata["properties"] = {
                key: self.property(page, key) for key in sorted(wanted) if key in page["properties"]
            }
        return metadata

    def property(self, page: Json, key: str) -> Json:
        """Return a content property, which has its own version number [wiki-6]."""
        found = page["properties"][key]
        address = f"{self.base}/rest/api/content/{page['id']}/property/{quote(key, safe='')}"
        return {
            "id": f"{page['id']}-{key}",
            "key": key,
            "value": found["value"],
            "version": {
                "number": found["version"],
                "when": page["version"]["when"],
                "minorEdit": False,
                "message": "",
            },
            "_links": {"self": address},
        }


def _position(page: Json) -> Any:
    """Return the position among siblings, or `none` if they are sorted by title [wiki-11]."""
    position = page.get("position")
    return "none" if position is None else position


def label(name: str) -> Json:
    return {"prefix": "global", "name": name, "id": name, "label": name}


def listing(results: list[Json]) -> Json:
    """Return a list that contains all results in one part."""
    size = len(results)
    return {"results": results, "start": 0, "limit": 200, "size": size, "_links": {}}
