# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, update and delete views of jobs, on the server or in a folder: `ci_view` [C3.22]."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ...core.address import path
from ...core.errors import ToolchainError, conflict, invalid, not_found, protocol
from ...core.json_text import as_text, json_objects, member
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText
from ...core.operations.objects import Item, ItemKind, Objects, entries_of
from ...core.plan import Plan, plan, remaining, unchanged, unordered, without_none
from ...core.verification import DOING
from .. import client
from ..client import READ_SERVER, READ_VIEW, ServerObjects, naming_class, part, server_of
from ..job_address import Job, job_of, require_name
from ..service import SERVICE
from ..xml_reader import XmlElement, added_child, child_of, put, text_of, wanted_configuration
from . import configuration, parts_of_others
from .configuration import without_kept

_LIST = "hudson.model.ListView"
_FIELDS = ("description", "jobs", "regex")
_COMPARISONS = {"jobs": unordered}
_COLUMNS = ("Status", "Weather", "Job", "LastSuccess", "LastFailure", "LastDuration", "BuildButton")


@dataclass(frozen=True)
class CiViewEntry:
    """The options of a view."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", forbids=(*_FIELDS, "config", "src")),
        Rule("config", "src", forbids=_FIELDS),
    )

    name: str
    folder: str | None = None
    jobs: list[str] | None = None
    regex: Annotated[str | None, Option(empty=True)] = None
    description: Annotated[str | None, Option(empty=True)] = None
    config: Annotated[str | None, Option(private=True)] = None
    src: PathText | None = None
    state: Literal["present", "absent"] = "present"

    def check(self) -> None:
        """Raise `invalid` for an invalid name."""
        require_name(self.name, "view")


@dataclass(frozen=True)
class CiViewOptions(CiViewEntry):
    """The options of `ci_view`."""

    entries: Annotated[list[CiViewEntry] | None, Option(empty=False)] = None


class Views(ItemKind[CiViewEntry, XmlElement]):
    """Compares and writes views [ci-42]."""

    noun = "view"
    accepts_server = True

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._objects = ServerObjects(server_of(task))
        self._configs: dict[str, XmlElement | None] = {}

    def name(self, entry: CiViewEntry) -> str:
        folder = self._folder(entry)
        name = entry.name if folder is None else f"{folder.name}/{entry.name}"
        if name not in self._configs:
            self._configs[name] = wanted_configuration("view", entry.name, entry.config, entry.src)
        return name

    def compare(self, item: Item[CiViewEntry, XmlElement]) -> Plan:
        entry, config = item.entry, self._configs[item.name]
        live = item.state = self._read(item)
        if live is None:
            self._require_folder(entry)
        if entry.state == "absent":
            if live is not None:
                self._require_deletable(entry)
            return plan(None if live is None else _fields(live), None).with_result(view=None)
        if config is not None:
            if live is not None and live.name != config.name:
                raise conflict(
                    f"the view '{item.name}' is a {live.name}, but the configuration describes a"
                    f" {config.name}: delete the view first"
                )
            if live is None:
                created = plan(None, {"config": configuration.normalized(_sorted(config))})
                return created.with_result(view=self._returned(entry, _fields(config)))
            compared = configuration.drift(_own(live, config), _sorted(config))
            before, after = without_kept(self._task, self.noun, item.name, compared).sides
            found = plan({"config": before}, {"config": after}).with_data(compared)
            return found.with_result(view=self._returned(entry, _fields(config)))
        if live is not None and live.name != _LIST and (entry.jobs or entry.regex):
            raise conflict(
                f"the view '{item.name}' is a {live.name}, which has no list of jobs: set config or"
                " src instead of jobs and regex"
            )
        wanted = _wanted(entry)
        if live is None:
            wanted = wanted or _fields(_new_view())
        found = plan(None if live is None else _fields(live), wanted, _COMPARISONS)
        if found.changed:
            self._warn_of_missing(item, {*found.after.get("jobs", ())})
        return found.with_result(view=self._returned(entry, found.after))

    def write(self, item: Item[CiViewEntry, XmlElement]) -> None:
        entry, action = item.entry, item.plan.action
        purpose = f"{DOING[action]} {self.title(item)}"

        def done() -> bool:
            return self.is_done(item) is True

        if action == "delete":
            self._objects.delete(purpose, self._path(entry), done)
            return
        live, config = self._read(item), self._configs[item.name]
        if config is None:
            root = _new_view() if live is None else deepcopy(live)
            wanted = _wanted(entry)
            given = {"name": entry.name, "description": wanted.get("description")}
            for element, text in {**given, "includeRegex": wanted.get("regex")}.items():
                if text is not None:
                    put(root, element, text)
            if "jobs" in wanted:
                job_names = added_child(root, "jobNames")
                # the server sorts the names, and requires the comparator as the first element
                kept = [child for child in job_names.children if child.name != "string"]
                ordered = sorted(set(wanted["jobs"]), key=str.casefold)
                names = [XmlElement("string", text=name) for name in ordered]
                job_names.children = [*kept, *names]
        else:
            root = config if live is None else parts_of_others.with_view_parts(live, config)
        if action == "update":
            address = f"{self._path(entry)}/config.xml"
            self._objects.send(purpose, address, root, done, repeatable=True)
            return
        address, query = f"{self._parent_path(entry)}createView", {"name": entry.name}
        try:
            with naming_class(root.name):
                self._objects.send(purpose, address, root, done, query=query)
        except ToolchainError as error:
            # another host may have created the view at the same time
            if error.status != 400 or not done():
                raise

    def left(self, item: Item[CiViewEntry, XmlElement]) -> Plan:
        live, config = self._read(item), self._configs[item.name]
        if live is None or config is None or item.plan.action == "delete":
            return remaining(item.plan, None if live is None else _fields(live), _COMPARISONS)
        found = configuration.drift(_own(live, config), _sorted(config))
        known = self._task.server_values.known(self.noun, item.name)
        return configuration.left_of(
            item.plan, unchanged(), found, "missing", "changed", known=known
        )

    def kept(self, item: Item[CiViewEntry, XmlElement], left: Plan) -> Mapping[str, str]:
        return {} if left.data is None else left.data.kept(item.plan.data)

    def _read(self, item: Item[CiViewEntry, XmlElement]) -> XmlElement | None:
        return self._objects.document(f"reading {self.title(item)}", self._path(item.entry))

    def _require_folder(self, entry: CiViewEntry) -> None:
        folder = self._folder(entry)
        if folder is None:
            return
        purpose = f"reading the folder '{folder.name}'"
        shown = self._objects.shown(purpose, folder.path, "fullName,jobs[name]{0,1}")
        folder.require_spelling(part(shown), purpose)
        predicted = self._task.predictions.get("job", folder.name)
        if "jobs" not in part(predicted if shown is None else shown):
            raise not_found(f"the folder '{folder.name}' does not exist, or is a job", status=404)

    def _warn_of_missing(self, item: Item[CiViewEntry, XmlElement], names: set[str]) -> None:
        """Warn of jobs that do not exist: the server stores any name, and shows nothing for it.

        Jobs in inner folders are not checked.
        """
        folder = self._folder(item.entry)
        prefix, place = ("", "") if folder is None else (f"{folder.name}/", folder.path)
        get = self._task.predictions.get
        new = {name for name in names if "/" not in name and not get("job", prefix + name)}
        purpose = f"reading the jobs for {self.title(item)}"
        shown = self._objects.shown(purpose, place, "jobs[name]") if new else None
        known = {
            as_text(member(job, "name")).casefold() for job in json_objects(part(shown).get("jobs"))
        }
        missing = sorted(name for name in new if name.casefold() not in known)
        for name in missing if shown is not None else ():
            self._task.warn(
                f"{self.title(item)}: jobs: '{name}' does not exist, or the account cannot see it,"
                " so the view shows nothing for it"
            )

    def _require_deletable(self, entry: CiViewEntry) -> None:
        """Raise `invalid` for the primary view."""
        parent = self._parent_path(entry).rstrip("/")
        purpose = f"reading the views of the view '{self.name(entry)}'"
        response = self._objects.read(
            purpose, f"{parent}/api/json".lstrip("/"), "primaryView[name]"
        )
        primary = {} if response is None else part(part(response.json()).get("primaryView"))
        if not primary.get("name"):
            raise protocol(f"{purpose}: the server does not show the primary view")
        if primary.get("name") == entry.name:
            raise invalid(f"the view '{entry.name}' is the primary view; it cannot be deleted")

    def _returned(self, entry: CiViewEntry, fields: Mapping[str, Any]) -> dict[str, Any]:
        folder = self._folder(entry)
        shown = {"description": "", "jobs": [], "regex": "", **fields}
        shown["jobs"] = sorted(shown["jobs"], key=str.casefold)
        return {**shown, "name": entry.name, "folder": "" if folder is None else folder.name}

    def _folder(self, entry: CiViewEntry) -> Job | None:
        if not entry.folder:
            return None
        return job_of(entry.folder, self._task.connection.url, "folder")

    def _parent_path(self, entry: CiViewEntry) -> str:
        folder = self._folder(entry)
        return "" if folder is None else f"{folder.path}/"

    def _path(self, entry: CiViewEntry) -> str:
        return f"{self._parent_path(entry)}view/{path(entry.name)}"


def _wanted(entry: CiViewEntry) -> dict[str, Any]:
    """Return the fields to write, without the outer blanks that :func:`_fields` removes."""
    return {
        name: [job.strip() for job in value] if name == "jobs" else value.strip()
        for name, value in without_none(vars(entry), _FIELDS).items()
    }


def _fields(live: XmlElement) -> dict[str, Any]:
    names = child_of(live, "jobNames")
    listed = [] if names is None else [child for child in names.children if child.name == "string"]
    return {
        "description": text_of(live, "description"),
        "jobs": sorted((element.text.strip() for element in listed), key=str.casefold),
        "regex": text_of(live, "includeRegex"),
    }


def _new_view() -> XmlElement:
    comparator = XmlElement("comparator", {"class": "hudson.util.CaseInsensitiveComparator"})
    columns = [XmlElement(f"hudson.views.{name}Column") for name in _COLUMNS]
    return XmlElement(
        _LIST,
        children=[
            XmlElement("name"),
            XmlElement("jobNames", children=[comparator]),
            XmlElement("columns", children=columns),
        ],
    )


def _own(live: XmlElement, config: XmlElement) -> XmlElement:
    """Return what a configuration describes of the server's view, with sorted jobs."""
    return _sorted(parts_of_others.without_other_views(live, config))


def _sorted(root: XmlElement) -> XmlElement:
    """Return a copy with sorted jobs, because their order has no meaning."""
    copy = deepcopy(root)
    job_names = child_of(copy, "jobNames")
    if job_names is not None:
        job_names.children = sorted(
            (child for child in job_names.children if child.name == "string"),
            key=lambda child: child.text.strip().casefold(),
        )
    return copy


class CiViewOperation(Objects[CiViewEntry, Any]):
    """Manages a view, or the views of `entries`."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads(READ_SERVER, READ_VIEW),
            "create": writes(READ_SERVER, READ_VIEW, unforeseen=(client.CREATE_VIEW,)),
            "update": writes(READ_SERVER, READ_VIEW, unforeseen=(client.CONFIGURE_VIEW,)),
            "delete": writes(READ_SERVER, READ_VIEW, unforeseen=(client.DELETE_VIEW,)),
        },
        kind="view",
        key=("folder", "name"),
        listed="results",
    )

    def __init__(self, task: Task, options: CiViewOptions) -> None:
        super().__init__(Views(task), *entries_of(options, CiViewEntry))
