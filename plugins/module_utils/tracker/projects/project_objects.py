# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, create and delete the versions or components of a project [tracker-15, tracker-29]."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from ...core.address import path
from ...core.errors import ToolchainError, invalid
from ...core.http.messages import expected, json_or_none, unexpected_body
from ..client import TrackerClient
from ..fields.documents import plain_lines

_API = "rest/api/2"


class ProjectObject(Protocol):
    """A version or component. Its name is unique in the project."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


Found = TypeVar("Found", bound=ProjectObject)


class ProjectObjects(Generic[Found]):
    """Read and write the versions or the components of a project.

    :param noun: `version` or `component`
    :param parse: parses a JSON object; returns None if it is something else
    :param no_project: hint for the error of a missing project
    """

    def __init__(
        self,
        client: TrackerClient,
        project: str,
        noun: str,
        parse: Callable[[Any], Found | None],
        no_project: str = "the project does not exist, or the account cannot see it",
    ) -> None:
        self._client, self._project, self._no_project = client, project, no_project
        self._noun, self._parse = noun, parse

    def all(self) -> list[Found]:
        """Return all objects in the project's order. Raises `not_found` for a missing project."""
        return self.listed()[0]

    def listed(self) -> tuple[list[Found], datetime | None]:
        """Return all objects like `all()`, and the time of the response by the server's clock."""
        purpose = f"reading the {self._noun}s of the project '{self._project}'"
        try:
            response = self._client.read(
                purpose, f"{_API}/project/{path(self._project)}/{self._noun}s"
            )
        except ToolchainError as error:
            if error.status == 404:
                error.with_hint(self._no_project)
            raise
        records = response.json()
        found = [self._parse(record) for record in records] if isinstance(records, list) else [None]
        objects = [item for item in found if item is not None]
        if len(objects) < len(found):
            raise unexpected_body(response, f"a list of {self._noun}s")
        return objects, response.date

    def count(self, found: Found, noun: str, address: str, member: str) -> int:
        """Return the number of issues with an object, including issues that are not visible.

        :param noun: the counted issues, for messages
        :param address: route of the count, below the object
        :param member: member of the response that contains the count
        """
        response = self._client.read(
            f"counting the {noun} of the {self._noun} '{found.name}'", self._route(found, address)
        )
        return expected(response, int, "a number of issues", member)

    def _create(self, name: str, members: Mapping[str, Any]) -> Found:
        """Create an object. If another user created it at the same time, return that object.

        Server fact [tracker-18]: 404 means a missing permission here. The project exists, because
        it was read before.
        """
        try:
            response = self._client.write(
                f"creating the {self._noun} '{name}' of the project '{self._project}'",
                "POST",
                f"{_API}/{self._noun}",
                json={**members, "project": self._project},
                verify=lambda: named(self.all(), name) is not None,
            )
        except ToolchainError as error:
            if error.status == 404:
                raise as_permission(error) from None
            found = named(self.all(), name) if error.status in (400, 409) else None
            if found is None:
                raise
            return found
        created = self._parse(json_or_none(response.body)) or named(self.all(), name)
        if created is None:
            raise response.error(
                "protocol", f"the server accepted the request, but the {self._noun} does not exist"
            )
        return created

    def _delete(self, found: Found, query: Mapping[str, str]) -> None:
        self._client.write(
            f"deleting the {self._noun} '{found.name}' of the project '{self._project}'",
            "DELETE",
            self._route(found),
            query=query,
            verify=lambda: self.read(found) is None,
            repeatable=True,
        )

    def read(self, found: Found) -> Found | None:
        """Read an object again. Return None if it does not exist any more."""
        purpose = f"reading the {self._noun} '{found.name}'"
        response = self._client.read(purpose, self._route(found), expect=(200, 404))
        if response.status == 404:
            return None
        current = self._parse(response.json())
        if current is None:
            raise unexpected_body(response, f"a {self._noun}")
        return current

    def managed(self, known: Sequence[Found], name: str, new_name: str | None) -> Found | None:
        """Return the object with the old or the new name, or None.

        Raises `conflict` if two objects have the old and the new name.
        """
        found = named(known, name)
        if new_name is None:
            return found
        renamed = named(known, new_name)
        if found is not None and renamed is not None and found != renamed:
            raise ToolchainError(
                "conflict",
                f"renaming the {self._noun} '{name}' of the project '{self._project}': the"
                f" {self._noun} '{renamed.name}' already exists",
            )
        return found or renamed

    def _route(self, found: Found, *below: str) -> str:
        return f"{_API}/{self._noun}/{path(found.id, *below)}"


def is_object(record: Any) -> bool:
    """Return whether a JSON value has an id and a name. A null is none of them."""
    members = [record.get(name) for name in ("id", "name")] if isinstance(record, Mapping) else []
    return bool(members) and None not in members


def named(objects: Sequence[Found], name: str) -> Found | None:
    return next((found for found in objects if same_name(found.name, name)), None)


def reject_pattern(name: str, noun: str) -> None:
    """Raise `invalid` for a name with wildcards."""
    if "*" in name or "?" in name:
        raise invalid(f"name: '{name}' contains wildcards, but must name a single {noun}")


def same_name(name: str, other: str) -> bool:
    """Return whether two names are equal, ignoring case and Unicode composition [tracker-17]."""
    return name_key(name) == name_key(other)


def name_key(name: str) -> str:
    """Return the normalized form of a name, for comparisons."""
    return unicodedata.normalize("NFC", name.strip()).casefold()


def same_lines(current: Any, desired: Any) -> tuple[bool, Any]:
    """Compare strings with normalized line ends, for `core.plan`."""
    return plain_lines(current or "") == plain_lines(desired), desired


def as_permission(error: ToolchainError) -> ToolchainError:
    error.kind = "permission"
    return error.with_hint(
        "the object exists, so the account may lack the permission to administer the project"
    )
