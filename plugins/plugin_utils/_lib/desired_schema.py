# SPDX-License-Identifier: GPL-3.0-or-later
"""Validate files of the desired state with their JSON schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.common.yaml import SafeLoader  # of libyaml, if it is there

from ...module_utils._lib.core.files import open_regular
from ...module_utils._lib.core.module.input_check import longer_name
from ...module_utils._lib.core.yaml_text import UnreadableYaml, reason_of, require_bounds
from . import collection
from .sentence_error import did_you_mean
from .unreadable_yaml import UNREADABLE

_SCHEMAS = collection.ROOT / "roles" / "desired_state" / "files"
#: JSON types by YAML tag.
_TYPES = {
    "tag:yaml.org,2002:str": "string",
    "tag:yaml.org,2002:int": "integer",
    "tag:yaml.org,2002:bool": "boolean",
    "tag:yaml.org,2002:float": "number",
    "tag:yaml.org,2002:null": "null",
    "tag:yaml.org,2002:seq": "array",
    "tag:yaml.org,2002:map": "object",
    "!vault": "string",
    "!unsafe": "string",
}
_MERGE = "tag:yaml.org,2002:merge"
#: Schema keyword with the name of the role variable.
VARIABLE = "x-variable"
#: Schema keyword of a list, with the options that identify an entry.
KEY = "x-key"
#: Schema keyword that marks secrets.
SECRET = "writeOnly"


@cache
def services() -> tuple[str, ...]:
    """Return the names of all services that have a schema, sorted."""
    return tuple(sorted(file.name.split(".")[0] for file in _SCHEMAS.glob("*.schema.json")))


@cache
def schema_of(service: str) -> dict[str, Any]:
    """Return the JSON schema of a service."""
    schema: dict[str, Any] = json.loads((_SCHEMAS / f"{service}.schema.json").read_text("utf-8"))
    return schema


def violations(file: Path, service: str) -> list[str]:
    """Return the schema violations of a file, in the form `:line: message`."""
    try:
        with open(file, "rb", opener=open_regular) as stream:
            return violations_of(stream.read(), service)
    except OSError as error:
        return [f": cannot read the file: {error.strerror}"]


def violations_of(text: bytes | str, service: str) -> list[str]:
    """Return the schema violations of the text of a file, in the form `:line: message`."""
    try:
        require_bounds(text)
        root = yaml.compose(text, Loader=SafeLoader)
        return [] if root is None else list(_check(root, schema_of(service), ""))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return [f":{line}: this is not valid YAML: {reason_of(error)}"]
    except UnreadableYaml as error:
        return [f":{error.line or 1}: this is not valid YAML: {error}"]
    except UNREADABLE as error:
        return [f":1: this is not valid YAML: {reason_of(error)}"]


def _check(node: yaml.Node, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yield the schema violations of a YAML node.

    :param place: path of the node for messages, such as `groups[0].name`
    """
    if schema.get(SECRET):
        yield from _check_secret(node, place)
        return
    start = f":{node.start_mark.line + 1}: {place or 'the file'}"
    kind = _TYPES.get(node.tag, node.tag)
    wanted = schema.get("type")
    allowed = [wanted] if isinstance(wanted, str) else list(wanted or [])
    if allowed and kind not in allowed:
        quotable = "string" in allowed and isinstance(node, yaml.ScalarNode) and node.value
        hint = ": put it into quotes" if quotable else ""
        expected = " or ".join(map(_type_name, allowed))
        yield f"{start} is {_type_name(kind)}, but must be {expected}{hint}"
    elif isinstance(node, yaml.MappingNode):
        yield from _check_mapping(node, schema, place)
    elif isinstance(node, yaml.SequenceNode):
        for number, entry in enumerate(node.value):
            yield from _check(entry, schema.get("items", {}), f"{place}[{number}]")
    elif "enum" in schema and node.value not in schema["enum"]:
        yield f"{start} must be one of {', '.join(schema['enum'])}, not {node.value}"


def _check_secret(node: yaml.Node, place: str) -> Iterator[str]:
    """Yield a message for a secret that is neither encrypted nor taken from a variable."""
    if node.tag == "!vault":
        return
    if isinstance(node, yaml.MappingNode) and len(node.value) == 1:
        ((name, value),) = node.value
        if name.value == "from" and value.tag == "tag:yaml.org,2002:str" and value.value:
            return
    wanted = "encrypt it with ansible-vault encrypt_string, or write {from: name of a variable}"
    yield f":{node.start_mark.line + 1}: {place} is a secret: {wanted}"


def _type_name(kind: str) -> str:
    names = {"array": "a list", "object": "a mapping", "string": "a string", "null": "null"}
    names |= {"integer": "an integer", "number": "a number", "boolean": "true or false"}
    return names.get(kind, f"a value of an unsupported type ({kind.rpartition(':')[2]})")


def _merged(node: yaml.MappingNode, known: set[str]) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """Yield the pairs that merge keys (`<<`) add to a mapping, the first one of each name.

    :param known: names of the pairs of the mapping, which override these
    """
    seen = set(known)
    for key, value in node.value:
        listed = value.value if isinstance(value, yaml.SequenceNode) else [value]
        for mapping in listed if key.tag == _MERGE else ():
            if not isinstance(mapping, yaml.MappingNode):
                continue  # the loader rejects it
            own = [pair for pair in mapping.value if pair[0].tag != _MERGE]
            for pair in [*own, *_merged(mapping, {str(name.value) for name, _value in own})]:
                if str(pair[0].value) not in seen:
                    seen.add(str(pair[0].value))
                    yield pair


def _check_mapping(node: yaml.MappingNode, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    seen: set[str] = set()
    own = [pair for pair in node.value if pair[0].tag != _MERGE]
    names = {str(key.value) for key, _value in own}
    for key, value in [*own, *_merged(node, names)]:
        name = str(key.value)
        inner, line = f"{place}.{name}" if place else name, key.start_mark.line + 1
        if name in seen:
            yield f":{line}: {inner} is listed twice"
        seen.add(name)
        if name in properties:
            yield from _check(value, properties[name], inner)
        elif schema.get("additionalProperties") is False:
            longer = longer_name(name, properties)
            known = f": the known names are {', '.join(properties)}"
            hint = f" (did you mean {longer}?)" if longer else did_you_mean(name, properties, known)
            yield f":{line}: {inner} is unknown{hint}"
    for name in schema.get("required", ()):
        if name not in seen:
            yield f":{node.start_mark.line + 1}: {place or 'the file'} has no {name}"
