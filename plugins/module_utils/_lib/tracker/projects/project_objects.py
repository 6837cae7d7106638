# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, create and delete the versions or components of a project [tracker-15, tracker-29]."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ...core.address import path
from ...core.errors import ToolchainError, invalid
from ...core.http.messages import expected, json_or_none, unexpected_body
from ...core.plan import Comparison, plan
from ..client import TrackerClient
from ..issues.documents import plain_lines

_API = "rest/api/2"
_LONGEST = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class ProjectObject(Protocol):
    """A version or component. Its name is unique in the project."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...

    def settable(self) -> dict[str, Any]:
        """Return the values that can be changed, by the name of the option."""


Found = TypeVar("Found", bound=ProjectObject)


@dataclass(frozen=True)
class KnownObjects(Generic[Found]):
    """The versions or components of a project.

    `read_at`: time of the response by the server's clock, or None. `current`: the managed object
    after its write.
    """

    objects: list[Found]
    read_at: datetime | None
    current: Found | None = None


class ProjectObjects(ABC, Generic[Found]):
    """Read and write the versions or the components of a project.

    :cvar noun: `version` or `component`
    :cvar no_project: hint for the error of a missing project
    :cvar comparisons: comparisons of values by the name of the option
    """

    noun: ClassVar[str]
    no_project: ClassVar[str] = "the project does not exist, or the account cannot see it"
    comparisons: ClassVar[Mapping[str, Comparison]]

    def __init__(self, client: TrackerClient, project: str) -> None:
        self._client, self._project = client, project

    @staticmethod
    @abstractmethod
    def parse(record: Any) -> Found | None:
        """Parse a JSON object. Return None if it is something else."""

    def all(self) -> list[Found]:
        return self.listed().objects

    def listed(self) -> KnownObjects[Found]:
        """Return all objects in the project's order. Raises `not_found` for a missing project."""
        purpose = f"reading the {self.noun}s of the project '{self._project}'"
        try:
            response = self._client.read(
                purpose, f"{_API}/project/{path(self._project)}/{self.noun}s"
            )
        except ToolchainError as error:
            if error.status == 404:
                error.with_hint(self.no_project)
            raise
        records = response.json()
        found = [self.parse(record) for record in records] if isinstance(records, list) else [None]
        objects = [item for item in found if item is not None]
        if len(objects) < len(found):
            raise unexpected_body(response, f"a list of {self.noun}s")
        return KnownObjects(objects, response.date)

    def count(self, found: Found, noun: str, address: str, member: str) -> int:
        """Return the number of issues with an object, including issues that are not visible.

        :param noun: the counted issues, for messages
        :param address: route of the count, below the object
        :param member: member of the response that contains the count
        """
        response = self._client.read(
            f"counting the {noun} of the {self.noun} '{found.name}'", self._route(found, address)
        )
        return expected(response, int, "a number of issues", member)

    def _create(self, name: str, members: Mapping[str, Any]) -> Found:
        """Create an object. If another user created it at the same time, return that object.

        Server fact [tracker-18]: 404 means a missing permission here. The project exists, because
        it was read before.
        """
        try:
            response = self._client.write(
                f"creating the {self.noun} '{name}' of the project '{self._project}'",
                "POST",
                f"{_API}/{self.noun}",
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
        made = self.parse(json_or_none(response.body))
        created = named(self.all(), name) if made is None else self.read(made)
        if created is None:
            reason = f"the server accepted the request, but the {self.noun} does not exist"
            raise response.error("protocol", reason)
        return created

    def _delete(self, found: Found, method: str, *below: str, **parts: Any) -> Found | None:
        """Delete an object. Return it if the server still has it."""
        self._client.write(
            f"deleting the {self.noun} '{found.name}' of the project '{self._project}'",
            method,
            self._route(found, *below),
            **parts,
            verify=lambda: self.read(found) is None,
            repeatable=True,
        )
        return self.read(found)

    def differing(self, found: Found, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the wanted values that differ from those of an object."""
        left = plan(found.settable(), wanted, self.comparisons)
        return {change.field: wanted[change.field] for change in left.changes}

    def _update(self, found: Found, wanted: Mapping[str, Any], members: Any) -> Found | None:
        """Change an object, and return it as stored. None if it does not exist any more.

        :param wanted: values by option name
        :param members: the same values as members of the request
        """

        def done() -> bool:
            now = self.read(found)
            return now is not None and not self.differing(now, wanted)

        self._client.write(
            f"changing the {self.noun} '{found.name}' of the project '{self._project}'",
            "PUT",
            self._route(found),
            json=members,
            verify=done,
            repeatable=True,
        )
        return self.read(found)

    def read(self, found: Found) -> Found | None:
        """Read an object again. Return None if it does not exist any more."""
        purpose = f"reading the {self.noun} '{found.name}'"
        response = self._client.read(purpose, self._route(found), expect=(200, 404))
        if response.status == 404:
            return None
        current = self.parse(response.json())
        if current is None:
            raise unexpected_body(response, f"a {self.noun}")
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
                f"renaming the {self.noun} '{name}' of the project '{self._project}': the"
                f" {self.noun} '{renamed.name}' already exists",
            )
        return found or renamed

    def _route(self, found: Found, *below: str) -> str:
        return f"{_API}/{self.noun}/{path(found.id, *below)}"


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


def require_name(option: str, value: str | None) -> None:
    """Raise `invalid` for a name that the server would reject."""
    name = (value or "").strip()
    if len(name) > _LONGEST:
        raise invalid(f"{option} has more than {_LONGEST} characters")
    if _CONTROL.search(name):
        raise invalid(f"{option} contains a line break, a tab or another control character")


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
