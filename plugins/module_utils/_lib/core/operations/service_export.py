# SPDX-License-Identifier: GPL-3.0-or-later
"""Base class of the modules that export the state of a server as files of the desired state.

An export reads everything before it writes, so a failed read leaves the folder unchanged.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from ansible.module_utils.common.yaml import HAS_YAML, yaml_dump, yaml_load

from ..accounts import AccountNames, translated
from ..errors import invalid, printable, protocol
from ..module.task import Task
from ..module.typed_options import Option, PathText
from ..plan import Action, Plan
from .export_folder import ExportFolder, FileChange, FileContent

_WIDTH = 1_000_000
_SHOWN = 300
#: Environment variable of tasks that export only to compare the folder with the server.
TEMPORARY = "TOOLCHAIN_TEMPORARY_EXPORT"
#: Value of `kind` in `left_out` for passwords, which no server returns.
PASSWORD = "password"


@dataclass(frozen=True)
class ExportedAccounts:
    """Names of the desired state for the accounts of the server.

    :param names: account by name
    :param preferred: names that go before others of the same account
    :param places: where the accounts of an entry are, by list
    :param required: an account without a name is an error
    """

    names: Annotated[dict[str, str], Option(values="line")] = field(default_factory=dict)
    preferred: list[str] = field(default_factory=list)
    places: Annotated[dict[str, list[str]], Option(values="json")] = field(default_factory=dict)
    required: bool = False

    def check(self) -> None:
        """Raise `invalid` for places that are no lists of strings."""
        for name, places in self.places.items():
            if not isinstance(places, list) or not all(isinstance(one, str) for one in places):
                raise invalid(f"places.{name} must be a list of strings such as users[]")


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options that all exports have."""

    dest: PathText
    overwrite: bool = False
    accounts: ExportedAccounts | None = None


@dataclass
class ServiceState:
    """The exported state of a server.

    :param values: content of the YAML file of the service
    :param files: content of further files, by relative path
    :param left_out: objects that cannot be exported, with `kind`, `name` and `reason`, and with
        `unread` if the account may not read them
    :param not_exported: sentences about settings that the API of the service never returns
    :param returned: further return values
    """

    values: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str | FileContent] = field(default_factory=dict)
    left_out: list[dict[str, Any]] = field(default_factory=list)
    not_exported: tuple[str, ...] = ()
    returned: dict[str, Any] = field(default_factory=dict)

    def leave_out(self, kind: str, name: str, reason: str, *, unread: bool = False) -> None:
        row = {"kind": kind, "name": printable(name, _SHOWN), "reason": printable(reason, _SHOWN)}
        self.left_out.append({**row, "unread": True} if unread else row)

    def text(self) -> str:
        """Return the YAML file of the service, with the left-out objects as comments."""
        left_out = (
            f"{record['kind']} {record['name']}: {record['reason']}" for record in self.left_out
        )
        head = [
            "Written by an export.",
            *self.not_exported,
            *(f"Left out: {description}" for description in left_out),
        ]
        comments = (" ".join(line.split()) for line in head)
        # without the characters that would end a comment
        lines = (
            "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in line)
            for line in comments
        )
        return _yaml("".join(f"# {line}\n" for line in lines), self.values)


class ServiceExport(ABC):
    """Export of a service. Subclasses implement `read`."""

    service: str
    #: The options that choose objects of the server.
    choosing: tuple[str, ...] = ()

    def __init__(self, task: Task, options: ExportOptions) -> None:
        if not HAS_YAML:
            raise invalid("the export requires the Python library PyYAML on the host where it runs")
        self._task = task
        self._accounts = options.accounts
        self._folder = ExportFolder(
            options.dest,
            self.service,
            overwrite=options.overwrite,
            warn=task.warn,
            alike=self.alike,
            chosen={
                name: getattr(options, name) for name in self.choosing if getattr(options, name)
            },
        )

    @abstractmethod
    def read(self) -> ServiceState:
        """Return the state of the server."""

    def alike(self, before: str, after: str) -> bool:
        """Return whether two contents of an XML file have the same meaning for a later run."""
        return before == after

    def file_with_names(self, path: str, text: str, translate: Callable[[str], str]) -> str:
        """Return the text of a file with the accounts in it translated."""
        return text

    def _with_names(self, state: ServiceState) -> ServiceState:
        """Return the state with names of the desired state instead of accounts.

        Raises `invalid` if the name of an account is not certain.
        """
        given = self._accounts
        if given is None:
            return state
        names = AccountNames(given.names, given.preferred, given.required)
        values = {
            listed: [
                translated(entry, given.places.get(listed, ()), names.name_of) for entry in entries
            ]
            for listed, entries in state.values.items()
        }
        files = {
            path: self.file_with_names(path, text, names.name_of) if isinstance(text, str) else text
            for path, text in state.files.items()
        }
        names.require_names()
        return replace(state, values=values, files=files)

    def plan(self) -> Plan:
        state = self._with_names(self.read())
        compared = self._folder.compare({**state.files, f"{self.service}.yml": state.text()})
        changes = compared.files
        result: dict[str, Any] = {
            "files": [{"path": change.path, "action": change.action} for change in changes],
            "exported": {name: len(values) for name, values in state.values.items()},
            "left_out": state.left_out,
            "not_exported": list(state.not_exported),
            **state.returned,
        }
        self._warn(state, changes)
        done = [change for change in changes if change.action != "unchanged"]

        def make_diff() -> tuple[str, str]:
            return _diff_text(done, after=False), _diff_text(done, after=True)

        action: Action = "update" if compared.changed else "none"
        return Plan(None, None, action, result=result, make_diff=make_diff, data=compared)

    def _warn(self, state: ServiceState, changes: list[FileChange]) -> None:
        """Warn about objects that were not exported. Passwords count only if the file is new.

        Nobody asked for the export of a comparison, or reads its files.
        """
        if os.environ.get(TEMPORARY):
            return
        file = f"{self.service}.yml"
        passwords = sum(record["kind"] == PASSWORD for record in state.left_out)
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
        self._folder.write(plan.data)
        return {}


def _diff_text(changes: list[FileChange], *, after: bool) -> str:
    sides = ((change.path, change.after if after else change.before) for change in changes)
    return "".join(f"{path}\n{content.shown}" for path, content in sides if content)


def _yaml(head: str, values: Mapping[str, Any]) -> str:
    """Return values as YAML below the comments `head`.

    Raises `protocol` if the YAML cannot be parsed to the same values, as for lone surrogates.
    """
    text = ""
    try:
        text = head + str(
            yaml_dump(dict(values), allow_unicode=True, sort_keys=False, width=_WIDTH)
        )
        same = yaml_load(text) == values
        text.encode("utf-8")
    except Exception:  # noqa: BLE001 - PyYAML's exception classes are not imported
        same = False
    if not same:
        raise protocol("the server returned strings that YAML cannot represent")
    return text
