# SPDX-License-Identifier: GPL-3.0-or-later
"""Export views of the server and of folders as entries for `ci_view` [ci-42]."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from ...core.address import path
from ...core.errors import ToolchainError
from ...core.json_text import as_text
from ...core.module import typed_options
from .. import xml_reader
from ..client import objects, part, server_of
from ..export_run import ExportRun
from ..job_address import Job
from ..jobs.kept_secrets import may_have_secrets
from ..server_objects import ServerObjects
from ..xml_reader import XmlElement
from .ci_view import CiViewEntry

#: Class of the view with all jobs, which every server and folder has.
_ALL = "hudson.model.AllView"


class _ViewLocation(NamedTuple):
    """Name and folder of a view. `folder` is `None` for a view of the server."""

    folder: Job | None
    name: str

    @property
    def full_name(self) -> str:
        return self.name if self.folder is None else f"{self.folder.name}/{self.name}"


def exported_views(run: ExportRun) -> list[dict[str, Any]] | None:
    """Return entries for the views of the server and of the exported folders.

    Returns `None` if the views of the server cannot be listed.
    """
    server = ServerObjects(server_of(run.task, connections=max(10, run.parallel)))
    views: list[_ViewLocation] = []
    for folder in (None, *run.folders):
        name = "*" if folder is None else f"{folder.name}/*"
        required = run.requested and folder is None
        found = run.listed("view", name, partial(_listed, server, folder), required=required)
        if found is None and folder is None:
            return None
        views += found or []

    def read(view: _ViewLocation) -> XmlElement | None:
        parent_path = "" if view.folder is None else f"{view.folder.path}/"
        purpose = f"exporting the view '{view.full_name}'"
        return server.document(purpose, f"{parent_path}view/{path(view.name)}")

    roots = run.read_each("view", views, read, lambda view: view.full_name)
    return [entry for view, root in roots for entry in _entries(run, view, root)]


def _listed(server: ServerObjects, folder: Job | None) -> list[_ViewLocation]:
    """Return the views of the server or a folder, except a primary view with all jobs."""
    parent_path = "" if folder is None else f"{folder.path}/"
    purpose = f"listing the views of {folder.name if folder else 'the server'}"
    response = server.read(
        purpose, f"{parent_path}api/json", "primaryView[name],views[name,_class]"
    )
    if response is None:
        raise ToolchainError(
            "not_found",
            f"{purpose}: the folder no longer exists, or the account cannot see it",
            status=404,
        )
    shown = part(response.json())
    if not isinstance(shown.get("views"), list):
        raise response.error("protocol", "the response has no list of views")
    primary = part(shown.get("primaryView")).get("name")
    return [
        _ViewLocation(folder, as_text(obj.get("name")))
        for obj in objects(shown.get("views"))
        if obj.get("_class") != _ALL or obj.get("name") != primary
    ]


def _entries(run: ExportRun, view: _ViewLocation, root: XmlElement) -> Iterator[dict[str, Any]]:
    """Yield the entry of a view. A view that cannot be exported is added to `left_out`."""
    text = xml_reader.written_in_lines(root)
    if may_have_secrets(text):
        run.state.leave_out("view", view.full_name, "its configuration contains secrets")
        return
    folder = "" if view.folder is None else view.folder.name
    entry: dict[str, Any] = {"name": view.name, **({"folder": folder} if folder else {})}
    if run.is_valid("view", view.full_name, partial(typed_options.check, CiViewEntry(**entry))):
        yield {**entry, "src": run.file("ci/views", view.full_name.replace("/", "-"), text)}
