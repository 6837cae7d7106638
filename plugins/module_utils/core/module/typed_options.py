# SPDX-License-Identifier: GPL-3.0-or-later
"""Derive the argument spec of a module from a dataclass, and parse parameters into the dataclass.

Each field is an option with the same type and default. An option is required if its field has no
default. `None` means that an option is not given.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

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
    :param empty: see :mod:`input_check`, also for `whole`, `values` and `private` [C1.6]
    """

    name: str | None = None
    type: str | None = None
    aliases: tuple[str, ...] = ()
    secret: bool | None = None
    empty: bool | None = None
    whole: bool | None = None
    values: Literal["text", "json"] | None = None
    private: bool | None = None

    def spec_entries(self) -> Spec:
        """Return the properties as entries of an argument spec."""
        entries = {
            "aliases": list(self.aliases) or None,
            "no_log": self.secret,
            "empty": self.empty,
            "whole": self.whole,
            "values": self.values,
            "private": self.private,
        }
        return {name: value for name, value in entries.items() if value is not None}


#: A path. Ansible expands `~` and environment variables.
PathText = Annotated[str, Option(type="path")]


@dataclass(frozen=True)
class _Declaration:
    """The field of an option, with its type and its additional properties."""

    field: Field[Any]
    kind: Any
    option: Option

    @property
    def name(self) -> str:
        return self.option.name or self.field.name

    @property
    def nested(self) -> type | None:
        """Return the dataclass of the suboptions, or `None`."""
        kind = _element(self.kind) if get_origin(self.kind) is list else self.kind
        return kind if isinstance(kind, type) and is_dataclass(kind) else None

    def default(self) -> Any:
        """Return the default, or `MISSING` for a required option."""
        if self.field.default_factory is not MISSING:
            return self.field.default_factory()
        return self.field.default

    def spec(self) -> Spec:
        """Return the entry of the option in an argument spec."""
        kind = self.kind
        spec: Spec = {"type": self.option.type or _type_name(kind)}
        if get_origin(kind) is list:
            spec["elements"] = self._element_type()
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

    def _element_type(self) -> str:
        (annotated,) = get_args(self.kind)
        kind, option = _without_annotation(annotated)
        return option.type or _type_name(kind)

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
            return [parse(nested, entry) for entry in value]
        return parse(nested, value)


def argument_spec(options: type) -> dict[str, Spec]:
    """Return the argument spec of a dataclass."""
    return {declaration.name: declaration.spec() for declaration in _declarations(options)}


def constraints(options: type) -> dict[str, Any]:
    """Return the rules between options of a dataclass, such as `mutually_exclusive`."""
    return dict(getattr(options, "constraints", {}))


def parse(options: type[Options], params: Mapping[str, Any]) -> Options:
    """Return the typed options for parameters that Ansible has checked."""
    kind: type = options
    return options(
        **{declaration.field.name: declaration.value(params) for declaration in _declarations(kind)}
    )


@functools.cache
def _declarations(options: type) -> tuple[_Declaration, ...]:
    hints = get_type_hints(options, include_extras=True)
    return tuple(_declaration(field, hints[field.name]) for field in fields(options))


def _declaration(field: Field[Any], hint: Any) -> _Declaration:
    kind, outer = _without_annotation(hint)
    kind, inner = _without_annotation(_without_none(kind))
    return _Declaration(field, _without_none(kind), inner if outer == Option() else outer)


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
