# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the state of servers into the folder of the desired state, for chosen findings of drift."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...module_utils._lib.ci.jobs.kept_secrets import with_own_secrets
from ...module_utils._lib.core.errors import ToolchainError, invalid
from ...module_utils._lib.core.files import open_regular
from ...module_utils._lib.core.front_matter import block_of
from . import adopted_entry, yaml_edits
from .adopted_entry import CannotAdopt
from .desired_schema import schema_of, services
from .desired_state import YAML_ENDINGS, key_of, kind_of, name_of
from .folder_edits import EntryPlace, FolderEdits
from .report import ignored
from .report.since import finding_id

_REPORT = "report.json"
#: Endings of page files in storage format. Other pages are written in Markdown.
_STORAGE = (".xml", ".html", ".xhtml")
_RULES = ("item", "build", "trash", "script", "java", "server", "task")
#: The only list without a key: its entries are named by their sections.
_SECTIONS = "configuration"
Finding = Mapping[str, Any]


# -- findings -------------------------------------------------------------------------------------


def report_of(folder: Path) -> dict[str, Any]:
    """Return the report in a folder. Raises `invalid`."""
    file = folder / _REPORT
    try:
        with open(file, "rb", opener=open_regular) as stream:
            report = json.loads(stream.read())
        findings = [{**finding, "id": finding_id(finding)} for finding in report["findings"]]
        return {"findings": findings, "servers": list(report["servers"])}
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
    entries = given.split(",") if isinstance(given, str) else given
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
    for finding in found:
        _require_adoptable(finding)
    return found


def _require_adoptable(finding: Finding) -> None:
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
    if service not in services() or finding["kind"] in _RULES:
        return []
    properties = schema_of(service)["properties"]
    found = [
        name
        for name in properties
        if kind_of(name) == finding["kind"] and (name == _SECTIONS or key_of(service, name))
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
    space, _slash, title = name.partition("/")
    return {"space": space, "title": title, **alone}


# -- the state of the servers ---------------------------------------------------------------------


@dataclass(frozen=True)
class Exported:
    """The objects of an export.

    :param left_out: dicts with `kind`, `name` and `reason`
    """

    folder: Path
    left_out: Sequence[Mapping[str, str]]
    values: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path, left_out: Sequence[Mapping[str, str]]) -> Exported:
        values = {
            service: yaml_edits.load((folder / f"{service}.yml").read_text("utf-8"))
            for service in services()
            if (folder / f"{service}.yml").exists()
        }
        return cls(folder, left_out, values)

    def entry(self, service: str, kind: str, name: str) -> dict[str, Any] | None:
        """Return the entry of an object, or `None` if the server has no such object."""
        if service == "wiki" and kind in ("pages", "trees"):
            return self._page(name)
        entries = self.values.get(service, {}).get(kind) or []
        if kind == _SECTIONS:
            sections = {key: value for entry in entries for key, value in entry["config"].items()}
            found = {each: sections[each] for each in name.split(", ") if each in sections}
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
                parent = {"parent_id": tree["parent_id"]} if "parent_id" in tree else {}
                labels = block.values.get("labels", [])
                return {"body": text[block.content :], "labels": labels, **parent}
        return None

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


def _names_of(service: str, kind: str, entry: Mapping[str, Any]) -> set[str]:
    """Return the names of the object of an entry, before and after it is renamed."""
    names = {entry_name(service, kind, entry)}
    if entry.get("new_name"):
        names.add(entry_name(service, kind, {**entry, "name": entry["new_name"]}))
    return names


def entry_name(service: str, kind: str, entry: Mapping[str, Any]) -> str:
    """Return the name of the object of an entry, as in findings."""
    if kind == _SECTIONS:
        config = entry.get("config")
        return ", ".join(map(str, config)) if isinstance(config, Mapping) else ""
    return name_of(entry, key_of(service, kind))


def _title_in(text: str) -> str:
    """Return the title in the front matter of a page file, as its publisher reads it."""
    block = block_of(text)
    title = "" if block is None else str(block.values.get("title") or "")
    return " ".join(unicodedata.normalize("NFC", title).split())


# -- adopting -------------------------------------------------------------------------------------


@dataclass
class Adoption:
    """Adopts findings, one after the other.

    :param deletions: remove the entries of objects that the server does not have
    :param notes: sentences about objects that were not adopted, or not completely
    """

    edits: FolderEdits
    exported: Exported
    deletions: bool
    adopted: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def adopt(self, finding: Finding) -> None:
        """Add the edits for a finding."""
        shown = f"{finding['kind']} {finding['name']}"
        try:
            action = self._adopt(finding, shown)
        except (CannotAdopt, yaml_edits.EditError) as error:
            raise ToolchainError("failed", f"cannot adopt {shown}: {error}") from None
        if action:
            keys = ("id", "service", "kind", "name")
            self.adopted.append({**{key: finding[key] for key in keys}, "action": action})

    def _adopt(self, finding: Finding, shown: str) -> str:
        service, name = str(finding["service"]), str(finding["name"])
        kinds = lists_of(finding)
        present = self.exported.entry(service, kinds[0], name)
        reasons = self.exported.reasons(name)
        places = [
            place
            for kind in kinds
            for place in self.edits.places(service, kind)
            if name in _names_of(service, kind, place.entry)
        ]
        if any(place.entry.get("new_name") for place in places):
            raise CannotAdopt("its entry has a new_name: rename the entry by hand, and run drift")
        if present is None:
            if reasons:
                raise CannotAdopt(f"the export left it out ({'; '.join(reasons)})")
            if service == "wiki" and finding["kind"] != "space" and "/" not in name:
                raise CannotAdopt("its entry has a page_id only: name the page by space and title")
            return self._remove(finding, places, shown)
        self.notes += [f"{shown}: not adopted is {reason}" for reason in reasons]
        if places:
            return self._update(finding, places, present)
        if "trees" in kinds:
            return self._update_tree_page(name, present)
        if kinds[0] == _SECTIONS:
            raise CannotAdopt("no entry of the folder has exactly these sections in config")
        return self._add(service, kinds[0], present)

    # -- objects that the server has

    def _update(
        self, finding: Finding, places: Sequence[EntryPlace], present: dict[str, Any]
    ) -> str:
        target = next((place for place in places if place.file.of_environment), places[0])
        base = next((place for place in places if not place.file.of_environment), target)
        entry = {**base.entry, **target.entry}
        kind, text = target.kind, self.exported.text(present)
        options = schema_of(str(finding["service"]))["properties"][kind]["items"]["properties"]
        present = (
            dict(present) if text is None else {**adopted_entry.from_xml(kind, text), **present}
        )
        source = str(present.pop("src", ""))
        body = present.pop("body", None) if kind == "pages" else text
        if kind == "pages" and "section" in entry:
            raise CannotAdopt("the entry describes a section of the page: change it by hand")
        named = {key for side in ("before", "after") for key in _fields(finding.get(side))}
        changes = adopted_entry.changes(entry, present, options, named)
        target.entry.update(changes)
        if "src" in entry and kind == _SECTIONS:
            raise CannotAdopt("its sections are in a file: change that file by hand")
        if body is not None and entry.get("state") == "absent":
            if kind == "pages":
                target.entry["body"] = body
            else:
                target.entry["src"] = self._new_file(target.file.path.parent, source, body)
        elif body is not None:
            self._write_body(target, base, body)
        left = named.intersection(entry).difference(
            present, changes, ("config", "src", "body", "state")
        )
        if left:
            self.notes.append(
                f"{finding['kind']} {finding['name']}: the export does not have"
                f" {', '.join(sorted(left))}"
            )
        return "updated"

    def _write_body(self, target: EntryPlace, base: EntryPlace, text: str) -> None:
        """Write the XML or the body of a page where the entry has it."""
        inline = "body" if target.kind == "pages" else "config"
        owner = target if {"src", inline} & target.entry.keys() else base
        if inline in owner.entry:
            value = owner.entry[inline]
            if isinstance(value, str):
                target.entry[inline] = with_own_secrets(text, value)
            return
        if "src" not in owner.entry:
            return
        path = owner.file.path.parent / str(owner.entry["src"])
        path = Path(os.path.normpath(path))
        if path.suffix in YAML_ENDINGS:
            raise CannotAdopt(f"its src {path.name} is a YAML file: change it by hand")
        own = self.edits.text_of(path)
        if target.kind == "pages":
            text = page_text(own or "", text, path, None)
        shared = owner is not target or self._users(path) > 1
        text = with_own_secrets(text, own or "")
        if own == text:
            return
        if shared:
            name = f"{target.kind}/{path.name}"
            target.entry["src"] = self._new_file(
                target.file.path.parent, f"{target.file.service}/{name}", text
            )
        else:
            self.edits.others[path] = text

    def _users(self, path: Path) -> int:
        """Return the number of entries that use a file.

        In files of other environments, which are not parsed, the name of the file counts.
        """
        own = sum(
            os.path.normpath(place.file.path.parent / str(place.entry["src"])) == str(path)
            for file in self.edits.files
            for kind in file.values
            for place in self.edits.places(file.service, kind)
            if place.file is file and isinstance(place.entry, dict) and "src" in place.entry
        )
        return own + sum(path.name in text for text in self.edits.texts_of_others)

    def _update_tree_page(self, name: str, present: Mapping[str, Any]) -> str:
        """Write a page into the file of its tree."""
        space, _slash, title = name.partition("/")
        for path in self._tree_files(space):
            own = self.edits.text_of(path) or ""
            if _title_in(own) == title:
                text = page_text(own, str(present["body"]), path, present["labels"])
                self.edits.others[path] = text
                return "updated"
        raise CannotAdopt("no entry has its space and title, and no file of a tree its title")

    def _tree_files(self, space: str) -> Iterator[Path]:
        for place in self.edits.places("wiki", "trees"):
            if place.entry.get("space") == space:
                folder = Path(os.path.normpath(place.file.path.parent / str(place.entry["src"])))
                yield from sorted([folder] if folder.is_file() else folder.rglob("*.xml"))

    def _add(self, service: str, kind: str, present: dict[str, Any]) -> str:
        file = self.edits.file_for(service, kind)
        entry, text = dict(present), self.exported.text(present)
        if text is not None:
            entry["src"] = self._new_file(file.path.parent, str(present["src"]), text)
        if not isinstance(file.values.get(kind), list):
            file.values[kind] = []
        file.values[kind].append(entry)
        return "added"

    def _new_file(self, home: Path, name: str, text: str) -> str:
        """Add a file with a free name, and return its path below `home`."""
        stem, dot, ending = name.rpartition(".")
        number, path = 1, home / name
        while self.edits.text_of(path) not in (None, text):
            number += 1
            path = home / f"{stem}-{number}{dot}{ending}"
        self.edits.others[path] = text
        return path.relative_to(home).as_posix()

    # -- objects that the server does not have

    def _remove(self, finding: Finding, places: Sequence[EntryPlace], shown: str) -> str:
        if not places:
            self.notes.append(f"{shown} is neither on the server nor in the folder")
            return ""
        if finding["action"] != "create":
            raise CannotAdopt("it was deleted since the report: run drift again")
        if not self.deletions:
            self.notes.append(
                f"{shown} is not on the server: with adopt_deletions: true its entry is removed"
            )
            return ""
        own = [place for place in places if place.file.of_environment]
        if own and len(own) < len(places):  # other environments keep their entry
            entry = own[0].entry
            for option in [*entry]:
                if option not in key_of(str(finding["service"]), own[0].kind):
                    del entry[option]
            entry["state"] = "absent"
            return "removed"
        for place in sorted(own or places, key=lambda each: -each.index):
            self._remove_entry(place)
        return "removed"

    def _remove_entry(self, place: EntryPlace) -> None:
        src = place.entry.get("src")
        path = Path(os.path.normpath(place.file.path.parent / str(src)))
        if src and self._users(path) == 1 and self.edits.text_of(path) is not None:
            self.edits.others[path] = None
        del place.file.values[place.kind][place.index]


def page_text(own: str, body: str, path: Path, labels: Sequence[str] | None) -> str:
    """Return the text of a page file with another body.

    :param labels: labels for the front matter, `None` to leave them out
    """
    if path.suffix not in _STORAGE:
        raise CannotAdopt(f"{path.name} is not in storage format: change the file by hand")
    if "\r\n" in own and own.count("\r\n") == own.count("\n"):
        body = body.replace("\n", "\r\n")
    block = block_of(own)
    if block is None:
        return body
    head = own[block.start : block.end]
    values = yaml_edits.load(head)
    given = values.get("labels")
    given = given.split(",") if isinstance(given, str) else given or []
    if (
        labels is not None
        and "labels" in values
        and sorted(str(label).strip() for label in given) != sorted(labels)
    ):
        values["labels"] = list(labels)
    content = own[block.end : block.content]
    return f"{own[: block.start]}{yaml_edits.edited(head, values)}{content}{body}"


def _fields(side: Any) -> list[str]:
    return [str(name) for name in side] if isinstance(side, Mapping) else []
