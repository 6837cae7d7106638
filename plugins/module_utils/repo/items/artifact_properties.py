# SPDX-License-Identifier: GPL-3.0-or-later
"""Set or remove properties of an existing item [C2.2]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Action, Plan
from .. import properties
from ..client import RepoClient, join, refuse_glob, repository_key, segments
from ..repositories import refuse_properties
from . import listing

#: Properties of items, by path.
Items = dict[str, dict[str, list[str]]]


@dataclass(frozen=True)
class ArtifactPropertiesOptions:
    """The options of `artifact_properties`."""

    repo: str
    path: Annotated[str, Option(empty=True)]
    properties: Annotated[dict[str, Any], Option(values="text")]
    recursive: bool = False
    state: Literal["present", "absent"] = "present"
    force: bool = False


class ArtifactPropertiesOperation:
    """Set or remove properties of an item, and with `recursive` of its content."""

    descriptor: ClassVar = Descriptor(
        "repo",
        {
            "read": reads("read"),
            "set": writes("read", unforeseen=("annotate",)),
            "delete": writes("read", unforeseen=("annotate",)),
        },
        kind="item",
        name="{repo}/{path}",
    )

    def __init__(self, task: Task, options: ArtifactPropertiesOptions) -> None:
        self._repo = repository_key("repo", options.repo)
        self._path = join(*segments(options.path))
        self._recursive, self._absent = options.recursive, options.state == "absent"
        if self._absent:
            refuse_glob(self._path)
        if self._path == "" and not options.force:
            raise invalid(
                f"path is empty, which means the root of the repository '{self._repo}':"
                " force allows it"
            )
        self._wanted: properties.Properties = {}
        self._names = [str(name) for name in options.properties]
        if not self._names:
            task.warn("properties is empty, so that nothing is set or removed")
        for name in self._names:
            properties.check_name(name)
        if not self._absent:
            self._wanted = properties.properties_of(options.properties)
        self._client = RepoClient(task)
        if self._absent and not self._client.dialect.full_properties:
            raise invalid(
                "state=absent: servers of this dialect can set properties, but not remove them"
            )

    def plan(self) -> Plan:
        own = properties.read(self._client, self._repo, self._path)
        if own is None:
            self._require_item()
        shown = {"before": own, "after": self._after(own or {})}
        before, after = self._difference(own)
        action: Action = "update" if before else "none"
        return Plan(before, after, action, result={"properties": shown})

    def _difference(
        self, own: dict[str, list[str]] | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the current and the wanted properties of items that differ; unknown properties are
        `None`.
        """
        below = self._below() if self._recursive and own is not None else {}
        if not self._names or (not self._absent and not self._wanted):
            return {}, {}
        if own is None or below is None:
            name = join(self._repo, self._path)
            return {name: own}, {name: self._after(own or {})}
        items = {self._path: own, **below}
        differing = {path: has for path, has in items.items() if not self._is_done(has)}
        return (
            {join(self._repo, path): has for path, has in differing.items()},
            {join(self._repo, path): self._after(has) for path, has in differing.items()},
        )

    def _below(self) -> Items | None:
        return properties.read_below(self._client, self._repo, self._path, "any")

    def _is_done(self, has: Mapping[str, list[str]]) -> bool:
        if self._absent:
            return not any(name in has for name in self._names)
        return properties.are_set(has, self._wanted) is True

    def _after(self, has: Mapping[str, list[str]]) -> dict[str, list[str]]:
        if self._absent:
            return {name: values for name, values in has.items() if name not in self._names}
        return {**has, **self._wanted}

    def _require_item(self) -> None:
        """Raise `not_found` if the item certainly does not exist.

        A server without readable properties rejects the write itself; a plain file store does not.
        """
        if not self._client.dialect.full_properties:
            refuse_properties(self._client)
            return
        there = listing.expected(self._client, self._repo, self._path)
        if there is None and listing.find(self._client, self._repo, self._path) is None:
            raise ToolchainError(
                "not_found",
                f"reading the properties of '{self._repo}/{self._path}': the server returned 404,"
                " there is no such item",
                status=404,
            )

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        client, repo, path = self._client, self._repo, self._path
        if self._absent:
            properties.remove(client, repo, path, self._names, recursive=self._recursive)
        else:
            properties.write(client, repo, path, self._wanted, recursive=self._recursive)
        if self._recursive:
            self._check_below()
        return {}

    def _check_below(self) -> None:
        """Raise `rejected` if the server left out an item of the folder."""
        left = [path for path, has in (self._below() or {}).items() if not self._is_done(has)]
        if left:
            raise ToolchainError(
                "rejected",
                f"changing properties below '{self._repo}/{self._path}': afterwards {len(left)}"
                f" items are not as they should be, the first is '{left[0]}'",
            )
