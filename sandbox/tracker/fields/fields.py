# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields of issues, and the screens that contain them [tracker-19, tracker-22]."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sandbox.store import Store
from sandbox.tracker.visible import Issue

Json = dict[str, Any]

CREATE, EDIT = "create", "edit"
_NOT_NAVIGABLE = ("attachment", "comment")
#: Fields that only the server sets, so they are on no screen.
_KEPT = ("attachment", "created", "resolution", "status", "updated")
_ONLY_CREATED = ("issuetype", "project")
_ONLY_EDITED = ("comment", "issuelinks")


@dataclass(frozen=True)
class Field:
    """A field of issues.

    `type`, `items`: as in the server's schema, and `sprint`. `options`: allowed values. `projects`:
    keys of the projects that have the field; empty means all. `children`: the second level of a
    cascading select, as pairs of an option and its options.
    """

    id: str
    name: str
    type: str
    items: str | None = None
    options: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    children: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def custom(self) -> bool:
        return self.id.startswith("customfield_")

    @property
    def operations(self) -> list[str]:
        """Return the update verbs that the field supports [tracker-22]."""
        if self.id == "comment":
            return ["add", "edit", "remove"]
        if self.id == "issuelinks":
            return ["add"]
        if self.id == "attachment":
            return []
        return ["add", "set", "remove"] if self.type == "array" else ["set"]

    def schema(self) -> Json:
        if self.type == "sprint":
            number = int(self.id.rpartition("_")[2])
            custom = "sandbox:gh-sprint"
            return {"type": "array", "items": "json", "custom": custom, "customId": number}
        shown: Json = {"type": self.type}
        if self.items is not None:
            shown["items"] = self.items
        if not self.custom:
            return {**shown, "system": self.id}
        kind = f"{self.type}{'' if self.items is None else '-' + self.items}"
        return {**shown, "custom": f"sandbox:{kind}", "customId": int(self.id.rpartition("_")[2])}

    def option_id(self, index: int) -> str:
        return f"{self.id.rpartition('_')[2]}{index:02d}"

    def children_of(self, option: str) -> tuple[str, ...]:
        return dict(self.children).get(option, ())

    def of(self, issue: Issue) -> Any:
        """Return the stored value of the field in an issue."""
        return issue.get("custom", {}).get(self.id) if self.custom else issue.get(self.id)

    def put(self, issue: Issue, value: Any) -> None:
        if self.custom:
            issue["custom"] = {**issue.get("custom", {}), self.id: value}
        else:
            issue[self.id] = value


_SYSTEM = {
    field.id: field
    for field in (
        Field("assignee", "Assignee", "user"),
        Field("attachment", "Attachment", "array", "attachment"),
        Field("comment", "Comment", "comments-page"),
        Field("components", "Component/s", "array", "component"),
        Field("created", "Created", "datetime"),
        Field("description", "Description", "string"),
        Field("duedate", "Due Date", "date"),
        Field("environment", "Environment", "string"),
        Field("fixVersions", "Fix Version/s", "array", "version"),
        Field("issuelinks", "Linked Issues", "array", "issuelinks"),
        Field("issuetype", "Issue Type", "issuetype"),
        Field("labels", "Labels", "array", "string"),
        Field("priority", "Priority", "priority"),
        Field("project", "Project", "project"),
        Field("reporter", "Reporter", "user"),
        Field("resolution", "Resolution", "resolution"),
        Field("status", "Status", "status"),
        Field("summary", "Summary", "string"),
        Field("updated", "Updated", "datetime"),
        Field("versions", "Affects Version/s", "array", "version"),
    )
}


class Fields:
    """System fields, and custom fields of the seed. `words`: translations of names."""

    def __init__(self, store: Store, words: dict[str, str]) -> None:
        self.words = words
        self.all = {**_SYSTEM}
        for number, data in store.items("tracker.field"):
            options = data.get("options", ())
            levels = options.items() if isinstance(options, dict) else ()
            self.all[number] = Field(
                number,
                data["name"],
                data.get("type", "string"),
                data.get("items"),
                tuple(options),
                tuple(data.get("projects", ())),
                tuple((option, tuple(children)) for option, children in levels),
            )

    def name(self, field: Field) -> str:
        """Return the translated name of a field [tracker-22]."""
        return self.words.get(field.name, field.name)

    def names(self) -> dict[str, str]:
        return {number: self.name(field) for number, field in sorted(self.all.items())}

    def schema(self) -> Json:
        return {number: field.schema() for number, field in sorted(self.all.items())}

    def listing(self) -> list[Json]:
        """Return the JSON of all fields, including those that are on no screen."""
        return [
            {
                "id": number,
                "name": self.name(field),
                "custom": field.custom,
                "orderable": True,
                "navigable": number not in _NOT_NAVIGABLE,
                "searchable": True,
                "clauseNames": [f"cf[{number.rpartition('_')[2]}]" if field.custom else number],
                "schema": field.schema(),
            }
            for number, field in sorted(self.all.items())
        ]

    def on_screen(self, project: Json, screen: str) -> dict[str, Field]:
        """Return the fields on a screen of a project by id.

        These are the fields in `screens` of the seed, by default all fields.

        :param screen: `CREATE` or `EDIT`
        """
        named = project.get("screens", {}).get(screen)
        absent = _ONLY_EDITED if screen == CREATE else _ONLY_CREATED
        return {
            number: field
            for number, field in self.all.items()
            if number not in (*_KEPT, *absent)
            and (named is None or number in named or number in _ONLY_CREATED)
            and (not field.projects or project["key"] in field.projects)
        }

    def required(self, project: Json) -> Collection[str]:
        """Return the ids of the fields that a new issue of a project requires."""
        return ("project", "issuetype", "summary", *project.get("required", ()))
