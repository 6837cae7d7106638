# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the plugins with a baseline or a lock file: `ci_plugin_info` [C3.5]."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import invalid
from ...core.files import atomic_write, read_text
from ...core.finding import Finding
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText
from ...core.plan import Plan, unchanged
from ..client import READ_SERVER, SYSTEM_READ
from ..service import SERVICE
from ..ssh_commands import SshOptions
from . import installed_plugins
from .installed_plugins import finding_of, reader_of

_LOCK_FILE = "the lock file"


@dataclass(frozen=True, kw_only=True)
class CiPluginInfoOptions(SshOptions):
    """The options of `ci_plugin_info`."""

    required: Annotated[Any, Option(values="text", empty=True)] | None = None
    lock_file: PathText | None = None
    lock: Literal["write", "check"] | None = None

    constraints: ClassVar[dict[str, Any]] = {"required_together": [("lock_file", "lock")]}


class CiPluginInfoOperation:
    """Reads and compares the plugins, and writes the lock file if requested."""

    descriptor: ClassVar = Descriptor(SERVICE, {"list": reads(READ_SERVER, SYSTEM_READ)})

    def __init__(self, task: Task, options: CiPluginInfoOptions) -> None:
        self._task = task
        self._file, self._required = options.lock_file, options.required
        self._writes = options.lock == "write"
        self._wanted: installed_plugins.Baseline = {}
        self._unwanted: dict[str, str] = {}
        self._locked: installed_plugins.Baseline | None = None
        if options.required is not None:
            self._wanted = installed_plugins.of_option(options.required)
            self._unwanted = installed_plugins.unwanted_of(options.required)
        if self._file is not None and not self._writes:
            self._locked = installed_plugins.of_lock(read_text(self._file, _LOCK_FILE), self._file)
            if options.required is not None:
                raise invalid("required cannot be combined with lock=check: omit one of them")
            self._wanted = self._locked
        self._read = reader_of(task, options)

    def plan(self) -> Plan:
        plugins = self._read()
        if (self._wanted or self._unwanted) and any(plugin.enabled is None for plugin in plugins):
            self._task.warn("the server does not report which plugins are disabled or not loaded")
        not_in_lock: Mapping[str, Any] = {"extra": [], "newer": []}
        if self._locked is not None:
            not_in_lock = installed_plugins.not_in_lock(plugins, self._locked)
        entries = [plugin.as_dict() for plugin in plugins]
        compliance = installed_plugins.compliance(plugins, self._wanted, self._unwanted)
        values = {"plugins": entries, **compliance, **not_in_lock}
        if self._file is None or not self._writes:
            return unchanged(values)
        inactive = [plugin.short_name for plugin in plugins if not plugin.works]
        if inactive:
            self._task.warn(
                "the lock file omits these plugins, which are disabled or not loaded:"
                f" {', '.join(inactive)}"
            )
        exists = os.path.lexists(self._file)
        before = read_text(self._file, _LOCK_FILE) if exists else ""
        after = installed_plugins.lock_of(plugins)
        if before == after:
            return unchanged(values, state=before)
        return Plan(before, after, "update" if exists else "create", result=values)

    def findings(self, plan: Plan, values: Mapping[str, Any]) -> list[Finding]:
        """Return the findings of the plugins in the baseline or the lock file."""
        required = self._required or ()
        if not isinstance(required, Mapping):
            required = {entry["name"]: entry.get("version") for entry in required}
        found = {}
        for name in values["missing"]:
            after = {"version": required[name] or "any"} if name in required else None
            found[name] = Finding(name, "plugin", "create", after=after)
        for plugin in (*values["outdated"], *values["newer"]):
            versions = plugin["installed"], plugin["required"]
            found[plugin["name"]] = finding_of(plugin["name"], "updated", *versions)
        for name in values["inactive"]:
            found.setdefault(name, finding_of(name, "enabled", None, None))
        for plugin in values["unwanted"]:
            action = "removed" if plugin["state"] == "absent" else "disabled"
            found[plugin["name"]] = finding_of(plugin["name"], action, plugin["installed"], None)
        for name in values["extra"]:
            text = "it is not in the lock file"
            found[name] = Finding(name, "plugin", "delete", text=text)
        names = required if self._file is None else [row["short_name"] for row in values["plugins"]]
        return [*found.values(), *(Finding(n, "plugin") for n in names if n not in found)]

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        if self._file is None:
            raise AssertionError("apply requires a lock file")
        with atomic_write(os.path.realpath(self._file)) as file:
            file.write(plan.after.encode("utf-8"))
        return {}
