# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage views, which are named searches in a project: `analysis_view` [W4.5].

Actions: `views`, `create_view`, `update_view`, `delete_view`. In the interface description only
`create_view` accepts `query`, and only `update_view` accepts `tags`. Server facts [analysis-13]:
real servers accept both parameters in both actions, and omit empty `tags` in responses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ...core.errors import invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.typed_options import Option
from ...core.plan import Change, Comparison, Plan, unordered
from ..client import Call
from ..resource import Ids, Objects, Presence, Resource, ResourceOperation, without_escapes
from ..responses import Record, flag, named, texts
from ..service import SERVICE

#: Name of the view that every project has [analysis-13].
_BUILT_IN = "*default*"


@dataclass(frozen=True)
class AnalysisViewOptions:
    """The options of `analysis_view`."""

    project: str
    name: str
    query: Annotated[str | None, Option(empty=True)] = None
    tags: list[str] | None = None
    recreate: bool = False
    state: Presence = "present"


@dataclass(frozen=True)
class View(Resource):
    """A view, identified by project and name.

    :param recreate: whether to delete and create the view if the server cannot change its query
    """

    noun: ClassVar[str] = "view"
    option: ClassVar[str] = "views"
    entry_type: ClassVar = AnalysisViewOptions
    name_fields: ClassVar = ("project", "name")
    in_project: ClassVar[bool] = True
    comparisons: ClassVar[Mapping[str, Comparison]] = {"tags": unordered}

    recreate: bool = False

    @staticmethod
    def of(options: AnalysisViewOptions) -> View:
        project, name = options.project, options.name
        title = f"the view '{name}' of the project '{project}'"
        desired = {"project": project, "name": name, "query": options.query, "tags": options.tags}
        absent = options.state == "absent"
        return View(title, None if absent else desired, name, project, options.recreate)

    @property
    def listing(self) -> Call:
        return Call("views", {"project": self.project})

    @staticmethod
    def parse(records: Sequence[Record], project: str, ids: Ids) -> Objects:
        """Return the views of a project by name.

        If at least one view has a query in the response, the query of other views is empty.
        Otherwise the queries are unknown.
        """
        queries_known = any("query" in record for record in records)
        return {
            record["name"]: _state_of(project, record, queries_known) for record in named(records)
        }

    def call(self, plan: Plan) -> Call:
        view = {"project": self.project, "name": self.name}
        if plan.action == "delete":
            return Call("delete_view", view)
        fields = {change.field: change.after for change in plan.changes}
        if plan.action == "create":
            if not fields.get("query"):
                raise invalid(f"creating {self.title}: set query, which a new view requires")
            optional = {name: fields[name] for name in ("tags", "is_public") if fields.get(name)}
            return Call("create_view", {**view, "query": fields["query"]}, optional)
        query = {"query": fields["query"]} if "query" in fields else {}
        if "tags" not in fields:
            return Call("update_view", view, query, None)
        return Call("update_view", {**view, "tags": fields["tags"]}, query)

    def again(self, done: Plan, left: Plan) -> tuple[Plan, ...]:
        """Return an update of tags that the creation ignored, or a deletion and creation if the
        update ignored the query and `recreate` is set.
        """
        if left.action != "update":
            return ()
        if not any(change.field == "query" for change in left.changes):
            return without_escapes(left) or ((left,) if done.action == "create" else ())
        if not self.recreate or done.action == "create":
            return ()
        fields = tuple(Change(name, None, value) for name, value in left.after.items())
        return Plan(left.before, {}, "delete"), Plan({}, left.after, "create", fields)


class AnalysisViewOperation(ResourceOperation):
    """Manages a view of a project."""

    makes = View
    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads(),
            **dict.fromkeys(
                ("create", "update", "delete"), writes(unforeseen=("change_project_settings",))
            ),
        },
        kind="view",
        key=("project", "name"),
    )


def _state_of(project: str, record: Record, with_query: bool) -> dict[str, Any]:
    state: dict[str, Any] = {"project": project, "name": record["name"]}
    if with_query:
        state["query"] = record.get("query", "")
    state["tags"] = texts(record, "tags")
    if "is_public" in record:
        state["is_public"] = flag(record["is_public"])
    if record["name"] == _BUILT_IN:
        state["readonly"] = True
    return state
