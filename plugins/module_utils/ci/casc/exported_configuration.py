# SPDX-License-Identifier: GPL-3.0-or-later
"""Export the server's configuration as entries for `ci_configuration`, without secrets [ci-43]."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..client import server_of
from ..export_run import ExportRun
from ..jobs.kept_secrets import has_secret
from .casc_comparison import FAILED
from .list_items import content_of, name_of
from .live_configuration import live_configuration

#: Paths that another list of the desired state covers, with the name of that list.
_OTHER_LISTS = {
    "credentials": "credentials",
    "jenkins.nodes": "nodes",
    "jenkins.labelAtoms": "nodes",
    "jenkins.views": "views",
    "jenkins.primaryView": "views",
}
_LEFT_OUT = object()


def exported_configuration(run: ExportRun) -> list[dict[str, Any]] | None:
    """Return an entry for each section, or `None` if the configuration cannot be read."""
    read = partial(live_configuration, server_of(run.task))
    live = run.listed("configuration", "*", read, required=run.requested)
    if live is None:
        return None
    sections = ((str(name), _exported(run, str(name), value)) for name, value in live.items())
    return [{"config": {name: value}} for name, value in sections if value not in (_LEFT_OUT, {})]


def _exported(run: ExportRun, path: str, value: Any) -> Any:
    """Return a value without members that cannot be exported, or `_LEFT_OUT` if none can be."""
    reason = _reason_to_skip(path, value)
    if reason:
        run.state.leave_out("configuration", path, reason)
        return _LEFT_OUT
    if isinstance(value, Mapping):
        if _is_secret_variable(value):
            run.state.leave_out("configuration", f"{path}.value", "it is a secret")
            value = {name: item for name, item in value.items() if name != "value"}
        members = {name: _exported(run, f"{path}.{name}", item) for name, item in value.items()}
        left = {name: item for name, item in members.items() if item is not _LEFT_OUT}
        return left if left or not value else _LEFT_OUT
    if isinstance(value, list):
        entries = [_exported(run, _item_path(path, item, n), item) for n, item in enumerate(value)]
        # an item without a name is identified by its content, so the content must be unchanged
        if [*map(_identity, entries)] == [*map(_identity, value)]:
            return entries
        run.state.leave_out("configuration", path, "an item of the list cannot be exported")
        return _LEFT_OUT
    return value


def _reason_to_skip(path: str, value: Any) -> str:
    """Return the reason for which a value cannot be exported, or ""."""
    if path in _OTHER_LISTS:
        return f"it is exported in the list {_OTHER_LISTS[path]}"
    if isinstance(value, Mapping):
        is_plain = all(isinstance(name, str) for name in value)
        return "" if is_plain else "one of its keys is not a string"
    if isinstance(value, list):
        names = [_identity(item) for item in value if isinstance(item, Mapping)]
        return "items of the list have the same name" if len({*names}) < len(names) else ""
    if isinstance(value, str) and FAILED in value:
        return "the server cannot export it"
    name = path.rpartition(".")[2].partition("[")[0]
    return "it is a secret" if isinstance(value, str) and has_secret(name, value) else ""


def _is_secret_variable(value: Mapping[Any, Any]) -> bool:
    """Return whether an object is a variable whose name or value is that of a secret."""
    name, content = value.get("key", value.get("name")), value.get("value")
    return isinstance(name, str) and isinstance(content, str) and has_secret(name, content)


def _item_path(path: str, entry: Any, number: int) -> str:
    """Return the path of a list item. An item without a name is numbered, because its content may
    be a secret.
    """
    name = name_of(entry) if isinstance(entry, Mapping) else None
    return f"{path}[{number if name is None else name}]"


def _identity(entry: Any) -> str:
    return name_of(entry) or content_of(entry)
