# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the desired state of all services from a folder, and validate it against the JSON schemas of
the role `desired_state`. Errors name file and line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .desired_schema import KEY, SECRET, VARIABLE, schema_of, services, slips
from .unreadable_yaml import UNREADABLE, told

_ENDINGS = (".yml", ".yaml")
#: The folder with the differences of each environment.
_ENVIRONMENTS = "environments"
#: Service to the values of its properties.
_State = dict[str, dict[str, Any]]
#: The options that identify an entry of a list, with their defaults.
_Key = dict[str, Any]


class DesiredStateError(Exception):
    """The folder cannot be read or violates the schemas: a sentence for each error."""


@dataclass(frozen=True)
class Reading:
    """The functions that read what files contain and refer to."""

    #: Returns the values of a file, with the decrypted secrets of a vault.
    load: Callable[[str], Any]
    #: Returns the value of a variable of the play, `None` if it is not defined.
    variable: Callable[[str], Any] = lambda name: None


@dataclass(frozen=True)
class _Entry:
    """An entry of a list: as its file has it, and with the path of `src` relative to that file."""

    written: Any
    placed: Any


def variables(folder: Path, reading: Reading, environment: str | None = None) -> dict[str, Any]:
    """Return the variables of the roles that a folder describes.

    :param environment: the folder in `environments` whose differences apply
    """
    return {
        schema_of(service)["properties"][name][VARIABLE]: value
        for service, values in read(folder, reading, environment).items()
        for name, value in values.items()
    }


def read(folder: Path, reading: Reading, environment: str | None = None) -> _State:
    """Return the values that a folder describes, by service."""
    if not folder.is_dir():
        raise DesiredStateError(f"{folder} is not a folder")
    errors: list[str] = []
    found = _read(folder, folder, reading, errors)
    if environment is not None:
        _override(found, _read(folder, _overlay(folder, environment), reading, errors))
    if errors:
        raise DesiredStateError("; ".join(errors))
    if not found:
        raise DesiredStateError(
            f"{folder} describes nothing: it has none of {', '.join(services())}.yml"
        )
    return {
        service: {
            name: [entry.placed for entry in value] if isinstance(value, list) else value
            for name, value in values.items()
        }
        for service, values in found.items()
    }


def unmanaged(described: Mapping[str, Any], on_server: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each list of the desired state whose objects are not all named in it.

    :param described: service to the values of its properties, from the desired state
    :param on_server: the same, from an export of the servers
    """
    found = []
    for service, values in on_server.items():
        for name, entries in values.items():
            key = _key(service, name)
            wanted = described.get(service, {})
            if not key or name not in wanted:
                continue
            known = {_identity(entry, key) for entry in wanted[name]}
            others = [entry for entry in entries if _identity(entry, key) not in known]
            if others:
                names = ", ".join(sorted(_name(entry, key) for entry in others))
                found.append(f"{service}: {len(others)} of the {name} are not managed: {names}")
    return found


def _overlay(folder: Path, environment: str) -> Path:
    above = folder / _ENVIRONMENTS
    known = sorted(path.name for path in above.iterdir() if path.is_dir()) if above.is_dir() else []
    if environment not in known:
        there = f"it has {', '.join(known)}" if known else f"it has no folder {_ENVIRONMENTS}"
        raise DesiredStateError(f"{folder} has no environment {environment!r}: {there}")
    return above / environment


def _read(base: Path, folder: Path, reading: Reading, errors: list[str]) -> _State:
    """Return the values of the files in a folder; lists contain `_Entry`.

    :param base: the folder to which the paths in messages are relative
    """
    found: _State = {}
    for file, service in _files(base, folder, errors):
        place = file.relative_to(base)
        violations = [f"{place}{slip}" for slip in slips(file, service)]
        errors += violations
        if violations:
            continue
        values = _loaded(place, file, reading) or {}
        try:
            values = _revealed(values, schema_of(service), reading)
        except DesiredStateError as error:
            errors.append(f"{place}: {error}")
            continue
        errors += _merge(found.setdefault(service, {}), service, file, values)
    return found


def _files(base: Path, folder: Path, errors: list[str]) -> Iterator[tuple[Path, str]]:
    """Yield the files of the folder with their services, sorted."""
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        if any(part.startswith(".") for part in parts) or file.suffix not in _ENDINGS:
            continue
        if folder == base and parts[0] == _ENVIRONMENTS:
            continue
        service = parts[0] if len(parts) > 1 else file.stem
        if not file.is_file():
            errors.append(f"{file.relative_to(base)} is not a regular file: move it elsewhere")
        elif service in services():
            yield file, service
        else:
            known = ", ".join(services())
            errors.append(
                f"{file.relative_to(base)} belongs to no service: name it after one of {known}"
            )


def _loaded(place: Path, file: Path, reading: Reading) -> Any:
    try:
        return reading.load(str(file))
    except UNREADABLE as error:
        raise DesiredStateError(f"{place} is not valid YAML: {told(error)}") from None


def _revealed(value: Any, schema: Mapping[str, Any], reading: Reading, place: str = "") -> Any:
    """Return a value whose secrets `{from: variable}` are replaced with those of the variables."""
    if schema.get(SECRET):
        return _secret(value, reading, place) if isinstance(value, Mapping) else value
    if isinstance(value, list):
        inner = schema.get("items", {})
        return [
            _revealed(entry, inner, reading, f"{place}[{number}]")
            for number, entry in enumerate(value)
        ]
    properties = schema.get("properties")
    if isinstance(value, Mapping) and properties:
        return {
            name: _revealed(each, properties[name], reading, f"{place}.{name}".lstrip("."))
            for name, each in value.items()
        }
    return value


def _secret(value: Mapping[str, Any], reading: Reading, place: str) -> str:
    name = value["from"]
    secret = reading.variable(name)
    if not isinstance(secret, str) or not secret:
        problem = "not defined" if secret is None else "empty" if secret == "" else "not text"
        raise DesiredStateError(f"{place} is taken from the variable {name}, which is {problem}")
    return secret


def _merge(found: dict[str, Any], service: str, file: Path, values: Mapping[str, Any]) -> list[str]:
    """Merge the values of a file into `found`; lists of several files are concatenated."""
    errors = []
    for name, value in values.items():
        merged = value
        if isinstance(value, list):
            merged = [_Entry(entry, _placed(entry, file.parent)) for entry in value]
        if name not in found:
            found[name] = merged
        elif isinstance(merged, list) and isinstance(found[name], list):
            found[name] = [*found[name], *merged]
        else:
            errors.append(f"{file.name}: {name} is also set in another file of {service}")
    return errors


def _placed(entry: Any, folder: Path) -> Any:
    """Return an entry with the path of `src` relative to its file."""
    if isinstance(entry, dict) and entry.get("src"):
        return {**entry, "src": str(folder / entry["src"])}
    return entry


def _override(found: _State, differences: _State) -> None:
    """Merge lists of objects by their keys, and replace every other value."""
    for service, values in differences.items():
        base = found.setdefault(service, {})
        for name, value in values.items():
            key = _key(service, name)
            if key and isinstance(base.get(name), list):
                base[name] = _overridden(base[name], value, key)
            else:
                base[name] = value


def _key(service: str, name: str) -> _Key:
    """Return the options that identify an entry of a list, with their defaults."""
    schema = schema_of(service)["properties"][name]
    options = schema.get("items", {}).get("properties", {})
    return {option: options.get(option, {}).get("default") for option in schema.get(KEY, ())}


def _overridden(base: list[_Entry], differences: list[_Entry], key: _Key) -> list[_Entry]:
    changes = {_identity(entry.written, key): entry for entry in differences}
    merged = []
    for entry in base:
        change = changes.get(_identity(entry.written, key))
        # the key of the base stays: its `src` is relative to the base
        options = {
            name: value
            for name, value in (change.placed if change else {}).items()
            if name not in key
        }
        merged.append(_Entry(entry.written, {**entry.placed, **options}))
    known = {_identity(entry.written, key) for entry in base}
    return [
        *merged,
        *(
            difference
            for difference in differences
            if _identity(difference.written, key) not in known
        ),
    ]


def _identity(entry: Mapping[str, Any], key: _Key) -> tuple[Any, ...]:
    """Return what identifies an entry. An empty option, or its default, is as a missing one."""
    values = {name: entry.get(name) or None for name in key}
    return tuple(None if values[name] == key[name] else values[name] for name in key)


def _name(entry: Mapping[str, Any], key: _Key) -> str:
    return "/".join(str(part) for part in _identity(entry, key) if part is not None)
