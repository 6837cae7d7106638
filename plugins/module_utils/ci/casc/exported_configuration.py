# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of the server as entries for `ci_configuration`, without secrets [ci-43]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.errors import ToolchainError
from ..client import server_of
from ..export_run import ExportRun
from ..jobs.kept_secrets import has_secret
from .casc_comparison import FAILED, name_of
from .live_configuration import live_configuration

#: Parts that another list of the desired state describes.
_OTHERS = {
    "credentials": "credentials",
    "jenkins.nodes": "nodes",
    "jenkins.labelAtoms": "nodes",
    "jenkins.views": "views",
    "jenkins.primaryView": "views",
}
_OUT = object()


def exported_configuration(run: ExportRun) -> list[dict[str, Any]] | None:
    """Return an entry for each section; `None` if the configuration cannot be read."""
    try:
        live = live_configuration(server_of(run.task))
    except ToolchainError as error:
        if error.kind not in ("permission", "not_found") or run.requested:
            raise
        run.leave_out("configuration", "*", error)
        return None
    sections = ((str(name), _kept(run, str(name), value)) for name, value in live.items())
    return [{"config": {name: value}} for name, value in sections if value not in (_OUT, {})]


def _kept(run: ExportRun, path: str, value: Any) -> Any:
    """Return a value without the parts that cannot be exported; `_OUT` if nothing can."""
    reason = _reason(path, value)
    if reason:
        run.state.leave_out("configuration", path, reason)
        return _OUT
    if isinstance(value, Mapping):
        if _is_secret_variable(value):
            run.state.leave_out("configuration", f"{path}.value", "it is a secret")
            value = {name: each for name, each in value.items() if name != "value"}
        members = {name: _kept(run, f"{path}.{name}", each) for name, each in value.items()}
        left = {name: each for name, each in members.items() if each is not _OUT}
        return left if left or not value else _OUT
    if isinstance(value, list):
        entries = [_kept(run, _place(path, each, n), each) for n, each in enumerate(value)]
        # the whole content is the name of an entry without a name
        if [*map(name_of, entries)] == [*map(name_of, value)]:
            return entries
        run.state.leave_out("configuration", path, "an entry of the list cannot be exported")
        return _OUT
    return value


def _reason(path: str, value: Any) -> str:
    """Return why a value is not exported, "" if it is or a part of it may be."""
    if path in _OTHERS:
        return f"the list {_OTHERS[path]} describes it"
    if isinstance(value, Mapping):
        is_plain = all(isinstance(name, str) for name in value)
        return "" if is_plain else "one of its keys is not a string"
    if isinstance(value, list):
        names = [name_of(each) for each in value if isinstance(each, Mapping)]
        return "entries of the list have the same name" if len({*names}) < len(names) else ""
    if isinstance(value, str) and FAILED in value:
        return "the server cannot export it"
    name = path.rpartition(".")[2].partition("[")[0]
    return "it is a secret" if isinstance(value, str) and has_secret(name, value) else ""


def _is_secret_variable(value: Mapping[Any, Any]) -> bool:
    """Return whether a value is that of a variable whose name is that of a secret."""
    name, content = value.get("key", value.get("name")), value.get("value")
    return isinstance(name, str) and isinstance(content, str) and has_secret(name, content)


def _place(path: str, entry: Any, number: int) -> str:
    """Return the path of a list entry: its name may be a secret if it has no other."""
    is_named = isinstance(entry, Mapping) and not name_of(entry).startswith("{")
    return f"{path}[{name_of(entry) if is_named else number}]"
