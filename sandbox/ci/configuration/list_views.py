# SPDX-License-Identifier: GPL-3.0-or-later
"""Views of the server and of folders [ci-42]."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

from lxml import etree
from starlette.responses import Response

from sandbox.ci.call import Action, Call, form_fields
from sandbox.ci.formats.exports import Exported, Getter, constants
from sandbox.ci.jobs import configuration, jobs, schema
from sandbox.ci.server import pages
from sandbox.context import Context
from sandbox.service import ErrorResponse

VIEWS = "ci.view"
_DELETED = "ci.view_deleted"
PRIMARY = "all"
_PERMISSION = "hudson.model.View"
_LIST = "hudson.model.ListView"
_NESTED = "hudson.plugins.nested__view.NestedView"
_CLASSES = (_LIST, "hudson.model.AllView", _NESTED)
_ELEMENTS = (
    "name",
    "description",
    "filterExecutors",
    "filterQueue",
    "properties",
    "jobNames",
    "jobFilters",
    "views",
    "defaultView",
    "columns",
    "includeRegex",
    "recurse",
)
# Server fact [ci-42]: elements that the server adds to a view that lacks them.
_DEFAULTS = {
    "filterExecutors": "<filterExecutors>false</filterExecutors>",
    "filterQueue": "<filterQueue>false</filterQueue>",
    "properties": '<properties class="hudson.model.View$PropertyList"/>',
    "columns": "<columns><hudson.views.StatusColumn/><hudson.views.JobColumn/></columns>",
    "recurse": "<recurse>false</recurse>",
}
_COMPARATOR = "hudson.util.CaseInsensitiveComparator"


def put(context: Context, entry: dict[str, Any]) -> None:
    """Store a list view of a seed: `{folder, name, description}`."""
    root = etree.Element(_LIST)
    for element in ("name", "description"):
        if entry.get(element):
            etree.SubElement(root, element).text = str(entry[element])
    xml = etree.tostring(root, encoding="unicode")
    context.store.put(VIEWS, f"{entry.get('folder') or ''}|{entry['name']}", {"xml": xml})


def action(call: Call) -> Action | None:
    """Return the action for a path of a view, or `None` for a path that requests data."""
    if call.job is not None and call.job["kind"] != jobs.FOLDER:
        return None
    if call.rest == ["createView"]:
        return Action(_create, "POST", f"{_PERMISSION}.Create", listed=False)
    if call.rest[:1] != ["view"] or len(call.rest) != 3:
        return None
    actions = {
        "GET config.xml": Action(_read, "GET", f"{_PERMISSION}.Read", listed=False),
        "POST config.xml": Action(_write, "POST", f"{_PERMISSION}.Configure", listed=False),
        "POST doDelete": Action(_delete, "POST", f"{_PERMISSION}.Delete", listed=False),
    }
    return actions.get(f"{call.request.method} {call.rest[2]}")


def exported(call: Call, name: str) -> Exported | None:
    """Return the object of a view, or `None` if it does not exist."""
    call.require(f"{_PERMISSION}.Read")
    row = _row(call, name)
    return None if row is None else _view(call.site.context, _folder(call), name, row)


def fields(context: Context, folder: str) -> dict[str, Getter]:
    """Return the members of the server or a folder that contain its views."""
    return {
        "primaryView": lambda: _all(context, folder)[0],
        "views": lambda: _all(context, folder),
    }


def _all(context: Context, folder: str) -> list[Exported]:
    """Return the views of a folder. The primary view is the first."""
    prefix = f"{folder}|"
    rows = [(key[len(prefix) :], row) for key, row in context.store.items(VIEWS, prefix)]
    own = [_view(context, folder, name, row) for name, row in rows]
    if _has_primary(context, folder):
        own.insert(0, _view(context, folder, PRIMARY, _primary()))
    return own


def _has_primary(context: Context, folder: str) -> bool:
    """Return whether the first view of a folder, with all jobs, was not deleted."""
    return context.store.get(_DELETED, folder or "/") is None


def _primary() -> dict[str, Any]:
    return {"xml": f"<hudson.model.AllView><name>{PRIMARY}</name></hudson.model.AllView>"}


def stored(context: Context, folder: str) -> list[etree._Element]:
    """Return the configurations of the views of a folder. The primary view is the first."""
    rows = context.store.values(VIEWS, f"{folder}|")
    primary = [_primary()] if _has_primary(context, folder) else []
    return [configuration.parsed(row["xml"]) for row in (*primary, *rows)]


def replace(context: Context, folder: str, views: list[etree._Element]) -> None:
    """Replace the views of a folder; without any, the folder gets the first view of a new one."""
    for key in context.store.keys(VIEWS, f"{folder}|"):
        context.store.delete(VIEWS, key)
    context.store.delete(_DELETED, folder)
    names = [view.findtext("name") or "" for view in views]
    if views and PRIMARY not in names:
        context.store.put(_DELETED, folder, {})
    for name, view in zip(names, views, strict=True):
        if name != PRIMARY:
            row = {"xml": etree.tostring(_normalized(view, name), encoding="unicode")}
            context.store.put(VIEWS, f"{folder}|{name}", row)


def _view(context: Context, folder: str, name: str, row: dict[str, Any]) -> Exported:
    root = configuration.parsed(row["xml"])
    listed = {each.text for each in root.iterfind("jobNames/string")}
    pattern = root.findtext("includeRegex")
    names = [jobs.short_name(job) for job in jobs.below(context, folder)]
    shown = [
        {"name": each}
        for each in names
        if str(root.tag) != _LIST
        or each in listed
        or (pattern and re.fullmatch(pattern, each) is not None)
    ]
    return Exported(
        schema.class_name(str(root.tag)),
        constants(
            description=root.findtext("description"), jobs=shown, name=name, property=[], url=""
        ),
        ("name", "url"),
    )


def _folder(call: Call) -> str:
    return "" if call.job is None else str(call.job["full_name"])


def _row(call: Call, name: str) -> dict[str, Any] | None:
    if name == PRIMARY and _has_primary(call.site.context, _folder(call)):
        return _primary()
    return call.site.context.store.get(VIEWS, f"{_folder(call)}|{name}")


async def _sent(call: Call, name: str) -> dict[str, Any]:
    """Return the record of the view in a request."""
    try:
        root = configuration.parsed((await call.request.body()).decode())
        if root.tag not in _CLASSES:
            message = "com.thoughtworks.xstream.mapper.CannotResolveClassException"
            raise configuration.Unreadable(f"{message}: {root.tag}")
    except configuration.Unreadable as error:
        raise ErrorResponse(pages.oops(str(error))) from error
    return {"xml": etree.tostring(_normalized(root, name), encoding="unicode")}


def _normalized(root: etree._Element, name: str) -> etree._Element:
    """Return a view as it is stored: known elements, with defaults and sorted jobs."""
    kept = etree.Element(root.tag)
    for element in _ELEMENTS:
        child = root.find(element)
        if element == "name":
            etree.SubElement(kept, "name").text = name
        elif element == "jobNames" and root.tag == _LIST:
            _sort(etree.SubElement(kept, "jobNames"), child)
        elif child is not None:
            kept.append(deepcopy(child))
        elif element in _DEFAULTS:
            kept.append(etree.fromstring(_DEFAULTS[element]))
    return kept


def _sort(kept: etree._Element, sent: etree._Element | None) -> None:
    comparator = None if sent is None else sent.find("comparator")
    default = etree.Element("comparator", {"class": _COMPARATOR})
    kept.append(default if comparator is None else deepcopy(comparator))
    names = [] if sent is None else [each.text or "" for each in sent.iterfind("string")]
    for name in sorted(set(names), key=str.lower):
        etree.SubElement(kept, "string").text = name


async def _create(call: Call) -> Response:
    name = (await form_fields(call.request)).get("name", [""])[-1]
    if not name or _row(call, name) is not None:
        return pages.failed(f"A view already exists with the name {name}")
    row = await _sent(call, name)
    call.site.context.store.put(VIEWS, f"{_folder(call)}|{name}", row)
    return Response(status_code=200)


def _found(call: Call) -> dict[str, Any]:
    row = _row(call, call.rest[1])
    if row is None:
        raise ErrorResponse(pages.not_found())
    return row


def _read(call: Call) -> Response:
    root = configuration.parsed(_found(call)["xml"])
    etree.indent(root)
    text = etree.tostring(root, encoding="unicode")
    return Response(configuration.HEADER + text, 200, None, "application/xml")


async def _write(call: Call) -> Response:
    found, name = _found(call), call.rest[1]
    row = await _sent(call, name)
    if configuration.parsed(row["xml"]).tag != configuration.parsed(found["xml"]).tag:
        # server fact [ci-42]
        raise ErrorResponse(pages.oops("the view is of another class"))
    call.site.context.store.put(VIEWS, f"{_folder(call)}|{name}", row)
    return Response(status_code=200)


def _delete(call: Call) -> Response:
    _found(call)
    store, folder = call.site.context.store, _folder(call)
    if call.rest[1] == PRIMARY:
        # server fact [ci-42]: another view becomes the primary one
        if len(_all(call.site.context, folder)) == 1:
            return pages.failed("The last view cannot be deleted")
        store.put(_DELETED, folder or "/", {})
    store.delete(VIEWS, f"{folder}|{call.rest[1]}")
    return pages.redirect(call.absolute("../.."))
