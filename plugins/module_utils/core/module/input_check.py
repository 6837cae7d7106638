# SPDX-License-Identifier: GPL-3.0-or-later
"""Slips in what a user wrote, refused before Ansible converts it [C1.6].

An argument spec may say more of an option than Ansible knows (:data:`EXTRA_KEYS`):

- C(whole): a line break at the end of a text is part of it, as in the body of a page. Everywhere
  else it comes from a file or the output of a command, and is dropped: no name ends with one.
- C(empty): whether it may be empty. A text may not, unless its default is; a list may.
- C(values): what a C(dict) without C(options), or a C(raw) option, holds: C(text) for texts that
  a service gets as they are, C(json) for values with types of their own.
- C(private): names in it, or who reads it, tell which values are secrets; see
  :mod:`option_secrets`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import date
from typing import Any

from ansible.module_utils.common.validation import (
    check_type_bool,
    check_type_dict,
    check_type_float,
    check_type_int,
)

from .. import json_text
from ..errors import ToolchainError, invalid, shorten
from ..secret import is_secret_name

Options = Mapping[str, Mapping[str, Any]]

EXTRA_KEYS = frozenset({"empty", "values", "private", "whole"})
_TEXTS = ("str", "path")
_QUOTES = "put it into quotes"
_LONGEST_SHOWN = 80
#: What stands for an option that is left out, where Ansible does not take it out itself: among the
#: options of lookups, and before 2.19 inside of longer texts.
_OMITTED = "__omit_place_holder__"
_WANTED = {"int": "a whole number", "float": "a number", "bool": "true or false"}
#: Types with a string form; secrets of a vault are sequences. `omit` in a list has none of them.
_SCALARS = (str, bytes, int, date, Sequence)
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "int": check_type_int,
    "float": check_type_float,
    "bool": check_type_bool,
}


@dataclass(frozen=True)
class Place:
    """Where a value stands, as C(builds[2].parameters.VERSION), and whether it may be shown."""

    name: str
    secret: bool = False

    def member(self, name: object, *, secret: bool) -> Place:
        return Place(f"{self.name}.{name}" if self.name else str(name), self.secret or secret)

    def entry(self, number: int) -> Place:
        return Place(f"{self.name}[{number}]", self.secret)

    def refusal(self, value: Any, advice: str, *, show: bool = True) -> ToolchainError:
        """C(invalid) for what was read here; a secret is not shown."""
        return invalid(f"{self.name} is {_read(value, show and not self.secret)}: {advice}")

    def empty(self, what: str) -> ToolchainError:
        return invalid(f"{self.name} is empty: give {what}, or leave the option out (omit)")


def ansible_spec(options: Options) -> dict[str, dict[str, Any]]:
    """The argument spec without the words that are not Ansible's, with defaults that may be changed
    where they arrive.
    """
    return {
        name: {
            word: _for_ansible(word, value)
            for word, value in option.items()
            if word not in EXTRA_KEYS
        }
        for name, option in options.items()
    }


def _for_ansible(word: str, value: Any) -> Any:
    if word == "options":
        return ansible_spec(value)
    return deepcopy(value) if word == "default" else value


def canonical_name(options: Options, given: str) -> str:
    """The name of the option that is given by this name, which may be an alias; an unknown one as
    it is.
    """
    if given in options:
        return given
    for name, option in options.items():
        if given in option.get("aliases", ()):
            return name
    return given


def check_options(
    options: Options, given: Mapping[str, Any], place: Place | None = None
) -> dict[str, Any]:
    """The options that are given, with what is written as text taken apart; C(invalid) for a slip.

    C(None) and C(omit) are left out. Unknown options are left to Ansible's own check, but for those
    inside an option (C(place)): it does not say in which entry of a list they stand.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        option = options.get(canonical_name(options, name))
        if option is not None and (value is None or _is_omitted(value)):
            continue
        if option is not None:
            secret = bool(option.get("no_log", is_secret_name(name)))
            found[name] = _checked(option, value, (place or Place("")).member(name, secret=secret))
        elif place is not None:
            known = ", ".join(options)
            raise invalid(f"{place.name}.{name} is no option: {place.name} takes {known}")
        else:
            found[name] = value
    return found


def _is_omitted(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(_OMITTED)


def _checked(option: Mapping[str, Any], value: Any, place: Place) -> Any:
    return _CHECKS[option.get("type", "str")](option, value, place)


def text(value: Any, place: Place, *, empty: bool = False) -> str:
    """A value as text where a text is wanted; whole numbers become their digits."""
    if isinstance(value, bool):
        advice = f"a text is wanted; YAML reads yes, no, on and off as booleans, {_QUOTES}"
        raise place.refusal(value, advice)
    if isinstance(value, float):
        advice = f"a text is wanted; YAML reads 1.10 as 1.1, {_QUOTES}"
        raise place.refusal(value, advice)
    if isinstance(value, (list, tuple)) or not isinstance(value, _SCALARS):
        raise place.refusal(value, "a text is wanted")
    words = str(value)
    if _OMITTED in words or _is_omitted(value):
        raise place.refusal(value, "omit leaves out a whole option, and is no part of a text")
    if not empty and not words.strip():
        raise place.empty("a text")
    return words


def line(value: Any, place: Place, *, empty: bool = False) -> str:
    """A value as text where no text ends with a line break: one at the end is dropped."""
    words = text(value, place, empty=empty).rstrip("\r\n")
    if "\0" in words:
        raise place.refusal(words, "it has a zero byte in it, as files of another encoding have")
    return words


def texts(values: Iterable[Any], place: Place) -> list[str]:
    """The entries of a list of names or queries, none of them empty."""
    return [line(value, place.entry(number)) for number, value in enumerate(values)]


def _text(option: Mapping[str, Any], value: Any, place: Place) -> str:
    choices = option.get("choices") or ()
    if isinstance(value, bool) and str(value).lower() in choices:
        return str(value).lower()
    empty = option.get("empty", option.get("default") == "")
    return _reader(option)(value, place, empty=empty)


def _reader(option: Mapping[str, Any]) -> Callable[..., str]:
    """How a text is read: a secret, too, is taken as it is."""
    return text if option.get("whole") or option.get("no_log") else line


def _scalar(option: Mapping[str, Any], value: Any, place: Place) -> Any:
    """A number or a boolean; Ansible takes true for the number 1, and does not name the place."""
    kind = option["type"]
    try:
        if isinstance(value, bool) and kind != "bool":
            raise TypeError
        if isinstance(value, float) and kind == "int" and value.is_integer():
            return int(value)  # what Jinja makes of 4 / 2; older Ansible refuses it
        found = _CONVERSIONS[kind](value)
        if kind == "float" and not math.isfinite(found):
            raise ValueError  # Python reads nan and inf as numbers; nobody can wait so long
        return found
    except (TypeError, ValueError, OverflowError):
        raise place.refusal(value, f"{_WANTED[kind]} is wanted") from None


def _list(option: Mapping[str, Any], value: Any, place: Place) -> list[Any]:
    elements = option.get("elements", "raw")
    entries = _entries(value, elements, place)
    if not entries and option.get("empty") is False:
        raise place.empty("an entry")
    words = ("choices", "options", "values", "whole", "no_log")
    one = {"type": elements, **{word: option[word] for word in words if word in option}}
    return [_checked(one, entry, place.entry(number)) for number, entry in enumerate(entries)]


def _entries(value: Any, elements: str, place: Place) -> list[Any]:
    if isinstance(value, (list, tuple, set)):
        return list(value)
    if elements == "dict" or isinstance(value, Mapping):
        wanted = "mappings" if elements == "dict" else "texts" if elements in _TEXTS else "numbers"
        raise place.refusal(value, f"a list of {wanted} is wanted", show=False)
    if not isinstance(value, str):
        return [value]
    if not value.strip():
        raise place.empty("an entry")
    if value.strip().startswith("[") and value.strip().endswith("]"):
        advice = "write it as a list, or with commas between the entries and without brackets"
        raise place.refusal(value, advice)
    return [entry.strip() for entry in value.split(",")]


def _mapping(option: Mapping[str, Any], value: Any, place: Place) -> Any:
    options = option.get("options")
    if isinstance(value, str) and not place.name.endswith("]"):
        value = _taken_apart(value, place)
    if not isinstance(value, Mapping):
        names = f" of {', '.join(options)}" if options else ""
        raise place.refusal(value, f"a mapping{names} is wanted", show=False)
    if options:
        return check_options(options, value, place)
    if option.get("values") == "text":
        return {name: _value(one, _named(place, name)) for name, one in value.items()}
    return dict(value)


def _taken_apart(written: str, place: Place) -> Any:
    """A mapping that is given as text: JSON, or C(a=1, b=2) as Ansible reads it."""
    in_braces = written.strip().startswith("{")
    if not in_braces and (";" in written or "&" in written):
        advice = "write it as a mapping; a text with ; or & is not taken apart"
        raise place.refusal(written, advice, show=False)
    try:
        found = check_type_dict(written.strip())
        json_text.require_depth(found, written.count("[") + written.count("{"))
        return found
    except json_text.TooDeep as error:
        raise place.refusal(written, str(error), show=False) from None
    except (TypeError, ValueError):
        raise place.refusal(written, "a mapping is wanted", show=False) from None


def _value(value: Any, place: Place) -> Any:
    """A value of a mapping of texts: a text, a number, a boolean, C(None), or a list of these."""
    if isinstance(value, (list, tuple)):
        return [_single(one, place.entry(number)) for number, one in enumerate(value)]
    return None if value is None else _single(value, place)


def _single(value: Any, place: Place) -> str:
    return str(value).lower() if isinstance(value, bool) else text(value, place, empty=True)


def _named(place: Place, name: object) -> Place:
    """The place of a value whose name may say that it is a secret."""
    return place.member(name, secret=is_secret_name(str(name)))


def _raw(option: Mapping[str, Any], value: Any, place: Place) -> Any:
    """A text, or data: of texts too, or with types of its own where C(values) is C(json)."""
    empty = bool(option.get("empty"))
    if not isinstance(value, (Mapping, list, tuple)):
        return _reader(option)(value, place, empty=empty)
    if option.get("values") != "text":
        return value
    if isinstance(value, Mapping):
        members = ((name, one, _named(place, name)) for name, one in value.items())
        return {name: one if one is None else _raw(option, one, at) for name, one, at in members}
    return [_raw(option, one, place.entry(number)) for number, one in enumerate(value)]


def _read(value: Any, show: bool) -> str:
    """What was read, and its value where that is a single one that may be shown."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple, set)):
        return "a list"
    kind = "text" if isinstance(value, str) else "number"
    kind = "boolean" if isinstance(value, bool) else kind
    words = shorten(str(value), _LONGEST_SHOWN)
    words = f"'{words}'" if kind == "text" else words.lower()
    return f"the {kind} {words}" if show else f"a {kind}"


_CHECKS: dict[str, Callable[[Mapping[str, Any], Any, Place], Any]] = {
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(_CONVERSIONS, _scalar),
    "list": _list,
    "dict": _mapping,
    "raw": _raw,
}
