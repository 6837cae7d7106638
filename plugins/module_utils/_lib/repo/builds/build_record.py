# SPDX-License-Identifier: GPL-3.0-or-later
"""Delete single build records [C2.8]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ...core import address
from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Segment
from ...core.plan import Change, Plan, without_none
from ...core.verification import without_effect
from ..client import RepoClient
from ..service import SERVICE
from .build_info import read_list


@dataclass(frozen=True)
class BuildRecordOptions:
    """The options of `build_record`."""

    build_name: Segment
    build_numbers: list[str]
    project: str | None = None
    delete_artifacts: bool = False
    state: Literal["absent"] = "absent"


class BuildRecordOperation:
    """Delete build records by number; all builds with the same number are deleted."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"read": reads("read"), "delete": writes("read", unforeseen=("delete",))},
        kind="build",
        name="{project}:{build_name}/{build_numbers}",
    )

    def __init__(self, task: Task, options: BuildRecordOptions) -> None:
        self._name, self._options = options.build_name, options
        self._wanted = list(dict.fromkeys(options.build_numbers))
        if not self._wanted:
            raise invalid("build_numbers must list at least one build")
        self._client, self._warn = RepoClient(task), task.warn

    def plan(self) -> Plan:
        present = self._present()
        for number in self._wanted:
            if "*" in number and number not in present:
                raise invalid(
                    f"build_numbers: '{number}' is a pattern, but each build must be listed by its"
                    " number; use build_retention to discard old builds"
                )
        if not present:
            project = self._options.project
            where = f"in the project '{project}'" if project else "outside projects: set project"
            self._warn(f"there are no builds of '{self._name}' {where}")
        leaving = [number for number in self._wanted if number in present]
        # The query parameter is a comma-separated list, so the number `1,2` would delete the builds
        # 1 and 2 [repo-12].
        for number in () if self._client.dialect.builds_deleted_by_body else leaving:
            parts = [part.strip() for part in number.split(",")] if "," in number else []
            others = [part for part in parts if part in present and part not in leaving]
            if others:
                raise invalid(
                    f"build_numbers: the server may interpret '{number}' as the builds"
                    f" {' and '.join(parts)} and delete '{others[0]}': set dialect to jfrog, which"
                    " sends such a number safely"
                )
        remaining = [number for number in present if number not in leaving]
        before, after = {"builds": present}, {"builds": remaining}
        if not leaving:
            return Plan(before, before, result={"deleted": []})
        changes = (Change("builds", present, remaining),)
        return Plan(before, after, "delete", changes, {"deleted": leaving})

    def _present(self) -> list[str]:
        return read_list(self._client, self._name, self._options.project, missing=True).numbers

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        wanted: list[str] = plan.result["deleted"]
        single = [number for number in wanted if "," in number]
        together = [number for number in wanted if "," not in number]
        if together:
            try:
                self._send(together)
            except ToolchainError as error:
                # [W4.1] leaves open whether `buildNumbers` accepts a list. If the server rejects a
                # list, send a request for each build.
                if error.status not in (400, 404) or len(together) == 1:
                    raise
        if single and self._client.dialect.builds_deleted_by_body:
            self._send(single, by_body=True)
        else:
            for number in single:
                self._send([number])
        left = self._left(wanted)
        if len(together) > 1 and left:
            for number in left:
                if number in together:
                    self._send([number])
            left = self._left(wanted)
        deleted = [number for number in wanted if number not in left]
        if left:
            label, reason = self._label(left), "they still exist"
            raise without_effect(label, reason, deleted=deleted, changed=bool(deleted))
        return {"deleted": deleted}

    def _left(self, wanted: Sequence[str]) -> list[str]:
        present = self._present()
        return [number for number in wanted if number in present]

    def _send(self, numbers: Sequence[str], *, by_body: bool = False) -> None:
        """Send a request; a 404 is a success if another client has already deleted the build.

        :param by_body: list the builds in a JSON body, where numbers may contain commas [repo-12]
        """
        options = self._options
        method, path = "DELETE", f"api/build/{address.path(self._name)}"
        artifacts = 1 if options.delete_artifacts else None
        query = {"buildNumbers": ",".join(numbers), "artifacts": artifacts}
        parts: dict[str, Any] = {"query": {"project": options.project, **query}}
        if by_body:
            method, path = "POST", "api/build/delete"
            body = {"buildNumbers": list(numbers), "deleteArtifacts": options.delete_artifacts}
            body |= {"buildName": self._name, "deleteAll": False}
            parts = {"json": without_none({**body, "project": options.project})}

        def are_gone() -> bool | None:
            """Return `None` if only some of the builds are gone."""
            left = set(numbers) & set(self._present())
            return None if 0 < len(left) < len(numbers) else not left

        try:
            self._client.write(
                self._label(numbers), method, path, verify=are_gone, repeatable=True, **parts
            )
        except ToolchainError as error:
            if error.status != 404 or len(numbers) > 1 or set(numbers) & set(self._present()):
                raise

    def _label(self, numbers: Sequence[str]) -> str:
        return f"deleting {', '.join(f'#{number}' for number in numbers)} of '{self._name}'"
