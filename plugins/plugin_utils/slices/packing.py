# SPDX-License-Identifier: GPL-3.0-or-later
"""A slice as the folder that C(ansible-runner transmit) sends: variables, connections, files.

Only what its units need goes along: a worker never sees the login of a service that it does not
speak to. Nothing of it is ever an argument of a process.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils.core.connection.options import (
    SERVICES,
    argument_spec,
    environment_name,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.units import (
    Description,
    Unit,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.workers import SlicesError

#: The name of the run on a worker.
RUN = "slice"
#: The files that variables of the roles name: the variable, and the key of an entry of a list.
_FILES = {
    "ci_baseline_lock_file": "",
    "ci_baseline_scripts": "src",
    "desired_state_jobs": "src",
    "desired_state_pages": "src",
    "desired_state_trees": "src",
}


#: Tasks run on the worker itself, with the Python that runs Ansible there.
_HERE = {"ansible_connection": "local"}
_PYTHON = '    ansible_python_interpreter: "{{ ansible_playbook_python }}"\n'


@dataclass(frozen=True)
class Slice:
    """A part of a run.

    :param number: from 1
    :param units: what it consists of
    """

    number: int
    count: int
    units: Sequence[Unit]

    @property
    def hosts(self) -> list[str]:
        return list(dict.fromkeys(unit.host for unit in self.units))

    @property
    def title(self) -> str:
        return f"{self.number} of {self.count}"


class _Literal(str):
    """A text that Ansible must not read as a template: it has been one already."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    _Literal, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text), style='"')
)


@dataclass
class Package:
    """The folder of a slice.

    :param folder: the folder, which is made
    :param there: where it lies on the worker
    :param start: the folder in which relative names of files begin
    """

    folder: Path
    there: str
    start: Path
    _copied: dict[Path, str] = field(default_factory=dict)

    def fill(
        self, part: Slice, described: Mapping[str, Description], arguments: Sequence[str]
    ) -> None:
        """Write what the worker needs; C(arguments) are those of C(ansible-playbook)."""
        hosts = {}
        for host in part.hosts:
            chosen = described[host].part(unit for unit in part.units if unit.host == host)
            variables = {name: self._sent(name, one) for name, one in chosen.variables.items()}
            hosts[host] = {**variables, "enforce_roles": list(chosen.roles)}
        extra = {
            "enforce_hosts": "all",
            "drift_report": f"{self.there}/artifacts/{RUN}",
            "drift_slice": part.title,
            "drift_table": False,
        }
        self._write("inventory/hosts.yml", _yaml({"all": _shared(hosts)}) + _PYTHON)
        self._write("env/extravars", json.dumps(extra))
        self._write("env/envvars", json.dumps(self._environment(part)))
        self._write("env/cmdline", " ".join(arguments))
        (self.folder / "project").mkdir(mode=0o700, exist_ok=True)

    def _write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="utf-8") as stream:
            stream.write(text)

    def _sent(self, name: str, value: Any) -> Any:
        """A variable with the files that it names as they will lie on the worker."""
        if name in _FILES and isinstance(value, str):
            return self._copy(name, value)
        if name in _FILES and isinstance(value, list):
            key = _FILES[name]
            return [
                {**entry, key: self._copy(f"{name}[{number}].{key}", entry[key])}
                if isinstance(entry, Mapping) and entry.get(key)
                else entry
                for number, entry in enumerate(value)
            ]
        if name == "enforce_connections" and isinstance(value, Mapping):
            return {each: self._login(name, each, value[each]) for each in value}
        for service in SERVICES:
            prefix = f"toolchain_{service}_"
            if name.startswith(prefix):
                return self._login(name, service, {name.removeprefix(prefix): value}).popitem()[1]
        return value

    def _login(self, name: str, service: str, options: Any) -> Any:
        if not isinstance(options, Mapping):
            return options
        spec = argument_spec(service)
        return {
            option: self._copy(f"{name}: {option}", value)
            if value and spec.get(option, {}).get("type") == "path"
            else value
            for option, value in options.items()
        }

    def _environment(self, part: Slice) -> dict[str, str]:
        """The connections in the environment here, of the services that the slice speaks to."""
        found: dict[str, str] = {}
        for service in sorted({unit.service for unit in part.units}):
            for option, spec in argument_spec(service).items():
                name = environment_name(service, option)
                value = os.environ.get(name)
                if value:
                    found[name] = self._copy(name, value) if spec["type"] == "path" else value
        # a file that is known to be YAML need not be tried, and read, by each plugin
        return {**found, "ANSIBLE_INVENTORY_ENABLED": "ansible.builtin.yaml"}

    def _copy(self, name: str, value: Any) -> str:
        """Take a file along; where it lies on the worker."""
        source = Path(os.path.abspath(self.start / Path(str(value)).expanduser()))
        if source not in self._copied:
            target = Path("files") / str(len(self._copied)) / source.name
            # a link that leads out of a folder stays one, and is refused over there as it is here
            tree = partial(shutil.copytree, symlinks=True)
            copy: Callable[..., Any] = tree if source.is_dir() else shutil.copyfile
            problem = ""
            try:
                (self.folder / target).parent.mkdir(mode=0o700, parents=True)
                copy(source, self.folder / target)
            except OSError as error:
                problem = error.strerror or str(error)
            if problem:
                raise SlicesError(f"{name}: the file {source} cannot be read: {problem}.")
            self._copied[source] = f"{self.there}/{target}"
        return self._copied[source]


def _shared(hosts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Hosts with their variables: those that are the same for all stand there once, at the end."""
    texts = {host: {name: _text(one) for name, one in hosts[host].items()} for host in hosts}
    first, *others = texts.values()
    same = {name for name in first if all(one.get(name) == first[name] for one in others)}
    own = {
        host: {name: value for name, value in values.items() if name not in same}
        for host, values in hosts.items()
    }
    values = next(iter(hosts.values()))
    return {"hosts": own, "vars": {**{name: values[name] for name in sorted(same)}, **_HERE}}


def _text(value: Any) -> str:
    """A text that is the same for the same value, and for no other."""
    return json.dumps(_literal(value))


def _yaml(value: Any) -> str:
    return yaml.dump(_literal(value), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def _literal(value: Any) -> Any:
    """Plain values, texts that look like templates marked as literal."""
    if isinstance(value, Mapping):
        return {_plain(key): _literal(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_literal(each) for each in value]
    return _plain(value)


def _plain(value: Any) -> Any:
    """A scalar as YAML knows it: Ansible marks the origin of its texts by classes of its own."""
    if isinstance(value, bool) or value is None:
        return value
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    # a text of Ansible may be itself as a text, too
    text = str.__str__(str(value))
    return _Literal(text) if "{" in text else text
