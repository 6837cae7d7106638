# SPDX-License-Identifier: GPL-3.0-or-later
"""Export the state of a server as the files of a desired state, for all services.

All reads precede the first write, so that a failed read leaves the folder unchanged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.common.yaml import HAS_YAML, yaml_dump, yaml_load

from ..errors import ToolchainError, invalid, printable
from ..module.task import Task
from ..module.typed_options import PathText
from ..plan import Action, Plan
from .export_folder import ExportFolder, FileChange
from .file_content import FileContent

_WIDTH = 1_000_000
_SHOWN = 300
#: Kind of the passwords that no server shows, in `left_out`.
PASSWORD = "password"


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of all exports."""

    dest: PathText
    overwrite: bool = False


@dataclass
class ServiceState:
    """The state of a server.

    :param values: content of the file of the service
    :param files: content of other files, by relative path
    :param left_out: objects that cannot be exported, with `kind`, `name` and `reason`
    :param untold: sentences about the parts of the service that no server returns
    """

    values: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str | FileContent] = field(default_factory=dict)
    left_out: list[dict[str, str]] = field(default_factory=list)
    untold: tuple[str, ...] = ()

    def leave_out(self, kind: str, name: str, reason: str) -> None:
        row = {"kind": kind, "name": printable(name, _SHOWN), "reason": printable(reason, _SHOWN)}
        self.left_out.append(row)

    def text(self) -> str:
        """Return the content of the file of the service."""
        left_out = (
            f"{record['kind']} {record['name']}: {record['reason']}" for record in self.left_out
        )
        head = [
            "Written by an export.",
            *self.untold,
            *(f"Left out: {each}" for each in left_out),
        ]
        return _yaml("".join(f"# {_one_line(line)}\n" for line in head), self.values)


class ServiceExport(ABC):
    """The export of a service, which implements `read`."""

    service: str

    def __init__(self, task: Task, options: ExportOptions) -> None:
        if not HAS_YAML:
            raise invalid("the export requires the Python library PyYAML on the host where it runs")
        self._task = task
        self._folder = ExportFolder(
            options.dest, self.service, overwrite=options.overwrite, warn=task.warn
        )

    @abstractmethod
    def read(self) -> ServiceState:
        """Return the state of the server."""

    def plan(self) -> Plan:
        state = self.read()
        changes = self._folder.compare(
            {**state.files, f"{self.service}.yml": state.text()},
        )
        result: dict[str, Any] = {
            "files": [{"path": change.path, "action": change.action} for change in changes],
            "exported": {name: len(values) for name, values in state.values.items()},
            "left_out": state.left_out,
            "untold": list(state.untold),
        }
        self._warn(state, changes)
        done = [change for change in changes if change.action != "unchanged"]

        def make_diff() -> tuple[str, str]:
            return _shown(done, after=False), _shown(done, after=True)

        action: Action = "update" if self._folder.changed else "none"
        return Plan(None, None, action, result=result, make_diff=make_diff)

    def _warn(self, state: ServiceState, changes: list[FileChange]) -> None:
        """Warn about missing objects; about passwords only when the file is new."""
        file = f"{self.service}.yml"
        passwords = sum(each["kind"] == PASSWORD for each in state.left_out)
        objects = len(state.left_out) - passwords
        if objects:
            self._task.warn(
                f"{objects} objects were not exported; left_out and the comments at the top of"
                f" {file} list them"
            )
        is_new = any((change.path, change.action) == (file, "created") for change in changes)
        if passwords and is_new:
            self._task.warn(f"the passwords of {passwords} users are not in {file}")

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        self._folder.write()
        return {}


def _shown(changes: list[FileChange], *, after: bool) -> str:
    sides = ((change.path, change.after if after else change.before) for change in changes)
    return "".join(f"{path}\n{content.shown}" for path, content in sides if content)


def _one_line(text: str) -> str:
    """Return a string for a comment, which no character in it can end."""
    line = " ".join(text.split())
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in line)


def _yaml(head: str, values: Mapping[str, Any]) -> str:
    """Return values as YAML.

    Raises `protocol` if parsing the YAML gives other values, as for lone surrogates.
    """
    text = ""
    try:
        text = head + str(
            yaml_dump(dict(values), allow_unicode=True, sort_keys=False, width=_WIDTH)
        )
        same = yaml_load(text) == values
        text.encode("utf-8")
    except Exception:  # noqa: BLE001 - the library's own classes may not be there
        same = False
    if not same:
        raise ToolchainError("protocol", "the server returned strings that YAML cannot represent")
    return text
