# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the state of chosen objects into the folder of the desired state."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible.module_utils.common.yaml import yaml_dump

from ...module_utils._lib.ci.jobs import configuration_file
from ...module_utils._lib.core.errors import ToolchainError
from ...module_utils._lib.core.line_ends import with_line_ends
from ...module_utils._lib.wiki.formats.comparison import alike
from ...module_utils._lib.wiki.formats.front_matter import block_of, split_front_matter
from ...module_utils._lib.wiki.tree.markdown_adoption import MarkdownTree, Present, options_of
from . import adopted_entry, yaml_edits
from .adopted_entry import CannotAdopt
from .adoption import (
    SECTIONS,
    Exported,
    Finding,
    lists_of,
    names_of,
    require_adoptable,
    sections_in,
    title_there,
)
from .desired_schema import schema_of
from .desired_state import YAML_ENDINGS, key_of
from .folder_edits import EditedFile, EntryPlace, FolderEdits

#: Endings of page files in storage format. Other pages are written in Markdown.
_STORAGE = (".xml", ".html", ".xhtml")
_WIDTH = 1_000_000
_UNKNOWN = re.compile(r"cannot compare (.+)$")
_OTHERS = "set adopt_into: base to change all environments"


@dataclass
class Adoption:
    """Adopts findings, one after the other.

    :param deletions: remove the entries of objects that the server does not have
    :param adopted: findings whose object the folder now describes
    :param failures: findings that cannot be adopted, with `kind_of_error` and `reason`
    :param left: number of findings of which nothing is to be adopted
    :param notes: sentences about objects that were not adopted, or not completely
    """

    edits: FolderEdits
    exported: Exported
    deletions: bool
    adopted: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left: int = 0
    #: Trees of Markdown by the path of their folder.
    _trees: dict[str, MarkdownTree] = field(default_factory=dict)

    def adopt(self, finding: Finding, *, verify: bool = False) -> None:
        """Add the edits for a finding. A finding that cannot be adopted leaves no edits.

        :param verify: also try the edits on the text of their files
        """
        shown = f"{finding['kind']} {finding['name']}"
        known = {key: finding[key] for key in ("id", "service", "kind", "name")}
        notes = [*self.notes]
        self.edits.begin()
        try:
            require_adoptable(finding)
            action = self._adopt(finding, shown)
            if verify:
                self.edits.texts(self.edits.touched)
        except (CannotAdopt, yaml_edits.EditError, ToolchainError) as error:
            self.edits.undo()
            self.notes = notes
            kind = error.kind if isinstance(error, ToolchainError) else "failed"
            reason = f"cannot adopt {shown}: {error}" if kind == "failed" else str(error)
            self.failures.append({**known, "error": kind, "reason": reason})
            return
        if action:
            self.adopted.append({**known, "action": action, "files": [*self.edits.touched]})
        else:
            self.left += 1

    def result(self, texts: Collection[Path]) -> dict[str, Any]:
        """Return the values for the result of the run.

        :param texts: the files that change
        """
        for each in self.adopted:
            each["files"] = [self.edits.shown(path) for path in each["files"] if path in texts]
        rows = [(each["id"], file) for each in self.adopted for file in each["files"]]
        return {
            "files": [{"finding": finding, "file": file} for finding, file in rows],
            "adopted": self.adopted,
            "failures": self.failures,
            "notes": self.notes,
        }

    def _adopt(self, finding: Finding, shown: str) -> str:
        service, name = str(finding["service"]), str(finding["name"])
        kinds = lists_of(finding)
        if service in self.exported.unread:
            raise CannotAdopt(f"its server could not be read: {self.exported.unread[service]}")
        places = self._places(finding, kinds)
        space, slash, _title = name.partition("/")
        # a page may have another title on the server
        has_title = slash and finding["kind"] == "page" and not places
        there = f"{space}/{title_there(finding)}" if has_title else name
        present = self.exported.entry(service, kinds[0], there)
        reasons = self.exported.reasons(there)
        files = [place.file.path for place in places if place.file.of_environment]
        files = files or [place.file.path for place in places]
        if len(files) > 1 and kinds[0] != SECTIONS:
            named = ", ".join(map(self.edits.shown, dict.fromkeys(files)))
            raise CannotAdopt(f"several entries describe it ({named}): keep one of them")
        if any(place.entry.get("new_name") for place in places):
            raise CannotAdopt("its entry has a new_name: rename the entry by hand, and run drift")
        if present is None:
            if reasons:
                raise CannotAdopt(f"the export left it out ({'; '.join(reasons)})")
            if service == "wiki" and finding["kind"] != "space" and "/" not in name:
                raise CannotAdopt("its entry has a page_id only: name the page by space and title")
            return self._remove(finding, places, shown)
        self.notes += [f"{shown}: not adopted is {reason}" for reason in reasons]
        if kinds[0] == SECTIONS:
            return self._update_sections(finding, places, present["config"])
        if places:
            return self._update(finding, places, present)
        if "trees" in kinds:
            return self._update_tree_page(name, there, present)
        return self._add(service, kinds[0], present)

    def _places(self, finding: Finding, kinds: Sequence[str]) -> list[EntryPlace]:
        """Return the entries of an object, that of the environment first."""
        service, name = str(finding["service"]), str(finding["name"])
        if kinds[0] == SECTIONS:
            places = [*self.edits.places(service, SECTIONS)]
            own = [place for place in places if place.file.of_environment]
            return own or places  # the list of the environment replaces that of the base
        return sorted(
            (
                place
                for kind in kinds
                for place in self.edits.places(service, kind)
                if name in names_of(service, kind, place.entry, self.exported.accounts)
            ),
            key=lambda place: not place.file.of_environment,
        )

    # -- objects that the server has

    def _update(
        self, finding: Finding, places: Sequence[EntryPlace], present: dict[str, Any]
    ) -> str:
        own = next((place for place in places if place.file.of_environment), None)
        base = next((place for place in places if not place.file.of_environment), None)
        entry = {**(base.entry if base else {}), **(own.entry if own else {})}
        kind, text = places[0].kind, self.exported.text(present)
        options = schema_of(str(finding["service"]))["properties"][kind]["items"]["properties"]
        present = (
            dict(present) if text is None else {**adopted_entry.from_xml(kind, text), **present}
        )
        source = str(present.pop("src", ""))
        body = present.pop("body", None) if kind == "pages" else text
        if kind == "pages" and "section" in entry:
            raise CannotAdopt("the entry describes a section of the page: change it by hand")
        named, unknown = _fields(finding), _unknown(finding)
        present.pop("parent_title" if "parent_id" in entry else "parent_id", None)
        marks_absent = (
            own and base and own.entry.get("state") == "absent" != base.entry.get("state")
        )
        if marks_absent:  # the environment has not more than the state
            entry = {**entry, "state": "present"}
        changes = adopted_entry.changes(entry, present, options, named, unknown)
        changes |= {"state": "present"} if marks_absent else {}
        if body is not None and entry.get("state") == "absent" and kind == "pages":
            changes["body"] = body
        elif body is not None and entry.get("state") == "absent":
            changes["src"] = self._new_file(self._home(places).path.parent, source, body)
        elif body is not None:
            changes |= self._body_changes(own, base, body)
        left = named.intersection(entry).difference(
            present, changes, unknown, ("config", "src", "body", "state")
        )
        if left:
            self.notes.append(
                f"{finding['kind']} {finding['name']}: the export does not have"
                f" {', '.join(sorted(left))}"
            )
        self._write(own, base, changes)
        return "updated"

    def _home(self, places: Sequence[EntryPlace]) -> EditedFile:
        """Return the file that gets the differences of an entry."""
        if self.edits.into_environment and not places[0].file.of_environment:
            return self.edits.file_for(places[0].file.service, places[0].kind)
        return places[0 if self.edits.into_environment else -1].file

    def _write(
        self, own: EntryPlace | None, base: EntryPlace | None, changes: Mapping[str, Any]
    ) -> None:
        """Set options of an object in the environment, or where its value is.

        :param own: entry of the environment
        :param base: entry of all environments
        """
        if own is None and base is not None and self.edits.into_environment and changes:
            own = self._difference_of(base)
        for option, value in changes.items():
            is_own = own is not None and (self.edits.into_environment or option in own.entry)
            place = own if is_own or base is None else base
            if place is not None:
                self.edits.set(place, option, value)

    def _difference_of(self, base: EntryPlace) -> EntryPlace:
        """Add an entry to the environment that names an object, and changes nothing yet."""
        key = key_of(base.file.service, base.kind)
        if not key:
            raise CannotAdopt(f"an environment cannot change one entry of {base.kind}: {_OTHERS}")
        entry = {option: base.entry[option] for option in key if option in base.entry}
        return self.edits.add(self.edits.file_for(base.file.service, base.kind), base.kind, entry)

    def _update_sections(
        self, finding: Finding, places: Sequence[EntryPlace], present: Mapping[str, Any]
    ) -> str:
        """Update the configuration as code at the paths of a finding."""
        paths = _fields(finding)
        left = [str(row["name"]) for row in self.exported.left_out]
        sections = {*sections_in(str(finding["name"]))}
        configs = [(place, self._config_of(place)) for place in places]
        exact = [(place, config) for place, config in configs if sections == {*config}]
        holders = exact or [(place, config) for place, config in configs if sections & {*config}]
        if not holders:
            raise CannotAdopt("no entry of the folder has these sections in config")
        for place, config in holders:
            changed = adopted_entry.section(config, present, paths, left)
            if yaml_edits.canonical(changed) == yaml_edits.canonical(config):
                continue
            if self.edits.into_environment and not place.file.of_environment:
                raise CannotAdopt(
                    f"an environment replaces the whole list {SECTIONS}: describe it in the"
                    f" environment, or {_OTHERS}"
                )
            text = place.entry.get("config")
            if "src" in place.entry:
                path = _source_of(place)
                if self._users(path) > 1:
                    raise CannotAdopt(f"other entries use its src {path.name}: change it by hand")
                self.edits.put(path, yaml_edits.edited(self.edits.text_of(path) or "", changed))
            elif isinstance(text, str):
                self.edits.set(place, "config", yaml_edits.edited(text, changed))
            else:
                self.edits.set(place, "config", changed)
        return "updated"

    def _config_of(self, place: EntryPlace) -> Mapping[str, Any]:
        """Return the sections of an entry, which may be YAML in a string or in a file."""
        config = place.entry.get("config")
        if "src" in place.entry:
            config = self.edits.text_of(_source_of(place)) or ""
        values = yaml_edits.load(config) if isinstance(config, str) else config
        return values if isinstance(values, Mapping) else {}

    def _body_changes(
        self, own: EntryPlace | None, base: EntryPlace | None, text: str
    ) -> dict[str, Any]:
        """Write the XML or the body of a page where the entry has it.

        Return the options that change.
        """
        places = [place for place in (own, base) if place is not None]
        inline = "body" if places[0].kind == "pages" else "config"
        holders = [place for place in places if {"src", inline} & place.entry.keys()]
        if not holders:
            return {}
        holder, merged = holders[0], _merged_body if inline == "body" else configuration_file.merged
        if inline in holder.entry:
            value = holder.entry[inline]
            wanted = merged(value, text) if isinstance(value, str) else value
            return {} if wanted == value else {inline: wanted}
        path = _source_of(holder)
        if path.suffix in YAML_ENDINGS:
            raise CannotAdopt(f"its src {path.name} is a YAML file: change it by hand")
        there = self.edits.text_of(path)
        if inline == "body":
            wanted = page_text(there or "", text, path, None)
        else:
            wanted = merged(there or "", text)
        if there == wanted:
            return {}
        home = self._home(places) if self.edits.into_environment else holder.file
        if home is not holder.file or self._users(path) > 1:
            name = f"{home.service}/{holder.kind}/{path.name}"
            return {"src": self._new_file(home.path.parent, name, wanted)}
        self.edits.put(path, wanted)
        return {}

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

    def _update_tree_page(self, name: str, there: str, present: Mapping[str, Any]) -> str:
        """Write a page into the file of its tree.

        :param there: name that the page has in the wiki
        """
        space, _slash, title = name.partition("/")
        for tree, path in self._tree_files(space):
            own = self.edits.text_of(path) or ""
            block = block_of(own)
            own_title = "" if block is None else str(block.values.get("title") or "")
            # as its publisher reads it
            if " ".join(unicodedata.normalize("NFC", own_title).split()) != title:
                continue
            if there != name:
                raise CannotAdopt(f"its title was changed: change that of {path.name} by hand")
            if self.edits.into_environment and not self.edits.is_of_environment(path):
                raise CannotAdopt(f"its file {path.name} is for all environments: {_OTHERS}")
            labels = [each for each in present["labels"] if each not in _labels(tree.get("labels"))]
            self.edits.put(path, page_text(own, str(present["body"]), path, labels))
            return "updated"
        if self._update_markdown(space, title, there, present):
            return "updated"
        raise CannotAdopt("no entry has its space and title, and no file of a tree its title")

    def _update_markdown(
        self, space: str, title: str, name: str, present: Mapping[str, Any]
    ) -> bool:
        """Write a page into the Markdown file of its tree. Return whether there is one."""
        for place in self.edits.places("wiki", "trees"):
            if place.entry.get("space") != space:
                continue
            src = str(_source_of(place))
            tree = self._trees.setdefault(src, MarkdownTree(options_of(place.entry, src)))
            page = tree.page(title)
            if page is None:
                continue
            path = Path(tree.file(page))
            own = self.edits.text_of(path) or ""
            if self.edits.into_environment and not self.edits.is_of_environment(path):
                raise CannotAdopt(f"its file {path.name} is for all environments: {_OTHERS}")
            others = self.edits.others.items()
            texts = {str(path): text for path, text in others if isinstance(text, str)}
            published = self.exported.published.get(name)
            now = name.partition("/")[2]
            if now != title and (published or {}).get("file") != page.source.path:
                raise CannotAdopt(f"the mark of the page '{now}' does not name {path.name}")
            is_renamed = now != title
            now = now if is_renamed else page.title
            files = self.exported.attachments(name)
            there = Present(str(present["body"]), space, now, published, files)
            text, new = tree.adopted(
                page,
                own,
                there,
                texts,
                lambda text, title: _with_front_matter(text, {"title": title}),
            )
            labels = [
                each for each in present["labels"] if each not in _labels(tree.options.labels)
            ]
            is_managed = page.labels is not None and {*page.labels} != {*present["labels"]}
            head = {"labels": labels} if is_managed else {}
            self.edits.put(path, _with_front_matter(text, head))
            for file, content in new.items():
                self.edits.copy(path.parent / file.rpartition("/")[2], Path(content))
            tree.added |= new
            if is_renamed and there.title_for(page) == now:
                tree.renamed[now] = page.title
            return True
        return False

    def _tree_files(self, space: str) -> Iterator[tuple[Mapping[str, Any], Path]]:
        for place in self.edits.places("wiki", "trees"):
            if place.entry.get("space") == space:
                folder = Path(os.path.normpath(place.file.path.parent / str(place.entry["src"])))
                files = sorted([folder] if folder.is_file() else folder.rglob("*.[xX][mM][lL]"))
                yield from ((place.entry, path) for path in files)

    def _add(self, service: str, kind: str, present: dict[str, Any]) -> str:
        file = self.edits.file_for(service, kind)
        entry, text = dict(present), self.exported.text(present)
        if text is not None:
            entry["src"] = self._new_file(file.path.parent, str(present["src"]), text)
        self.edits.add(file, kind, entry)
        return "added"

    def _new_file(self, home: Path, name: str, text: str) -> str:
        """Add a file with a free name, and return its path below `home`."""
        stem, dot, ending = name.rpartition(".")
        number, path = 1, home / name
        while self.edits.text_of(path) not in (None, text):
            number += 1
            path = home / f"{stem}-{number}{dot}{ending}"
        self.edits.put(path, text)
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
        base = [place for place in places if not place.file.of_environment]
        if base and self.edits.into_environment:  # other environments keep their entry
            service, kind = str(finding["service"]), places[0].kind
            options = schema_of(service)["properties"][kind]["items"]["properties"]
            if "absent" not in options.get("state", {}).get("enum", ()):
                raise CannotAdopt(
                    f"entries of {kind} cannot be absent in one environment: {_OTHERS}"
                )
            is_own = places[0].file.of_environment
            own = places[0] if is_own else self._difference_of(places[0])
            self._drop_source(own)
            self.edits.save(own)
            for option in [*own.entry]:
                if option not in key_of(service, kind):
                    del own.entry[option]
            self.edits.set(own, "state", "absent")
            return "removed"
        for place in sorted(places, key=lambda each: -each.index):
            self._drop_source(place)
            self.edits.remove(place)
        return "removed"

    def _drop_source(self, place: EntryPlace) -> None:
        """Remove the file that an entry names, unless other entries use it."""
        if place.entry.get("src"):
            path = _source_of(place)
            if self._users(path) == 1 and self.edits.text_of(path) is not None:
                self.edits.put(path, None)


def _source_of(place: EntryPlace) -> Path:
    """Return the path of the file that an entry names."""
    return Path(os.path.normpath(place.file.path.parent / str(place.entry["src"])))


# -- pages ----------------------------------------------------------------------------------------


def page_text(own: str, body: str, path: Path, labels: Sequence[str] | None) -> str:
    """Return the text of a page file with another body.

    :param labels: labels for the front matter, `None` to leave them out
    """
    if path.suffix.lower() not in _STORAGE:
        raise CannotAdopt(f"{path.name} is not in storage format: change the file by hand")
    block = block_of(own)
    if block is None:
        return _merged_body(own, body)
    head, content = own[: block.content], own[block.content :]
    values = yaml_edits.load(own[block.start : block.end])
    if labels is not None and "labels" in values and {*_labels(values["labels"])} != {*labels}:
        head = _with_front_matter(head, {"labels": list(labels)})
    return head + _merged_body(content, body)


def _with_front_matter(text: str, values: Mapping[str, Any]) -> str:
    """Return the text of a page with these values in its front matter."""
    block = block_of(text)
    if not values:
        return text
    if block is None and split_front_matter(text).text != text:
        raise CannotAdopt(f"its front matter is TOML: change {', '.join(values)} there by hand")
    if block is None:
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        ending = "\r\n" if "\r\n" in text else "\n"
        head = f"---\n{yaml_dump(dict(values), allow_unicode=True, width=_WIDTH)}---\n\n"
        return f"{mark}{head.replace(chr(10), ending)}{text.removeprefix(mark)}"
    head = text[block.start : block.end]
    head = yaml_edits.edited(head, {**yaml_edits.load(head), **values})
    return f"{text[: block.start]}{head}{text[block.end :]}"


def _labels(given: Any) -> list[str]:
    """Return the labels in a list, or in a string with commas."""
    labels = given.split(",") if isinstance(given, str) else given or []
    return [str(label).strip() for label in labels]


def _merged_body(own: str, body: str) -> str:
    """Return the body of the server, or that of the folder if both have the same meaning."""
    if own and alike(body.strip(), own.strip(), None):
        return own
    return with_line_ends(body, own)


def _fields(finding: Finding) -> set[str]:
    """Return the fields that differ, as the report names them."""
    sides = (finding.get("before"), finding.get("after"))
    return {str(name) for side in sides if isinstance(side, Mapping) for name in side}


def _unknown(finding: Finding) -> set[str]:
    """Return the fields that the report could not compare."""
    found = _UNKNOWN.search(str(finding.get("text") or ""))
    return {*found[1].split(", ")} if found else set()
