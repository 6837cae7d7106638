# SPDX-License-Identifier: GPL-3.0-or-later
"""Derive the argument spec of a module from a dataclass, and parse parameters into the dataclass.

Each field is an option with the same type and default. An option is required if its field has no
default. `None` means that an option is not given.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ..address import require_segment
from ..errors import ToolchainError, invalid
from .rules import check_number

Options = TypeVar("Options")
Spec = dict[str, Any]

_TYPES: dict[Any, str] = {
    str: "str",
    int: "int",
    float: "float",
    bool: "bool",
    dict: "dict",
    list: "list",
    Any: "raw",
}


@dataclass(frozen=True)
class Option:
    """Additional properties of an option, as in `Annotated[str, Option(...)]`.

    :param name: name of the option if it differs from the name of the field, such as `from`
    :param type: type in the argument spec, such as `path`
    :param aliases: other names of the option
    :param secret: `True` masks the value, `False` does not, even if the name suggests a secret.
        `None` means that the name decides
    :param empty: see :mod:`input_check`, also for `whole`, `single`, `values` and `private` [C1.6]
    :param least: smallest valid number, also of the entries of a list
    :param above: largest number that is too small
    :param segment: the value, or each entry of a list, is a segment of the path of a request
    """

    name: str | None = None
    type: str | None = None
    aliases: tuple[str, ...] = ()
    secret: bool | None = None
    empty: bool | None = None
    whole: bool | None = None
    single: bool | None = None
    values: Literal["text", "line", "json"] | None = None
    private: bool | None = None
    least: float | None = None
    above: float | None = None
    segment: bool = False

    def spec_entries(self) -> Spec:
        """Return the properties as entries of an argument spec."""
        entries = {
            "aliases": list(self.aliases) or None,
            "no_log": self.secret,
            "empty": self.empty,
            "whole": self.whole,
            "single": self.single,
            "values": self.values,
            "private": self.private,
        }
        return {name: value for name, value in entries.items() if value is not None}


#: Names that may contain commas: a string is a single name.
Names = Annotated[list[str], Option(single=True)]
#: A name or an id that is a segment of the path of a request, so it cannot be `..`.
Segment = Annotated[str, Option(segment=True)]
#: A path. Ansible expands `~` and environment variables.
PathText = Annotated[str, Option(type="path")]
#: Integers from 0 and from 1, and a number of seconds above 0.
NotNegative = Annotated[int, Option(least=0)]
Positive = Annotated[int, Option(least=1)]
Seconds = Annotated[float, Option(above=0)]


@dataclass(frozen=True)
class _Declaration:
    """The field of an option, with its type and its additional properties.

    :param in_entries: an option of an object, in a task that may list several objects in `entries`.
        If it is required, it is only so in the entries, or in a task without them
    """

    field: Field[Any]
    kind: Any
    option: Option
    in_entries: bool = False

    @property
    def name(self) -> str:
        return self.option.name or self.field.name

    @functools.cached_property
    def nested(self) -> type | None:
        """Return the dataclass of the suboptions, or `None`."""
        kind = _element(self.kind) if get_origin(self.kind) is list else self.kind
        return kind if isinstance(kind, type) and is_dataclass(kind) else None

    @functools.cached_property
    def is_key(self) -> bool:
        """Return whether a task without `entries` requires the option."""
        required = self.field.default is MISSING and self.field.default_factory is MISSING
        return self.in_entries and required

    def default(self) -> Any:
        """Return the default, or `MISSING` for a required option."""
        if self.is_key:
            return None
        if self.field.default_factory is not MISSING:
            return self.field.default_factory()
        return self.field.default

    def spec(self) -> Spec:
        """Return the entry of the option in an argument spec."""
        kind = self.kind
        spec: Spec = {"type": self.option.type or _type_name(kind)}
        if get_origin(kind) is list:
            (annotated,) = get_args(kind)
            element, option = _without_annotation(annotated)
            spec["elements"] = option.type or _type_name(element)
        if get_origin(_element(kind)) is Literal:
            spec["choices"] = list(get_args(_element(kind)))
        if self.nested is not None:
            spec["options"] = argument_spec(self.nested)
            spec.update(constraints(self.nested))
        default = self.default()
        if default is MISSING:
            spec["required"] = True
        elif default is not None:
            spec["default"] = default
        return {**spec, **self.option.spec_entries()}

    def value(self, params: Mapping[str, Any]) -> Any:
        """Return the typed value of the option."""
        value = params.get(self.name)
        if value is None:
            default = self.default()
            return None if default is MISSING else default
        nested = self.nested
        if nested is None:
            return value
        if isinstance(value, list):
            return [_build(nested, entry) for entry in value]
        return _build(nested, value)

    def is_set_in(self, options: Any) -> bool:
        """Return whether the value differs from the default."""
        default = self.default()
        return bool(getattr(options, self.field.name) != (None if default is MISSING else default))

    def check(self, value: Any, name: str) -> None:
        """Raise `invalid` for a number that is too small, a name that cannot be in the path of a
        request, and for invalid suboptions.
        """
        if isinstance(value, list):
            for number, entry in enumerate(value):
                self.check(entry, f"{name}[{number}]")
        elif self.nested is not None and value is not None:
            check(value, name)
        elif isinstance(value, (int, float)):
            check_number(name, value, self.option.least, self.option.above)
        elif self.option.segment and value is not None:
            require_segment(name, value)


@functools.cache
def argument_spec(options: type) -> Mapping[str, Spec]:
    """Return the argument spec of a dataclass. It is shared: nobody may change it."""
    return {declaration.name: declaration.spec() for declaration in _declarations(options)}


def constraints(options: type) -> dict[str, Any]:
    """Return the rules between options of a dataclass that Ansible knows."""
    keys = [[known.name, "entries"] for known in _declarations(options) if known.is_key]
    of_keys = {"mutually_exclusive": keys, "required_one_of": keys} if keys else {}
    return {**of_keys, **getattr(options, "constraints", {})}


def parse(options: type[Options], params: Mapping[str, Any]) -> Options:
    """Return the typed options for parameters that Ansible has checked. Raises as :func:`check`."""
    parsed = _build(options, params)
    check(parsed)
    return parsed


def _build(options: type[Options], params: Mapping[str, Any]) -> Options:
    kind: type = options
    return options(
        **{declaration.field.name: declaration.value(params) for declaration in _declarations(kind)}
    )


def check(options: Any, place: str = "") -> None:
    """Raise `invalid` for an invalid value, or options that break a rule of their class.

    The rules are the class attribute `option_rules`, and a method `check` for the others.

    :param place: location of suboptions, such as `entries[2]`, with which the message begins
    """
    try:
        _check_rules(options)
    except ToolchainError as error:
        error.message = f"{place}: {error.message}" if place else error.message
        raise
    kind: type = type(options)
    for known in _declarations(kind):
        if known.nested is not None:
            name = f"{place}.{known.name}" if place else known.name
            known.check(getattr(options, known.field.name), name)


def _check_rules(options: Any) -> None:
    kind: type = type(options)
    declarations = _declarations(kind)
    values = {known.name: getattr(options, known.field.name) for known in declarations}
    given = {known.name: known.is_set_in(options) for known in declarations}
    for known in declarations:
        if known.nested is None:
            known.check(values[known.name], known.name)
        if known.in_entries and given["entries"] and given[known.name]:
            name = known.name
            raise invalid(f"{name} cannot be combined with entries: set {name} in every entry")
    if any(known.in_entries for known in declarations) and given["entries"]:
        return  # the rules apply to each entry
    for rule in getattr(kind, "option_rules", ()):
        rule.check(values, given)
    if hasattr(options, "check"):
        options.check()


@functools.cache
def _declarations(options: type) -> tuple[_Declaration, ...]:
    hints = get_type_hints(options, include_extras=True)
    found = []
    for field in fields(options):
        kind, outer = _without_annotation(hints[field.name])
        kind, inner = _without_annotation(_without_none(kind))
        option = inner if outer == Option() else outer
        found.append(_Declaration(field, _without_none(kind), option))
    of_entry = next((known.nested for known in found if known.name == "entries"), None)
    if of_entry is None or not issubclass(options, of_entry):
        return tuple(found)
    names = {field.name for field in fields(of_entry)}
    return tuple(replace(known, in_entries=known.field.name in names) for known in found)


def _without_annotation(hint: Any) -> tuple[Any, Option]:
    if get_origin(hint) is not Annotated:
        return hint, Option()
    kind, *notes = get_args(hint)
    return kind, next((note for note in notes if isinstance(note, Option)), Option())


def _without_none(hint: Any) -> Any:
    """Return `X` for `X | None`."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    (kind,) = (arg for arg in get_args(hint) if arg is not types.NoneType)
    return kind


def _element(kind: Any) -> Any:
    return _without_annotation(get_args(kind)[0])[0] if get_origin(kind) is list else kind


def _type_name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return _TYPES[type(get_args(kind)[0])]
    if isinstance(kind, type) and is_dataclass(kind):
        return "dict"
    return _TYPES[get_origin(kind) or kind]
