# SPDX-License-Identifier: GPL-3.0-or-later
"""The data of the tracker that an account can see."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.rights import Rights
    from sandbox.store import Store

Issue = dict[str, Any]


def issue_number(key: str) -> int:
    """Return the number in an issue key, for example 12 for `REL-12`."""
    return int(key.rpartition("-")[2])


def milliseconds(stamp: str) -> int:
    """Convert a time such as `2026-01-31T10:00:00.000+0000` to epoch milliseconds."""
    return int(datetime.fromisoformat(stamp).timestamp() * 1000)


#: Id and name of each category of statuses, by key.
CATEGORIES = {"new": (2, "To Do"), "indeterminate": (4, "In Progress"), "done": (3, "Done")}
#: Kind of the values and member of the issue, by field with several values of the project.
LISTS = {
    "fixversion": ("version", "fixVersions"),
    "affectedversion": ("version", "versions"),
    "component": ("component", "components"),
}


class VisibleData:
    """The projects, issues and values that an account can see.

    An account can see the projects that it may browse, and those marked `anonymous` [tracker-8].
    """

    def __init__(self, store: Store, rights: Rights, now_ms: int) -> None:
        self.store = store
        self.rights = rights
        self.user = rights.user.lower() if rights.user is not None else None
        self.now_ms = now_ms
        self.projects = {
            key: project
            for key, project in store.items("tracker.project")
            if rights.may("browse", key) or project.get("anonymous", False)
        }
        self._issues: dict[str, Issue] | None = None
        self._known: dict[str, set[str]] = {}

    @property
    def issues(self) -> dict[str, Issue]:
        """Return the visible issues by key."""
        if self._issues is None:
            self._issues = {
                key: issue
                for key, issue in self.store.items("tracker.issue")
                if issue["project"] in self.projects
            }
        return self._issues

    def find(self, key_or_id: str) -> Issue | None:
        """Return the visible issue with a key, a former key or an id, ignoring case, or None."""
        found = self.exists(key_or_id)
        return found if found is not None and found["project"] in self.projects else None

    def exists(self, key_or_id: str) -> Issue | None:
        """Like `find()`, but also return issues that are not visible."""
        found = self.store.get("tracker.issue", key_or_id.upper())
        if found is None:
            other = self.store.get("tracker.other_key", key_or_id.upper())
            found = None if other is None else self.store.get("tracker.issue", other["key"])
        return found

    def named(self, kind: str, name: str) -> dict[str, Any]:
        """Return a status, an issue type or another value by its name.

        The name of a version or component is `PROJECT/name`.
        """
        found = self.store.get(f"tracker.{kind}", name)
        if found is None:
            raise LookupError(f"the seed registers every {kind} that an issue names: {name}")
        return found

    def known(self, field: str) -> set[str] | None:
        """Return the names and ids that a field accepts, in lower case. None means any value."""
        if field == "labels":
            return None
        if field not in self._known:
            self._known[field] = self._names_of(field)
        return self._known[field]

    def _names_of(self, field: str) -> set[str]:
        if field == "project":
            return set().union(*map(_names, self.projects.values()))
        if field in ("assignee", "reporter"):
            return {key.lower() for key in self.store.keys("tracker.user")}
        if field == "statuscategory":
            return set().union(*map(_of_category, CATEGORIES))
        kind = LISTS[field][0] if field in LISTS else field
        names: set[str] = {"unresolved"} if field == "resolution" else set()
        for key, entry in self.store.items(f"tracker.{kind}"):
            if field not in LISTS or key.partition("/")[0] in self.projects:
                names |= _names(entry)
        return names

    def identities(self, field: str, issue: Issue) -> set[str]:
        """Return the strings, in lower case, that match the value of a field in a query."""
        if field == "project":
            return _names(self.projects[issue["project"]])
        if field == "labels":
            return {label.lower() for label in issue.get("labels", [])}
        if field == "statuscategory":
            return _of_category(self._category(issue))
        if field in LISTS:
            kind, member = LISTS[field]
            entries = [
                self.named(kind, f"{issue['project']}/{name}") for name in issue.get(member, [])
            ]
            return set().union(*map(_names, entries))
        value = issue.get(field)
        if value is None:
            return set()
        return (
            {value.lower()}
            if field in ("assignee", "reporter")
            else _names(self.named(field, value))
        )

    def _category(self, issue: Issue) -> str:
        """Return the key of the category that the status of an issue has."""
        return str(self.named("status", issue["status"]).get("category", "indeterminate"))

    def rank(self, field: str, issue: Issue) -> tuple[bool, int, str]:
        """Return the sort key of an issue for a field.

        Empty values are last. Others are sorted by the server's sequence, then by name.
        """
        if field == "project":
            return (False, 0, issue["project"])
        if field == "labels" or field in LISTS:
            values = issue.get(LISTS[field][1] if field in LISTS else field, [])
            return (not values, 0, str(min(values, default="")))
        if field == "statuscategory":
            return (False, CATEGORIES[self._category(issue)][0], "")
        value = issue.get(field)
        if value is None:
            return (True, 0, "")
        if field in ("status", "issuetype", "resolution", "priority"):
            return (False, int(self.named(field, value)["id"]), value)
        return (False, 0, str(value).lower())


def _of_category(key: str) -> set[str]:
    """Return the strings, in lower case, that match a category of statuses [tracker-32]."""
    number, name = CATEGORIES[key]
    return {key, str(number), name.lower()}


def _names(entry: dict[str, Any]) -> set[str]:
    return {str(entry[name]).lower() for name in ("id", "key", "name") if name in entry}
