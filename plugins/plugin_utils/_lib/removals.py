# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the objects that the last desired state names and the present one does not.

Only these objects are ever deleted. In doubt an object counts as named by the present state, and
stays: names compare without letter case, an object has all its names, and a container with objects
of the present state is named by them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import unquote

from ...module_utils._lib.core.errors import shorten
from ...module_utils._lib.core.finding import RETURNED
from ...module_utils._lib.core.json_text import json_objects
from . import kinds
from .described import Values
from .desired_state import identity_of, key_of, name_of
from .findings import Finding, failed
from .refused_servers import refusal_of

#: Names of an object, such as `(project, name)`, in a comparable spelling.
Name = tuple[str, ...]
Entry = Mapping[str, Any]
#: Names by service and list.
Places = dict[tuple[str, str], set[Name]]
#: Services and lists of the kinds that can be deleted.
_PLACES = [(kind.service, kind.list) for kind in kinds.deleted()]
_OF_PAGES = ("pages", "restrictions")
_IN_PROJECTS = ("modules", "views", "role_assignments", "defect_types")
#: Options of the CI server with the path of a job or folder.
_PATHS = ("job", "folder")
#: Kinds of errors of an object that must stay, or that is not there.
_REFUSALS = ("conflict", "invalid", "not_found")
#: Loop variable with the removal, in the results of the modules.
_ITEM = "desired_state_removal"
#: Lists whose modules delete objects with their content, and the member that shows it.
_CONTENTS = {"projects": "builds", "versions": "issues"}


@dataclass(frozen=True)
class Removal:
    """An object to delete.

    :param list: its list in the desired state, such as `jobs`
    :param options: options of the module that identify it
    """

    service: str
    list: str
    module: str
    name: str
    options: Mapping[str, Any]

    @property
    def noun(self) -> str:
        return kinds.name_of(self.service, self.list)

    @property
    def title(self) -> str:
        return f"{self.noun.replace('_', ' ')} {shorten(self.name)}"

    def shown(self) -> dict[str, Any]:
        return {**asdict(self), "title": self.title}


class Names:
    """The comparable names of objects.

    :param states: desired states; a project has the same name before and after it was renamed
    """

    def __init__(self, states: Iterable[Values]) -> None:
        self._renamed = {
            _plain(entry["name"]): _plain(entry["new_name"])
            for values in states
            for entry in _entries(values, "analysis", "projects")
            if entry.get("new_name")
        }

    def of(self, service: str, kind: str, entry: Mapping[str, Any]) -> set[Name]:
        """Return all names of an object."""
        if kind in _OF_PAGES:
            return set(_names_of_page(entry))
        key = key_of(service, kind)
        values = dict(zip(key, identity_of(entry, key), strict=True))
        found = {self._name(service, values)}
        if entry.get("new_name"):
            found.add(self._name(service, {**values, "name": entry["new_name"]}))
        return found

    def _name(self, service: str, values: Mapping[str, Any]) -> Name:
        return tuple(
            _path(value)
            if service == "ci" and option in _PATHS
            else self._project(value)
            if service == "analysis" and option == "project"
            else _plain(value)
            for option, value in values.items()
        )

    def _project(self, name: Any) -> str:
        return self._renamed.get(_plain(name), _plain(name))

    def objects(self, values: Values) -> Places:
        """Return the names of all objects of a desired state."""
        found: Places = {
            (service, kind): {
                name
                for entry in _entries(values, service, kind)
                for name in self.of(service, kind, entry)
            }
            for service, kind in _PLACES
        }
        for page in _entries(values, "wiki", "pages"):
            if page.get("restrictions") is not None:
                found["wiki", "restrictions"].update(_names_of_page(page))
        for tree in _entries(values, "wiki", "trees"):
            name = _name_of_tree(tree.get("space"))
            if tree.get("restrictions") is not None:
                found["wiki", "restrictions"].add(name)
            if tree.get("failed"):
                found["wiki", "pages"].add(name)
        return found

    def containers(self, values: Values) -> Places:
        """Return the names of the folders, parent pages, spaces and projects of the objects."""
        found: Places = {(service, kind): set() for service, kind in _PLACES}
        for place, name in (*_folders(values), *_above_pages(values)):
            found[place].add(name)
        found["analysis", "projects"] = {
            (self._project(entry.get("project")),)
            for kind in _IN_PROJECTS
            for entry in _entries(values, "analysis", kind)
        }
        return found


def _folders(values: Values) -> Iterator[tuple[tuple[str, str], Name]]:
    """Yield the folders of the CI server above objects, and those with credentials and views."""
    for kind, option in (("jobs", "job"), ("credentials", "folder"), ("views", "folder")):
        for entry in _entries(values, "ci", kind):
            parts = _path(entry.get(option)).split("/")
            for depth in range(1, len(parts) + (option == "folder")):
                yield ("ci", "jobs"), ("/".join(parts[:depth]),)


def _above_pages(values: Values) -> Iterator[tuple[tuple[str, str], Name]]:
    """Yield the spaces of pages, their parent pages, and the home pages of spaces."""
    for kind in (*_OF_PAGES, "trees"):
        for entry in _entries(values, "wiki", kind):
            space = entry.get("space")
            yield ("wiki", "spaces"), (_plain(space),)
            above = {"page_id": entry.get("parent_id"), "title": entry.get("parent_title")}
            yield from (
                (("wiki", "pages"), name) for name in _names_of_page({**above, "space": space})
            )
    for entry in _entries(values, "wiki", "spaces"):
        home = {"space": entry["key"], "title": entry.get("home_page")}
        yield from ((("wiki", "pages"), name) for name in _names_of_page(home))


def _name_of_tree(space: Any) -> Name:
    """Return the name that stands for all pages of a tree, whose titles are in its files."""
    return ("trees", _plain(space), "")


def removed(
    present: Sequence[Values], previous: Values, elsewhere: Sequence[Values] = ()
) -> tuple[list[Removal], list[str]]:
    """Return the objects to delete, children before their containers, and warnings.

    :param present: the present desired state, possibly from several sources
    :param elsewhere: what the folder describes for other environments
    """
    names = Names([previous, *present, *elsewhere])
    named = _joined(map(names.objects, present))
    others = _joined(map(names.objects, elsewhere))
    containers = _joined(map(names.containers, [*present, *elsewhere]))
    found: list[tuple[Removal, set[Name]]] = []
    warnings: list[str] = []
    for service, kind in _PLACES:
        known = named[service, kind]
        for entry in _children_first(kind, _entries(previous, service, kind)):
            own = names.of(service, kind, entry)
            if entry.get("state") == "absent" or not known.isdisjoint(own):
                continue
            known |= own
            removal = _removal(service, kind, entry)
            if not others[service, kind].isdisjoint(own):
                warnings.append(staying(removal.title, "another environment of it describes it"))
            elif not containers[service, kind].isdisjoint(own):
                warnings.append(staying(removal.title, "the folder describes objects in it"))
            elif kind == "pages" and entry.get("section"):
                warnings.append(staying(removal.title, "only a section of it was described"))
            else:
                found.append((removal, own))
    # a page keeps its restrictions until it is deleted: otherwise, everybody could read it
    pages = set[Name]().union(*(own for removal, own in found if removal.list == "pages"))
    removals = [one for one, own in found if one.list != "restrictions" or pages.isdisjoint(own)]
    return removals, warnings


def _joined(places: Iterable[Places]) -> Places:
    found: Places = {(service, kind): set() for service, kind in _PLACES}
    for each in places:
        for place, names in each.items():
            found[place] |= names
    return found


def staying(title: str, reason: str) -> str:
    """Return the warning about an object that is not deleted."""
    return f"The {title} is not in the folder any more, but stays: {reason}."


@dataclass
class CheckedRemovals:
    """The removals after the modules have run in check mode.

    :param deletable: removals that delete an object
    :param failed: removals with the results of their failed tasks
    """

    deletable: list[dict[str, Any]] = field(default_factory=list)
    failed: list[tuple[dict[str, Any], Mapping[str, Any]]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def checked(
    results: Iterable[Mapping[str, Any]],
    described: Sequence[Values],
    contents: Iterable[Mapping[str, Any]] = (),
) -> CheckedRemovals:
    """Return which removals delete an object. Objects that are gone already are left out.

    :param results: results of the modules in check mode
    :param described: the present desired state, and pages that it describes otherwise
    :param contents: results with the `builds` of projects and the `issues` of versions
    """
    known = _joined(map(Names(described).objects, described))
    content = {(one[_ITEM]["list"], one[_ITEM]["name"]): one for one in contents}
    found = CheckedRemovals()
    for result in results:
        removal = result[_ITEM]
        inner = content.get((removal["list"], removal["name"]))
        member = _CONTENTS.get(removal["list"], "")
        own = _names_on_server(result.get("page"))
        if _kind_of(result) in _REFUSALS:
            found.warnings.append(staying(removal["title"], str(result.get("msg"))))
        elif _kind_of(result):
            found.failed.append((removal, result))
        elif own and not own.isdisjoint(known["wiki", removal["list"]]):
            reason = "the folder describes the page by another name, or in another list"
            found.warnings.append(staying(removal["title"], reason))
        elif not result.get("changed"):
            continue
        elif inner is not None and _kind_of(inner):
            found.failed.append((removal, inner))
        elif member and not isinstance((inner or {}).get(member), list):
            reason = f"the server does not show whether it has {member}"
            found.warnings.append(staying(removal["title"], reason))
        elif inner is not None and inner.get(member):
            found.warnings.append(staying(removal["title"], f"it has {member}"))
        else:
            digests = [
                digest for each in result.get(RETURNED, ()) for digest in each.get("digests", ())
            ]
            found.deletable.append({**removal, "digests": digests})
    return found


def _kind_of(result: Mapping[str, Any]) -> str:
    """Return the kind of the error of a task, "" for a successful one."""
    error = result.get("error") or {}
    return str(error.get("kind") or ("" if "http" in result and not error else "failed"))


def failure(removal: Mapping[str, Any], result: Mapping[str, Any]) -> Finding:
    """Return the finding of an object that could not be read, with its `service`."""
    service, text = removal["service"], str(result.get("msg") or "failed")
    refused = refusal_of(result.get("error"))
    if refused:
        return {**failed("server", "", text), "service": service, "refused": refused, "count": 1}
    kind = kinds.name_of(service, removal["list"])
    return {**failed(kind, removal["name"], text), "service": service}


def _names_on_server(page: Mapping[str, Any] | None) -> set[Name]:
    """Return all names of the page in a result."""
    if not page:
        return set()
    tree = _name_of_tree(page.get("space"))
    return {*_names_of_page({**page, "page_id": page.get("id")}), tree}


def pages_of_trees(runs: Iterable[Mapping[str, Any]]) -> Values:
    """Return the pages that the trees of the run consist of, as a desired state.

    After a failure of a tree, its pages are unknown, and all pages of its space count.

    :param runs: results of the step `apply`
    """
    known = [(one, one.get("applied_by") or {}) for one in runs]
    trees = [{**one, **by["names"]} for one, by in known if by.get("module") == "wiki_tree"]
    pages = [
        {"page_id": page.get("id"), "space": tree.get("space"), "title": page.get("title")}
        for tree in trees
        for page in tree.get("pages") or ()
    ]
    return {"wiki": {"pages": pages, "trees": [tree for tree in trees if tree.get("failed")]}}


def _children_first(kind: str, entries: Sequence[Entry]) -> list[Entry]:
    """Return entries with children before parents, and virtual repositories before others.

    The folder lists parents first.
    """
    reverse = list(reversed(entries))
    if kind == "jobs":
        return sorted(reverse, key=lambda entry: -_path(entry["job"]).count("/"))
    if kind == "pages":
        return sorted(reverse, key=lambda entry: -_depth(entry, entries))
    if kind == "repositories":
        return sorted(reverse, key=lambda entry: entry.get("rclass") != "virtual")
    return reverse


def _depth(page: Entry, pages: Sequence[Entry]) -> int:
    """Return the number of described pages above a page."""
    above = {
        name: {
            "space": entry.get("space"),
            "page_id": entry.get("parent_id"),
            "title": entry.get("parent_title"),
        }
        for entry in pages
        for name in _names_of_page(entry)
    }
    seen: list[Name] = []
    names = list(_names_of_page(page))
    while names and names[0] not in seen:
        seen.append(names[0])
        names = [name for name in _names_of_page(above.get(names[0], {})) if name in above]
    return len(seen)


def _removal(service: str, kind: str, entry: Entry) -> Removal:
    key = key_of(service, kind)
    now = {**entry, "name": entry["new_name"]} if entry.get("new_name") else entry
    options = {name: now[name] for name in key if now.get(name)}
    if kind in _OF_PAGES and "page_id" in options:
        options.pop("title", None)  # the new title of the page
    row = kinds.find(service, kind)
    if row.folders_before and entry.get("folder"):
        options["folder"] = True
    if service == "analysis":
        options = {kind: [{**options, "state": "absent"}]}
    return Removal(service, kind, row.module, name_of(now, key), options)


def _names_of_page(entry: Mapping[str, Any]) -> Iterator[Name]:
    if entry.get("page_id"):
        yield (_plain(entry["page_id"]),)
    if entry.get("space") and entry.get("title"):
        yield (_plain(entry["space"]), _plain(entry["title"]))


def _entries(values: Values, service: str, kind: str) -> list[Entry]:
    return json_objects(values.get(service, {}).get(kind))


def _plain(value: Any) -> str:
    """Return a value in a comparable spelling."""
    text = "" if value is None else str(value)
    return unicodedata.normalize("NFC", text).strip().casefold()


def _path(job: Any) -> str:
    """Return the name of a job or folder, which may be a URL or a list of names."""
    text = "/".join(map(str, job)) if isinstance(job, list | tuple) else _plain(job)
    if "://" in text:
        text = "/".join(part.partition("/")[0] for part in text.split("/job/")[1:])
    return _plain(unquote(text)).strip("/")
