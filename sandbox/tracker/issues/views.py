# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert issues to JSON [W2.2, tracker-5, tracker-9, tracker-22]."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from sandbox.tracker.fields.fields import Field
from sandbox.tracker.fields.markup import as_markup, regenerated, to_document, with_local_ids
from sandbox.tracker.references import References
from sandbox.tracker.visible import Issue

Json = dict[str, Any]

ALL, NAVIGABLE = "*all", "*navigable"
_NOT_NAVIGABLE = ("attachment", "comment")


def comma_list(values: Sequence[str]) -> list[str]:
    """Split comma-separated values. `fields=a,b&fields=c` is one list [tracker-10]."""
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


class Views(References):
    """Convert visible issues to JSON."""

    #: Maximum number of comments in an issue [tracker-25]; None means all.
    embedded: int | None = None

    def written_issue(self, issue: Issue, fields: Sequence[str] | None) -> Json:
        """Return an issue with the members of the written interface only [W2.2]."""
        whole = {
            "summary": issue["summary"],
            "status": {"name": issue["status"]},
            "issuetype": {"name": issue["issuetype"]},
            "updated": issue["updated"],
            "created": issue["created"],
            "attachment": [
                {"id": item["id"], "content": self.secure(item)} for item in issue["attachments"]
            ],
        }
        names = _selection(whole, fields if fields else [ALL])
        return {"key": issue["key"], "fields": {name: whole[name] for name in names}}

    def issue(self, issue: Issue, fields: Sequence[str], properties: Collection[str]) -> Json:
        """Return an issue with the requested fields. Other fields are absent, not null [tracker-5].

        :param properties: names of the issue properties to return
        """
        whole = self._fields(issue)
        shown = {
            "expand": "operations,editmeta,changelog,transitions,renderedFields",
            **self._address(issue),
            "fields": {name: whole[name]() for name in _selection(whole, fields)},
        }
        if properties:
            known = issue.get("properties", {})
            shown["properties"] = {name: known[name] for name in properties if name in known}
        return shown

    def _address(self, issue: Issue) -> Json:
        address = f"{self.base}/rest/api/2/issue/{issue['id']}"
        return {"id": issue["id"], "self": address, "key": issue["key"]}

    def _fields(self, issue: Issue) -> dict[str, Callable[[], Any]]:
        """Return a function for each field, so that only the requested fields are computed."""
        return {
            **self._own(issue),
            **self._named_values(issue),
            **{
                number: partial(self.value, field, issue)
                for number, field in self.catalogue.all.items()
                if field.custom and (not field.projects or issue["project"] in field.projects)
            },
        }

    def _own(self, issue: Issue) -> dict[str, Callable[[], Any]]:
        return {
            "summary": lambda: issue["summary"],
            "description": lambda: self.text(issue.get("description")),
            "environment": lambda: self.text(issue.get("environment")),
            "labels": lambda: sorted(issue.get("labels", [])),
            "assignee": lambda: self.user(issue.get("assignee")),
            "reporter": lambda: self.user(issue.get("reporter")),
            "duedate": lambda: issue.get("duedate"),
            "created": lambda: issue["created"],
            "updated": lambda: issue["updated"],
            "attachment": lambda: [self.attachment(item) for item in issue["attachments"]],
            "comment": lambda: self._comments(issue),
            "issuelinks": lambda: self.links(issue),
        }

    def _named_values(self, issue: Issue) -> dict[str, Callable[[], Any]]:
        key = issue["project"]
        return {
            "status": lambda: self.status(issue["status"]),
            "issuetype": lambda: self.named("issuetype", issue["issuetype"]),
            "priority": lambda: self.named("priority", issue.get("priority")),
            "resolution": lambda: self.named("resolution", issue.get("resolution")),
            "project": lambda: self.project(self.visible.projects[key]),
            "fixVersions": lambda: [
                self.version(key, version) for version in issue.get("fixVersions", [])
            ],
            "versions": lambda: [
                self.version(key, version) for version in issue.get("versions", [])
            ],
            "components": lambda: [
                self.component(key, component) for component in issue.get("components", [])
            ],
        }

    def text(self, text: str | Json | None) -> Any:
        """Return a text: unchanged on a server, as document or markup in the cloud [tracker-25]."""
        if text is None or not self.cloud:
            return text
        if not self.documents:
            return regenerated(as_markup(text))
        return with_local_ids(text if isinstance(text, dict) else to_document(text))

    def value(self, field: Field, issue: Issue) -> Any:
        """Return the value of a custom field. Numbers are floats [tracker-22]."""
        value = field.of(issue)
        if field.type != "array":
            return None if value is None else self._one(field, field.type, value, issue)
        shown = [self._one(field, str(field.items), item, issue) for item in value or []]
        return shown or None

    def _one(self, field: Field, kind: str, value: Any, issue: Issue) -> Any:
        if kind == "option":
            return self.option(field, value)
        if kind == "option-with-child":
            return self.cascading(field, *value)
        if kind == "sprint":
            return [{"id": value, "name": f"Sprint {value}", "state": "active"}]
        if kind == "number":
            return float(value)
        if kind == "user":
            return self.user(value)
        return self.version(issue["project"], value) if kind == "version" else value

    # -- comments and links ------------------------------------------------------------------

    def comment(self, number: str, comment: Json, *, properties: bool = False) -> Json:
        """Return a comment [tracker-25].

        :param number: id of its issue
        :param properties: whether to return them. The cloud returns `jsdPublic` instead
        """
        author = self.user(comment["author"])
        known, more = comment.get("properties", []), {}
        if self.cloud:
            internal = [entry["value"].get("internal") for entry in known]
            more["jsdPublic"] = True not in internal
        elif properties:
            more["properties"] = known
        if comment.get("visibility"):
            more["visibility"] = comment["visibility"]
        return {
            "self": f"{self.base}/rest/api/2/issue/{number}/comment/{comment['id']}",
            "id": comment["id"],
            "author": author,
            "body": self.text(comment["body"]),
            "updateAuthor": author,
            "created": comment["created"],
            "updated": comment.get("updated", comment["created"]),
            **more,
        }

    def comments(self, issue: Issue, *, properties: bool = False) -> list[Json]:
        """Return all comments of an issue, oldest first."""
        known = self.visible.store.values("tracker.comment", f"{issue['id']}/")
        return [self.comment(issue["id"], comment, properties=properties) for comment in known]

    def _comments(self, issue: Issue) -> Json:
        """Return the comments that an issue contains, in the cloud the first page [tracker-25]."""
        whole = self.comments(issue)
        page = whole[: self.embedded]
        size = len(whole) if self.embedded is None else self.embedded
        return {"comments": page, "maxResults": size, "total": len(whole), "startAt": 0}

    def links(self, issue: Issue) -> list[Json]:
        """Return the links of an issue to visible issues.

        Server fact [tracker-26]: the other issue is the `outwardIssue` of the source, and the
        `inwardIssue` of the target.
        """
        shown = []
        for link in self.visible.store.values("tracker.linked", f"{issue['id']}/"):
            for role, other, side in (
                ("source", "target", "outwardIssue"),
                ("target", "source", "inwardIssue"),
            ):
                found = self.visible.find(link[other]) if link[role] == issue["id"] else None
                if found is not None:
                    shown.append({**self._link(link), side: self.linked(found)})
        return shown

    def whole_link(self, link: Json) -> Json | None:
        """Return a link with both issues, or None if the account cannot see both."""
        source, target = self.visible.find(link["source"]), self.visible.find(link["target"])
        if source is None or target is None:
            return None
        # The source is the issue that was sent as `inwardIssue`.
        sides = {"inwardIssue": self.linked(source), "outwardIssue": self.linked(target)}
        return {**self._link(link), **sides}

    def _link(self, link: Json) -> Json:
        address = f"{self.base}/rest/api/2/issueLink/{link['id']}"
        return {"id": link["id"], "self": address, "type": self.link_type(link["type"])}

    def linked(self, issue: Issue) -> Json:
        fields = {
            "summary": issue["summary"],
            "status": self.status(issue["status"]),
            "priority": self.named("priority", issue.get("priority")),
            "issuetype": self.named("issuetype", issue["issuetype"]),
        }
        return {**self._address(issue), "fields": fields}

    # -- history -----------------------------------------------------------------------------

    def changelog(self, issue: Issue) -> list[Json]:
        """Return the history of an issue: oldest first on a server, newest first in the cloud."""
        known = self.visible.store.values("tracker.history", f"{issue['id']}/")
        shown = [{**entry, "author": self.user(entry["author"])} for entry in known]
        return shown[::-1] if self.cloud else shown

    def expanded(self, issue: Issue, expand: Collection[str]) -> Json:
        """Return the members that `expand` adds to the JSON of an issue."""
        if "changelog" not in expand:
            return {}
        histories = self.changelog(issue)
        size = len(histories)
        return {
            "changelog": {"startAt": 0, "maxResults": size, "total": size, "histories": histories}
        }


def _selection(whole: Collection[str], asked: Sequence[str]) -> list[str]:
    """Return the names of the selected fields.

    :param asked: names, `*all`, `*navigable`, and `-name` to exclude a field
    """
    wanted = [name for name in asked if not name.startswith("-")] or [ALL]
    unwanted = {name[1:] for name in asked if name.startswith("-")}
    navigable = NAVIGABLE in wanted
    return [
        name
        for name in whole
        if name not in unwanted
        and (ALL in wanted or name in wanted or (navigable and name not in _NOT_NAVIGABLE))
    ]
