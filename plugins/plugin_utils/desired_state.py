# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the desired state of all services from a folder, and validate it against the JSON schemas of
the role `desired_state`. Errors name file and line.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils.core.files import open_regular

from .unreadable_yaml import UNREADABLE, told

_SCHEMAS = Path(__file__).resolve().parents[2] / "roles" / "desired_state" / "files"
_ENDINGS = (".yml", ".yaml")
#: JSON names of the types of YAML values.
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
#: The key in the schemas that names the variable of a role.
VARIABLE = "x-variable"


class DesiredStateError(Exception):
    """The folder cannot be read or violates the schemas: a sentence for each error."""


def variables(folder: Path, load: Callable[[str], Any]) -> dict[str, Any]:
    """Return the variables of the roles that a folder describes.

    :param load: reads the values of a file, secrets of a vault included
    """
    if not folder.is_dir():
        raise DesiredStateError(f"{folder} is no folder")
    found: dict[str, Any] = {}
    errors: list[str] = []
    for file, service in _files(folder, errors):
        slips = _slips(file, service)
        errors += [f"{file.relative_to(folder)}{slip}" for slip in slips]
        if not slips:
            errors += _merge(found, service, file, _loaded(folder, file, load) or {})
    if errors:
        raise DesiredStateError("; ".join(errors))
    if not found:
        raise DesiredStateError(f"{folder} describes nothing: {', '.join(_services())}.yml")
    return found


def _loaded(folder: Path, file: Path, load: Callable[[str], Any]) -> Any:
    try:
        return load(str(file))
    except UNREADABLE as error:
        raise DesiredStateError(f"{file.relative_to(folder)} is no YAML: {told(error)}") from None


def _files(folder: Path, errors: list[str]) -> Iterator[tuple[Path, str]]:
    """Yield the files of the folder with their services, sorted."""
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        if any(part.startswith(".") for part in parts) or file.suffix not in _ENDINGS:
            continue
        service = parts[0] if len(parts) > 1 else file.stem
        if not file.is_file():
            errors.append(f"{file.relative_to(folder)} is no regular file: move it elsewhere")
        elif service in _services():
            yield file, service
        else:
            known = ", ".join(_services())
            errors.append(f"{file.relative_to(folder)} belongs to no service: it is one of {known}")


@cache
def _services() -> tuple[str, ...]:
    return tuple(sorted(file.name.split(".")[0] for file in _SCHEMAS.glob("*.schema.json")))


@cache
def _schema(service: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((_SCHEMAS / f"{service}.schema.json").read_text("utf-8"))
    return schema


def _slips(file: Path, service: str) -> list[str]:
    """Return the schema violations of a file, as `:line: sentence`."""
    try:
        with open(file, "rb", opener=open_regular) as stream:
            root = yaml.compose(stream, Loader=yaml.SafeLoader)
        return [] if root is None else list(_judged(root, _schema(service), ""))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return [f":{line}: this is no YAML: {error.problem}"]
    except OSError as error:
        return [f": the file cannot be read: {error.strerror}"]
    except UNREADABLE as error:
        return [f":1: this is no YAML: {told(error)}"]


def _judged(node: yaml.Node, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yield the schema violations of a node."""
    start = f":{node.start_mark.line + 1}: {place or 'the file'}"
    kind = _TYPES.get(node.tag, node.tag)
    wanted = schema.get("type")
    allowed = [wanted] if isinstance(wanted, str) else list(wanted or [])
    if allowed and kind not in allowed:
        hint = ": put it into quotes" if "string" in allowed and _is_scalar(node) else ""
        yield f"{start} is {_told(kind)}, it takes {' or '.join(map(_told, allowed))}{hint}"
    elif isinstance(node, yaml.MappingNode):
        yield from _judged_mapping(node, schema, place)
    elif isinstance(node, yaml.SequenceNode):
        for number, entry in enumerate(node.value):
            yield from _judged(entry, schema.get("items", {}), f"{place}[{number}]")
    elif "enum" in schema and node.value not in schema["enum"]:
        yield f"{start} is one of {', '.join(schema['enum'])}, not {node.value}"


def _is_scalar(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and bool(node.value)


def _told(kind: str) -> str:
    names = {"array": "a list", "object": "a mapping", "string": "a text", "null": "nothing"}
    names |= {"integer": "a whole number", "number": "a number", "boolean": "true or false"}
    return names.get(kind, f"a value of another kind ({kind.rpartition(':')[2]})")


def _judged_mapping(node: yaml.MappingNode, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    seen: set[str] = set()
    for key, value in node.value:
        name = str(key.value)
        inner, line = f"{place}.{name}" if place else name, key.start_mark.line + 1
        if name in seen:
            yield f":{line}: {inner} is there twice"
        seen.add(name)
        if name in properties:
            yield from _judged(value, properties[name], inner)
        elif schema.get("additionalProperties") is False:
            near = difflib.get_close_matches(name, list(properties), 1)
            meant = f" (is {near[0]} meant?)" if near else f": known are {', '.join(properties)}"
            yield f":{line}: {inner} is not known{meant}"
    for name in schema.get("required", ()):
        if name not in seen:
            yield f":{node.start_mark.line + 1}: {place or 'the file'} has no {name}"


def _merge(found: dict[str, Any], service: str, file: Path, values: Mapping[str, Any]) -> list[str]:
    """Merge the values of a file into `found`; lists of several files are concatenated."""
    errors = []
    for key, value in values.items():
        name = _schema(service)["properties"][key][VARIABLE]
        entries = _placed(value, file.parent) if isinstance(value, list) else value
        if name not in found:
            found[name] = entries
        elif isinstance(value, list) and isinstance(found[name], list):
            found[name] = [*found[name], *entries]
        else:
            errors.append(f"{file.name}: {key} stands in another file of {service}, too")
    return errors


def _placed(entries: list[Any], folder: Path) -> list[Any]:
    """Return entries with the path of `src` relative to their file."""
    return [
        {**entry, "src": str(folder / entry["src"])}
        if isinstance(entry, dict) and entry.get("src")
        else entry
        for entry in entries
    ]
