# SPDX-License-Identifier: GPL-3.0-or-later
"""Views of the server and of folders as entries for `ci_view` [ci-42]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ...core.address import path
from ...core.errors import ToolchainError
from .. import xml_reader
from ..client import objects, part, server_of
from ..export_run import ExportRun
from ..job_address import Job
from ..jobs.kept_secrets import without_secrets
from ..server_objects import ServerObjects
from ..xml_reader import XmlElement
from .ci_view import CiViewEntry

#: Every server and folder has a view of this class, with all jobs.
_ALL = "hudson.model.AllView"


class _Place(NamedTuple):
    """A view; `folder` is `None` for a view of the server."""

    folder: Job | None
    name: str

    @property
    def full_name(self) -> str:
        return self.name if self.folder is None else f"{self.folder.name}/{self.name}"


def exported_views(run: ExportRun) -> list[dict[str, Any]] | None:
    """Return the views of the server and of the exported folders; `None` if those of the server
    cannot be listed.
    """
    server = ServerObjects(server_of(run.task, connections=max(10, run.parallel)))
    places: list[_Place] = []
    for folder in (None, *run.folders):
        try:
            places += _listed(server, folder)
        except ToolchainError as error:
            if error.kind not in ("permission", "not_found") or (run.requested and folder is None):
                raise
            run.leave_out("view", "*" if folder is None else f"{folder.name}/*", error)
            if folder is None:
                return None

    def read(place: _Place) -> XmlElement | None:
        above = "" if place.folder is None else f"{place.folder.path}/"
        purpose = f"exporting the view '{place.full_name}'"
        return server.document(purpose, f"{above}view/{path(place.name)}")

    found = run.read_each("view", places, read, lambda place: place.full_name)
    return [entry for place, root in found for entry in _entries(run, place, root)]


def _listed(server: ServerObjects, folder: Job | None) -> list[_Place]:
    """Return the views of the server or a folder, without the primary one if it has all jobs."""
    above = "" if folder is None else f"{folder.path}/"
    purpose = f"listing the views of {folder.name if folder else 'the server'}"
    response = server.read(purpose, f"{above}api/json", "primaryView[name],views[name,_class]")
    if response is None:
        raise ToolchainError(
            "not_found", f"{purpose}: it no longer exists, or is not visible", status=404
        )
    shown = part(response.json())
    if not isinstance(shown.get("views"), list):
        raise response.error("not_found", "the response has no list of views")
    primary = part(shown.get("primaryView")).get("name")
    return [
        _Place(folder, str(obj.get("name")))
        for obj in objects(shown.get("views"))
        if obj.get("_class") != _ALL or obj.get("name") != primary
    ]


def _entries(run: ExportRun, place: _Place, root: XmlElement) -> Iterator[dict[str, Any]]:
    """Yield the entry of a view; none if it cannot be exported."""
    text = xml_reader.written_in_lines(root)
    if without_secrets(text)[1]:
        run.state.leave_out("view", place.full_name, "its configuration contains secrets")
        return
    folder = "" if place.folder is None else place.folder.name
    entry: dict[str, Any] = {"name": place.name, **({"folder": folder} if folder else {})}
    try:
        CiViewEntry(**entry).require_sense()
    except ToolchainError as error:
        run.leave_out("view", place.full_name, error)
        return
    yield {**entry, "src": run.file("ci/views", place.full_name.replace("/", "-"), text)}
