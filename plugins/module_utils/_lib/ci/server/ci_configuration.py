# SPDX-License-Identifier: GPL-3.0-or-later
"""Apply configuration as code to the server: `ci_configuration` [C3.23]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from ansible.module_utils.common.yaml import HAS_YAML, yaml_dump

from ...core.errors import ToolchainError, invalid, listed, shorten
from ...core.files import read_text
from ...core.http.messages import Response, json_or_none
from ...core.json_text import json_objects
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import NotNegative, Option, PathText
from ...core.plan import Plan, unchanged
from ...core.verification import not_saved
from ...core.yaml_text import UnreadableYaml, parse_yaml
from ..client import ADMINISTER, READ_SERVER, SYSTEM_READ, refuse_page, server_of
from ..service import SERVICE
from . import casc_comparison as casc

_YAML = {"Content-Type": "application/x-yaml; charset=utf-8"}
_MAX_UNCLEAR = 20
#: Server fact [ci-43]: messages for values that the server's own files have too.
_CONFLICT = re.compile(r"Found (conflicting|incompatible) configuration")


@dataclass(frozen=True, kw_only=True)
class CiConfigurationOptions:
    """The options of `ci_configuration`."""

    config: Annotated[Any, Option(values="json", private=True)] = None
    src: PathText | None = None
    replaces: list[str] = field(default_factory=list)
    max_deletions: NotNegative = 0

    constraints: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [["config", "src"]],
        "required_one_of": [["config", "src"]],
    }


class CiConfigurationOperation:
    """Compares a configuration with the server's export, and sends the sections that differ."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"read": reads(READ_SERVER, SYSTEM_READ), "configure": writes(ADMINISTER)},
        kind="configuration",
        name="{name}",
    )

    def __init__(self, task: Task, options: CiConfigurationOptions) -> None:
        if not HAS_YAML:
            raise invalid("PyYAML is missing: install it on the host that runs the task")
        self._task, self._options, self._server = task, options, server_of(task)
        self._wanted = _parsed(options)
        casc.hide_secrets(task, self._wanted)

    def plan(self) -> Plan:
        live = casc.live_configuration(self._server)
        casc.hide_secrets(self._task, self._wanted, live)
        found = casc.compared(self._wanted, live)
        result = {
            "changes": found.changes,
            "unknown": found.unknown,
            "configuration": {"name": ", ".join(map(str, self._wanted))},
        }
        if found.unclear:
            error = invalid("; ".join(found.unclear[:_MAX_UNCLEAR]))
            error.result = result
            raise error
        if found.unknown:
            self._task.warn(f"cannot compare the configuration at {listed(found.unknown)}")
        if not found.changes:
            return unchanged(result)
        try:
            self._require_allowed_removals(found)
        except ToolchainError as error:
            # a drift shows the other differences of the sections too
            error.result = result
            raise
        sent, lost = casc.without_failed(casc.sections(self._wanted, live))
        if lost:
            self._task.warn(
                f"the server cannot export {listed(lost)} and may reset it: set it in the"
                " configuration"
            )
        body = str(yaml_dump(sent, allow_unicode=True, sort_keys=False)).encode()
        response = self._server.read(
            "checking the configuration",
            f"{casc.PLUGIN_PATH}/check",
            method="POST",
            expect=(200, 400),
            headers=_YAML,
            body=body,
        )
        if response.status == 400:
            raise response.error("rejected", _messages(response))
        for obj in json_objects(json_or_none(response.body)):
            self._task.warn(f"checking the configuration: {obj.get('message')}")
        before = {change["path"]: change["before"] for change in found.changes}
        after = {change["path"]: change["after"] for change in found.changes}
        return Plan(before, after, "update", result=result, data=(body, live, found))

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        body, before, found = plan.data
        self._write(body, found)
        live = casc.live_configuration(self._server)
        left = casc.compared(self._wanted, live).live
        same = [path for path in left if path in found.live and found.live[path] == left[path]]
        lost = [path for path in left if path not in same and left[path] is not casc.MISSING]
        if lost:
            raise not_saved("configuring the server", lost, changed=True)
        if not left:
            return {}
        self._task.warn(
            f"configuring the server: the server did not take {listed(left)}, or these are its"
            " defaults, which exports leave out"
        )
        return {
            "changed": live != before,
            "changes": [change for change in found.changes if change["path"] not in same],
            "unknown": [*found.unknown, *left],
        }

    def _write(self, body: bytes, found: casc.ConfigurationComparison) -> None:
        def is_written() -> bool:
            left = casc.compared(self._wanted, casc.live_configuration(self._server))
            return len(left.changes) < len(found.changes)

        # server fact [ci-43]: releases before 2025 have only `apply`
        for action in ("configure", "apply"):
            response = self._server.write(
                "configuring the server",
                "POST",
                f"{casc.PLUGIN_PATH}/{action}",
                expect=(200, 400, 404),
                validate=refuse_page,
                verify=is_written,
                headers=_YAML,
                body=body,
            )
            if response.status == 400:
                error = response.error("rejected", _messages(response))
                if _CONFLICT.search(error.message):
                    error.with_hint(
                        "the server merges its own configuration files: change the value there, or"
                        " start the server with CASC_MERGE_STRATEGY=override"
                    )
                raise error
            if response.status != 404:
                return
        raise response.error("not_found", "the server has neither configure nor apply")

    def _require_allowed_removals(self, found: casc.ConfigurationComparison) -> None:
        """Raise `invalid` if list items would be removed that `replaces` and `max_deletions` do not
        allow.
        """
        for path, names in found.lost.items():
            if path not in self._options.replaces:
                raise invalid(
                    f"{path}: the server would remove {listed(names)} from this"
                    f" list. Add these items to the list, or add {path} to replaces"
                )
        count = sum(map(len, found.lost.values()))
        if count > self._options.max_deletions:
            items = [f"{path}[{name}]" for path, names in found.lost.items() for name in names]
            raise invalid(
                f"max_deletions is {self._options.max_deletions}, but {listed(items)} would be"
                f" removed: set max_deletions to {count}, or add what is to stay to the list"
            )


def _parsed(options: CiConfigurationOptions) -> Mapping[str, Any]:
    """Return the desired configuration. Raises `invalid` if it is not a YAML mapping."""
    name, content = "config", options.config
    if options.src is not None:
        name, content = "src", read_text(options.src, "the configuration in src")
    if isinstance(content, str):
        try:
            content = parse_yaml(content)
        except UnreadableYaml as error:
            place = "" if error.line is None else f" in line {error.line}"
            raise invalid(f"cannot parse {name}{place}: {error}") from None
    if isinstance(content, Mapping):
        # server fact [ci-43]: the server ignores these sections, which hold values for aliases
        content = {key: value for key, value in content.items() if not str(key).startswith("x-")}
    if not isinstance(content, Mapping) or not content:
        raise invalid(f"{name} is not a mapping with sections such as jenkins or unclassified")
    return content


def _messages(response: Response) -> str:
    found = [str(obj.get("message")) for obj in json_objects(json_or_none(response.body))]
    return shorten("; ".join(found)) if found else "the server rejected the configuration"
