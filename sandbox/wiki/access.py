# SPDX-License-Identifier: GPL-3.0-or-later
"""Permissions of accounts in the wiki [wiki-1, wiki-3].

Permissions of a space: `view`, `add` (create and edit), `delete`, `attach`, `delete_attachments`
and `administer`. A page may also have `restrictions: {read: [name], update: [name]}`. An account
that may not read a page cannot see its descendants either.
"""

from __future__ import annotations

from typing import Any

from sandbox.context import Context
from sandbox.rights import Rights
from sandbox.wiki.errors import error, forbidden, no_content, no_space

Json = dict[str, Any]

_PAGE_CLASS = "class com.atlassian.confluence.pages.Page"


class Access:
    """Check the permissions of an account.

    :param rights: permissions of the account; None means all permissions, for the sandbox itself
    """

    def __init__(self, context: Context, rights: Rights | None) -> None:
        self.store = context.store
        self.settings = context.settings("wiki")
        self.rights = rights

    def may(self, permission: str, space: str) -> bool:
        if self.rights is None or self.rights.may(permission, space):
            return True
        known = self.store.get("wiki.space", space) or {}
        return permission == "view" and bool(known.get("anonymous", False))

    def sees(self, page: Json) -> bool:
        """Return whether the account can see a page. Requests treat other pages as missing."""
        if page.get("hidden", False) or not self.may("view", page["space"]):
            return False
        above: Json | None = page
        while above is not None:
            if not self._named(above, "read"):
                return False
            parent = above.get("parent")
            above = None if parent is None else self.store.get("wiki.page", parent)
        return True

    def _named(self, page: Json, operation: str) -> bool:
        names = list(page.get("restrictions", {}).get(operation) or [])
        groups = page.get("restricted_groups", {}).get(operation) or []
        restricted = bool(names or groups)
        for group in groups:
            names += (self.store.get("wiki.group", group) or {}).get("members") or []
        return not restricted or self.rights is None or self.rights.user in names

    def edits(self, page: Json) -> bool:
        allowed = self.may("add", page["space"]) and self._named(page, "update")
        return allowed and not page.get("read_only", False)

    def must_edit(self, page: Json) -> None:
        """Raise a 403 if the account may not edit a page. On some servers it is a 404 [wiki-3]."""
        if self.edits(page):
            return
        if self.settings["uneditable_status"] == 404:
            raise no_content(page["id"])
        raise forbidden(f"Could not update Content of type : {_PAGE_CLASS} with id {page['id']}")

    def must_add(self, space: str) -> None:
        if not self.may("add", space):
            raise forbidden(f"Could not create content with type page in space {space}")

    def deletes(self, page: Json) -> bool:
        return self.may("delete", page["space"]) and not page.get("read_only", False)

    def must_delete(self, page: Json) -> None:
        if not self.deletes(page):
            raise forbidden(
                f"Could not delete Content of type : {_PAGE_CLASS} with id {page['id']}"
            )

    def must_purge(self, page: Json) -> None:
        """Raise a 403 if the account may not delete a page permanently.

        Server fact [wiki-12]: this requires the permission to administer the space.
        """
        if not self.may("administer", page["space"]):
            raise forbidden(f"Could not purge Content with id {page['id']}")

    def must_attach(self, page: Json) -> None:
        if not self.may("attach", page["space"]) or page.get("read_only", False):
            raise forbidden(f"Could not create attachments on Content with id {page['id']}")

    def must_delete_attachments(self, page: Json) -> None:
        if not self.may("delete_attachments", page["space"]):
            raise forbidden(f"Could not delete attachments of Content with id {page['id']}")

    def knows(self, name: str) -> bool:
        """Return whether an account has a name. Names of users ignore case."""
        own = [] if self.rights is None else [self.rights.user]
        return name.casefold() in map(str.casefold, [*self.settings["known_users"], *own])

    def must_know(self, named: Json, *, status: int) -> None:
        """Raise an error for users and groups that a server does not have [wiki-19, wiki-21].

        Groups of the cloud have ids.
        """
        cloud = self.settings["deployment"] == "Cloud"
        for user in named.get("user", ()):
            name = user.get("accountId", "").removeprefix("account-") if cloud else user["username"]
            if not self.knows(name):
                raise error(status, f"No user found with username : {name}")
        if cloud:
            return
        for group in named.get("group", ()):
            if self.store.get("wiki.group", group["name"]) is None:
                raise error(status, f"No group found with name: {group['name']}")

    def space(self, key: Any) -> Json:
        """Return a visible space, or raise a 404."""
        found = self.store.get("wiki.space", str(key))
        if found is None or not self.may("view", str(key)):
            raise no_space(str(key))
        return found
