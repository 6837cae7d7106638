# SPDX-License-Identifier: GPL-3.0-or-later
"""Reject invalid input before Ansible converts it [C1.6].

An argument spec may contain keys that Ansible does not know (:data:`EXTRA_KEYS`):

- `whole`: keep a line break at the end of a string, as in the body of a page. Otherwise it is
  dropped: it comes from a file or the output of a command, and no name ends with one.
- `empty`: whether the option may be empty. A string may not, unless its default is; a list may.
- `values`: content of a `dict` without `options`, or of a `raw` option: `text` for strings that
  the service gets unchanged, `json` for values with types; `json` for a string that is JSON.
- `private`: names in the option, or the account that reads it, decide which values are secrets;
  see :mod:`option_secrets`.
"""

from __future__ import annotations

import json
import math
import os
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
#: The value of `omit` before ansible-core 2.19, where Ansible does not remove it: in options of
#: lookups and inside longer strings.
_OMITTED = "__omit_place_holder__"
_WANTED = {"int": "an integer", "float": "a number", "bool": "true or false"}
#: Types with a string form; secrets of a vault are sequences. `omit` in a list has none of them.
_SCALARS = (str, bytes, int, date, Sequence)
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "int": check_type_int,
    "float": check_type_float,
    "bool": check_type_bool,
}


@dataclass(frozen=True)
class Place:
    """The path of a value, such as `builds[2].parameters.VERSION`, and whether it is a secret."""

    name: str
    secret: bool = False

    def member(self, name: object, *, secret: bool) -> Place:
        return Place(f"{self.name}.{name}" if self.name else str(name), self.secret or secret)

    def entry(self, number: int) -> Place:
        return Place(f"{self.name}[{number}]", self.secret)

    def error(self, value: Any, hint: str, *, show: bool = True) -> ToolchainError:
        """Return the error `invalid` for a value; a secret is not shown."""
        return invalid(f"{self.name} is {_described(value, show and not self.secret)}: {hint}")

    def empty(self, expected: str) -> ToolchainError:
        return invalid(f"{self.name} is empty: specify {expected}, or leave the option out (omit)")


def ansible_spec(options: Options) -> dict[str, dict[str, Any]]:
    """Return the argument spec for Ansible, without our keys and with copies of the defaults."""
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


def canonical_name(options: Options, spelling: str) -> str:
    """Return the option with a name or an alias; an unknown name unchanged."""
    if spelling in options:
        return spelling
    for name, option in options.items():
        if spelling in option.get("aliases", ()):
            return name
    return spelling


def check_options(
    options: Options, values: Mapping[str, Any], place: Place | None = None
) -> dict[str, Any]:
    """Return the given options with strings parsed; raise `invalid` for invalid input.

    `None` and `omit` are left out. Ansible rejects unknown options, except for suboptions
    (`place`): its message does not name the entry of the list.
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        option = options.get(canonical_name(options, name))
        if option is not None and (value is None or _is_omitted(value)):
            continue
        if option is not None:
            secret = bool(option.get("no_log", is_secret_name(name)))
            found[name] = _checked(option, value, (place or Place("")).member(name, secret=secret))
        elif place is not None:
            known = ", ".join(options)
            raise invalid(f"{place.name}.{name} is not an option: {place.name} accepts {known}")
        else:
            found[name] = value
    return found


def _is_omitted(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(_OMITTED)


def _checked(option: Mapping[str, Any], value: Any, place: Place) -> Any:
    return _CHECKS[option.get("type", "str")](option, value, place)


def text(value: Any, place: Place, *, empty: bool = False) -> str:
    """Return a value as a string; whole numbers become their digits."""
    if isinstance(value, bool):
        hint = f"expected a string; YAML reads yes, no, on and off as booleans, so {_QUOTES}"
        raise place.error(value, hint)
    if isinstance(value, float):
        hint = f"expected a string; YAML reads 1.10 as 1.1, so {_QUOTES}"
        raise place.error(value, hint)
    if isinstance(value, (list, tuple)) or not isinstance(value, _SCALARS):
        raise place.error(value, "expected a string")
    found = str(value)
    if _OMITTED in found or _is_omitted(value):
        raise place.error(value, "omit leaves out an option, and cannot be a part of a string")
    if not empty and not found.strip():
        raise place.empty("a string")
    return found


def line(value: Any, place: Place, *, empty: bool = False) -> str:
    """Return a value as a string, without the line break at its end."""
    words = text(value, place, empty=empty).rstrip("\r\n")
    if "\0" in words:
        raise place.error(words, "it contains a null byte, which suggests a different encoding")
    return words


def texts(values: Iterable[Any], place: Place) -> list[str]:
    """Return the entries of a list of names or queries; none may be empty."""
    return [line(value, place.entry(number)) for number, value in enumerate(values)]


def _text(option: Mapping[str, Any], value: Any, place: Place) -> str:
    choices = option.get("choices") or ()
    if isinstance(value, bool) and str(value).lower() in choices:
        return str(value).lower()
    if isinstance(value, Mapping) and option.get("values") == "json":
        # ansible-core before 2.19 parses the JSON that a template returns
        value = json.dumps(value)
    empty = option.get("empty", option.get("default") == "")
    return _reader(option)(value, place, empty=empty)


def _path(option: Mapping[str, Any], value: Any, place: Place) -> str:
    """Return a local path. The file system would reject a name that is too long after requests."""
    path = _text(option, value, place)
    encoded = os.fsencode(path)
    longest = max(map(len, encoded.split(b"/")))
    if longest > os.pathconf("/", "PC_NAME_MAX") or len(encoded) >= os.pathconf("/", "PC_PATH_MAX"):
        raise place.error(path, "the path, or a name in it, is too long for the file system")
    return path


def _reader(option: Mapping[str, Any]) -> Callable[..., str]:
    """Return the function that reads a string; a secret keeps its line break."""
    return text if option.get("whole") or option.get("no_log") else line


def _scalar(option: Mapping[str, Any], value: Any, place: Place) -> Any:
    """Return a number or a boolean. Ansible reads true as 1, and its errors name no path."""
    kind = option["type"]
    try:
        if isinstance(value, bool) and kind != "bool":
            raise TypeError
        if isinstance(value, float) and kind == "int" and value.is_integer():
            return int(value)  # the result of 4 / 2 in Jinja; older releases of Ansible reject it
        found = _CONVERSIONS[kind](value)
        if kind == "float" and not math.isfinite(found):
            raise ValueError  # Python accepts nan and inf
        return found
    except (TypeError, ValueError, OverflowError):
        raise place.error(value, f"expected {_WANTED[kind]}") from None


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
        wanted = (
            "mappings" if elements == "dict" else "strings" if elements in _TEXTS else "numbers"
        )
        raise place.error(value, f"expected a list of {wanted}", show=False)
    if not isinstance(value, str):
        return [value]
    if not value.strip():
        raise place.empty("an entry")
    if value.strip().startswith("[") and value.strip().endswith("]"):
        hint = "write it as a list, or with commas between the entries and without brackets"
        raise place.error(value, hint)
    return [entry.strip() for entry in value.split(",")]


def _mapping(option: Mapping[str, Any], value: Any, place: Place) -> Any:
    options = option.get("options")
    if isinstance(value, str) and not place.name.endswith("]"):
        value = _parsed_mapping(value, place)
    if not isinstance(value, Mapping):
        names = f" of {', '.join(options)}" if options else ""
        raise place.error(value, f"expected a mapping{names}", show=False)
    if options:
        if value and all(one is None for one in value.values()):
            # an empty mapping can clear something, which a variable without a value must not do
            raise invalid(
                f"{place.name} has only null values: set one of them, or omit {place.name}"
            )
        return check_options(options, value, place)
    if option.get("values") == "text":
        return {name: _value(one, _named(place, name)) for name, one in value.items()}
    return dict(value)


def _parsed_mapping(written: str, place: Place) -> Any:
    """Parse a mapping in a string: JSON, or `a=1, b=2` as in Ansible."""
    in_braces = written.strip().startswith("{")
    if not in_braces and (";" in written or "&" in written):
        hint = "write it as a mapping; a string with ; or & is not parsed"
        raise place.error(written, hint, show=False)
    try:
        found = check_type_dict(written.strip())
        json_text.require_depth(found, written.count("[") + written.count("{"))
        return found
    except json_text.TooDeep as error:
        raise place.error(written, str(error), show=False) from None
    except (TypeError, ValueError):
        raise place.error(written, "expected a mapping", show=False) from None


def _value(value: Any, place: Place) -> Any:
    """Return a value of a mapping of strings: a string, `None`, or a list of strings."""
    if isinstance(value, (list, tuple)):
        return [_single(one, place.entry(number)) for number, one in enumerate(value)]
    return None if value is None else _single(value, place)


def _single(value: Any, place: Place) -> str:
    return str(value).lower() if isinstance(value, bool) else text(value, place, empty=True)


def _named(place: Place, name: object) -> Place:
    """Return the place of a member; a secret name makes the member a secret."""
    return place.member(name, secret=is_secret_name(str(name)))


def _raw(option: Mapping[str, Any], value: Any, place: Place) -> Any:
    """Return a string, or data with string values (of any type if `values` is `json`)."""
    empty = bool(option.get("empty"))
    if not isinstance(value, (Mapping, list, tuple)):
        return _reader(option)(value, place, empty=empty)
    if option.get("values") != "text":
        return value
    if isinstance(value, Mapping):
        members = ((name, one, _named(place, name)) for name, one in value.items())
        return {name: one if one is None else _raw(option, one, at) for name, one, at in members}
    return [_raw(option, one, place.entry(number)) for number, one in enumerate(value)]


def _described(value: Any, show: bool) -> str:
    """Return the type of a value, with the value if it is a scalar that may be shown."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple, set)):
        return "a list"
    kind = "string" if isinstance(value, str) else "number"
    kind = "boolean" if isinstance(value, bool) else kind
    words = shorten(str(value), _LONGEST_SHOWN)
    words = f"'{words}'" if kind == "string" else words.lower()
    return f"the {kind} {words}" if show else f"a {kind}"


_CHECKS: dict[str, Callable[[Mapping[str, Any], Any, Place], Any]] = {
    "str": _text,
    "path": _path,
    **dict.fromkeys(_CONVERSIONS, _scalar),
    "list": _list,
    "dict": _mapping,
    "raw": _raw,
}
