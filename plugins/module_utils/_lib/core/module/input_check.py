# SPDX-License-Identifier: GPL-3.0-or-later
"""Reject invalid input before Ansible converts it [C1.6].

An argument spec may contain keys that Ansible does not have (:data:`EXTRA_KEYS`):

- `whole`: keep line breaks at the end of a string, for example of a page. They are removed by
  default, because they come from a file or from the output of a command.
- `empty`: whether the option may be empty. By default, lists and mappings may be empty, and strings
  only if their default is.
- `single`: each line of a string is an entry of a list, for names that may contain commas. By
  default, lines are also split at their commas.
- `values`: type of the values in a `dict` without `options` or in a `raw` option: `text` for
  strings, `json` for any type. In a `dict`, `text` also accepts null and lists of strings, `line`
  only strings that are not empty. For a `str` option, `json` means that the string is JSON.
- `private`: which values of the option are secrets depends on their names or on the account; see
  :mod:`option_secrets`.
"""

from __future__ import annotations

import json
import os
import re
import sys
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

EXTRA_KEYS = frozenset({"empty", "values", "private", "single", "whole"})
_TEXTS = ("str", "path")
_QUOTES = "put it into quotes"
_LONGEST_SHOWN = 80
#: Spaces without a width, and the mark at the begin of a file: what is copied may end with them.
_INVISIBLE = "\u200b\u2060\ufeff"
_HALF = re.compile("[\ud800-\udfff]")
#: Maximum of a number with a fraction: all of them are durations, and the system has such a limit.
_LARGEST = 1e9
#: Prefix of the value of `omit` before ansible-core 2.19. Ansible does not remove the value from
#: options of lookups and from longer strings.
_OMITTED = "__omit_place_holder__"
_WANTED = {"int": "an integer", "float": "a number", "bool": "true or false"}
#: Types that can be converted to a string. Vault secrets are sequences; `omit` in a list is an
#: object of another type.
_SCALARS = (str, bytes, int, date, Sequence)
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "int": check_type_int,
    "float": check_type_float,
    "bool": check_type_bool,
}


@dataclass(frozen=True)
class Place:
    """The location of a value in the options.

    :param name: path for messages, such as `builds[2].parameters.VERSION`
    :param secret: the value is a secret, which messages must not contain
    """

    name: str
    secret: bool = False

    def member(self, name: object, *, secret: bool) -> Place:
        return Place(f"{self.name}.{name}" if self.name else str(name), self.secret or secret)

    def entry(self, number: int) -> Place:
        return Place(f"{self.name}[{number}]", self.secret)

    def error(self, value: Any, hint: str, *, show: bool = True) -> ToolchainError:
        """Return the error `invalid` for a value.

        :param hint: the expected input
        :param show: quote the value in the message, unless it is a secret
        """
        return invalid(f"{self.name} is {_describe(value, show and not self.secret)}: {hint}")

    def blank(self) -> ToolchainError:
        return invalid(f"{self.name} contains only blanks: write '' to clear the value, or omit it")

    def empty(self, expected: str) -> ToolchainError:
        return invalid(f"{self.name} is empty: specify {expected}, or leave the option out (omit)")


def ansible_spec(options: Options) -> dict[str, dict[str, Any]]:
    """Return the argument spec for Ansible: without :data:`EXTRA_KEYS`, with copied defaults."""
    copied: dict[str, Callable[[Any], Any]] = {"options": ansible_spec, "default": deepcopy}
    return {
        name: {
            key: copied[key](value) if key in copied else value
            for key, value in option.items()
            if key not in EXTRA_KEYS
        }
        for name, option in options.items()
    }


def canonical_name(options: Options, spelling: str) -> str:
    """Return the name of an option for its name or alias. Unknown names are returned unchanged."""
    if spelling in options:
        return spelling
    for name, option in options.items():
        if spelling in option.get("aliases", ()):
            return name
    return spelling


def longer_name(name: str, names: Iterable[str]) -> str:
    """Return the first of `names` that ends with `_` and `name`, such as `remote_url` for `url`.

    Suboptions whose plain names are connection options have a prefix. Returns "" if no name fits.
    """
    return next((known for known in names if known.endswith(f"_{name}")), "")


def check_options(
    options: Options, values: Mapping[str, Any], place: Place | None = None
) -> dict[str, Any]:
    """Check and parse the given options. Raises `invalid` for invalid input.

    Options with the value `None` or `omit` are removed. Unknown and missing suboptions are rejected
    here, because the messages of Ansible would not contain the index in the list. Those of the task
    are left to Ansible.

    :param place: location of suboptions, `None` for the options of the task
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
            meant = longer_name(name, options)
            hint = f"{place.name} accepts {', '.join(options)}"
            hint = f"did you mean {meant}?" if meant else hint
            raise invalid(f"{place.name}.{name} is not an option: {hint}")
        else:
            found[name] = value
    if place is None:
        return found
    for name, option in options.items():
        if option.get("required") and not found.keys() & {name, *option.get("aliases", ())}:
            raise invalid(f"{place.name}: {name} is missing: set it")
    return found


def require_whole_characters(value: Any, place: Place = Place("")) -> None:
    """Raise `invalid` for a string, at any depth, that cannot be encoded in UTF-8.

    Ansible would fail with a traceback before it calls the module.
    """
    if isinstance(value, Mapping):
        for name, member in value.items():
            require_whole_characters(str(name), place)
            require_whole_characters(member, place.member(name, secret=False))
    elif isinstance(value, (list, tuple)):
        for number, entry in enumerate(value):
            require_whole_characters(entry, place.entry(number))
    elif isinstance(value, str) and not value.isascii() and _HALF.search(value):
        raise invalid(
            f"{place.name} contains an unpaired surrogate, which is half of a character: write the"
            " whole character"
        )


def _is_omitted(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(_OMITTED)


def _checked(option: Mapping[str, Any], value: Any, place: Place) -> Any:
    return _CHECKS[option.get("type", "str")](option, value, place)


def text(value: Any, place: Place, *, empty: bool = False) -> str:
    """Return a value as a string. Raises `invalid` for values that YAML may have changed.

    :param empty: accept an empty string
    """
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
        raise place.error(value, "omit must be the whole value of an option, not part of a string")
    if not empty and not found.strip():
        raise place.empty("a string")
    return found


def line(value: Any, place: Place, *, empty: bool = False) -> str:
    """Return a value as a string without line breaks at its end. See :func:`text`."""
    found = text(value, place, empty=empty).rstrip("\r\n")
    require_whole_characters(found, place)
    if "\0" in found:
        raise place.error(found, "it contains a null byte, so it may be in another encoding")
    if found.strip(_INVISIBLE) != found:
        raise place.error(found, "it begins or ends with an invisible character: remove it")
    return found


def texts(values: Iterable[Any], place: Place) -> list[str]:
    """Return the strings of a list. Raises `invalid` if one is empty."""
    return [line(value, place.entry(number)) for number, value in enumerate(values)]


def _text(option: Mapping[str, Any], value: Any, place: Place) -> str:
    choices = option.get("choices") or ()
    if isinstance(value, bool) and str(value).lower() in choices:
        return str(value).lower()
    if isinstance(value, Mapping) and option.get("values") == "json":
        # ansible-core before 2.19 has parsed the result of a template that looks like JSON
        value = json.dumps(value)
    empty = option.get("empty", option.get("default") == "")
    return _string(option, value, place, empty=empty)


def _path(option: Mapping[str, Any], value: Any, place: Place) -> str:
    """Return a local path. Raises `invalid` if it is too long, before the first request is sent."""
    path = _text(option, value, place)
    encoded = os.fsencode(path)
    longest = max(map(len, encoded.split(b"/")))
    if longest > os.pathconf("/", "PC_NAME_MAX") or len(encoded) >= os.pathconf("/", "PC_PATH_MAX"):
        raise place.error(path, "the path, or a name in it, is too long for the file system")
    return path


def _string(option: Mapping[str, Any], value: Any, place: Place, *, empty: bool) -> str:
    """Return a string. Only content and secrets keep line breaks at the end, and may be blank."""
    if option.get("whole") or option.get("no_log"):
        return text(value, place, empty=empty)
    found = line(value, place, empty=empty)
    if found and not found.strip():
        raise place.blank()
    return found


def _scalar(option: Mapping[str, Any], value: Any, place: Place) -> Any:
    """Return a number or a boolean.

    Ansible would convert true to 1, and its error messages do not contain the path of the value.
    """
    kind = option["type"]
    try:
        if isinstance(value, bool) and kind != "bool":
            raise TypeError
        if isinstance(value, float) and kind == "int" and value.is_integer():
            return int(value)  # such as 4 / 2 in Jinja; older releases of Ansible reject 2.0
        found = _CONVERSIONS[kind](value)
        if kind == "float" and not abs(found) <= _LARGEST:
            raise ValueError  # Python accepts nan and inf
        if kind == "int" and abs(found) > sys.maxsize:
            raise place.error(value, "expected a smaller number")
        return found
    except (TypeError, ValueError, OverflowError):
        raise place.error(value, f"expected {_WANTED[kind]}") from None


def _list(option: Mapping[str, Any], value: Any, place: Place) -> list[Any]:
    elements = option.get("elements", "raw")
    entries = _entries(value, elements, place, single=bool(option.get("single")))
    if not entries and option.get("empty") is False:
        raise place.empty("an entry")
    keys = ("choices", "options", "values", "whole", "no_log")
    element = {"type": elements, **{key: option[key] for key in keys if key in option}}
    return [_checked(element, entry, place.entry(number)) for number, entry in enumerate(entries)]


def _entries(value: Any, elements: str, place: Place, *, single: bool = False) -> list[Any]:
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
    return split_list(value, at_commas=not single)


def split_list(written: str, *, at_commas: bool) -> list[str]:
    """Return the entries of a list that is written as a string: its lines, or parts of them."""
    lines = [line.strip() for line in written.splitlines() if line.strip()]
    if not at_commas:
        return lines
    # a line may end with a comma, which separates it from the next line
    joined = ",\n".join(lines).replace(",,\n", ",\n")
    return [entry.strip() for entry in joined.split(",")]


def _mapping(option: Mapping[str, Any], value: Any, place: Place) -> Any:
    options = option.get("options")
    if isinstance(value, str) and not place.name.endswith("]"):
        value = _parsed_mapping(value, place)
    if not isinstance(value, Mapping):
        names = f" of {', '.join(options)}" if options else ""
        raise place.error(value, f"expected a mapping{names}", show=False)
    if options:
        if value and all(member is None for member in value.values()):
            # would become an empty mapping, which may clear a field of the object
            raise invalid(
                f"{place.name} has only null values: set one of them, or omit {place.name}"
            )
        return check_options(options, value, place)
    if not value and option.get("empty") is False:
        raise place.empty("an entry")
    if option.get("values") == "text":
        return {name: _value(member, _member(place, name)) for name, member in value.items()}
    if option.get("values") == "line":
        return {name: line(member, _member(place, name)) for name, member in value.items()}
    return dict(value)


def _parsed_mapping(written: str, place: Place) -> Any:
    """Parse a mapping from a string, which may be JSON or `a=1, b=2` as in Ansible."""
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
    """Return a value of a mapping: a string, `None`, or a list of strings."""
    if isinstance(value, (list, tuple)):
        return [_single(item, place.entry(number)) for number, item in enumerate(value)]
    return None if value is None else _single(value, place)


def _single(value: Any, place: Place) -> str:
    return str(value).lower() if isinstance(value, bool) else text(value, place, empty=True)


def _member(place: Place, name: object) -> Place:
    """Return the location of a member, which is a secret if its name suggests that."""
    return place.member(name, secret=is_secret_name(str(name)))


def _raw(option: Mapping[str, Any], value: Any, place: Place) -> Any:
    """Return a string, or a list or mapping. Its values become strings if `values` is `text`."""
    empty = bool(option.get("empty"))
    if not isinstance(value, (Mapping, list, tuple)):
        return _string(option, value, place, empty=empty)
    if option.get("values") != "text":
        return value
    if isinstance(value, Mapping):
        return {
            name: member if member is None else _raw(option, member, _member(place, name))
            for name, member in value.items()
        }
    return [_raw(option, item, place.entry(number)) for number, item in enumerate(value)]


def _describe(value: Any, show: bool) -> str:
    """Describe a value for a message by its type, and by the value itself if it may be shown."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple, set)):
        return "a list"
    kind = "string" if isinstance(value, str) else "number"
    kind = "boolean" if isinstance(value, bool) else kind
    shown = shorten(str(value), _LONGEST_SHOWN)
    shown = f"'{shown}'" if kind == "string" else shown.lower()
    return f"the {kind} {shown}" if show else f"a {kind}"


_CHECKS: dict[str, Callable[[Mapping[str, Any], Any, Place], Any]] = {
    "str": _text,
    "path": _path,
    **dict.fromkeys(_CONVERSIONS, _scalar),
    "list": _list,
    "dict": _mapping,
    "raw": _raw,
}
