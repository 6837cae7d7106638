# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the state of servers into the folder of the desired state, for chosen findings of drift."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...module_utils._lib.core.errors import ToolchainError, invalid
from ...module_utils._lib.core.files import open_regular
from ...module_utils._lib.wiki.formats.front_matter import block_of
from . import kinds, yaml_edits
from .accounts import Accounts
from .desired_schema import schema_of, services
from .desired_state import key_of, name_of
from .findings import RULED
from .report import ignored
from .report.since import finding_id
from .variables import entries_of

_REPORT = "report.json"
#: The only list without a key: its entries are named by their sections.
SECTIONS = "configuration"
#: Strings in the rows of a report.
_SERVER = ("service", "server")
_FINDING = (*_SERVER, "host", "kind", "name", "action", "status")
Finding = Mapping[str, Any]


# -- findings -------------------------------------------------------------------------------------


def report_of(folder: Path) -> dict[str, Any]:
    """Return the report in a folder. Raises `invalid`."""
    file = folder / _REPORT
    try:
        with open(file, "rb", opener=open_regular) as stream:
            report = json.loads(stream.read())
        # enforce lists the findings that it has left alone as unread
        others = [] if report.get("check", True) else report["unread"]
        found = [*report["findings"], *others]
        servers = report["servers"]
        findings = [{**finding, "id": finding_id(finding)} for finding in found]
        rows = [*((row, _SERVER) for row in servers), *((row, _FINDING) for row in findings)]
        if any(not isinstance(row[key], str) for row, keys in rows for key in keys):
            raise TypeError
        return {"findings": findings, "servers": servers}
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or "it is not a report of drift"
        raise invalid(
            f"adopt_report: cannot read {file}: {reason}. Run drift with drift_report, and name"
            " its folder"
        ) from None


def chosen(findings: Sequence[Finding], given: Any) -> list[Finding]:
    """Return the findings that `adopt_findings` names. Raises `invalid`.

    :param given: list of ids, or of mappings with patterns as in `drift_ignore`
    """
    entries = entries_of(given) if isinstance(given, str) else given
    if not isinstance(entries, list) or not entries:
        raise invalid(
            "adopt_findings is empty or no list: name ids of findings, or mappings with patterns"
            " such as kind: job"
        )
    found: dict[str, Finding] = {}
    for number, entry in enumerate(entries):
        for finding in _matching(findings, entry, f"adopt_findings[{number}]"):
            found[str(finding["id"])] = finding
    return list(found.values())


def _matching(findings: Sequence[Finding], entry: Any, place: str) -> list[Finding]:
    if isinstance(entry, Mapping):
        try:
            (pattern,) = ignored.parse([entry])
        except ignored.IgnoreError as error:
            raise invalid(str(error).replace("drift_ignore[0]", place)) from None
        open_ones = [one for one in findings if one["status"] in ("drift", "unmanaged")]
        found = [one for one in open_ones if pattern.matches(one)]
    else:
        found = [one for one in findings if one["id"] == str(entry).strip()]
    if not found:
        raise invalid(f"{place} matches no finding of the report: {entry!s:.100}. Run drift again")
    return found


def require_adoptable(finding: Finding) -> None:
    """Raise `invalid` for a finding without a state that the folder could describe."""
    shown = f"the finding {finding['id']} ({finding['kind']} {finding['name']})"
    if finding["status"] == "failed":
        raise invalid(f"{shown} is a failure: there is no state to adopt")
    if finding["status"] == "unknown":
        raise invalid(f"{shown} cannot be compared, so there is nothing to adopt")
    if not lists_of(finding):
        raise invalid(f"{shown} is no object of a desired state: change the rule or script instead")


def lists_of(finding: Finding) -> list[str]:
    """Return the lists of the desired state that may have the object of a finding."""
    service = str(finding["service"])
    if service not in services() or finding["kind"] in RULED:
        return []
    properties = schema_of(service)["properties"]
    found = [
        name
        for name in properties
        if kinds.name_of(service, name) == finding["kind"]
        and (name == SECTIONS or key_of(service, name))
    ]
    return [*found, "trees"] if "pages" in found else found


def require_servers(
    report: Mapping[str, Any], findings: Sequence[Finding], addresses: Mapping[str, str]
) -> None:
    """Raise `invalid` if the run would read other servers than those of the findings.

    :param addresses: configured address by service
    """
    for finding in findings:
        service, server = str(finding["service"]), str(finding["server"])
        address = addresses.get(service)
        if address is None:
            raise invalid(
                f"adopt_connections has no url for {service}, and neither has the environment: set"
                f" it to {server}"
            )
        known = sorted({row["server"] for row in report["servers"] if row["service"] == service})
        if address not in known:
            raise invalid(
                f"adopt_connections: the report does not name the server {address}: it has"
                f" {', '.join(known) or 'none'}"
            )
        if address != server:
            raise invalid(
                f"the finding {finding['id']} is of the server {server}, but this run connects to"
                f" {address}: use the connections of that server"
            )


# -- exports --------------------------------------------------------------------------------------


def exports(findings: Sequence[Finding]) -> dict[str, dict[str, Any]]:
    """Return the options of the exports that read the objects of findings, by service."""
    found: dict[str, dict[str, Any]] = {}
    for finding in findings:
        service, name = str(finding["service"]), str(finding["name"])
        options = found.setdefault(service, {"lists": []})
        for kind in lists_of(finding):
            options["lists"] = sorted({*options["lists"], kind})
        if service == "tracker":
            options["projects"] = sorted({*options.get("projects", ()), name.partition("/")[0]})
        elif service == "ci":
            options["jobs"] = sorted({*options.get("jobs", ()), *_jobs(finding)})
        elif service == "wiki":
            tree = _tree(finding)
            options["trees"] = [*(each for each in options.get("trees", ()) if each != tree), tree]
    return found


def _jobs(finding: Finding) -> list[str]:
    """Return the patterns of the jobs to export: the job, or the folder of another object."""
    kind, name = finding["kind"], str(finding["name"])
    if kind == "job":
        return [name]
    folder, slash, _rest = name.partition("/")
    in_folder = kind in ("credential", "view") and slash and not folder.startswith("domain:")
    return [folder] if in_folder else []


def _tree(finding: Finding) -> dict[str, Any]:
    """Return the page to export. A space is exported with its home page."""
    name, alone = str(finding["name"]), {"children": False, "missing_ok": True}
    if finding["kind"] == "space":
        return {"space": name, **alone}
    if "/" not in name:
        return {"page_id": name, **alone}
    space, _slash, _title = name.partition("/")
    return {"space": space, "title": title_there(finding), **alone}


def title_there(finding: Finding) -> str:
    """Return the title that a page had in the wiki: findings name it by the title of its file."""
    before = finding.get("before") if finding["kind"] == "page" else None
    title = before.get("title") if isinstance(before, Mapping) else None
    return " ".join(str(title or str(finding["name"]).partition("/")[2]).split())


# -- the state of the servers ---------------------------------------------------------------------


@dataclass(frozen=True)
class Exported:
    """The objects of an export.

    :param left_out: dicts with `kind`, `name` and `reason`
    :param unread: reason by service that could not be exported
    """

    folder: Path
    left_out: Sequence[Mapping[str, str]]
    unread: Mapping[str, str] = field(default_factory=dict)
    accounts: Accounts = field(default_factory=Accounts)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Ids of the parents of exported pages, by space and title.
    parents: Mapping[str, str] = field(default_factory=dict)
    #: What trees have saved last, by space and title of the page.
    published: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(
        cls, folder: Path, results: Mapping[str, Mapping[str, Any]], accounts: Accounts
    ) -> Exported:
        """Read an export.

        :param results: result of the module by service
        :param accounts: accounts that stand for the names in the desired state
        """
        values = {
            service: yaml_edits.load((folder / f"{service}.yml").read_text("utf-8"))
            for service in services()
            if (folder / f"{service}.yml").exists()
        }
        left_out = [row for result in results.values() for row in result.get("left_out", ())]
        unread = {
            service: str(result.get("msg") or "the export failed")
            for service, result in results.items()
            if not result.get("skipped") and "exported" not in result
        }
        parents = results.get("wiki", {}).get("parents") or {}
        rows = results.get("wiki", {}).get("published") or ()
        published = {f"{row['space']}/{row['title']}": row for row in rows}
        return cls(folder, left_out, unread, accounts, values, parents, published)

    def entry(self, service: str, kind: str, name: str) -> dict[str, Any] | None:
        """Return the entry of an object with the names of the desired state for its accounts, or
        `None` if the server has no such object. Raises `invalid` if a name is not certain.
        """
        found = self._entry(service, kind, name)
        try:
            return None if found is None else self.accounts.named(service, kind, found)
        except ToolchainError as error:
            raise invalid(f"cannot adopt {kinds.name_of(service, kind)} {name}: {error}") from None

    def _entry(self, service: str, kind: str, name: str) -> dict[str, Any] | None:
        if service == "wiki" and kind in ("pages", "trees"):
            return self._page(name)
        entries = self.values.get(service, {}).get(kind) or []
        if kind == SECTIONS:
            sections = {key: value for entry in entries for key, value in entry["config"].items()}
            found = {each: sections[each] for each in sections_in(name) if each in sections}
            return {"config": found} if found else None
        return next((entry for entry in entries if entry_name(service, kind, entry) == name), None)

    def text(self, entry: Mapping[str, Any]) -> str | None:
        """Return the XML of an exported object, or `None` if it has none."""
        src = entry.get("src")
        return None if src is None else (self.folder / str(src)).read_bytes().decode()

    def _page(self, name: str) -> dict[str, Any] | None:
        for tree in self.values.get("wiki", {}).get("trees") or []:
            text = (self.folder / tree["src"] / "index.xml").read_bytes().decode()
            block = block_of(text)
            if block and f"{tree['space']}/{block.values.get('title')}" == name:
                # an entry names its parent by one of both
                parent = {"parent_id": self.parents[name]} if name in self.parents else {}
                if "parent_title" in tree:
                    parent["parent_title"] = tree["parent_title"]
                labels = block.values.get("labels", [])
                return {"body": text[block.content :], "labels": labels, **parent}
        return None

    def attachments(self, name: str) -> dict[str, str]:
        """Return the paths of the exported attachments of a page, by name."""
        for tree in self.values.get("wiki", {}).get("trees") or []:
            folder = self.folder / tree["src"]
            block = block_of((folder / "index.xml").read_bytes().decode())
            if block and f"{tree['space']}/{block.values.get('title')}" == name:
                files = block.values.get("attachments") or {}
                return {each: str(folder / file) for each, file in files.items() if file}
        return {}

    def reasons(self, name: str) -> list[str]:
        """Return the reasons for which an object, or a part of it, is not in the export."""
        return [
            f"{row['kind']} {row['name']}: {row['reason']}"
            for row in self.left_out
            if _covers(str(row["name"]), name)
        ]


def _covers(row: str, name: str) -> bool:
    if row.endswith("*"):
        return name.startswith(row[:-1])
    return row == name or row.startswith((f"{name}:", f"{name}.", f"{name}["))


def sections_in(name: str) -> list[str]:
    """Return the sections in the name of a finding of the configuration as code, or in a path."""
    return [re.split(r"[.\[]", each)[0] for each in name.split(", ")]


def names_of(
    service: str, kind: str, entry: Mapping[str, Any], accounts: Accounts | None = None
) -> set[str]:
    """Return the names of the object of an entry, before and after it is renamed.

    :param accounts: accounts that stand for the names in the entry
    """
    entry = entry if accounts is None else accounts.identified(service, kind, entry)
    names = {entry_name(service, kind, entry)}
    if entry.get("new_name"):
        names.add(entry_name(service, kind, {**entry, "name": entry["new_name"]}))
    return names


def entry_name(service: str, kind: str, entry: Mapping[str, Any]) -> str:
    """Return the name of the object of an entry, as in findings."""
    if kind == SECTIONS:
        config = entry.get("config")
        return ", ".join(map(str, config)) if isinstance(config, Mapping) else ""
    return name_of(entry, key_of(service, kind))
