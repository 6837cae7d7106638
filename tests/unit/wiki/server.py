# SPDX-License-Identifier: GPL-3.0-or-later
"""A wiki of a few pages that misbehaves on order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.unit.stub import Reply, Seen

CONTENT = "/base/rest/api/content"


def page(body: str = "<p>old</p>", **fields: Any) -> dict[str, Any]:
    """A page as the server keeps it."""
    return {
        "id": "7",
        "title": "Notes",
        "space": "REL",
        "parent": "1",
        "version": 3,
        "status": "current",
        "body": body,
        **fields,
    }


class Wiki:
    """`puts`: what happens to the next PUTs, before or instead of being carried out; each is given
    the wiki and may return an answer of its own.

    `expands`: members that a read shows (None: refuses the parameter with 400).
    """

    def __init__(self, *pages: dict[str, Any]) -> None:
        self.pages = {one["id"]: one for one in pages}
        self.puts: list[Callable[[Wiki], Reply | None]] = []
        self.lost = 0
        self.expands: frozenset[str] | None = frozenset(
            {"body.storage", "version", "space", "ancestors"}
        )
        self.finds = True
        self.written: list[dict[str, Any]] = []

    def __call__(self, seen: Seen) -> Reply:
        query = {name: value for name, (value,) in parse_qs(urlsplit(seen.target).query).items()}
        if "expand" in query and self.expands is None:
            return Reply(400, {"message": "Unknown query parameter: expand"})
        if seen.method != "GET":
            assert seen.headers["X-Atlassian-Token"] == "no-check"
        name = seen.path.removeprefix(CONTENT).strip("/")
        if seen.method == "POST":
            return self._after(self._create(json.loads(seen.body)), query)
        if name == "":
            return self._find(query)
        one = self.pages.get(name)
        if one is None or one["status"] != "current":
            return Reply(404, {"statusCode": 404, "message": f"No content found with id: {name}"})
        if seen.method == "DELETE":
            one["status"] = "trashed"
            return self._after(None, query)
        if seen.method == "PUT":
            return self._put(one, json.loads(seen.body), query)
        return Reply(body=self._shown(one, query))

    def edit(self, page_id: str = "7", **changes: Any) -> None:
        """Another writer saves the page."""
        one = self.pages[page_id]
        one.update(changes, version=one["version"] + 1)

    def _find(self, query: dict[str, str]) -> Reply:
        if not self.finds:
            return Reply(404, "<html><h1>Not here</h1></html>")
        found = [
            self._shown(one, query)
            for one in self.pages.values()
            if one["status"] == "current"
            and one["space"] == query["spaceKey"]
            and one["title"].lower() == query["title"].lower()
        ]
        return Reply(body={"results": found, "size": len(found)})

    def _create(self, content: dict[str, Any]) -> dict[str, Any]:
        self.written.append(content)
        parents = [one["id"] for one in content.get("ancestors", [])]
        one = page(
            content["body"]["storage"]["value"],
            id=str(100 + len(self.pages)),
            title=content["title"],
            space=content["space"]["key"],
            parent=parents[-1] if parents else None,
            version=1,
        )
        self.pages[one["id"]] = one
        return one

    def _put(self, one: dict[str, Any], content: dict[str, Any], query: dict[str, str]) -> Reply:
        self.written.append(content)
        answer = self.puts.pop(0)(self) if self.puts else None
        if answer is not None:
            return answer
        if content["version"]["number"] != one["version"] + 1:
            current = one["version"]
            words = "Version must be incremented on update. Current version is: "
            return Reply(409, {"statusCode": 409, "message": f"{words}{current}"})
        self._store(one, content)
        return self._after(one, query)

    def _store(self, one: dict[str, Any], content: dict[str, Any]) -> None:
        parents = [parent["id"] for parent in content.get("ancestors", [])]
        self.edit(
            one["id"],
            title=content["title"],
            body=content["body"]["storage"]["value"],
            parent=parents[-1] if parents else one["parent"],
        )

    def store_last(self) -> None:
        """Carry out the newest PUT, whatever is answered to it."""
        content = self.written[-1]
        self._store(self.pages[content["id"]], content)

    def _after(self, one: dict[str, Any] | None, query: dict[str, str]) -> Reply:
        if self.lost > 0:
            self.lost -= 1
            return Reply(cut=True)
        return Reply(204) if one is None else Reply(body=self._shown(one, query))

    def _shown(self, one: dict[str, Any], query: dict[str, str]) -> dict[str, Any]:
        asked = set(query.get("expand", "").split(","))
        shown = asked & (self.expands or frozenset())
        content: dict[str, Any] = {
            "id": one["id"],
            "type": one.get("type", "page"),
            "status": one["status"],
            "title": one["title"],
            "space": {"key": one["space"]},
            "version": {"number": one["version"]},
        }
        if "body.storage" in shown or self.expands is None:
            content["body"] = {"storage": {"value": one["body"], "representation": "storage"}}
        if "ancestors" in shown:
            content["ancestors"] = [] if one["parent"] is None else [{"id": one["parent"]}]
        return content
