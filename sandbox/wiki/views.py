# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON representation of pages [W2.3, wiki-1, wiki-7, wiki-18]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from sandbox.wiki import attachments
from sandbox.wiki.pages import Pages
from sandbox.wiki.tree import children

Json = dict[str, Any]

GET_DEFAULT = ("space", "history", "version")
POST_DEFAULT = ("body.storage", "ancestors", *GET_DEFAULT)
_CHILDREN = ("page", "attachment", "comment")
#: Server fact [wiki-11]: maximum number of entries in an embedded list.
_EMBEDDED = 25
_EXPANDABLE = ("ancestors", "body", "children", "container", "descendants", "history", "metadata")
_EXPANDABLE_REST = ("operations", "restrictions", "space", "version")


def written_page(page: Json) -> Json:
    """Return a page with only the members of written interface [W2.3]."""
    return {
        "id": page["id"],
        "type": page["type"],
        "title": page["title"],
        "space": {"key": page["space"]},
        "body": {"storage": {"value": page["body"], "representation": "storage"}},
        "version": {"number": page["version"]["number"]},
    }


class Views:
    """JSON representation of pages. `base` is the base URL of the wiki."""

    def __init__(self, pages: Pages, base: str) -> None:
        self.pages = pages
        self.base = base

    def page(self, page: Json, expand: Sequence[str]) -> Json:
        """Return a page with the expanded members. The others are listed in `_expandable`."""
        asked = set(expand)
        shown = self._short(page)
        if {"space", "space.homepage"} & asked:
            home = ("homepage",) if "space.homepage" in asked else ()
            shown["space"] = self.space(page["space"], home)
        if "version" in asked:
            shown["version"] = self._version(page)
        if any(name.startswith("history") for name in asked):
            shown["history"] = self.history(page, whole="history.lastUpdated" in asked)
        embedded = {
            kind: self.embedded(page, kind) for kind in _CHILDREN if f"children.{kind}" in asked
        }
        if embedded:
            shown["children"] = embedded
        if "ancestors" in asked:
            shown["ancestors"] = [self._short(above) for above in self.pages.ancestors(page)]
        if "body.storage" in asked:
            storage = {"value": page["body"], "representation": "storage", "_expandable": {}}
            shown["body"] = {"storage": storage, "_expandable": {"view": "", "editor": ""}}
        metadata = self._metadata(page, asked)
        if metadata:
            shown["metadata"] = metadata
        if "operations" in asked:
            shown["operations"] = self._operations(page)
        if any(name.startswith("restrictions.") for name in asked):
            shown["restrictions"] = self.restrictions(page)
        rest = [name for name in (*_EXPANDABLE, *_EXPANDABLE_REST) if name not in shown]
        shown["_expandable"] = dict.fromkeys(rest, "")
        return shown

    def _operations(self, page: Json) -> list[Json]:
        """Server fact [wiki-18]: the operations that the account may perform on the page."""
        access = self.pages.access
        may = {"read": True, "update": access.edits(page), "delete": access.deletes(page)}
        names = [name for name, allowed in may.items() if allowed]
        return [{"operation": name, "targetType": page["type"]} for name in names]

    def restrictions(self, page: Json) -> Json:
        """Server fact [wiki-19]: the users and groups that may read or update the page."""
        users, groups = page.get("restrictions") or {}, page.get("restricted_groups") or {}
        return {
            operation: {
                "operation": operation,
                "restrictions": {
                    "user": listing([self.user(name) for name in users.get(operation) or []]),
                    "group": listing([group(name) for name in groups.get(operation) or []]),
                },
            }
            for operation in ("read", "update")
        }

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
            "type": "global",
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
            shown["description"] = {"plain": {"value": text, "representation": "plain"}}
        rest = [name for name in ("description", "homepage", "metadata") if name not in shown]
        return {**shown, "_expandable": dict.fromkeys(rest, "")}

    def embedded(self, page: Json, kind: str) -> Json:
        """[wiki-11]: embedded lists have 25 entries and their own `next` link."""
        whole = children(self.pages, page["space"], page["id"]) if kind == "page" else []
        shown = [self._short(each) for each in whole[:_EMBEDDED]]
        if kind == "attachment":
            whole = page["attachments"]
            shown = [
                attachments.view(self.base, page, each, version=True) for each in whole[:_EMBEDDED]
            ]
        response = {**listing(shown), "limit": _EMBEDDED}
        if len(whole) > _EMBEDDED:
            address = f"/rest/api/content/{page['id']}/child/{kind}"
            response["_links"] = {"next": f"{address}?limit={_EMBEDDED}&start={_EMBEDDED}"}
        return response

    def user(self, name: str) -> Json:
        """Return a user: with user name on a server, with account id in the cloud."""
        shown = {"type": "known", "displayName": name.capitalize()}
        if self.pages.cloud:
            return {**shown, "accountId": f"account-{name}"}
        return {**shown, "username": name, "userKey": f"key-{name}"}

    def _version(self, page: Json) -> Json:
        version = page["version"]
        return {**version, "by": self.user(version["by"]), "hidden": False}

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

    def _metadata(self, page: Json, asked: set[str]) -> Json:
        metadata: Json = {}
        if "metadata.labels" in asked:
            metadata["labels"] = listing([label(name) for name in page["labels"]])
        wanted = {name.split(".")[2] for name in asked if name.startswith("metadata.properties.")}
        if wanted:
            metadata["properties"] = {
                key: self.property(page, key) for key in sorted(wanted) if key in page["properties"]
            }
        return metadata

    def property(self, page: Json, key: str) -> Json:
        """Server fact [wiki-6]: a property has its own version number."""
        found = page["properties"][key]
        address = f"{self.base}/rest/api/content/{page['id']}/property/{quote(key, safe='')}"
        return {
            "id": f"{page['id']}-{key}",
            "key": key,
            "value": found["value"],
            "version": {"number": found["version"], "minorEdit": False, "message": ""},
            "_links": {"self": address},
        }


def _position(page: Json) -> Any:
    """Return the position, or `none` if the branch was never ordered manually [wiki-11]."""
    position = page.get("position")
    return "none" if position is None else position


def group(name: str) -> Json:
    return {"type": "group", "name": name}


def label(name: str) -> Json:
    return {"prefix": "global", "name": name, "id": name, "label": name}


def listing(results: list[Json]) -> Json:
    """Return a list response with all results on a single page."""
    size = len(results)
    return {"results": results, "start": 0, "limit": 200, "size": size, "_links": {}}
