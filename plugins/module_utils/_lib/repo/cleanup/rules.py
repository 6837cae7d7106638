# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse the rules of a cleanup, build their queries, and group items into versions [C2.4].

A version is kept or deleted as a whole.

Server fact [repo-17]: `*` in AQL also matches slashes, so that a query may find too many items. The
globs of the rule are applied to its result.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Annotated, Any, Literal

from ...core.errors import invalid
from ...core.globs import Patterns, crossing, has_wildcards, matcher, with_content
from ...core.module.typed_options import Option, Positive
from ...core.times import age_of, moment_of
from .. import aql
from ..client import refuse_matrix, repository_key
from ..image_names import refuse_plus
from ..items import layouts
from ..properties import Properties, texts_of

NO_TIME = datetime.min.replace(tzinfo=timezone.utc)
#: Path of a repository's root in AQL.
ROOT = "."
#: Fields of the files of an image.
FILE_FIELDS = ("type", "size", "created", "modified", "sha256")
_WILD = re.compile(r"[*?]")
_ACROSS = re.compile(r"\*\*/?")


def matches(glob: str | None, text: str) -> bool:
    """Return whether a string matches a glob; `None` matches everything."""
    return glob is None or matcher(glob)(text)


@dataclass(frozen=True)
class RuleOptions:
    """The suboptions of `rules`."""

    repo: str
    path: str | None = None
    name: str | None = None
    type_: Annotated[Literal["file", "folder", "any"] | None, Option(name="type")] = None
    depth: Positive | None = None
    created_before: str | None = None
    properties: Annotated[dict[str, Any] | None, Option(values="text", empty=False)] = None
    keep_last: Positive | None = None
    keep_last_by: Literal["folder", "image"] = "folder"
    exclude: list[str] | None = None
    without_properties: list[str] | None = None
    released_in: str | None = None


@dataclass(frozen=True)
class CleanupRule:
    """A parsed rule; `None` means no restriction.

    :param number: position in the list for messages, from 1
    :param kind: `file`, `folder`, `any`, or `image`, which means folders with a manifest
    :param path: glob for the folder of an item; `.` is the root
    :param age: minimum age
    :param age_text: the age as the user wrote it
    :param depth: number of segments in an item's path
    :param without_properties: names of properties that keep an item
    :param released_in: repository that must contain the release of a Maven snapshot
    :param reads_properties: whether a rule of the task needs the properties of all items
    """

    number: int
    repo: str
    kind: str
    path: str | None = None
    name: str | None = None
    depth: int | None = None
    age: timedelta | None = None
    age_text: str = ""
    properties: Properties | None = None
    keep_last: int | None = None
    exclude: tuple[str, ...] = ()
    without_properties: tuple[str, ...] = ()
    released_in: str | None = None
    reads_properties: bool = False

    @property
    def is_restricted(self) -> bool:
        """Return whether a rule does not match everything in its repository.

        If a rule selects folders, the root (`.` or depth 1) is no restriction.
        """
        globs = [glob for glob in (self.path, self.name) if glob and glob.strip("*?/")]
        depth = self.depth
        if self.kind in ("folder", "any"):
            globs = [glob for glob in globs if glob != ROOT]
            depth = None if depth == 1 else depth
        others = (depth, self.age, self.properties, self.keep_last, self.released_in)
        return bool(globs) or any(value is not None for value in others)

    @property
    def takes_folders(self) -> bool:
        return self.kind != "file"

    @property
    def evaluates_ages(self) -> bool:
        """Return whether ages are compared with the rows instead of in the query.

        `keep_last` needs the younger items too, and the age of an image is that of its manifest.
        """
        return self.age is not None and (self.keep_last is not None or self.kind == "image")

    @property
    def selects_in_folders(self) -> bool:
        """Return whether the query may find a file without the other files of its version."""
        by_age = self.age is not None and not self.evaluates_ages
        by_name = bool((self.name or "").strip("*"))
        return not self.takes_folders and (by_age or by_name or self.properties is not None)

    @property
    def fields(self) -> list[str]:
        """Return the fields of the query."""
        fields = list(FILE_FIELDS if self.takes_folders else FILE_FIELDS[:-1])
        return [*fields, "property"] if self.properties or self.reads_properties else fields

    def query(self) -> str:
        """Return the AQL query of the rule, which also finds the content of matching folders.

        Folders in them are only found if a rule needs their properties.
        """
        criteria: dict[str, Any] = {"repo": self.repo}
        content_type = "any" if self.reads_properties else "file"
        # at least all files in the folders of the rule
        below: dict[str, Any] = {"type": content_type}
        if self._start:
            below["path"] = {"$match": f"{self._start}*"}
        if self.kind == "image":
            criteria.update(below)
        elif self.takes_folders:
            criteria.update({"type": "any", "$or": [self._item_criteria(), below]})
        else:
            criteria.update(self._item_criteria())
        return aql.items(criteria, self.fields)

    def _item_criteria(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": self.kind}
        for name in ("path", "name"):
            glob = getattr(self, name)
            if glob is not None:
                found[name] = _wanted(glob)
        if self.depth is not None:
            found["depth"] = self.depth
        if self.age is not None and not self.evaluates_ages:
            found["created"] = {"$before": aql.age(self.age)}
        values = [
            {f"@{name}": _wanted(value)}
            for name, wanted in (self.properties or {}).items()
            for value in wanted
        ]
        return {**found, "$and": values} if values else found

    @property
    def _start(self) -> str:
        """Return the part of `path` before its first wildcard."""
        start = _WILD.split(self.path or "", maxsplit=1)[0]
        return "" if start == ROOT else start

    def covers(self, folder: str) -> bool:
        """Return whether the query finds all files in a folder."""
        return self.takes_folders and f"{folder}/".startswith(self._start)

    def has_values(self, properties: Mapping[str, Sequence[str]]) -> bool:
        return all(
            # in the value of a property, `*` also matches slashes
            any(map(matcher(crossing(value)), properties.get(name, ())))
            for name, wanted in (self.properties or {}).items()
            for value in wanted
        )

    def check_exclude(self, going: Collection[str], found: Collection[str]) -> Iterator[str]:
        """Yield a warning for each glob of `exclude` that matches no path.

        Also raises like :meth:`refuse_crossing`.

        :param going: paths of the items to delete
        :param found: paths of all items and folders that the query found
        """
        self.refuse_crossing(going)
        for glob in self.exclude:
            patterns = self._tried(glob, found)
            yield from patterns.warnings(f"no item that the rule finds in '{self.repo}'")

    def refuse_crossing(self, going: Collection[str]) -> None:
        """Raise `invalid` if a glob of `exclude` would match a path if `*` also matched slashes.

        The user probably meant to keep that item, unless the glob names a folder.

        :param going: paths of the items to delete
        """
        for glob in self.exclude:
            if "/" in glob.removeprefix(f"{self.repo}/"):
                continue
            hints = self._tried(glob, going).hints
            if hints:
                raise invalid(f"{hints[0]}. Nothing was deleted")

    def protection(self, item: CleanupItem) -> str | None:
        """Return the reason why `without_properties` keeps an item; `None` without one."""
        for each in (item, *item.files, *item.folders):
            name = next((name for name in self.without_properties if name in each.properties), None)
            if name is not None:
                inner = "" if each.path == item.path else f"contains '{each.path}', which "
                return f"{inner}has the property '{name}'"
        return None

    def _tried(self, glob: str, paths: Iterable[str]) -> Patterns:
        patterns = Patterns(f"rule {self.number}: exclude", [glob])
        for path in paths:
            patterns.fits(path, f"{self.repo}/{path}")
        return patterns

    def excluding(self, path: str) -> str | None:
        """Return the glob of `exclude` that matches an item; `None` without one.

        A glob may match the path with or without the repository.
        """
        full = f"{self.repo}/{path}"
        return next((g for g in self.exclude if matches(g, path) or matches(g, full)), None)


def _wanted(glob: str) -> Any:
    return {"$match": _ACROSS.sub("*", glob)} if has_wildcards(glob) else glob


def rules_of(rules: Iterable[RuleOptions], *, force: bool) -> list[CleanupRule]:
    """Return the parsed option `rules`.

    Raises `invalid` for contradictory rules. Without `force`, also raises `invalid` for a rule that
    would empty a repository.
    """
    given = list(rules)
    reads_properties = any(options.without_properties for options in given)
    found = []
    for number, options in enumerate(given, 1):
        _check(number, options)
        place, age = f"rule {number}", options.created_before
        rule = CleanupRule(
            number=number,
            repo=repository_key(f"{place}: repo", options.repo),
            kind="image" if options.keep_last_by == "image" else options.type_ or "file",
            path=_folder_glob(f"{place}: path", options.path),
            name=options.name,
            depth=options.depth,
            age=None if age is None else age_of(f"{place}: created_before", age),
            age_text=age or "",
            properties=_properties(f"{place}: properties", options.properties),
            keep_last=options.keep_last,
            exclude=tuple(with_content(glob.lstrip("/")) for glob in options.exclude or ()),
            without_properties=tuple(options.without_properties or ()),
            released_in=options.released_in,
            reads_properties=reads_properties,
        )
        if not (force or rule.is_restricted):
            raise invalid(
                f"rule {number} would delete everything in the repository '{rule.repo}': restrict"
                " it, or set force=true to allow that"
            )
        found.append(rule)
    return found


def _check(number: int, options: RuleOptions) -> None:
    """Raise `invalid` for contradictory or impossible suboptions of a rule."""
    if has_wildcards(options.repo):
        raise invalid(
            f"rule {number}: repo must be the key of a single repository, without wildcards"
        )
    if options.keep_last_by == "image" and options.type_ not in (None, "folder"):
        raise invalid(
            f"rule {number}: type '{options.type_}' cannot be combined with keep_last_by 'image':"
            " omit type"
        )
    if not all(name.strip() for name in options.without_properties or ()):
        raise invalid(f"rule {number}: without_properties has an empty name: remove it")
    if options.released_in is not None:
        repository_key(f"rule {number}: released_in", options.released_in)
        if options.keep_last_by == "image":
            raise invalid(
                f"rule {number}: released_in cannot be combined with keep_last_by 'image', because"
                " images are no Maven snapshots"
            )
    if not all(glob.strip("/") for glob in options.exclude or ()):
        raise invalid(f"rule {number}: the entry '/' of exclude matches nothing: remove it")
    name = options.name
    if options.keep_last_by == "image":
        refuse_plus(f"rule {number}: name", name)
    if name is not None and "/" in name:
        raise invalid(
            f"rule {number}: name is '{name}': set path to the folder, and name to a pattern for"
            " its content"
        )


def _folder_glob(place: str, option: str | None) -> str | None:
    """Return a glob without leading and trailing slashes.

    Raises `invalid` for a glob that consists of slashes, or that no path can match.
    """
    if option is None:
        return None
    glob = option.strip("/")
    if not glob:
        raise invalid(
            f"{place} is '{option}': use {ROOT} for the root, or omit the option to match all"
            " folders"
        )
    refuse_matrix(place, glob)
    if ".." in glob.split("/"):
        raise invalid(f"{place} is '{option}', but no item has .. in its path")
    return glob


def _properties(place: str, option: Mapping[str, Any] | None) -> Properties | None:
    """Return the property values that an item must have; values may be globs.

    Raises `invalid` for a property without a value, because it would not restrict the rule.
    """
    found = {
        str(name): [] if value is None else texts_of(value)
        for name, value in (option or {}).items()
    }
    for name, values in found.items():
        if not values:
            raise invalid(
                f"{place}.{name} has no value, which would match any item: set one, such as '*',"
                " or remove the property"
            )
    return found or None


@dataclass
class CleanupItem:
    """A file or folder.

    :param size: size of a file in bytes
    :param created: creation time as returned by the server
    :param moment: time from which the age is computed; `None` if unknown
    :param digest: digest of a file, `sha256:...`; `None` if unknown
    """

    repo: str
    path: str
    folder: bool
    size: int
    created: str | None
    moment: datetime | None
    modified: datetime | None
    digest: str | None = None
    properties: dict[str, list[str]] = field(default_factory=dict)
    #: All files in a folder, recursively.
    files: list[CleanupItem] = field(default_factory=list)
    #: The folder itself and all folders in it, as far as their properties are needed.
    folders: list[CleanupItem] = field(default_factory=list)

    @property
    def parent(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def paths(self) -> Iterator[str]:
        """Yield the path of the item, and of all files and folders in it."""
        yield self.path
        for file in self.files:
            yield file.path
            yield from (
                folder for folder in folders_above(file.path) if len(folder) > len(self.path)
            )

    @property
    def all_bytes(self) -> int:
        return self.size + sum(file.size for file in self.files)


@dataclass(frozen=True)
class CleanupVerdict:
    """Decision about an item.

    :param goes: whether the item is deleted
    :param reason: reason why it is deleted or kept
    :param after: names of the items to which this item belongs; they are deleted before it
    :param version: path that identifies the version to which the item belongs
    """

    item: CleanupItem
    rule: CleanupRule
    goes: bool
    reason: str
    after: tuple[str, ...] = ()
    version: str = ""

    @property
    def name(self) -> str:
        return f"{self.item.repo}/{self.item.path}"

    @property
    def version_key(self) -> tuple[str, str]:
        """Return the repository and the path that identify the version of the item."""
        return self.item.repo, self.version or self.item.path


def items_in(repo: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, CleanupItem]:
    """Return the items in the rows by path, without the root of the repository."""
    known: dict[str, CleanupItem] = {}
    for row in rows:
        item = _item(row)
        if item is None or item.repo != repo:
            continue
        first = known.setdefault(item.path, item)
        if first is not item:
            # some servers return a row per property, not a row per item
            for name, values in item.properties.items():
                first.properties.setdefault(name, []).extend(values)
    return known


def paths_in(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the paths of the items in the rows, and of their parent folders."""
    files = {item.path for item in map(_item, rows) if item is not None}
    return files | {folder for path in files for folder in folders_above(path)}


def _item(row: Mapping[str, Any]) -> CleanupItem | None:
    name, folder = str(row.get("name") or ""), str(row.get("path") or "")
    if name in ("", ROOT):
        return None
    is_folder, size = row.get("type") == "folder", str(row.get("size") or "")
    return CleanupItem(
        repo=str(row.get("repo")),
        path=name if folder in ("", ROOT) else f"{folder}/{name}",
        folder=is_folder,
        # server fact [repo-6]: folders also have a size, which is 0 or -1
        size=int(size) if size.isdigit() and not is_folder else 0,
        created=None if row.get("created") is None else str(row["created"]),
        moment=moment_of(row.get("created")),
        modified=moment_of(row.get("modified")),
        digest=f"sha256:{row['sha256']}" if row.get("sha256") else None,
        properties=aql.properties_in(row),
    )


def folders_above(path: str) -> Iterator[str]:
    """Yield the parent folders of a path, from the nearest to the top."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


@dataclass(frozen=True)
class ItemVersion:
    """A folder, or the files of a version.

    :param items: all items, sorted by path
    :param matched: the items that match the rule
    :param main: the items without signatures and checksums
    """

    items: list[CleanupItem]
    matched: list[CleanupItem]
    main: list[CleanupItem]

    @property
    def name(self) -> str:
        """Return the path that identifies the version."""
        return self.main[0].path

    @property
    def folder(self) -> str:
        return self.main[0].parent

    def rank(self, newest: tuple[datetime, bool, str]) -> tuple[datetime, bool, int, str]:
        """Return the sort key: unique snapshots are ordered by the time and number in their name,
        other versions by their newest item.

        :param newest: time of the newest item, whether it is an index with tags, and its path
        """
        moment, is_index, path = newest
        found = None if self.main[0].folder else layouts.snapshot_of(self.main[0].path)
        if found is None or not found.time:
            return moment, is_index, 0, path
        return layouts.unique_time(found.time) or NO_TIME, is_index, found.number, path


def versions_of(
    rule: CleanupRule, known: Mapping[str, CleanupItem], selected: Collection[CleanupItem]
) -> list[ItemVersion]:
    """Return the versions of the selected items.

    A signature or checksum goes with its file. It does not select the file, and can only be
    selected by its exact name.

    :param known: all items that the query found, by path
    """
    files = {path for path, item in known.items() if not item.folder}
    matched: dict[object, list[CleanupItem]] = {}
    alone: list[ItemVersion] = []
    for item in selected:
        if item.folder or (_is_dependant(item.path, files) and rule.name == item.name):
            alone.append(ItemVersion([item], [item], [item]))
        elif not _is_dependant(item.path, files):
            matched.setdefault(_key(item.path, files), []).append(item)
    members: dict[object, list[CleanupItem]] = {}
    for path in files:
        key = _key(path, files)
        if key in matched:
            members.setdefault(key, []).append(known[path])
    for key, found in matched.items():
        items = sorted(members[key], key=lambda item: item.path)
        main = [item for item in items if not _is_dependant(item.path, files)]
        alone.append(ItemVersion(items, found, main))
    return alone


def needed_by_newer(
    known: Mapping[str, CleanupItem], going: Collection[str]
) -> dict[tuple[str, str, int], str]:
    """Return the snapshots without which kept newer ones would be incomplete.

    A deployment of a changed jar need not repeat an unchanged POM: then that of an older snapshot
    is still in use. Files with a classifier are optional.

    :param going: paths of the files to delete
    :returns: the path of a file that newer snapshots lack, by version
    """
    found: dict[str, dict[tuple[str, int], dict[str, str]]] = {}
    for path, item in known.items():
        file = None if item.folder else layouts.snapshot_of(path)
        if file is not None and file.time and file.is_main:
            versions = found.setdefault(file.start, {})
            versions.setdefault((file.time, file.number), {})[file.rest] = path
    needed: dict[tuple[str, str, int], str] = {}
    for start, versions in found.items():
        kept: set[str] = set()
        for version in sorted(versions, reverse=True):
            files = versions[version]
            if all(path in going for path in files.values()):
                lacking = sorted(files.keys() - kept) if kept else []
                if not lacking:
                    continue
                time, number = version
                needed[start, time, number] = files[lacking[0]]
            kept |= files.keys()
    return needed


def _is_dependant(path: str, files: Collection[str]) -> bool:
    """Return whether a file is the signature or checksum of another file."""
    return layouts.owner_of(path, files) is not None


def _key(path: str, files: Collection[str]) -> object:
    """Return the key of the version to which a file belongs."""
    owner = layouts.owner_of(path, files) or path
    found = layouts.snapshot_of(owner)
    return found.version if found is not None and found.time else owner
