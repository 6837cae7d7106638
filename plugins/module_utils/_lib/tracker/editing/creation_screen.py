# SPDX-License-Identifier: GPL-3.0-or-later
"""Read which fields a new issue accepts and requires [tracker-21]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.address import path
from ...core.http.messages import Response, expected, json_or_none
from ...core.http.paged_list import PagedList
from ...core.json_text import member
from .screens import Screen
from .site import Site

_ROUTE = "rest/api/2/issue/createmeta"
_PAGE_SIZE = 50
#: Members with the fields: of servers, and of the cloud.
_LISTS = ("values", "fields", "results")
#: Statuses of a server that does not support a request, or an account that may not create issues.
_UNKNOWN = (400, 403, 404)


def creation_screen(site: Site, project: str, type_id: str) -> Screen | None:
    """Return the screen for a new issue. None if the server does not report it."""
    fields = _by_page(site, project, type_id)
    if fields is None:
        fields = _of_old_server(site, project, type_id)
    purpose = f"creating an issue in the project '{project}'"
    return Screen(site.task, purpose, project, fields) if fields else None


def _read(site: Site, *below: str, **query: Any) -> Response:
    route = "/".join((_ROUTE, *([path(*below)] if below else [])))
    purpose = "reading the fields of new issues"
    return site.client.read(purpose, route, query=query, expect=(200, *_UNKNOWN))


def _by_page(site: Site, project: str, type_id: str) -> dict[str, Any] | None:
    pages, more = PagedList(_PAGE_SIZE), True
    while more:
        query = {"startAt": pages.start, "maxResults": _PAGE_SIZE}
        response = _read(site, project, "issuetypes", type_id, **query)
        if response.status != 200:
            return None
        shown = expected(response, dict, "a page of fields")
        name = next((name for name in _LISTS if name in shown), _LISTS[0])
        more = pages.add(response, shown, expected(response, list, "a list of fields", name))
    fields = (entry for entry in pages.entries if isinstance(entry, Mapping))
    return {str(field["fieldId"]): field for field in fields if field.get("fieldId")}


def _of_old_server(site: Site, project: str, type_id: str) -> dict[str, Any]:
    """Return the fields by the address of servers before 8.4. Empty if they are unknown."""
    query = {"projectKeys": project, "issuetypeIds": type_id}
    response = _read(site, **query, expand="projects.issuetypes.fields")
    listed = member(json_or_none(response.body), "projects") if response.status == 200 else None
    for record in listed if isinstance(listed, list) else ():
        for kind in member(record, "issuetypes") or ():
            fields = member(kind, "fields")
            if str(member(kind, "id")) == type_id and isinstance(fields, Mapping):
                return {name: field for name, field in fields.items() if isinstance(field, Mapping)}
    return {}
