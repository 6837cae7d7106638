# SPDX-License-Identifier: GPL-3.0-or-later
"""Users and groups: their memberships, their verification, and the fields of both APIs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from ...core.module.objects import Item, ItemKind
from ...core.module.task import Task
from ...core.plan import Plan, remaining, unordered
from .directory import Directory, Kind

Mode: TypeAlias = Literal["exact", "add", "remove"]
Fields: TypeAlias = "dict[str, Any]"
Entry = TypeVar("Entry")


def merged(current: Iterable[str], names: Iterable[str], mode: str) -> list[str]:
    """Return the sorted members after the change.

    :param mode: `exact` replaces the current members by the names, `add` adds the names, `remove`
        removes them
    """
    before, named = set(current), set(names)
    after = {"exact": named, "add": before | named, "remove": before - named}[mode]
    return sorted(after)


class AccountKind(ItemKind[Entry, Fields]):
    """Base class for users and groups. The state of an item has the names of the options.

    :cvar kind: endpoints of the objects
    :cvar old: options, and the names of their fields in the older API
    :cvar links: field with the members of a group, or the groups of a user
    """

    kind: ClassVar[Kind]
    old: ClassVar[Mapping[str, str]]
    links: ClassVar[str]

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._directory = Directory(task, self.kind)
        self._comparisons = {self.links: unordered}

    @abstractmethod
    def fields(self, item: Item[Entry, Fields], row: Mapping[str, Any]) -> Fields:
        """Return the fields of an object in a response."""

    def shown(self, state: Fields | None) -> Fields | None:
        """Return the fields that plans and return values have."""
        return state

    def load(self, items: Sequence[Item[Entry, Fields]]) -> None:
        rows = self._directory.read_many([item.name for item in items])
        for item in items:
            row = rows[item.name]
            item.state = None if row is None else self.fields(item, row)

    def left(self, item: Item[Entry, Fields]) -> Plan | None:
        if item.plan.action == "delete":
            return None  # the server's response is enough
        row = self._directory.read(item.name)
        item.state = None if row is None else self.fields(item, row)
        shown = self.shown(item.state)
        item.returned = {self.noun: shown}
        return remaining(item.plan, shown, self._comparisons, ("user_password",))

    def _has(self, item: Item[Entry, Fields], fields: Collection[str]) -> bool:
        """Read an object again, and return whether these fields have their new values."""
        left = self.left(item)
        return left is not None and {change.field for change in left.changes}.isdisjoint(fields)

    def _sent(self, fields: Mapping[str, Any]) -> Fields:
        """Return fields with the names of the API in use."""
        return {self.old[k] if self._directory.is_old else k: v for k, v in fields.items()}

    def _link(self, item: Item[Entry, Fields], before: Iterable[str], after: Iterable[str]) -> None:
        """Change the members of a group, or the groups of a user.

        Only Access has a separate request for them [repo-41, repo-42].
        """
        verify = partial(self._has, item, [self.links])
        if self._directory.is_old:
            self._directory.update(item.name, self._sent({self.links: sorted(after)}), verify)
            return
        old, new = set(before), set(after)
        change = {"add": sorted(new - old), "remove": sorted(old - new)}
        self._directory.change_links(item.name, self.links, change, verify)

    def predict(self, item: Item[Entry, Fields]) -> None:
        self._task.predictions.follow(self.noun, item.name, item.plan.action)
