# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated wiki with a few pages that can be told to misbehave."""

from __future__ import annotations

import json
from collections.abc import Callable
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.unit.stub import Reply, Seen

CONTENT = "/base/rest/api/content"
SPACE = "/base/rest/api/space/"


def page(body: str = "<p>old</p>", **fields: Any) -> dict[str, Any]:
    """Return a page as the server stores it."""
    return {
        "id": "7",
        "title": "Notes",
        "space": "REL",
        "parent": "1",
        "version": 3,
        "status": "current",
        "body": body,
        "labels": [],
        "files": {},
        **fields,
    }


class Wiki:
    """A simulated wiki.

    `puts` are handlers for the next PUTs, called before the PUT is carried out. A handler receives
    the wiki; if it returns a response, the PUT is not carried out.

    `expands` are the members that a read shows; with None, the wiki rejects the parameter with
    `refusal`.
    """

    def __init__(self, *pages: dict[str, Any]) -> None:
        self.pages = {record["id"]: record for record in pages}
        self.puts: list[Callable[[Wiki], Reply | None]] = []
        self.lost = 0
        self.expands: frozenset[str] | None = frozenset(
            {"body.storage", "version", "space", "ancestors", "children.page", "space.homepage"}
        )
        self.refusal = Reply(400, {"message": "Unknown query parameter: expand"})
        self.finds = True
        self.home = "1"
        self.shows_labels = True
        self.operations: Any = None  # operations of every page, if the request asks for them
        self.saved: Callable[[str], str] = str  # rewrites a body on save
        self.written: list[dict[str, Any]] = []

    def __call__(self, seen: Seen) -> Reply:
        query = {name: value for name, (value,) in parse_qs(urlsplit(seen.target).query).items()}
        if "expand" in query and self.expands is None:
            return self.refusal
        if seen.method != "GET":
            assert seen.headers["X-Atlassian-Token"] == "no-check"
        name = seen.path.removeprefix(CONTENT).strip("/")
        if seen.path.startswith("/base/download/"):
            return self._download(seen)
        if seen.method == "POST" and name == "":
            return self._after(self._create(json.loads(seen.body)), query)
        if seen.path.startswith(SPACE):
            return self._space(seen.path.removeprefix(SPACE))
        return self._find(query) if name == "" else self._page(name, seen, query)

    def _page(self, name: str, seen: Seen, query: dict[str, str]) -> Reply:
        """Handle a request for a page, or for its children."""
        name, _slash, below = name.partition("/")
        one = self.pages.get(name)
        if one is None or one["status"] != "current":
            return Reply(404, {"statusCode": 404, "message": f"No content found with id: {name}"})
        if below == "child/page":
            return Reply(body={"results": self._children(one)})
        if below:
            hanging = self._labels if below == "label" else self._files
            response = hanging(one, seen, query)
            return self._after_hanging(seen, response)
        if seen.method == "DELETE":
            one["status"] = "trashed"
            return self._after(None, query)
        if seen.method == "PUT":
            return self._put(one, json.loads(seen.body), query)
        return Reply(body=self._shown(one, query))

    def edit(self, page_id: str = "7", **changes: Any) -> None:
        """Save the page as another writer."""
        one = self.pages[page_id]
        one.update(changes, version=one["version"] + 1)

    def _space(self, key: str) -> Reply:
        if key in {record["space"] for record in self.pages.values()}:
            return Reply(body={"key": key, "homepage": {"id": self.home}})
        return Reply(404, {"statusCode": 404, "message": f"No space with key : {key}"})

    def _children(self, one: dict[str, Any]) -> list[dict[str, Any]]:
        pages = self.pages.values()
        below = [
            record
            for record in pages
            if (record["parent"], record["status"]) == (one["id"], "current")
        ]
        return [{"id": record["id"]} for record in below]

    def _find(self, query: dict[str, str]) -> Reply:
        if not self.finds:
            return Reply(404, "<html><h1>Not here</h1></html>")
        found = [
            self._shown(record, query)
            for record in self.pages.values()
            if record["status"] == "current"
            and record["space"] == query["spaceKey"]
            and record["title"].lower() == query["title"].lower()
        ]
        return Reply(body={"results": found, "size": len(found)})

    def _create(self, content: dict[str, Any]) -> dict[str, Any]:
        self.written.append(content)
        parents = [ancestor["id"] for ancestor in content.get("ancestors", [])]
        one = page(
            self.saved(content["body"]["storage"]["value"]),
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
        response = self.puts.pop(0)(self) if self.puts else None
        if response is not None:
            return response
        if content["version"]["number"] != one["version"] + 1:
            current = one["version"]
            message = "Version must be incremented on update. Current version is: "
            return Reply(409, {"statusCode": 409, "message": f"{message}{current}"})
        self._store(one, content)
        return self._after(one, query)

    def _store(self, one: dict[str, Any], content: dict[str, Any]) -> None:
        parents = [parent["id"] for parent in content.get("ancestors", [])]
        self.edit(
            one["id"],
            title=content["title"],
            body=self.saved(content["body"]["storage"]["value"]),
            parent=parents[-1] if parents else one["parent"],
        )

    def store_last(self) -> None:
        """Carry out the newest PUT, regardless of the response."""
        content = self.written[-1]
        self._store(self.pages[content["id"]], content)

    # -- labels and attachments of a page ----------------------------------------------------------

    def _after_hanging(self, seen: Seen, response: Reply) -> Reply:
        if seen.method != "GET" and self.lost > 0:
            self.lost -= 1
            return Reply(cut=True)
        return response

    def _labels(self, one: dict[str, Any], seen: Seen, query: dict[str, str]) -> Reply:
        if seen.method == "POST":
            one["labels"] += [entry["name"] for entry in json.loads(seen.body)]
        if seen.method == "DELETE":
            one["labels"].remove(query["name"])
            return Reply(204)
        return Reply(body={"results": [{"prefix": "global", "name": n} for n in one["labels"]]})

    def _files(self, one: dict[str, Any], seen: Seen, query: dict[str, str]) -> Reply:
        """Handle files by name, as (version, content, comment); a list has a single
        file per page.
        """
        if seen.method == "GET":
            names = sorted(one["files"])
            start = int(query["start"])
            shown = [self._file(one, name) for name in names[start : start + 1]]
            links = {"next": "/x"} if len(names) > start + 1 else {}
            return Reply(body={"results": shown, "_links": links})
        message = BytesParser().parsebytes(
            f"Content-Type: {seen.headers['Content-Type']}\r\n\r\n".encode() + seen.body
        )
        parts = {
            part.get_param("name", header="content-disposition"): part
            for part in message.walk()
            if not part.is_multipart()
        }
        name = str(parts["file"].get_filename())
        content = parts["file"].get_payload(decode=True)
        version = one["files"].get(name, (0,))[0] + 1
        is_new = seen.path.endswith("/attachment")
        assert is_new is (version == 1)
        one["files"][name] = (version, content, parts["comment"].get_payload())
        entry = self._file(one, name)
        return Reply(body={"results": [entry]} if is_new else entry)

    def _file(self, one: dict[str, Any], name: str) -> dict[str, Any]:
        version, content, comment = one["files"][name]
        return {
            "id": f"att-{name}",
            "title": name,
            "version": {"number": version},
            "extensions": {"fileSize": len(content), "comment": comment},
            "_links": {"download": f"/download/attachments/{one['id']}/{name}?version={version}"},
        }

    def _download(self, seen: Seen) -> Reply:
        _base, _download, _attachments, page_id, name = seen.path.strip("/").split("/")
        return Reply(body=self.pages[page_id]["files"][name][1])

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
        if "metadata.labels" in asked and self.shows_labels and self.expands is not None:
            labels = [{"prefix": "global", "name": name} for name in one["labels"]]
            labels.append({"prefix": "my", "name": "favourite"})
            content["metadata"] = {"labels": {"results": labels, "_links": {}}}
        if "space.homepage" in shown:
            content["space"]["homepage"] = {"id": self.home}
        if "children.page" in shown:
            content["children"] = {"page": {"results": self._children(one)}}
        if "operations" in asked and self.operations is not None:
            content["operations"] = self.operations
        if "ancestors" in shown:
            content["ancestors"] = [] if one["parent"] is None else [{"id": one["parent"]}]
        return content
