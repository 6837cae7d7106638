# SPDX-License-Identifier: GPL-3.0-or-later
"""Set or remove properties of existing items [C2.2]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.paths.globs import Patterns, has_wildcards
from ...core.plan import Action, Plan
from .. import properties
from ..client import RepoClient, join, repository_key, segments
from ..items import listing
from ..repositories import refuse_properties
from .chosen_files import ChosenArtifactOptions, FileSelection, chosen_paths
from .marked_files import MarkedFiles, WantedProperties
from .remote_files import Filter, wanted_properties

#: Properties of items, by the path of the item.
Items = dict[str, dict[str, list[str]]]


@dataclass(frozen=True)
class ArtifactPropertiesOptions:
    """The options of `artifact_properties`."""

    constraints: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [["path", "artifacts"]],
        "required_one_of": [["path", "artifacts"]],
        "required_by": {"path": ("repo",)},
    }

    properties: Annotated[dict[str, Any], Option(values="text")]
    repo: str | None = None
    path: Annotated[str | None, Option(empty=True)] = None
    artifacts: Annotated[list[ChosenArtifactOptions] | None, Option(empty=False)] = None
    match_properties: Annotated[dict[str, Any] | None, Option(values="text")] = None
    exclude: list[str] | None = None
    recursive: bool = False
    state: Literal["present", "absent"] = "present"
    force: bool = False
    max_items: int = 1000
    parallel: int = 4

    @property
    def selects(self) -> bool:
        """Return whether the options select files instead of a single item."""
        many = self.artifacts is not None or has_wildcards(self.path or "")
        return many or bool(self.match_properties) or bool(self.exclude)


class ArtifactPropertiesOperation:
    """Set or remove properties of a single item or of selected files."""

    descriptor: ClassVar = Descriptor(
        "repo",
        {
            "read": reads("read"),
            "set": writes("read", unforeseen=("annotate",)),
            "delete": writes("read", unforeseen=("annotate",)),
        },
        kind="item",
        name="{repo}/{path}",
        listed="artifacts",
    )

    def __init__(self, task: Task, options: ArtifactPropertiesOptions) -> None:
        for name in ("parallel", "max_items"):
            if getattr(options, name) < 1:
                raise invalid(f"{name} must be at least 1, not {getattr(options, name)}")
        wanted = _wanted(task, options)
        client = RepoClient(task, connections=options.parallel)
        self._operation: MarkedFiles | MarkedItem
        if options.selects:
            self._operation = MarkedFiles(task, client, _selection(client, options), wanted)
        else:
            self._operation = MarkedItem(client, options, wanted)
        if wanted.absent and not client.dialect.full_properties:
            raise invalid(
                "state 'absent': servers of the generic dialect cannot remove properties (check the"
                " option dialect)"
            )

    def plan(self) -> Plan:
        return self._operation.plan()

    def predict(self, plan: Plan) -> None:
        self._operation.predict(plan)

    def preflight(self, plan: Plan) -> None:
        """Raise `not_found` in check mode if the item does not exist.

        Outside check mode, a server that cannot return properties rejects the write itself.
        """
        if isinstance(self._operation, MarkedItem):
            self._operation.preflight()

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        return self._operation.apply(plan)


def _wanted(task: Task, options: ArtifactPropertiesOptions) -> WantedProperties:
    names, absent = [str(name) for name in options.properties], options.state == "absent"
    if not names:
        task.warn("properties is empty, so there is nothing to set or remove")
    for name in names:
        properties.check_name(name)
    return WantedProperties(
        {} if absent else properties.properties_of(options.properties), names, absent
    )


def _selection(client: RepoClient, options: ArtifactPropertiesOptions) -> FileSelection:
    if options.recursive:
        raise invalid(
            "recursive cannot be combined with a pattern, artifacts, match_properties or exclude:"
            " omit it, and end a folder with /** to select all of its files"
        )
    if options.artifacts is None and join(*segments(options.path or "")) == "":
        raise invalid("path is empty, which would mean the whole repository: use ** to select it")
    wanted = Filter(
        wanted_properties(options.match_properties, "match_properties"),
        Patterns("exclude", options.exclude),
        "match_properties",
    )
    paths = chosen_paths(options.repo, options.path, options.artifacts)
    return FileSelection(client, paths, wanted, options.max_items)


class MarkedItem:
    """Change the properties of a single item and, with `recursive`, of its content."""

    def __init__(
        self, client: RepoClient, options: ArtifactPropertiesOptions, wanted: WantedProperties
    ) -> None:
        self._client, self._wanted = client, wanted
        self._repo = repository_key("repo", options.repo or "")
        self._path = join(*segments(options.path or ""))
        self._recursive = options.recursive
        if self._path == "" and not options.force:
            raise invalid(
                f"path is empty, which means the root of the repository '{self._repo}': set path,"
                " or set force: true to allow that"
            )

    def plan(self) -> Plan:
        known = properties.read(self._client, self._repo, self._path)
        if known is None:
            self._require_item()
        shown = {"before": known, "after": self._wanted.after(known or {})}
        before, after = self._difference(known)
        action: Action = "update" if before else "none"
        items = [self._shown(name, before, after) for name in before]
        name = join(self._repo, self._path)
        if name not in before:
            items.append(self._shown(name, {name: known}, {name: known}) | {"action": "unchanged"})
        return Plan(before, after, action, result={"properties": shown, "artifacts": items})

    def _shown(
        self, name: str, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> dict[str, Any]:
        place = {"repo": self._repo, "path": name[len(self._repo) :].strip("/")}
        return {**place, "before": before[name], "after": after[name], "action": "updated"}

    def _difference(
        self, current: dict[str, list[str]] | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the current and the wanted properties of the items that differ.

        Both dicts have the key `repo/path`. Unknown current properties are `None`.
        """
        below = self._below() if self._recursive and current is not None else {}
        if self._wanted.is_empty:
            return {}, {}
        if current is None or below is None:
            name = join(self._repo, self._path)
            return {name: current}, {name: self._wanted.after(current or {})}
        items = {self._path: current, **below}
        differing = {path: has for path, has in items.items() if not self._wanted.are_done(has)}
        return (
            {join(self._repo, path): has for path, has in differing.items()},
            {join(self._repo, path): self._wanted.after(has) for path, has in differing.items()},
        )

    def _below(self) -> Items | None:
        return properties.read_below(self._client, self._repo, self._path, "any")

    def _require_item(self) -> None:
        """Raise `not_found` if the item does not exist, and `rejected` for a plain file store.

        Other servers that cannot return properties reject the later write themselves.
        """
        if not self._client.dialect.full_properties:
            refuse_properties(self._client)
            return
        self._require_stored()

    def preflight(self) -> None:
        if not self._client.dialect.full_properties:
            self._require_stored()

    def _require_stored(self) -> None:
        there = listing.expected(self._client, self._repo, self._path)
        if there is None and listing.is_predicted_folder(self._client, self._repo, self._path):
            return
        if there is None and listing.find(self._client, self._repo, self._path) is None:
            raise ToolchainError(
                "not_found",
                f"reading the properties of '{self._repo}/{self._path}': the server returned 404:"
                " the item does not exist",
                status=404,
            )

    def predict(self, plan: Plan) -> None:
        for name, after in plan.after.items():
            path = name[len(self._repo) :].strip("/")
            properties.predict(self._client, self._repo, path, after)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        client, repo, path = self._client, self._repo, self._path
        self._wanted.write(client, repo, path, recursive=self._recursive)
        if self._recursive:
            self._check_below()
        return {}

    def _check_below(self) -> None:
        """Raise `rejected` if an item in the folder still has other properties."""
        left = [
            path for path, has in (self._below() or {}).items() if not self._wanted.are_done(has)
        ]
        if left:
            raise ToolchainError(
                "rejected",
                f"changing properties below '{self._repo}/{self._path}': {len(left)} items still"
                f" do not have the wanted properties, the first is '{left[0]}'",
            )
