# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect the contents of a report from the results of tasks [C9]."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.display import Display

try:  # from ansible-core 2.22 on, secrets are masked only when they are displayed
    from ansible.module_utils.secrets import mask_secrets
except ImportError:  # older releases mask the secrets in the result of a module

    def mask_secrets(value: str, /, *, mask_placeholder: str) -> str:
        return value


from ....module_utils._lib.core.errors import printable, shorten
from ....module_utils._lib.core.free_text import mask_free_text
from ....module_utils._lib.core.secret import MASK, Hidden, is_secret_name, without_user_info
from .. import ansible_internals
from ..descriptors import descriptor_of
from ..services import SERVICES
from . import task_findings
from .contents import Contents, now
from .since import finding_id

_NAME = "delivery.toolchain."
#: Task variable. `none` excludes the task from the report, `failures` reports only its failures.
VARIABLE = "toolchain_report"
_TEXT = 4000
_NAME_LENGTH = 1000
#: The action of playbooks and roles whose results contain entries of the report.
_BOOKKEEPING = f"{_NAME}bookkeeping"
_EXPORT = "_export"
#: Keys that only findings from a combined report have, and those of `drift_who`.
_SUMMARISED = ("first_seen", "reason", "until", "changed_by", "changed_at")


class Recorder:
    """Collects the objects that a run compares.

    Secrets in environment variables `TOOLCHAIN_...`, and those registered in Ansible, are masked.
    """

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        #: Whether a module has compared objects, or has failed to.
        self.has_compared = False
        self._checks: set[bool] = set()
        self._hosts: set[str] = set()
        #: The folder of the report, if it combines other reports.
        self.folder: Path | None = None
        #: The parameter `summarised` of `Contents.since`, if the report combines other reports.
        self.summarised: dict[str, Any] | None = None
        #: The task that exported a service, by host and service.
        self._exports: dict[tuple[str, str], str] = {}
        #: Ids of the objects that differed in the comparison with a sealed plan.
        self._compared: frozenset[str] = frozenset()
        #: The sealed plan of the run.
        self.plan: dict[str, Any] | None = None
        self._hidden = Hidden()
        self._hidden.add(
            *(
                value
                for name, value in os.environ.items()
                if name.startswith("TOOLCHAIN_") and is_secret_name(name)
            )
        )

    def result(self, task: Any, host: str, result: Mapping[str, Any], *, failed: bool) -> None:
        """Add the objects in the result of a task, or of a loop item."""
        module = module_of(task, result)
        step = result.get("report") if _action(task) == _BOOKKEEPING else None
        if module:
            self.contents.written += _writes(task, result)
        wanted = task.get_vars().get(VARIABLE, "all")
        if wanted == "none" or (wanted == "failures" and not failed):
            return
        if step and step.get("is_known"):
            return
        name = task.get_name().strip()
        if applied := _applied(task, result):
            name = f"{name}: {applied['label']}"
        left_out = result.get("left_out", ()) if module.endswith(_EXPORT) else ()
        whole = _is_whole(module) and not any("unread" in row for row in left_out)
        self.contents.add_task(host, self._line(name), whole=whole, failed=failed)
        if not failed and not module:
            self._step(task, host, step or {})
            return
        invocation = result.get("invocation")
        arguments = invocation.get("module_args") if isinstance(invocation, Mapping) else None
        options: Mapping[str, Any] = arguments if isinstance(arguments, Mapping) else {}
        declared = descriptor_of(module).service_name if module else None
        service = declared or _service_of_role(task)
        server = _server(options)
        if server:
            self.contents.servers[host, service] = server
        server = server or self.contents.servers.get((host, service), "")
        if module.endswith(_EXPORT):
            self._exports[host, service] = name
        title, check = self._title(task, result), boolean(task.check_mode or False, strict=False)
        read = task_findings.failed if failed else task_findings.compared
        found = read(module, result, options, title, check=check)
        if result.get("plan_skipped"):
            place = {"host": host, "service": service, "server": self._line(server)}
            found = self._without_skipped(found, result, place)
        if module and found:
            self.has_compared = True
            self._checks.add(check)
        self._add(found, host, service, server, name)

    def _without_skipped(
        self, found: list[Any], result: Mapping[str, Any], place: Mapping[str, str]
    ) -> list[Any]:
        """Return the findings without the objects that a sealed plan leaves out.

        The task returns them as unchanged, but they differed when the servers were compared.

        :param place: host, service and server of the task
        """
        self.contents.skipped += len(result["plan_skipped"])
        kept = []
        for record in found:
            named = {key: self._line(record[key]) for key in ("kind", "name")}
            differs = finding_id({**place, **named}) in self._compared
            planned = record["status"] == "drift" and not result.get("changed")
            if not planned and not (record["status"] == "ok" and differs):
                kept.append(record)
        return kept

    def _title(self, task: Any, result: Mapping[str, Any]) -> str:
        """Return the label of the loop item, or the name of the task."""
        if applied := _applied(task, result):
            return str(applied["label"])
        try:
            label = ansible_internals.item_label(result)
        except ansible_internals.Missing as missing:
            Display().warning(f"The report lists loop items without their label: {missing}")
            label = result.get("item")
        return str(label) if isinstance(label, str | int) else name_without_role(task)

    def _step(self, task: Any, host: str, step: Mapping[str, Any]) -> None:
        """Add the entries of the report that a step of a playbook or role returns.

        :param step: key `report` of its result, see `bookkeeping`
        """
        if "summary" in step:
            self._summarise(step["summary"])
        if "plan" in step:
            self.plan = dict(step["plan"])
        self.contents.reason = self._line(step.get("reason") or self.contents.reason)
        for approval in step.get("approvals", ()):
            shown = {name: self._line(value) for name, value in approval.items()}
            if shown not in self.contents.approvals:
                self.contents.approvals.append(shown)
        if step.get("restart"):
            self._start_again()
        for one in step.get("files", ()):
            self.contents.files[one["service"], one["kind"], self._line(one["name"])] = one["file"]
        for finding in step.get("findings", ()):
            self._add_of_step(finding, task.get_name().strip(), host)

    def _add_of_step(self, finding: Mapping[str, Any], task: str, host: str) -> None:
        """Add a finding of a step, unless the report has the object already."""
        place = (host, finding["service"], finding["kind"], finding["name"])
        if self.contents.knows(*place):
            if finding.get("fails"):
                self.contents.let_fail(*place)
            return
        if finding["status"] == "unmanaged":
            task = self._exports.get(place[:2], task)
        self._add([finding], *place[:2], self.contents.servers.get(place[:2], ""), task)

    def _start_again(self) -> None:
        """Discard all findings after the comparison with a sealed plan, before the run writes."""
        old = self.contents
        self._compared = frozenset(
            finding["id"] for finding in old.findings if finding["status"] == "drift"
        )
        self.contents = Contents(
            playbook=old.playbook,
            started=old.started,
            written=old.written,
            files=old.files,
            approvals=old.approvals,
            reason=old.reason,
        )
        self._checks.clear()

    def _summarise(self, summary: Mapping[str, Any]) -> None:
        """Add the content of other reports.

        :param summary: return value of the step `summarise`
        """
        self.folder, self.has_compared = Path(summary["folder"]), True
        self._checks.add(summary["check"])
        self._hosts.update(summary["hosts"])
        self.summarised = {"hosts": summary["hosts"], "unread": summary["unread"]}
        for finding in summary["findings"]:
            places = (finding["host"], finding["service"], finding["server"], finding["task"])
            self._add([finding], *map(self._line, places))
        for row in summary["unchanged"]:
            place = (row["service"], row["server"], row["host"])
            self.contents.add_unnamed(place, row["ok"])

    def _add(
        self, found: Iterable[Mapping[str, Any]], host: str, service: str, server: str, task: str
    ) -> None:
        for record in found:
            if record.get("refused"):
                reason = printable(self.mask(record["refused"]), _TEXT)
                place = (host, service, self._line(server))
                self.contents.add_refused(place, reason, record["count"], self._line(task))
                continue
            self.contents.add(
                host=host,
                service=service,
                server=self._line(server),
                kind=self._line(record["kind"]),
                name=self._line(record["name"]),
                action=record["action"],
                text=printable(self.mask(record["text"]), _TEXT),
                before=self._masked(record.get("before")),
                after=self._masked(record.get("after")),
                task=self._line(task),
                status=record["status"],
                fails=record.get("fails"),
                not_compared=record.get("not_compared"),
                digests=record.get("digests"),
                **{key: self._line(record[key]) for key in _SUMMARISED if key in record},
            )

    def _line(self, text: Any) -> str:
        return shorten(self.mask(text), _NAME_LENGTH)

    def mask(self, text: Any) -> str:
        masked: str = mask_secrets(self._hidden.mask(str(text)), mask_placeholder=MASK)
        return mask_free_text(masked)

    def _masked(self, value: Any) -> Any:
        """Convert a value to JSON types, with secrets masked in keys and strings."""
        if isinstance(value, Mapping):
            return {self.mask(key): self._masked(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._masked(item) for item in value]
        if value is None or isinstance(value, bool | int | float):
            return value
        return self.mask(value)

    def end(self, hosts: Iterable[str], *, check: bool) -> None:
        """Complete the contents at the end of the run.

        :param check: whether the run is in check mode; used only if no task ran
        """
        self.contents.hosts = sorted(self._hosts or hosts)
        self.contents.finished = now()
        self.contents.check = self.is_check(default=check)

    def is_check(self, *, default: bool) -> bool:
        """Return whether all tasks ran in check mode, or `default` without any task."""
        return all(self._checks) if self._checks else default


def _writes(task: Any, result: Mapping[str, Any]) -> int:
    """Return the number of writes of a task, at least 1 if `no_log` hides those of a change."""
    if "censored" in result:
        return int(bool(result.get("changed")) and not boolean(task.check_mode or False))
    http = result.get("http")
    return int(http.get("writes") or 0) if isinstance(http, Mapping) else 0


def _is_whole(module: str) -> bool:
    """Return whether the result of a module lists all objects, also unchanged objects."""
    if not module:
        return True
    descriptor = descriptor_of(module)
    return bool(descriptor.listed) or not descriptor.kind


def _service_of_role(task: Any) -> str:
    """Return the service of the role that contains a task, or "".

    The full name of a task begins with the name of its role.
    """
    name = str(task.get_name().strip())
    role = name.removesuffix(f" : {name_without_role(task)}")
    service = role.removeprefix(_NAME).partition("_")[0]
    return service if role != name and service in SERVICES else ""


def _action(task: Any) -> str:
    """Return the full name of the action of a task."""
    return str(getattr(task, "resolved_action", None) or task.action)


def module_of(task: Any, result: Mapping[str, Any]) -> str:
    """Return the name of the module of the collection that a task ran, "" for another action."""
    action = _action(task)
    if action == _BOOKKEEPING:
        return str(_applied(task, result).get("module", ""))
    return action.removeprefix(_NAME) if action.startswith(_NAME) else ""


def _applied(task: Any, result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a step of a role ran a module with, {} for other tasks."""
    return result.get("applied_by", {}) if _action(task) == _BOOKKEEPING else {}


def name_without_role(task: Any) -> str:
    """Return the name of a task without the prefix of its role."""
    return str(task.name or task.action).strip()


def _server(options: Mapping[str, Any]) -> str:
    """Return the address of the server from the options, without user info and query."""
    url = options.get("url")
    return without_user_info(str(url)).split("?")[0].rstrip("/") if url else ""
