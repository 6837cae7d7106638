# SPDX-License-Identifier: GPL-3.0-or-later
"""Effects that changes of a version have on its issues [tracker-16, tracker-18]."""

from __future__ import annotations

from sandbox.tracker.call import Call, Json, require
from sandbox.tracker.errors import refusal
from sandbox.tracker.issues.changes import save
from sandbox.tracker.visible import Issue

_FIELDS = ("fixVersions", "versions")
_WORDS = {"fixVersions": "fix", "versions": "affects"}


def by_id(call: Call, number: str) -> tuple[str, Json] | None:
    """Return the project key and the version with an id, or None."""
    for key, entry in call.store.items("tracker.version"):
        if entry["id"] == number:
            return key.partition("/")[0], entry
    return None


def issues_of(call: Call, project: str, name: str, field: str) -> list[Issue]:
    """Return all issues with a version or component, including hidden issues.

    :param field: field that contains the name, for example `fixVersions`
    """
    known = call.store.values("tracker.issue", f"{project}-")
    return [
        issue for issue in known if issue["project"] == project and name in (issue.get(field) or [])
    ]


def rename(call: Call, project: str, former: str, entry: Json) -> None:
    """Store a version under its new name, and rename it in its issues.

    The issues get no history entry and keep their `updated` time.
    """
    call.store.delete("tracker.version", f"{project}/{former}")
    call.store.put("tracker.version", f"{project}/{entry['name']}", entry)
    for field in _FIELDS if former != entry["name"] else ():
        for issue in issues_of(call, project, former, field):
            names = [entry["name"] if name == former else name for name in issue[field]]
            call.store.put("tracker.issue", issue["key"], {**issue, field: names})


def move_unresolved(call: Call, project: str, name: str, target: str) -> None:
    for issue in issues_of(call, project, name, "fixVersions"):
        if issue.get("resolution") is None:
            _swap(call, issue, "fixVersions", name, target)


def remove(call: Call, project: str, entry: Json, targets: dict[str, str]) -> None:
    """Delete a version. In its issues, remove it or replace it by a target version.

    Changed issues get a history entry.

    :param targets: id of the target version by field, or ""
    """
    names = {field: _target(call, project, entry, field, targets[field]) for field in _FIELDS}
    for field, target in names.items():
        for issue in issues_of(call, project, entry["name"], field):
            _swap(call, issue, field, entry["name"], target)
    call.store.delete("tracker.version", f"{project}/{entry['name']}")


def _target(call: Call, project: str, entry: Json, field: str, number: str) -> str | None:
    if number == "":
        return None
    own = "You cannot move the issues to the version being deleted."
    require(number != entry["id"], refusal(400, own))
    found = by_id(call, number)
    if found is None or found[0] != project:
        raise refusal(400, f"The {_WORDS[field]} version with id {number} does not exist.")
    return str(found[1]["name"])


def _swap(call: Call, issue: Issue, field: str, name: str, target: str | None) -> None:
    names = [target if known == name else known for known in issue[field]]
    kept = list(dict.fromkeys(known for known in names if known is not None))
    save(call, issue, {**issue, field: kept})
