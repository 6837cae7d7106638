# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups with their members, and the roles that accounts hold, as the server lists them.

Source: written interface [W4.5]. Server facts [analysis-9]: members are listed with C(list_users)
only; C(project) of an assignment is the id of a project.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ..answers import Record, entries, flag, named, texts
from ..client import Call
from .resource import State


def group_listing(parameters: Mapping[str, Any]) -> Call:
    """The read of groups with their members."""
    return Call("groups", parameters, {"list_users": True})


def groups(records: Sequence[Record]) -> dict[Hashable, State]:
    """Groups by their names.

    Servers leave out lists without entries: where one group shows its members, those that do not
    have none; where no group does, the server does not tell.
    """
    shown = any("users" in record for record in records)
    return {record["name"]: _group(record, shown) for record in named(records)}


def _group(record: Record, with_users: bool) -> dict[str, Any]:
    state: dict[str, Any] = {"name": record["name"]}
    if with_users:
        state["users"] = _members(record)
    if "readonly" in record:
        state["readonly"] = flag(record["readonly"])
    return state


def _members(record: Record) -> list[str]:
    """The names of the members; whether they are names or records is not documented."""
    found = record.get("users")
    if isinstance(found, list) and any(isinstance(each, dict) for each in found):
        return [each["name"] for each in named(entries(record, "users"))]
    return texts(record, "users")


def ids_of(records: Sequence[Record]) -> dict[str, str]:
    """Name to id of the projects that these records are; the name itself where there is no id."""
    return {each["name"]: _id_of(each) for each in named(records)}


def _id_of(project: Record) -> str:
    """The id, which real servers show, else the name."""
    return str(project["name"] if project.get("id") in (None, "") else project["id"])


def assignments(records: Sequence[Record], ids: Mapping[str, str]) -> dict[Hashable, State]:
    """Assignments by role, account, project (C(None) for all projects) and whether it is a group.

    A project whose name is not known is shown by its id.
    """
    names = {project_id: name for name, project_id in ids.items()}
    found: dict[Hashable, State] = {}
    for record in named(records):
        for entry in named(entries(record, "assignments")):
            project_id = entry.get("projectId")
            state: dict[str, Any] = {
                "name": record["name"],
                "account": entry["name"],
                "project": None
                if project_id in (None, "")
                else names.get(str(project_id), str(project_id)),
                "group": flag(entry.get("group")),
            }
            found[tuple(state.values())] = state
    return found
