# SPDX-License-Identifier: GPL-3.0-or-later
"""Metadata of a module: its service, its objects, its operations and the required permissions.

Every `<Module>Operation` has a `descriptor`. Reports, the list of witnesses, and the fault and
permission tests read it. The classes are named tuples, because every process defines them again,
and a dataclass takes eight times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any, NamedTuple

from ..connection.service import Service
from ..object_names import object_name


class Access(NamedTuple):
    """Permissions that an operation requires, named as on the server.

    :param needs: permissions whose absence is detected in check mode too
    :param unforeseen: permissions whose absence is detected only by the write, because no read
        shows it
    :param writes: whether the operation changes the server
    """

    needs: tuple[str, ...] = ()
    unforeseen: tuple[str, ...] = ()
    writes: bool = False


def reads(*needs: str) -> Access:
    """Return the access of an operation that changes nothing on the server."""
    return Access(needs)


def writes(*needs: str, unforeseen: tuple[str, ...] = ()) -> Access:
    """Return the access of an operation that changes the server."""
    return Access(needs, unforeseen, writes=True)


class Descriptor(NamedTuple):
    """Metadata of a module.

    :param service: `None` if the module sends no request
    :param operations: access by name of the operation, as in docs/interfaces/witnesses.md
    :param kind: kind of the object in reports; empty if the module does not compare an object
    :param name: format string for the name of the object in reports, such as `{project}/{name}`.
        Its fields are options, or members of the return value with the name `kind`
    :param key: the options that identify the object, instead of `name` where a pattern could give
        two objects the same name
    :param lock: the options that identify the object for the locks of the run, instead of `name`
        and `key`. Without any of them, all tasks of the module wait for each other. `None`: the
        module acts in each task, so nothing is locked
    :param listed: name of the return value that lists several objects with their `action`, such as
        `results`. `name` may then also refer to members of an item
    :param follows: the write is a consequence of earlier tasks, such as a restart, so a sealed plan
        does not list it
    """

    service: Service | None
    operations: Mapping[str, Access]
    kind: str = ""
    name: str = ""
    listed: str = ""
    follows: bool = False
    key: tuple[str, ...] = ()
    lock: tuple[str, ...] | None = ()

    @property
    def service_name(self) -> str:
        """Return the name of the service, "" without a service."""
        return self.service.name if self.service else ""

    def name_of(self, values: Mapping[str, Any]) -> str:
        """Return the name of an object, "" without any of its values.

        A missing value is omitted, with the separator before it.
        """
        if self.key:
            return object_name(self.key, values)
        text = ""
        fields = 0
        for separator, field, _spec, _conversion in Formatter().parse(self.name):
            shown = _shown(values.get(field)) if field else ""
            if shown:
                text += (separator if text else "") + shown
            fields += field is not None
        return text if fields else self.name

    def name_of_task(self, options: Mapping[str, Any], values: Mapping[str, Any]) -> str:
        """Return the name of the only object of a task, "" without any of its values.

        :param options: all options of the task
        :param values: the return values
        """
        returned = values.get(self.kind)
        named = {**returned} if isinstance(returned, Mapping) else {}
        named |= {name: value for name, value in options.items() if value is not None}
        return self.name_of(named) or str(named.get("page_id") or named.get("issue") or "")

    @property
    def is_planned(self) -> bool:
        """Return whether a sealed plan lists the changes of the module.

        It does not list files on the controller, such as those of an export.
        """
        return self.writes and not self.follows

    @property
    def is_locked(self) -> bool:
        """Return whether the tasks of a run write an object one after the other."""
        return self.writes and self.lock is not None

    @property
    def writes(self) -> bool:
        """Return whether any operation changes the server."""
        return any(access.writes for access in self.operations.values())


def lock_names(operation: Any, descriptor: Descriptor, options: Any) -> list[str]:
    """Return the names of the objects that a task writes, the same for all modules of a kind.

    An operation that has several objects returns their names with its method `lock_names`.

    :param options: the options of the module
    """
    kind = descriptor.kind or type(options).__name__
    several: Callable[[], list[str]] | None = getattr(operation, "lock_names", None)
    if several is not None:
        names = several()
    elif descriptor.lock:
        names = [object_name(descriptor.lock, vars(options))]
    else:
        names = [descriptor.name_of(vars(options))]
    return [f"{kind} {name}" for name in names]


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):  # a return value with the same name as the option
        value = value.get("name")
    if isinstance(value, list):
        return "/".join(map(str, value))
    return "" if value is None else str(value)
