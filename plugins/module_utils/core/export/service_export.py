# SPDX-License-Identifier: GPL-3.0-or-later
"""What a server is like, as the files of a desired state: the same for all services.

Everything is read before anything is written: a read that fails leaves the folder as it is.
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


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """The options that every export has."""

    dest: PathText
    overwrite: bool = False


@dataclass
class ServiceState:
    """C(values): the file of the service; C(files): further ones, by their path below the folder.

    C(left_out): objects that are not in it, with C(kind), C(name) and C(reason). C(untold): what of
    the service no server tells, as sentences.
    """

    values: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str | FileContent] = field(default_factory=dict)
    left_out: list[dict[str, str]] = field(default_factory=list)
    untold: tuple[str, ...] = ()

    def leave_out(self, kind: str, name: str, reason: str) -> None:
        row = {"kind": kind, "name": printable(name, _SHOWN), "reason": printable(reason, _SHOWN)}
        self.left_out.append(row)

    def text(self) -> str:
        """The file of the service."""
        left_out = (f"{one['kind']} {one['name']}: {one['reason']}" for one in self.left_out)
        head = [
            "Written by an export.",
            *self.untold,
            *(f"Left out: {each}" for each in left_out),
        ]
        return _yaml("".join(f"# {_one_line(line)}\n" for line in head), self.values)


class ServiceExport(ABC):
    """An export of one service: C(read) tells what the server is like."""

    service: str

    def __init__(self, task: Task, options: ExportOptions) -> None:
        if not HAS_YAML:
            raise invalid("the export needs the Python library PyYAML where it runs")
        self._task = task
        self._folder = ExportFolder(
            options.dest, self.service, overwrite=options.overwrite, warn=task.warn
        )

    @abstractmethod
    def read(self) -> ServiceState:
        """Read the server."""

    def plan(self) -> Plan:
        state = self.read()
        changes = self._folder.compare(
            {**state.files, f"{self.service}.yml": state.text()},
        )
        result: dict[str, Any] = {
            "files": [{"path": one.path, "action": one.action} for one in changes],
            "exported": {name: len(values) for name, values in state.values.items()},
            "left_out": state.left_out,
            "untold": list(state.untold),
        }
        if state.left_out:
            self._task.warn(
                f"{len(state.left_out)} objects are not in {self.service}.yml; left_out and the"
                " head of the file name them"
            )
        done = [one for one in changes if one.action != "unchanged"]

        def make_diff() -> tuple[str, str]:
            return _shown(done, after=False), _shown(done, after=True)

        action: Action = "update" if self._folder.changed else "none"
        return Plan(None, None, action, result=result, make_diff=make_diff)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        self._folder.write()
        return {}


def _shown(changes: list[FileChange], *, after: bool) -> str:
    sides = ((one.path, one.after if after else one.before) for one in changes)
    return "".join(f"{path}\n{content.shown}" for path, content in sides if content)


def _one_line(text: str) -> str:
    """A text as a comment, which nothing in it can end."""
    line = " ".join(text.split())
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in line)


def _yaml(head: str, values: Mapping[str, Any]) -> str:
    """Values as YAML; C(protocol) where they would be read in another way than they were written,
    as halves of characters are.
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
        raise ToolchainError("protocol", "the server has texts that no YAML file can hold")
    return text
