# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages: read, create, replace and trash [wiki-1, wiki-3, wiki-7, wiki-9]."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timezone
from typing import Any

from sandbox.context import Context
from sandbox.rights import Rights
from sandbox.wiki.access import Access
from sandbox.wiki.errors import bad_request, conflict, error, member, no_content
from sandbox.wiki.rewrite import rewrite
from sandbox.wiki.storage import StorageError, parse

Json = dict[str, Any]

_FIRST_ID = 2000
_MAX_TITLE = 255
#: Members that the written interface requires in a PUT.
_WRITTEN = (
    ("id",),
    ("type",),
    ("title",),
    ("space", "key"),
    ("body", "storage", "value"),
    ("body", "storage", "representation"),
    ("version", "number"),
)


class Pages:
    """Read and write pages with the permissions of an account.

    :param rights: permissions of the account; None means all permissions, for the sandbox itself
    """

    def __init__(self, context: Context, rights: Rights | None) -> None:
        self.context = context
        self.store = context.store
        self.settings = context.settings("wiki")
        self.real = context.real("wiki")
        self.cloud = self.settings["deployment"] == "Cloud"
        self.access = Access(context, rights)
        self.user = (rights.user if rights is not None else None) or "anonymous"

    # -- reading -----------------------------------------------------------------------------

    def get(self, page_id: str, statuses: Collection[str] = ("current",)) -> Json:
        """Return a page. Raises a 404 if it is missing, not visible, or has another status.

        :param statuses: accepted statuses; `any` accepts all
        """
        page = self.store.get("wiki.page", page_id)
        if page is None or not self.access.sees(page):
            raise no_content(page_id)
        if page["status"] not in statuses and "any" not in statuses:
            raise no_content(page_id)
        return page

    def version(self, page_id: str, number: int) -> Json:
        """Return a page in an older version. Raises a 404 if there is no such version."""
        page = self.get(page_id)
        if page["version"]["number"] == number:
            return page
        former = self.store.get("wiki.version", f"{page_id}/{number:08d}")
        if former is None:
            raise no_content(page_id)
        return {**page, **former, "status": "historical"}

    def all(self) -> Iterator[Json]:
        """Yield all pages that the account can see, sorted by id."""
        for _page_id, page in sorted(self.store.items("wiki.page"), key=lambda item: int(item[0])):
            if self.access.sees(page):
                yield page

    def keep_title(self, page: Json) -> None:
        """Add the title of a page to the index of titles, which may keep former titles."""
        key = f"{page['space']}/{page['title'].lower()}/{page['id']}"
        self.store.put("wiki.title", key, {"id": page["id"]})

    def titled(self, space: str, title: str) -> Iterator[Json]:
        """Yield the pages of a space with a title, ignoring case.

        This includes pages that the account cannot see.
        """
        for _key, noted in self.store.items("wiki.title", f"{space}/{title.lower()}/"):
            page = self.store.get("wiki.page", noted["id"])
            if page is None or page["space"] != space:
                continue
            if page["title"].lower() == title.lower():
                yield page

    def ancestors(self, page: Json) -> list[Json]:
        """Return the ancestors of a page, from the top of the space down to the parent."""
        chain: list[Json] = []
        parent = page.get("parent")
        while parent is not None:
            found = self.store.get("wiki.page", parent)
            if found is None:
                break
            chain.insert(0, found)
            parent = found.get("parent")
        return chain

    # -- writing -----------------------------------------------------------------------------

    def create(self, data: Json) -> Json:
        """Create a page. Raises a 400 if the title is in use: it is unique per space [wiki-13]."""
        space = str(self.access.space(member(data, "space", "key"))["key"])
        self.access.must_add(space)
        if data.get("type") not in ("page", "blogpost"):
            raise bad_request(f"Unsupported content type: {data.get('type')}")
        title = self._title(data, space, None)
        body = self._body(data, space)
        page = {
            "id": str(_FIRST_ID + self.store.next_id("wiki.page")),
            "type": data["type"],
            "status": data.get("status", "current"),
            "title": title,
            "space": space,
            "parent": self._parent_of(data, space, None) or self._default_parent(space),
            "body": body or "",
            "version": self._new_version(data, 1),
            "created": {"when": self.now(), "by": self.user},
            "labels": self._labels(data),
            "attachments": [],
            "properties": {},
        }
        self._take_properties(page, data)
        self._delay_index(page["id"])
        self.store.put("wiki.page", page["id"], page)
        self.keep_title(page)
        return page

    def replace(self, page_id: str, data: Json) -> Json:
        """Save the next version of a page [W4.3, wiki-3].

        Raises a 409 if the request does not contain the next version number.
        """
        page = self.get(page_id, ("any",))
        self._check_members(page, data)
        self.access.must_edit(page)
        if page["status"] == "draft":
            raise conflict(f"Content {page_id} is a draft and cannot be updated")
        if page["status"] == "trashed" and data.get("status") != "current":
            raise no_content(page_id)
        page = self._edited_by_another(page)
        current = page["version"]["number"]
        if member(data, "version", "number") != current + 1:
            message = "Version must be incremented on update. Current version is: "
            raise conflict(f"{message}{current}")
        if page["status"] == "trashed":
            return self._restored(page, data)
        space = self._target_space(page, data)
        title = self._title(data, space, page_id)
        body = self._body(data, space)
        parent = self._new_parent(page, data, space)
        changed = {
            **page,
            "status": "current",
            "title": title,
            "space": space,
            "parent": parent,
            "body": page["body"] if body is None else body,
            "version": self._new_version(data, current + 1),
        }
        self._take_properties(changed, data)
        self._save(page, changed)
        return changed

    def _restored(self, page: Json, data: Json) -> Json:
        """Restore a page from the trash. Other members of the request are ignored [wiki-12]."""
        number = page["version"]["number"] + 1
        back = {**page, "status": "current", "version": self._new_version(data, number)}
        self._title({"title": page["title"], "type": page["type"]}, page["space"], page["id"])
        self._save(page, back)
        return back

    def trash(self, page_id: str, statuses: Collection[str]) -> None:
        """Move a current page to the trash, or delete a trashed page permanently.

        The children of a page in the trash get its parent as parent.
        """
        page = self.get(page_id, statuses)
        if page["status"] == "trashed":
            self.access.must_purge(page)
            self.store.delete("wiki.page", page_id)
            return
        self.access.must_delete(page)
        for _key, child in self.store.items("wiki.page"):
            if child.get("parent") == page_id:
                self.store.put("wiki.page", child["id"], {**child, "parent": page.get("parent")})
        self.store.put("wiki.page", page_id, {**page, "status": "trashed"})

    def _save(self, before: Json, after: Json) -> None:
        number = before["version"]["number"]
        former = {name: before[name] for name in ("title", "body", "version")}
        with self.store.transaction():
            self.store.put("wiki.version", f"{before['id']}/{number:08d}", former)
            self.store.put("wiki.page", after["id"], after)
            if after["title"] != before["title"] or after["space"] != before["space"]:
                self.keep_title(after)

    def _edited_by_another(self, page: Json) -> Json:
        """Simulate an edit by another user before this PUT, as `edits_before_put` requires."""
        edits = int(self.settings["edits_before_put"])
        if edits <= 0:
            return page
        self.context.update_settings("wiki", {"edits_before_put": edits - 1})
        body = self.settings["edit_body"]
        version = {**page["version"], "number": page["version"]["number"] + 1, "by": "another"}
        edited = {**page, "body": page["body"] if body is None else body, "version": version}
        self._save(page, edited)
        return edited

    # -- validation of write requests --------------------------------------------------------

    def _check_members(self, page: Json, data: Json) -> None:
        needed = (("version", "number"), ("type",), ("title",)) if self.real else _WRITTEN
        for path in needed:
            if member(data, *path) in (None, ""):
                raise bad_request(f"{'.'.join(path)} is required when content is updated")
        if data["type"] != page["type"]:
            raise bad_request(f"Content {page['id']} is of type {page['type']}")
        if str(data.get("id", page["id"])) != page["id"]:
            raise bad_request("The content id in the path and in the body are not the same")

    def _default_parent(self, space: str) -> str | None:
        """Return the parent of a new page that names no parent.

        Server fact [wiki-9]: it is the home page on some servers, and None on others.
        """
        known = self.store.get("wiki.space", space) or {}
        return known.get("home") if self.settings["orphans_below_home"] else None

    def _labels(self, data: Json) -> list[str]:
        """Return the labels of a new page, which only the cloud accepts [wiki-9]."""
        given = member(data, "metadata", "labels") if self.cloud else None
        names = [str(member(label, "name")).lower() for label in given or []]
        return list(dict.fromkeys(names))

    def _delay_index(self, page_id: str) -> None:
        searches = int(self.settings["index_lag_searches"])
        if searches > 0:
            self.store.put("wiki.unindexed", page_id, {"searches": searches})

    def unindexed(self) -> set[str]:
        """Return the ids of new pages that this search does not find yet [wiki-11]."""
        waiting = self.store.items("wiki.unindexed")
        for page_id, lag in waiting:
            if lag["searches"] > 1:
                self.store.put("wiki.unindexed", page_id, {"searches": lag["searches"] - 1})
            else:
                self.store.delete("wiki.unindexed", page_id)
        return {page_id for page_id, _lag in waiting}

    def _target_space(self, page: Json, data: Json) -> str:
        """Return the key of the space for the changed page.

        Raises a 400 for another space unless the setting `differing_space` is `move`.
        """
        wanted = member(data, "space", "key")
        if wanted in (None, page["space"]):
            return str(page["space"])
        if self.settings["differing_space"] != "move":
            raise bad_request(f"Content {page['id']} is not in the space with key {wanted}")
        target = str(self.access.space(wanted)["key"])
        self.access.must_add(target)
        return target

    def _title(self, data: Json, space: str, page_id: str | None) -> str:
        title = str(data.get("title") or "").strip()
        if title == "":
            raise bad_request("Title cannot be empty")
        if len(title) > _MAX_TITLE:
            raise bad_request(f"Title cannot be longer than {_MAX_TITLE} characters")
        for page in self.titled(space, title):
            if page["id"] == page_id or page["status"] not in self._blocking():
                continue
            if page["type"] == data["type"]:
                message = "A page with this title already exists: A page already exists with the"
                raise bad_request(f"{message} title {title} in the space with key {space}")
        return title

    def _blocking(self) -> tuple[str, ...]:
        """Return the statuses of pages whose titles are in use.

        Server fact [wiki-12]: servers differ in whether the title of a trashed page can be reused.
        """
        return ("current", "trashed") if self.settings["trash_blocks_titles"] else ("current",)

    def _body(self, data: Json, space: str) -> str | None:
        """Return the body to store, or None if the request has no body."""
        body = member(data, "body", "storage", "value")
        if body is None:
            return None
        if member(data, "body", "storage", "representation") not in ("storage", None):
            raise bad_request("Only the representation storage can be converted to storage")
        if len(str(body).encode()) > int(self.settings["max_body"]):
            raise error(413, "The body of the page is too large")
        rewrites = self.settings["rewrite_on_save"]
        try:
            if rewrites or (rewrites is None and self.real):
                return rewrite(str(body), space)
            parse(str(body))
        except StorageError as problem:
            raise bad_request(str(problem)) from None
        return str(body)

    def _new_parent(self, page: Json, data: Json, space: str) -> str | None:
        """Return the id of the new parent, or None for the top of the space.

        Settings choose the effect of omitted ancestors, about which reports disagree [wiki-4].
        """
        given = data.get("ancestors")
        if given is None:
            moves = self.settings["omit_ancestors_moves"]
        elif given == []:
            moves = self.settings["empty_ancestors_moves"]
        else:
            return self._parent_of(data, space, page["id"])
        return None if moves or space != page["space"] else page.get("parent")

    def _parent_of(self, data: Json, space: str, page_id: str | None) -> str | None:
        """Return the id of the parent in a request, which is the last entry of `ancestors`."""
        given = data.get("ancestors")
        if given in (None, []):
            return None
        if not isinstance(given, list):
            raise bad_request("ancestors must be a list")
        named = str(member(given[-1], "id"))
        parent = self.store.get("wiki.page", named)
        seen = parent is not None and self.access.sees(parent)
        if parent is None or not seen or parent["status"] != "current" or parent["space"] != space:
            raise bad_request(f"The specified parent page {named} does not exist in the space")
        line = [named, *(ancestor["id"] for ancestor in self.ancestors(parent))]
        if page_id in line:
            raise bad_request("A page cannot be its own ancestor")
        return named

    def _take_properties(self, page: Json, data: Json) -> None:
        for key, given in (member(data, "metadata", "properties") or {}).items():
            known = page["properties"].get(key)
            number = known["version"] + 1 if known is not None else 1
            page["properties"][key] = {"value": member(given, "value"), "version": number}

    def _new_version(self, data: Json, number: int) -> Json:
        return {
            "number": number,
            "when": self.now(),
            "by": self.user,
            "message": member(data, "version", "message") or "",
            "minorEdit": bool(member(data, "version", "minorEdit")),
        }

    def now(self) -> str:
        moment = datetime.fromtimestamp(self.context.now_ms() / 1000, timezone.utc)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
