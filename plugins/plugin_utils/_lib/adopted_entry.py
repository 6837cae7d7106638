# SPDX-License-Identifier: GPL-3.0-or-later
"""Compute the options that an entry of the desired state gets from the state of its server.

An entry manages only the options that it names. The playbook `adopt` changes these options only,
and no secret: exports leave secrets out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...module_utils._lib.ci.xml_reader import UnreadableXml, XmlElement, child_of, parse, text_of
from .desired_schema import SECRET
from .yaml_edits import Tagged, canonical

#: Options whose mapping names only some of the settings of the server.
_PARTIAL = ("settings", "config", "permissions")
#: Options with lists whose order counts, at any depth. Of the configuration as code, these lists
#: are sets [ci-43].
_ORDERED = ("repositories", "includes", "excludes", "settings", "config")
_SETS = (
    *("agentProtocols", "disabledAdministrativeMonitors", "entries", "grantedPermissions"),
    *("labelAtoms", "labels", "permissions"),
)
#: Members that identify an item of a list.
_IDENTITY = ("id", "name", "key", "repo")
_ITEM_NAME = re.compile(r"\[[^\]]*\]")
#: A variable in the configuration as code, which the server replaces.
_VARIABLE = re.compile(r"(?<!\^)\$\{")


class CannotAdopt(Exception):
    """An object cannot be adopted. The message is the reason."""


def changes(
    entry: Mapping[str, Any],
    present: Mapping[str, Any],
    options: Mapping[str, Mapping[str, Any]],
    named: Collection[str],
    unknown: Collection[str] = (),
) -> dict[str, Any]:
    """Return the options of an entry that differ from the server, with the values of the server.

    Parts of a value that are equal keep their spelling, type and order.

    :param entry: entry of the folder
    :param present: entry of an export
    :param options: schemas of the options
    :param named: fields that differ according to the report, such as `settings.xrayIndex`
    :param unknown: fields that the report could not compare
    """
    if entry.get("state") == "absent":
        return {
            "state": "present",
            **{k: v for k, v in present.items() if k not in ("src", "config")},
        }
    found = {}
    for option, value in entry.items():
        is_known = option in present and option not in unknown
        if option == "state":
            wanted = _state(value, present, options)
        elif not is_known or options.get(option, {}).get(SECRET) or _is_secret(value):
            continue
        elif (mode := _mode(entry, option, options)) in ("add", "remove"):
            wanted = _kept(value, present[option], wanted=mode == "add")
        else:
            wanted = _of_option(option, value, present[option], named)
        if canonical(wanted) != canonical(value):
            found[option] = wanted
    return found


def _mode(entry: Mapping[str, Any], option: str, options: Mapping[str, Any]) -> str:
    """Return the mode of a list: whether it adds members, removes members or has all of them."""
    names = (f"{option}_mode", "mode")
    return next((str(entry[name]) for name in names if name in options and name in entry), "exact")


def _is_of(field: str, option: str) -> bool:
    return field == option or field.startswith((f"{option}.", f"{option}["))


def _of_option(option: str, value: Any, present: Any, named: Collection[str]) -> Any:
    """Return the value of an option, in the form in which the entry writes it."""
    root = option.partition(".")[0]
    is_partial = root in _PARTIAL
    if is_partial and isinstance(value, Mapping) and isinstance(present, Mapping):
        names = {_plain(name): name for name in present}
        return {
            key: _of_option(f"{option}.{key}", inner, present[names[_plain(key)]], named)
            if _plain(key) in names
            else inner
            for key, inner in value.items()
        }
    differs = any(_is_of(field, option) for field in named)
    if not differs and _loose(value) == _loose(present):
        return value
    return _Alignment(is_partial, root in _ORDERED).value(value, present)


def section(
    config: Mapping[str, Any],
    present: Mapping[str, Any],
    paths: Collection[str],
    left: Collection[str] = (),
) -> dict[str, Any]:
    """Return a configuration as code with the server's values at the paths that differ.

    :param paths: paths that differ according to the report, such as `jenkins.nodes[agent].label`;
        without them everything may differ
    :param left: paths that the export does not have
    """
    if not paths:
        return _Alignment(is_partial=True, is_ordered=True).mapping(config, present)
    differing = frozenset(_ITEM_NAME.sub("", path) for path in paths)
    lists = frozenset(_ITEM_NAME.sub("", path) for path in paths if not path.endswith("]"))
    missing = frozenset(path for path in differing if not any(_is_of(path, each) for each in left))
    align = _Alignment(True, False, differing, lists, missing)
    return align.mapping(config, present)


@dataclass(frozen=True)
class _Alignment:
    """Writes a value of the server in the form of the folder.

    :param is_partial: mappings of the folder name only some members
    :param is_ordered: the order of lists counts
    :param paths: paths that differ, without the names of items; `None` for all
    :param lists: paths of lists whose order differs
    :param missing: paths at which the server may have no value
    :param place: path of the value
    """

    is_partial: bool
    is_ordered: bool
    paths: frozenset[str] | None = None
    lists: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    place: str = ""

    def value(self, value: Any, present: Any) -> Any:
        """Return the value of the server. Parts that are equal keep their spelling."""
        is_variable = isinstance(value, str) and _VARIABLE.search(value) is not None
        if _is_secret(value) or is_variable or _spelled(value) == _spelled(present):
            return value
        if isinstance(value, Mapping) and isinstance(present, Mapping):
            return self.mapping(value, present)
        if isinstance(value, str) and isinstance(present, list):  # a list written as a string
            return value if _loose(value.split(",")) == _loose(present) else present
        if isinstance(value, list) and isinstance(present, list):
            return self._list(value, present)
        return present if self._differs() else value

    def mapping(self, value: Mapping[str, Any], present: Mapping[str, Any]) -> dict[str, Any]:
        names = {_plain(name): name for name in present}
        found = {}
        for key, inner in value.items():
            align = self._at(key)
            if _plain(key) in names:
                found[key] = align.value(inner, present[names[_plain(key)]])
            elif _is_secret(inner) or (self.is_partial and align.place not in self.missing):
                found[key] = inner
        known = {_plain(key) for key in value}
        added = {} if self.is_partial else present
        return {**found, **{key: new for key, new in added.items() if _plain(key) not in known}}

    def _at(self, key: Any) -> _Alignment:
        if self.paths is None:
            return self
        place = f"{self.place}.{key}".lstrip(".")
        is_ordered = key not in _SETS and place in self.lists
        return replace(self, place=place, is_ordered=is_ordered)

    def _differs(self) -> bool:
        paths = [self.place] if self.paths is None else self.paths
        return any(_is_of(self.place, path) or _is_of(path, self.place) for path in paths)

    def _list(self, value: list[Any], present: list[Any]) -> list[Any]:
        """Return the items of the server, those of the folder in its spelling."""
        if not self._differs():
            return value
        left = list(range(len(value)))
        pairs: list[tuple[int | None, Any]] = []
        for item in present:
            own = next((each for each in left if _spelled(value[each]) == _spelled(item)), None)
            if own is None:
                own = next((each for each in left if _is_same_item(value[each], item)), None)
            if own is not None:
                left.remove(own)
            pairs.append((own, item if own is None else self.value(value[own], item)))
        if self.is_ordered:
            return [item for _own, item in pairs]
        # the order of the folder; a new item follows the item before it
        found = sorted(
            (pair for pair in pairs if pair[0] is not None), key=lambda pair: pair[0] or 0
        )
        before: tuple[int | None, Any] | None = None
        for pair in pairs:
            if pair[0] is None:
                found.insert(0 if before is None else found.index(before) + 1, pair)
            before = pair
        return [item for _own, item in found]


def _is_same_item(one: Any, two: Any) -> bool:
    """Return whether two items of a list describe the same object."""
    if not isinstance(one, Mapping) or not isinstance(two, Mapping):
        return False
    keys = [key for key in _IDENTITY if key in one and key in two]
    if keys:
        return all(_spelled(one[key]) == _spelled(two[key]) for key in keys)
    # an object of the configuration as code, such as `{envVars: {...}}`
    return len(one) == len(two) == 1 and {*map(_plain, one)} == {*map(_plain, two)}


def _is_secret(value: Any) -> bool:
    return isinstance(value, Tagged) and value.tag == "!vault"


def _state(value: Any, present: Mapping[str, Any], options: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the state of an entry. An object that is there is `present`, whatever else it is."""
    default = options["state"].get("default") or "present"
    if value in (default, "present", "latest"):
        return value
    return present.get("state") or default


def _kept(value: Any, present: Any, *, wanted: bool) -> Any:
    """Return the members of a list or mapping that the server has, or lacks if not `wanted`."""
    if isinstance(value, Mapping):
        there = present if isinstance(present, Mapping) else {}
        kept = {
            name: _kept(
                inner, there.get(name, [] if isinstance(inner, list) else {}), wanted=wanted
            )
            for name, inner in value.items()
        }
        return {name: inner for name, inner in kept.items() if inner not in ([], {})}
    if isinstance(value, list):
        members = [_loose(each) for each in present or ()]
        return [each for each in value if (_loose(each) in members) == wanted]
    return value


def _plain(name: Any) -> str:
    return str(name).replace("_", "").casefold()


def _spelled(value: Any) -> Any:
    """Return a form of a value that is equal for other types of the same text: `5` and `'5'`."""
    if isinstance(value, Mapping):
        return ("map", *sorted((_plain(key), repr(_spelled(each))) for key, each in value.items()))
    if isinstance(value, list | tuple):
        return ("list", *map(_spelled, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _loose(value: Any) -> Any:
    """Return a form of a value that ignores the order of lists, case and outer blanks."""
    if isinstance(value, Mapping):
        return ("map", *sorted((_plain(key), repr(_loose(each))) for key, each in value.items()))
    if isinstance(value, list | tuple):
        return ("list", *sorted(repr(_loose(each)) for each in value))
    return str(value).strip().casefold()


# -- XML ------------------------------------------------------------------------------------------


def _jobs(root: XmlElement) -> list[str]:
    names = child_of(root, "jobNames")
    return [
        each.text.strip() for each in (names.children if names else ()) if each.name == "string"
    ]


#: Options of entries that name no XML, read from the exported XML, by list of `ci.yml`.
_FROM_XML: Mapping[str, Mapping[str, Callable[[XmlElement], Any]]] = {
    "jobs": {"enabled": lambda root: text_of(root, "disabled") != "true"},
    "nodes": {
        "description": lambda root: text_of(root, "description"),
        "executors": lambda root: int(text_of(root, "numExecutors") or 1),
        "remote_root": lambda root: text_of(root, "remoteFS"),
        "labels": lambda root: sorted(text_of(root, "label").split()),
        "mode": lambda root: text_of(root, "mode").lower() or "normal",
    },
    "views": {
        "description": lambda root: text_of(root, "description"),
        "jobs": _jobs,
        "regex": lambda root: text_of(root, "includeRegex"),
    },
}


def from_xml(kind: str, text: str) -> dict[str, Any]:
    """Return the options of an entry from the exported XML of its object.

    :param kind: list of the desired state
    """
    readers = _FROM_XML.get(kind, {})
    try:
        root = parse(text) if readers else None
    except UnreadableXml:
        root = None
    return {} if root is None else {name: reader(root) for name, reader in readers.items()}
