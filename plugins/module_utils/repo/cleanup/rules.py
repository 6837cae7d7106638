# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse the rules of a cleanup, and build their queries.

`*` in the query language matches slashes, too [repo-17]: a query finds at least the items that the
patterns match, and the patterns are applied here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal

from ...core.errors import invalid
from ...core.module.typed_options import Option
from ...core.paths.globs import Patterns, crossing, has_wildcards, matcher, with_content
from ...core.times import age_of
from .. import aql
from ..client import repository_key
from ..properties import Properties, texts_of

#: Path of a repository's root in the query language.
ROOT = "."
#: Files that make a folder the tag of an image.
MANIFESTS = ("manifest.json", "list.manifest.json")
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
    depth: int | None = None
    created_before: str | None = None
    properties: Annotated[dict[str, Any] | None, Option(values="text")] = None
    keep_last: int | None = None
    keep_last_by: Literal["folder", "image"] = "folder"
    exclude: list[str] | None = None


@dataclass(frozen=True)
class CleanupRule:
    """A rule; `None` means no restriction.

    :param number: position in the list, for messages
    :param kind: `file`, `folder`, `any`, or `image`: folders with a manifest
    :param path: glob for the folder of an item, `.` for the root
    :param age_text: the age as the user wrote it
    :param depth: number of segments of an item's path
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

    @property
    def takes_folders(self) -> bool:
        return self.kind != "file"

    @property
    def counts_ages(self) -> bool:
        """Return whether ages are evaluated here: the newest items of a folder are chosen from all
        of its items, and an image consists of several items.
        """
        return self.age is not None and (self.keep_last is not None or self.kind == "image")

    def query(self) -> str:
        """Return the query of the rule. For folders it includes the files in them."""
        fields = ["type", "size", "created", "modified"]
        if self.properties:
            fields.append("property")
        criteria: dict[str, Any] = {"repo": self.repo}
        below = self._below()
        if self.kind == "image":
            criteria.update(type="file", **below)
        elif self.takes_folders:
            alternatives = [self._items(), {"type": "file", **below}]
            criteria.update({"type": "any", "$or": alternatives})
        else:
            criteria.update(self._items())
        return aql.items(criteria, fields)

    def _items(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": self.kind}
        for name in ("path", "name"):
            glob = getattr(self, name)
            if glob is not None:
                found[name] = _wanted(glob)
        if self.depth is not None:
            found["depth"] = self.depth
        if self.age is not None and not self.counts_ages:
            found["created"] = {"$before": aql.age(self.age)}
        values = [
            {f"@{name}": _wanted(value)}
            for name, wanted in (self.properties or {}).items()
            for value in wanted
        ]
        return {**found, "$and": values} if values else found

    def _below(self) -> dict[str, Any]:
        """Return criteria that include at least all content of the rule's folders."""
        start = _WILD.split(self.path or "", maxsplit=1)[0]
        return {"path": {"$match": f"{start}*"}} if start not in ("", ROOT) else {}

    def has_values(self, properties: Mapping[str, Sequence[str]]) -> bool:
        return all(
            # a value is not a path
            any(map(matcher(crossing(value)), properties.get(name, ())))
            for name, wanted in (self.properties or {}).items()
            for value in wanted
        )

    def check_exclude(self, found: Collection[str], going: Collection[str]) -> Iterator[str]:
        """Yield a warning for each glob of `exclude` that matches none of the found paths.

        Raises `invalid` if the glob would keep a deleted item if `*` matched slashes.
        """
        for glob in self.exclude:
            for paths in (going, found):
                patterns = Patterns(f"rule {self.number}: exclude", [glob])
                for path in paths:
                    patterns.fits(path, f"{self.repo}/{path}")
                if paths is going and patterns.hints:
                    raise invalid(f"{patterns.hints[0]}; nothing was deleted")
            yield from patterns.warnings(f"nothing that the rule finds in '{self.repo}'")

    def excluding(self, path: str) -> str | None:
        """Return the glob that excludes an item; its path may start with the repository."""
        full = f"{self.repo}/{path}"
        return next((g for g in self.exclude if matches(g, path) or matches(g, full)), None)


def _wanted(glob: str) -> Any:
    return {"$match": _ACROSS.sub("*", glob)} if has_wildcards(glob) else glob


def rules_of(rules: Iterable[RuleOptions], *, force: bool) -> list[CleanupRule]:
    """Return the rules of the option `rules`. Raises `invalid` for unintended rules, and without
    `force` for a rule that would empty a repository.
    """
    return [_rule(number, each, force) for number, each in enumerate(rules, 1)]


def _rule(number: int, options: RuleOptions, force: bool) -> CleanupRule:
    _check(number, options)
    age = options.created_before
    rule = CleanupRule(
        number=number,
        repo=repository_key(f"rule {number}: repo", options.repo),
        kind="image" if options.keep_last_by == "image" else options.type_ or "file",
        path=_glob(f"rule {number}: path", options.path),
        name=_name(f"rule {number}: name", options.name),
        depth=options.depth,
        age=None if age is None else age_of(f"rule {number}: created_before", age),
        age_text=age or "",
        properties=_properties(f"rule {number}: properties", options.properties),
        keep_last=options.keep_last,
        exclude=tuple(with_content(each.lstrip("/")) for each in options.exclude or ()),
    )
    if not (force or _is_restricted(rule)):
        raise invalid(
            f"rule {number}: it would delete everything in the repository '{rule.repo}': force:"
            " true allows that"
        )
    return rule


def _check(number: int, options: RuleOptions) -> None:
    """Raise `invalid` for contradictions in a rule."""
    if has_wildcards(options.repo):
        raise invalid(
            f"rule {number}: repo must be the key of a single repository, without wildcards"
        )
    for name, value in (("keep_last", options.keep_last), ("depth", options.depth)):
        if value is not None and value < 1:
            raise invalid(f"rule {number}: {name} is {value}: write at least 1, or omit it")
    if options.keep_last_by == "image" and options.type_ not in (None, "folder"):
        raise invalid(
            f"rule {number}: type {options.type_} cannot be combined with keep_last_by=image"
        )
    if not all(each.strip("/") for each in options.exclude or ()):
        raise invalid(f"rule {number}: the entry '/' of exclude excludes nothing")


def _glob(place: str, option: str | None) -> str | None:
    """Return a glob without surrounding slashes. Raises `invalid` if nothing remains, which would
    match everything, and for a name that no item has.
    """
    if option is None:
        return None
    glob = option.strip("/")
    if not glob:
        raise invalid(
            f"{place} is '{option}': use {ROOT} for the root, or omit the option to match all"
            " folders"
        )
    if ".." in glob.split("/"):
        raise invalid(f"{place} is '{option}', but no item has .. in its path")
    return glob


def _name(place: str, option: str | None) -> str | None:
    if option is not None and "/" in option:
        raise invalid(
            f"{place} is '{option}': set path to the folder, and name to a pattern for its content"
        )
    return option


def _properties(place: str, option: Mapping[str, Any] | None) -> Properties | None:
    """Return property values that an item must have; a value may be a glob. Raises `invalid` for a
    name without a value, which would not restrict anything.
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


def _is_restricted(rule: CleanupRule) -> bool:
    """Return whether a rule keeps anything: the content of the root with folders is everything."""
    globs = [each for each in (rule.path, rule.name) if each is not None and each.strip("*?/")]
    depth = rule.depth
    if rule.kind in ("folder", "any"):
        globs = [glob for glob in globs if glob != ROOT]
        depth = None if depth == 1 else depth
    return bool(globs) or any(
        each is not None for each in (depth, rule.age, rule.properties, rule.keep_last)
    )
