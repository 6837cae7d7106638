# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, create, change and delete spaces, and their permissions [wiki-20, wiki-21]."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ...core.address import path
from ...core.errors import ToolchainError
from ...core.http.messages import expected, unexpected_body
from ...core.json_text import member
from ...core.plan import plan
from ..client import WikiClient

_SPACE, _USER = "rest/api/space", "rest/api/user"
_ADMINISTER = "space:administer"
_MOST_COUNTED = 200
#: Maximum number of subjects in a request [wiki-21].
_MAX_SUBJECTS = 40
_ATTEMPTS = 60
_ANONYMOUS = "anonymous"
_NO_PERMISSIONS = "servers before 9.1 and the cloud have no interface for permissions of a space"

#: Sorted operations, such as `page:create`, by subject: `group:NAME`, `user:KEY` or `anonymous`.
Permissions = dict[str, list[str]]


class Spaces:
    """Read and write the spaces of a wiki."""

    def __init__(self, client: WikiClient) -> None:
        self._client = client

    def read(self, key: str) -> dict[str, Any] | None:
        """Return `id`, `name`, `description` and `home_page` (its title), or None if missing."""
        return self._client.space(key)

    def content(self, key: str, home: str | None) -> str:
        """Describe the pages except the home page or, without such pages, the blog posts.

        Returns an empty string for a space without both.

        :param home: title of the home page, which no other page of the space has
        """
        purpose = f"counting the pages of the space {key}"
        pages = self._client.content_of(purpose, key, "page", _MOST_COUNTED)
        titles = [member(page, "title") for page in pages]
        besides = "" if home is None else f" besides its home page '{home}'"
        return _counted(len(titles) - titles.count(home), "page", besides) or _counted(
            self._count_blog_posts(key), "blog post"
        )

    def _count_blog_posts(self, key: str) -> int:
        purpose = f"counting the blog posts of the space {key}"
        try:
            return len(self._client.content_of(purpose, key, "blogpost", _MOST_COUNTED))
        except ToolchainError as error:
            if error.status != 404:
                raise
            return 0  # a wiki without blogs

    def create(self, key: str, wanted: Mapping[str, Any]) -> None:
        self._client.send(
            f"creating the space {key}",
            "POST",
            _SPACE,
            (200, 201),
            json={"key": key, **_sent(wanted)},
            verify=lambda: self.read(key) is not None,
        )

    def update(self, key: str, wanted: Mapping[str, Any], home: str | None) -> None:
        """Change a space.

        :param home: id of the new home page; None means unchanged
        """
        members = {**_sent(wanted), **({} if home is None else {"homepage": {"id": home}})}
        self._client.send(
            f"changing the space {key}",
            "PUT",
            f"{_SPACE}/{path(key)}",
            (200,),
            json=members,
            verify=lambda: not plan(self.read(key), wanted).changed,
            repeatable=True,
        )

    def delete(self, key: str) -> bool:
        """Delete a space and wait up to 50 seconds. Return whether it is gone."""
        self._client.send(
            f"deleting the space {key}",
            "DELETE",
            f"{_SPACE}/{path(key)}",
            (200, 202, 204),
            verify=lambda: self.read(key) is None,
            repeatable=True,
        )
        for attempt in range(_ATTEMPTS):
            if self.read(key) is None:
                return True
            time.sleep(min(1.0, 0.05 * (attempt + 1)))
        return False

    # -- permissions ---------------------------------------------------------------------------

    def permissions(self, key: str) -> Permissions:
        purpose = f"reading the permissions of the space {key}"
        if self._client.version == 2:
            raise ToolchainError("rejected", f"{purpose}: {_NO_PERMISSIONS}")
        try:
            response = self._client.ask(purpose, f"{_SPACE}/{path(key)}/permissions", {}, (200,))
        except ToolchainError as error:
            if error.status == 500:  # the server's response if a permission is missing
                error.kind = "permission"
                error.with_hint("the account must have the permission to administer the space")
            raise _without_interface(error) from None
        found: dict[str, set[str]] = {}
        for permission in expected(response, list, "a list of permissions"):
            subject = _subject(member(permission, "subject"))
            pair = member(permission, "operation")
            target, operation = member(pair, "targetType"), member(pair, "operationKey")
            if subject is None or not target or not operation:
                raise unexpected_body(response, "a subject and an operation in each permission")
            found.setdefault(subject, set()).add(f"{target}:{operation}")
        return {subject: sorted(operations) for subject, operations in found.items()}

    def set_permissions(self, key: str, wanted: Permissions) -> None:
        """Replace the operations of the given subjects. Other subjects stay unchanged."""
        subjects = list(wanted)
        for begin in range(0, len(subjects), _MAX_SUBJECTS):
            part = {name: wanted[name] for name in subjects[begin : begin + _MAX_SUBJECTS]}
            self._set(key, part)

    def _set(self, key: str, wanted: Permissions) -> None:
        def done() -> bool:
            now = self.permissions(key)
            return all(now.get(name, []) == operations for name, operations in wanted.items())

        body = []
        for subject, operations in wanted.items():
            kind, _colon, name = subject.partition(":")
            holder = {} if kind == _ANONYMOUS else {_MEMBERS[kind]: name}
            pairs = [operation.partition(":") for operation in operations]
            listed = [{"targetType": pair[0], "operationKey": pair[2]} for pair in pairs]
            body.append({**holder, "operations": listed})
        try:
            self._client.send(
                f"setting the permissions of the space {key}",
                "POST",
                f"{_SPACE}/{path(key)}/permissions",
                (200, 201, 204),
                json=body,
                verify=done,
                repeatable=True,
            )
        except ToolchainError as error:
            raise _without_interface(error) from None

    def user_key(self, name: str) -> str:
        """Return the key of a user. Raises `not_found` if the user does not exist."""
        return self._user(f"user '{name}'", {"username": name}, "userKey")

    def user_name(self, key: str) -> str:
        """Return the name of a user. Raises `not_found` if the user does not exist."""
        return self._user(f"user with the key {key}", {"key": key}, "username")

    def _user(self, named: str, query: Mapping[str, str], wanted: str) -> str:
        """Return the member `wanted` of the user that a query finds."""
        response = self._client.ask(f"searching for the {named}", _USER, query, (200, 404))
        found = member(response.json(), wanted) if response.status == 200 else None
        if found is None:
            raise response.error("not_found", f"there is no {named}")
        return str(found)

    def own_subjects(self) -> set[str]:
        """Return the task's account and its groups as subjects of permissions."""
        reported = self._client.ask(
            "reading the task's account", f"{_USER}/current", {}, (200,)
        ).json()
        groups = self._client.groups_of({"username": str(member(reported, "username"))})
        return {f"user:{member(reported, 'userKey')}", *(f"group:{name}" for name in groups)}


def _counted(count: int, noun: str, suffix: str = "") -> str:
    """Return a number with its noun, or an empty string for 0."""
    if count == 0:
        return ""
    shown = f"at least {_MOST_COUNTED}" if count >= _MOST_COUNTED else str(count)
    return f"{shown} {noun}{'' if count == 1 else 's'}{suffix}"


_MEMBERS = {"group": "groupName", "user": "userKey"}


def administers(permissions: Permissions, subjects: set[str]) -> bool:
    """Return whether one of the subjects may administer the space."""
    return any(_ADMINISTER in permissions.get(subject, ()) for subject in subjects)


def _subject(shown: Any) -> str | None:
    """Return the subject of a permission, or None if a user or group has no name."""
    kind = member(shown, "type")
    if kind in (None, _ANONYMOUS):
        return _ANONYMOUS
    name = member(shown, "name" if kind == "group" else "userKey")
    return f"{'group' if kind == 'group' else 'user'}:{name}" if name else None


def _sent(wanted: Mapping[str, Any]) -> dict[str, Any]:
    sent = {name: value for name, value in wanted.items() if name == "name"}
    if "description" in wanted:
        plain = {"value": wanted["description"], "representation": "plain"}
        sent["description"] = {"plain": plain}
    return sent


def _without_interface(error: ToolchainError) -> ToolchainError:
    if error.status in (404, 405, 410):
        error.kind = "rejected"
        error.with_hint(_NO_PERMISSIONS)
    return error
