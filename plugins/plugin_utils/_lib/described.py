# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect the objects that all hosts of a play describe.

`desired_state_previous` removes an object only if no host and no environment describes it. Several
hosts may describe the same server, each with its own folder. An environment may describe an object
that the base or another environment no longer has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit

from .desired_schema import KEY, schema_of, services

#: Values by service and property, as `desired_state.values` returns them.
Values = Mapping[str, Mapping[str, Any]]
#: Options that lead to the containers of an object, or to its other names.
_OTHERS = {"home_page", "new_name", "page_id", "parent_id", "parent_title", "space", "state"}
_PORTS = {"http": 80, "https": 443}


def outline(values: Values) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the objects of a desired state with the options that identify them, and no others."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for service in services():
        for name, schema in schema_of(service)["properties"].items():
            entries = values.get(service, {}).get(name)
            if not isinstance(entries, list):
                continue
            used = {*schema.get(KEY, ()), *_OTHERS}
            rows = [
                {
                    **{option: value for option, value in entry.items() if option in used},
                    **({"restrictions": True} if entry.get("restrictions") is not None else {}),
                }
                for entry in entries
                if isinstance(entry, Mapping)
            ]
            if rows:
                found.setdefault(service, {})[name] = rows
    return found


@dataclass
class HostState:
    """The states that a host describes, as indexes of `Described.states`.

    :param servers: known addresses of servers, by service
    :param present: the states that the host applies
    :param elsewhere: the base of its folder, and the state of each environment
    :param problem: why the folder of the host cannot be read, or ""
    """

    servers: dict[str, str] = field(default_factory=dict)
    present: list[int] = field(default_factory=list)
    elsewhere: list[int] = field(default_factory=list)
    problem: str = ""


@dataclass
class Described:
    """The states that the hosts of a play describe. Equal states are stored once."""

    hosts: dict[str, HostState] = field(default_factory=dict)
    states: list[dict[str, Any]] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def add(self, values: Values) -> int:
        """Return the index of a state."""
        shown = outline(values)
        number = self._numbers.setdefault(json.dumps(shown, sort_keys=True), len(self.states))
        if number == len(self.states):
            self.states.append(shown)
        return number

    def as_result(self) -> dict[str, Any]:
        """Return the value that `of_result` reads."""
        hosts = {name: asdict(state) for name, state in self.hosts.items()}
        return {"hosts": hosts, "states": self.states}

    @classmethod
    def of_result(cls, result: Mapping[str, Any]) -> Described:
        hosts = {name: HostState(**state) for name, state in result["hosts"].items()}
        return cls(hosts, list(result["states"]))

    def present(self, host: str) -> list[Values]:
        """Return the states of the host.

        The states of other hosts follow, each with the services that the hosts share.
        """
        own = self.hosts[host]
        found: list[Values] = [self.states[number] for number in own.present]
        for name, other in self.hosts.items():
            same = shared(own.servers, other.servers) if name != host else ()
            for number in (*other.present, *other.elsewhere):
                state = self.states[number]
                found.append({service: state[service] for service in same if service in state})
        return [state for state in found if state]

    def elsewhere(self, host: str) -> list[Values]:
        """Return the states of the base and of all environments in the host's folder."""
        return [self.states[number] for number in self.hosts[host].elsewhere]

    def problems(self, host: str) -> Iterator[str]:
        """Yield why the folders of other hosts with the same servers cannot be read."""
        own = self.hosts[host]
        for name, other in self.hosts.items():
            if other.problem and name != host and any(shared(own.servers, other.servers)):
                yield f"host {name}: {other.problem}"


def shared(one: Mapping[str, str], other: Mapping[str, str]) -> Sequence[str]:
    """Return the services with the same server on two hosts. An unknown address counts as equal."""
    return [
        service
        for service in services()
        if not (one.get(service) and other.get(service))
        or _server(one[service]) == _server(other[service])
    ]


def _server(address: str) -> tuple[Any, ...]:
    """Return the parts of an address by which servers differ: host, port and path.

    `http` and `https` of the same host lead to the same server.
    """
    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:
        return (address,)
    default = port is None or port == _PORTS.get(parts.scheme)
    host = (parts.hostname or "").rstrip(".")
    return host, None if default else port, parts.path.strip("/").casefold()
