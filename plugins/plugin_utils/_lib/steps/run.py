# SPDX-License-Identifier: GPL-3.0-or-later
"""What the steps of the action `bookkeeping` know, and how they fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleUndefinedVariable
from ansible.template import Templar

from ....module_utils._lib.core.connection.options import (
    environment_name,
    variable_name,
)
from ....module_utils._lib.core.secret import without_user_info
from .. import ansible_internals, role_variables, variables
from ..report import writing
from ..services import SERVICES

Result = dict[str, Any]
#: Maximum length of a message, which may name every error of a folder.
LONGEST = 20_000


class StepError(Exception):
    """A step fails. The message is a sentence.

    :param report: value of the key `report` of the result
    :param kind: kind of the error
    :param values: more values of the result
    """

    def __init__(
        self,
        message: str,
        report: Mapping[str, Any] | None = None,
        kind: str = "invalid",
        values: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.report, self.kind, self.values = dict(report or {}), kind, dict(values or {})


@dataclass(frozen=True)
class Run:
    """The variables of a task, and the functions of Ansible that read them.

    :param template: evaluates the templates in a value
    :param load: loads a YAML file, and decrypts its vaults
    :param check_mode: the task runs in check mode
    :param of_play: returns a function for each host of the play, which returns its run
    :param origins: returns where the variables come from
    :param execute: runs a module of the collection with options as this task
    """

    variables: Mapping[str, Any]
    template: Callable[[Any], Any]
    load: Callable[[str], Any]
    check_mode: bool = False
    of_play: Callable[[], Mapping[str, Callable[[], Run]]] = dict
    origins: Callable[[], role_variables.Origins] = role_variables.Origins
    execute: Callable[[str, Mapping[str, Any]], Result] | None = None

    def value(self, name: str, default: Any = None) -> Any:
        """Return the value of a variable, or `default` if it is undefined, empty or omitted."""
        value = variables.value_of(name, self.variables, self.template)
        return default if value is None else value

    def is_set(self, name: str) -> bool:
        """Return whether a variable has a value. Templates in a list or mapping stay unevaluated,
        because some of them refer to results of later tasks.
        """
        value = self.variables.get(name)
        return bool(self.value(name) if isinstance(value, str) else value)

    def evaluated(self, value: Any) -> Any:
        """Return the value of a template, `None` if it uses a name that is not defined yet."""
        try:
            return self.template(value)
        except AnsibleUndefinedVariable:
            return None

    def addresses(self, connections: Any) -> dict[str, str]:
        """Return the addresses that the host connects to, by service.

        :param connections: connections of the playbook
        """
        found = {}
        for service in SERVICES:
            url = (
                mapping(mapping(connections).get(service)).get("url")
                or self.value(variable_name(service, "url"))
                or os.environ.get(environment_name(service, "url"))
            )
            if url:
                found[service] = without_user_info(str(url)).split("?")[0].rstrip("/")
        return found

    def path(self, name: str) -> Path:
        """Return the absolute path of a file or folder that a variable names."""
        return writing.resolved(name, self.variables)

    @cached_property
    def of_folder(self) -> dict[str, Any]:
        """Return the variables that the folder of the desired state sets, without those that the
        command line overrides.
        """
        read = mapping(self.variables.get("desired_state_values")).get("variables") or {}
        extra = self.origins().extra if read else {}
        return {name: value for name, value in read.items() if name not in extra}

    @property
    def report_folder(self) -> Any:
        """Return the folder in which the run writes its report, "" for no report."""
        return self.value("drift_report") or os.environ.get("TOOLCHAIN_REPORT") or ""

    @property
    def host(self) -> str:
        return str(self.variables.get("inventory_hostname"))

    @property
    def hosts(self) -> list[str]:
        """Return all hosts of the play, including failed hosts."""
        return list(map(str, self.variables.get("ansible_play_hosts_all") or [self.host]))


def run_of(
    task: Any, loader: Any, template: Callable[[Any], Any], variables: Mapping[str, Any]
) -> Run:
    """Return the run of a task."""

    def of_host(name: str, variables_of: Callable[[str], dict[str, Any]]) -> Run:
        values = variables_of(name)
        return run_of(task, loader, Templar(loader=loader, variables=values).template, values)

    def of_play() -> dict[str, Callable[[], Run]]:
        names, variables_of = ansible_internals.hosts_of_play(task, template)
        return {name: partial(of_host, name, variables_of) for name in names}

    def origins() -> role_variables.Origins:
        return role_variables.Origins(*ansible_internals.origins_of(task, variables))

    # nobody changes what is read, and a copy takes as long as the file
    load = partial(loader.load_from_file, unsafe=True)
    return Run(variables, template, load, task.check_mode, of_play, origins)


def mapping(given: Any) -> Mapping[str, Any]:
    """Return a mapping unchanged, and {} for other values, which the step `roles` rejects."""
    return given if isinstance(given, Mapping) else {}
