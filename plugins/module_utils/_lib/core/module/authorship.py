# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the account that changed an object last, for a run of `drift` with `drift_who` [C9].

An account or a time that the server does not return stays empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from ..concurrency import spread
from ..errors import ToolchainError
from ..json_text import member
from ..plan import Plan
from ..times import iso, moment_of

#: Maximum number of changed objects of a task; if there are more, no author is read.
MOST = 1000
_PARALLEL = 4
#: Kinds of errors after which no other author is read from the server.
_UNAVAILABLE = ("auth", "network", "timeout")
_ZONE = re.compile(r"(?:Z|[+-]\d\d:?\d\d)\Z", re.IGNORECASE)
Object = TypeVar("Object")


class Author(NamedTuple):
    """The account of the last change, and its time in UTC; empty if unknown."""

    by: str = ""
    at: str = ""


UNKNOWN = Author()


@runtime_checkable
class Attributed(Protocol):
    """An operation that can read who changed its objects last."""

    def authors(self, plan: Plan) -> Sequence[Author]:
        """Return the author of each change, in the order of `parts`.

        Without `parts`, of each object that differs, in the order of its findings.
        """


def author(by: Any, at: Any = None) -> Author:
    """Return the author that a server reports.

    :param by: candidates for the account, the first string counts
    :param at: time in ISO 8601; without a time zone it is unknown
    """
    names = [name for name in by if isinstance(name, str) and name]
    known = isinstance(at, str) and _ZONE.search(at.strip()) is not None
    return Author(names[0] if names else "", (iso(moment_of(at)) or "") if known else "")


def last_of(entries: Any, key: str, total: Any = None) -> Any:
    """Return the entry of a list that has the latest time, or None.

    :param key: member with the time; entries without a valid one do not count
    :param total: number of all entries, if the server returns a part of them. Only a part that
        begins with the latest entry is known to contain it
    """
    timed = [
        (moment, entry)
        for entry in (entries if isinstance(entries, list) else ())
        if (moment := moment_of(member(entry, key))) is not None
    ]
    last = max(timed, key=lambda pair: pair[0], default=(None, None))[1]
    is_whole = not isinstance(total, int) or total <= len(timed)
    return last if is_whole or (timed and timed[0][1] is last) else None


def authors_of(
    read: Callable[[Object], Author], objects: Sequence[Object], *, parallel: int = _PARALLEL
) -> list[Author]:
    """Return the author of each object. One that cannot be read is unknown.

    After a failed login or connection no more requests are sent: each could take minutes.

    :param read: sends at most one request
    """
    if len(objects) > MOST:
        return []
    unavailable = Event()

    def attempt(one: Object) -> Author:
        try:
            return UNKNOWN if unavailable.is_set() else read(one)
        except ToolchainError as error:
            if error.kind in _UNAVAILABLE:
                unavailable.set()
            return UNKNOWN

    return list(spread(parallel, attempt, objects))
