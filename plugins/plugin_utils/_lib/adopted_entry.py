# SPDX-License-Identifier: GPL-3.0-or-later
"""Compute the options that an entry of the desired state gets from the state of its server.

An entry manages only the options that it names. The playbook `adopt` changes these options only,
and no secret: exports leave secrets out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from ...module_utils._lib.ci.xml_reader import (
    UnreadableXml,
    XmlElement,
    child_of,
    parse,
    text_of,
)
from .desired_schema import SECRET
from .yaml_edits import Tagged, canonical

#: Options whose mapping names only some of the settings of the server.
_PARTIAL = ("settings", "config", "permissions")


class CannotAdopt(Exception):
    """An object cannot be adopted. The message is the reason."""


def changes(
    entry: Mapping[str, Any],
    present: Mapping[str, Any],
    options: Mapping[str, Mapping[str, Any]],
    named: Collection[str],
) -> dict[str, Any]:
    """Return the options of an entry that differ from the server, with the values of the server.

    :param entry: entry of the folder
    :param present: entry of an export
    :param options: schemas of the options
    :param named: fields that differ according to the report
    """
    if entry.get("state") == "absent":
        return {
            "state": "present",
            **{k: v for k, v in present.items() if k not in ("src", "config")},
        }
    found = {}
    for option, value in entry.items():
        if option == "state":
            wanted = _state(value, present, options)
        elif option not in present or options.get(option, {}).get(SECRET) or _is_secret(value):
            continue
        else:
            mode = next(
                (
                    entry.get(name)
                    for name in (f"{option}_mode", "mode")
                    if name in options and name in entry
                ),
                "exact",
            )
            wanted = _merged(value, present[option], str(mode), partial=_is_partial(option, value))
        if canonical(wanted) != canonical(value) and (
            option in named or _loose(wanted) != _loose(value)
        ):
            found[option] = wanted
    return found


def _is_partial(option: str, value: Any) -> bool:
    return option in _PARTIAL and isinstance(value, Mapping)


def _is_secret(value: Any) -> bool:
    return isinstance(value, Tagged) and value.tag == "!vault"


def _state(value: Any, present: Mapping[str, Any], options: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the state of an entry. An object that is there is `present`, whatever else it is."""
    default = options["state"].get("default") or "present"
    if value in (default, "present", "latest"):
        return value
    return present.get("state") or default


def _merged(value: Any, present: Any, mode: str, *, partial: bool) -> Any:
    """Return the value of an option, in the form in which the entry writes it."""
    if mode in ("add", "remove"):
        return _kept(value, present, wanted=mode == "add")
    if partial and isinstance(value, Mapping) and isinstance(present, Mapping):
        names = {_plain(name): name for name in present}
        return {
            name: _merged(inner, present[names[_plain(name)]], mode, partial=True)
            if _plain(name) in names and not _is_secret(inner)
            else inner
            for name, inner in value.items()
        }
    if isinstance(value, str) and isinstance(present, list):  # a list written as a string
        return value if _loose(value.split(",")) == _loose(present) else present
    if isinstance(value, list) and _loose(value) == _loose(present):
        return present if canonical(value) != canonical(present) else value
    return present


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


def _loose(value: Any) -> Any:
    """Return a form of a value that ignores the order of lists, case and outer blanks."""
    if isinstance(value, Mapping):
        return ("map", *sorted((str(key), repr(_loose(each))) for key, each in value.items()))
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
