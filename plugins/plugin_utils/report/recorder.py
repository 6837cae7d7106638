# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect the contents of a report from the results of tasks [C9]."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.display import Display

try:  # ansible-core 2.22 and newer leave the masking of secrets to the display
    from ansible.module_utils.secrets import mask_secrets
except ImportError:  # older ones mask the secrets in the result of a module

    def mask_secrets(value: str, /, *, mask_placeholder: str) -> str:
        return value


from ansible_collections.delivery.toolchain.plugins.module_utils.core.connection.options import (
    SERVICES,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.errors import (
    printable,
    shorten,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.secret import (
    MASK,
    Hidden,
    is_secret_name,
    without_user_info,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils import ansible_internals, findings
from ansible_collections.delivery.toolchain.plugins.plugin_utils.descriptors import descriptor_of
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report import objects, sealed
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report.contents import (
    Contents,
    now,
)

_NAME = "delivery.toolchain."
#: Task variable: `none` keeps the task out of the report, `failures` reports only its failure.
VARIABLE = "toolchain_report"
_TEXT = 4000
_NAME_LENGTH = 1000
#: The fact of the playbook `drift_summary` with the content of several reports.
SUMMARY = "summary_read"
#: Facts in which roles keep their findings, also those that are in no result of a module.
_FACT = re.compile(r"(analysis|ci|repo)\w*_drift")
#: Keys that only a finding of a summarised report has.
_SUMMARISED = ("first_seen", "reason", "until")
_OWNERS = {"artifact": "repo", "build": "repo", "docker": "repo", "jql": "tracker"}


class Recorder:
    """Collect the objects of a run.

    Secrets in the environment variables `TOOLCHAIN_...`, and those that Ansible knows, are masked.
    """

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self._checks: set[bool] = set()
        self._hosts: set[str] = set()
        #: The folder of the report, if it is a summary of other reports.
        self.folder: Path | None = None
        #: `Contents.since` of the summarised reports.
        self.summarised: dict[str, Any] | None = None
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
        """Add the objects in the result of a task, or of one item of its loop."""
        wanted = task.get_vars().get(VARIABLE, "all")
        if wanted == "none" or (wanted == "failures" and not failed):
            return
        action = str(getattr(task, "resolved_action", None) or task.action)
        module = action.removeprefix(_NAME) if action.startswith(_NAME) else ""
        self.contents.add_task(
            host, self._line(task.get_name().strip()), whole=_is_whole(module), failed=failed
        )
        if not failed and not module:
            self._facts(task, host, result.get("ansible_facts"))
            return
        invocation = result.get("invocation")
        arguments = invocation.get("module_args") if isinstance(invocation, Mapping) else None
        options: Mapping[str, Any] = arguments if isinstance(arguments, Mapping) else {}
        declared = descriptor_of(module).service if module else None
        service = declared or _service_of_role(task)
        server = _server(options)
        if server:
            self.contents.servers[host, service] = server
        server = server or self.contents.servers.get((host, service), "")
        read = objects.failed if failed else objects.compared
        found = read(module, result, options, self._title(task, result))
        skipped = result.get("plan_skipped") or ()
        self.contents.skipped += len(skipped)
        if skipped and not result.get("changed"):
            found = [record for record in found if record["status"] != "drift"]
        found = _with_digests(found, result.get("plan_digests") or [])
        if module and found:
            self._checks.add(boolean(task.check_mode or False, strict=False))
        self._add(found, host, service, server, task.get_name().strip())

    def _title(self, task: Any, result: Mapping[str, Any]) -> str:
        """Return the label of the item of a loop, or the name of the task."""
        try:
            label = ansible_internals.item_label(result)
        except ansible_internals.Missing as missing:
            Display().warning(f"The report lists loop items without their label: {missing}")
            label = result.get("item")
        return str(label) if isinstance(label, str | int) else _own_name(task)

    def _facts(self, task: Any, host: str, facts: Any) -> None:
        """Add the findings of a role that were in no result of a module."""
        for name, entries in facts.items() if isinstance(facts, Mapping) else ():
            if name == SUMMARY:
                self._summarise(entries)
            if name == sealed.MADE:
                self.plan = dict(entries)
            if name == sealed.COMPARED:
                self._start_again()
            service = _service(name)
            if _FACT.fullmatch(str(name)) is None or not isinstance(entries, list):
                continue
            new = [
                entry
                for entry in entries
                if isinstance(entry, Mapping)
                and {"kind", "name", "status", "action", "text"} <= entry.keys()
                and not self.contents.knows(host, service, entry["kind"], entry["name"])
            ]
            server = self.contents.servers.get((host, service), "")
            self._add(new, host, service, server, task.get_name().strip())

    def _start_again(self) -> None:
        """Discard the findings of the comparison with a sealed plan, before the run writes."""
        old = self.contents
        self.contents = Contents(playbook=old.playbook, started=old.started)
        self._checks.clear()

    def _summarise(self, summary: Mapping[str, Any]) -> None:
        """Add the content of other reports, as the lookup `drift_reports` returns it."""
        self.folder = Path(summary["folder"])
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
            self.contents.add(
                host=host,
                service=service,
                server=self._line(server),
                kind=self._line(record["kind"]),
                name=self._line(record["name"]),
                action=record["action"],
                text=printable(self._mask(record["text"]), _TEXT),
                before=self._masked(record.get("before")),
                after=self._masked(record.get("after")),
                task=self._line(task),
                status=record["status"],
                digests=record.get("digests"),
                **{key: self._line(record[key]) for key in _SUMMARISED if key in record},
            )

    def _line(self, text: Any) -> str:
        return shorten(self._mask(text), _NAME_LENGTH)

    def _mask(self, text: Any) -> str:
        masked: str = mask_secrets(self._hidden.mask(str(text)), mask_placeholder=MASK)
        return masked

    def _masked(self, value: Any) -> Any:
        """Return a value for JSON, with the secrets in its keys and strings masked."""
        if isinstance(value, Mapping):
            return {self._mask(key): self._masked(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._masked(each) for each in value]
        if value is None or isinstance(value, bool | int | float):
            return value
        return self._mask(value)

    def end(self, hosts: Iterable[str], *, check: bool) -> None:
        """Complete the contents at the end of the run.

        :param check: the mode of a run in which no module of the collection compared anything
        """
        self.contents.hosts = sorted(self._hosts or hosts)
        self.contents.finished = now()
        self.contents.check = self.is_check(default=check)

    def is_check(self, *, default: bool) -> bool:
        """Return whether all tasks only checked; `default` if no task compared anything."""
        return all(self._checks) if self._checks else default


def _with_digests(found: list[Any], digests: list[Any]) -> list[Any]:
    """Add the digests of a task's changes to its findings, which are in the same order.

    :param digests: for each finding a digest, or a list of them. The last finding gets the digests
        of the changes that are not listed one by one. A module that writes all in one request has
        a single digest.
    """
    each = [one if isinstance(one, list) else [one] for one in digests]
    drift = [one for one in found if one["status"] == "drift"]
    for number, one in enumerate(drift):
        groups = each[number : number + 1] or each[-1:]
        groups = each[number:] if number == len(drift) - 1 and groups else groups
        one["digests"] = [digest for group in groups for digest in group]
    return found


def _is_whole(module: str) -> bool:
    """Return whether the result of a task lists every object, unchanged ones included."""
    if not module or module in findings.READERS:
        return True
    descriptor = descriptor_of(module)
    return bool(descriptor.listed) or not descriptor.kind


def _service(name: str) -> str:
    """Return the service in the name of a role or of its fact; "" for roles of several services."""
    word = str(name).partition("_")[0]
    service = _OWNERS.get(word, word)
    return service if service in SERVICES else ""


def _service_of_role(task: Any) -> str:
    """Return the service of the role of a task: the full name of a task begins with its role."""
    name = str(task.get_name().strip())
    role = name.removesuffix(f" : {_own_name(task)}")
    return _service(role.removeprefix(_NAME)) if role != name else ""


def _own_name(task: Any) -> str:
    """Return the name of a task without that of its role."""
    return str(task.name or task.action).strip()


def _server(options: Mapping[str, Any]) -> str:
    """Return the base address of the server, without login and query."""
    url = options.get("url")
    return without_user_info(str(url)).split("?")[0].rstrip("/") if url else ""
