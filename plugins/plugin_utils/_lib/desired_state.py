# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the desired state of all services from a folder, and validate it against JSON schemas.

The schemas are in the role `desired_state`. Error messages contain file and line.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...module_utils._lib.core.errors import ToolchainError
from ...module_utils._lib.core.files import open_regular
from ...module_utils._lib.core.object_names import object_name
from ...module_utils._lib.core.yaml_text import reason_of
from . import kinds
from .desired_schema import KEY, SECRET, VARIABLE, schema_of, services, violations
from .findings import Finding, unmanaged_object
from .sentence_error import SentenceError, did_you_mean
from .unreadable_yaml import UNREADABLE

YAML_ENDINGS = (".yml", ".yaml")
#: The folder with the differences of each environment.
ENVIRONMENTS = "environments"
#: The node that every server has.
_BUILT_IN = ("(built-in)", "built-in", "(master)", "master")
#: Values by service and property. Lists contain `_Entry`.
State = dict[str, dict[str, Any]]
#: Defaults of the options that identify an entry of a list, by option.
Key = dict[str, Any]


class DesiredStateError(SentenceError):
    """The folder cannot be read or violates the schemas. The message contains all errors."""

    prefix = "Cannot use the desired state: "


@dataclass(frozen=True)
class Reading:
    """The functions that load files and the variables to which files refer.

    :param load: returns the values in the file at a path, with vault secrets decrypted
    :param variable: returns the value of a variable of the play, or `None` if it is undefined
    :param names_only: only the names of objects matter, so entries may be incomplete
    """

    load: Callable[[str], Any]
    variable: Callable[[str], Any] = lambda name: None
    names_only: bool = False


@dataclass(frozen=True)
class _Entry:
    """An entry of a list.

    :param original: entry as in its file, used to identify it
    :param resolved: entry with the path in `src` resolved against the folder of its file
    :param file: path of its file below the folder of the desired state
    """

    original: Any
    resolved: Any
    file: str


def variables(state: State) -> dict[str, Any]:
    """Return the values of the role variables."""
    return {
        schema_of(service)["properties"][name][VARIABLE]: value
        for service, properties in values(state).items()
        for name, value in properties.items()
    }


def files(state: State) -> list[dict[str, str]]:
    """Return the file of each object, as dicts with `service`, `kind`, `name` and `file`."""
    return [
        {
            "service": service,
            "kind": kinds.name_of(service, name),
            "name": name_of(entry.original, key),
            "file": entry.file,
        }
        for service, values in state.items()
        for name, entries in values.items()
        if (key := key_of(service, name)) and isinstance(entries, list)
        for entry in entries
    ]


def read(folder: Path, reading: Reading, environment: str | None = None) -> State:
    """Read a folder, and return its state.

    :param environment: folder below `environments` whose values override those of all environments
    :raises DesiredStateError: with all errors
    """
    if not folder.is_dir():
        raise DesiredStateError(f"{folder} is not a folder")
    errors: list[str] = []
    found = _read(folder, folder, reading, errors)
    if environment is not None:
        differences = _read(folder, overlay(folder, environment), reading, errors)
        if not reading.names_only:
            errors += _incomplete(found, differences)
            errors += _repeated(differences)
        for service, values in differences.items():
            base = found.setdefault(service, {})
            for name, value in values.items():
                key = key_of(service, name)
                if key and isinstance(base.get(name), list):
                    base[name] = _merge_entries(base[name], value, key)
                else:
                    base[name] = value
    if errors:
        raise DesiredStateError("; ".join(errors))
    if not found:
        raise DesiredStateError(
            f"{folder} has no files of a desired state: name files after services"
            f" ({', '.join(services())}), such as ci.yml"
        )
    return found


def environments(folder: Path) -> list[str]:
    """Return the names of the environments of a folder."""
    above = folder / ENVIRONMENTS
    return sorted(path.name for path in above.iterdir() if path.is_dir()) if above.is_dir() else []


def parts(folder: Path, reading: Reading) -> list[State]:
    """Return the values of the base of a folder, and those of each environment alone.

    :raises DesiredStateError: with all errors
    """
    errors: list[str] = []
    folders = [folder, *(folder / ENVIRONMENTS / name for name in environments(folder))]
    found = [_read(folder, each, reading, errors) for each in folders]
    if errors:
        raise DesiredStateError("; ".join(errors))
    return found


def values(found: State) -> dict[str, dict[str, Any]]:
    """Return the values of a state by service and property."""
    return {
        service: {
            name: [entry.resolved for entry in value] if isinstance(value, list) else value
            for name, value in values.items()
        }
        for service, values in found.items()
    }


def with_entries(found: State, change: Callable[[str, str, Any], Any]) -> State:
    """Return a state with each entry of its lists replaced by the result of `change`.

    :param change: called with service, list and entry
    """
    return {
        service: {
            name: [
                _Entry(
                    change(service, name, entry.original),
                    change(service, name, entry.resolved),
                    entry.file,
                )
                for entry in value
            ]
            if isinstance(value, list)
            else value
            for name, value in values.items()
        }
        for service, values in found.items()
    }


def chosen(folder: Path, service: str) -> dict[str, list[str]]:
    """Return the options that chose the objects of an exported service, {} for all objects."""
    try:
        with open(folder / f".export-{service}.json", "rb", opener=open_regular) as stream:
            given = json.loads(stream.read()).get("chosen") or {}
        return {
            str(name): list(values)
            for name, values in given.items()
            if isinstance(values, list) and all(isinstance(value, str) for value in values)
        }
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}  # the folder, or this file of an export, was written by hand


def chosen_projects(folder: Path, service: str) -> list[str] | None:
    """Return the projects of an exported service, `None` for all projects."""
    options = chosen(folder, service)
    return options.get("project") or options.get("projects")


def without_other_projects(on_server: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the values of an export without those of projects that the export of the folder left
    out.

    :param on_server: result of :func:`values`
    """
    kept: dict[str, Any] = {}
    for service, values in on_server.items():
        projects = chosen_projects(folder, service)
        kept[service] = {
            name: [
                entry
                for entry in entries
                if projects is None
                or entry.get("name" if name == "projects" else "project") in (None, *projects)
            ]
            if isinstance(entries, list)
            else entries
            for name, entries in values.items()
        }
    return kept


def unmanaged(described: Mapping[str, Any], on_server: Mapping[str, Any]) -> list[Finding]:
    """Return a finding for each object of the server that the desired state does not name.

    Only the lists of the desired state are compared. The findings have `service`.

    :param described: result of :func:`values`
    :param on_server: result of :func:`values` for an export of the servers
    """
    found = []
    for service, values in on_server.items():
        for name, entries in values.items():
            key = key_of(service, name)
            wanted = described.get(service, {})
            if not key or name not in wanted:
                continue
            known = {identity_of(entry, key) for entry in wanted[name]}
            others = {
                name_of(entry, key) for entry in entries if identity_of(entry, key) not in known
            }
            kind = kinds.name_of(service, name)
            found += [
                {"service": service, **unmanaged_object(kind, other)} for other in sorted(others)
            ]
    return found


def overlay(folder: Path, environment: str) -> Path:
    known = environments(folder)
    if environment not in known:
        there = f"it has {', '.join(known)}" if known else f"it has no folder {ENVIRONMENTS}"
        if Path(environment).name == environment != "..":
            place = shlex.quote(str(folder / ENVIRONMENTS / environment))
            there += f". For a new one, run mkdir -p {place}"
        raise DesiredStateError(f"{folder} has no environment {environment!r}: {there}")
    return folder / ENVIRONMENTS / environment


def _read(base: Path, folder: Path, reading: Reading, errors: list[str]) -> State:
    """Return the values of the files in a folder. Lists contain `_Entry`.

    :param base: folder to which the paths in messages are relative
    :param errors: list to which error messages are added
    """
    found: State = {}
    for file, service in files_in(base, folder, errors):
        place = file.relative_to(base)
        problems = [f"{place}{violation}" for violation in violations(file, service)]
        errors += problems
        if problems:
            continue
        values = _loaded(place, file, reading) or {}
        try:
            values = _with_secrets(values, schema_of(service), reading)
        except DesiredStateError as error:
            errors.append(f"{place}: {error}")
            continue
        errors += _merge(found.setdefault(service, {}), service, base, file, values)
    return found


def files_in(base: Path, folder: Path, errors: list[str]) -> Iterator[tuple[Path, str]]:
    """Yield each file in the folder with its service, sorted by path."""
    if problem := _unreadable(folder):
        errors.append(f"{folder} {problem}")
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        if any(part.startswith(".") for part in parts):
            continue
        if parts[0] in services() and file.is_dir():
            # its files would be missing without an error
            is_link = file.is_symlink()
            problem = "is a link to a folder: use a folder" if is_link else _unreadable(file)
            errors += [f"{file.relative_to(base)} {problem}"] if problem else []
        if file.suffix.lower() not in YAML_ENDINGS:
            continue
        if folder == base and parts[0] == ENVIRONMENTS:
            continue
        service = parts[0] if len(parts) > 1 else file.stem
        if file.suffix not in YAML_ENDINGS:
            errors.append(f"{file.relative_to(base)} is not read: end its name in .yml")
        elif not file.is_file():
            errors.append(f"{file.relative_to(base)} is not a regular file: move it elsewhere")
        elif service in services():
            yield file, service
        else:
            known = ", ".join(services())
            errors.append(
                f"{file.relative_to(base)} belongs to no service: name it after one of {known}"
            )


def _unreadable(path: Path) -> str:
    try:
        os.listdir(path)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return ""


def _loaded(place: Path, file: Path, reading: Reading) -> Any:
    try:
        return reading.load(str(file))
    except UNREADABLE as error:
        raise DesiredStateError(f"{place} is not valid YAML: {reason_of(error)}") from None


def _with_secrets(value: Any, schema: Mapping[str, Any], reading: Reading, place: str = "") -> Any:
    """Return a value with each secret `{from: variable}` replaced by the value of the variable."""
    if schema.get(SECRET):
        return _secret(value, reading, place) if isinstance(value, Mapping) else value
    if isinstance(value, list):
        inner = schema.get("items", {})
        return [
            _with_secrets(entry, inner, reading, f"{place}[{number}]")
            for number, entry in enumerate(value)
        ]
    properties = schema.get("properties")
    if isinstance(value, Mapping) and properties:
        return {
            name: _with_secrets(item, properties[name], reading, f"{place}.{name}".lstrip("."))
            for name, item in value.items()
        }
    return value


def _secret(value: Mapping[str, Any], reading: Reading, place: str) -> str:
    name = value["from"]
    try:
        secret = reading.variable(name)
    except ToolchainError as error:
        raise DesiredStateError(f"{place}: {error.message}") from None
    if not isinstance(secret, str) or not secret:
        problem = "not defined" if secret is None else "empty" if secret == "" else "not a string"
        raise DesiredStateError(f"{place} is taken from the variable {name}, which is {problem}")
    return secret


def _merge(
    found: dict[str, Any], service: str, base: Path, file: Path, values: Mapping[str, Any]
) -> list[str]:
    """Merge the values of a file into `found`, and return error messages.

    Lists from several files are concatenated. All other values may be in a single file only.
    """
    errors = []
    for name, value in values.items():
        merged = value
        if isinstance(value, list):
            place = str(file.relative_to(base))
            resolved = (
                {**entry, "src": str(file.parent / entry["src"])}
                if isinstance(entry, dict) and entry.get("src")
                else entry
                for entry in value
            )
            merged = [_Entry(*pair, place) for pair in zip(value, resolved, strict=True)]
        if name not in found:
            found[name] = merged
        elif isinstance(merged, list) and isinstance(found[name], list):
            found[name] = [*found[name], *merged]
        else:
            errors.append(f"{file.name}: {name} is also set in another file of {service}")
    return errors


def _incomplete(found: State, differences: State) -> Iterator[str]:
    """Yield a message for each entry that overrides nothing, and describes no whole object."""
    for service, values in differences.items():
        for name, entries in values.items():
            options, key = kinds.find(service, name).whole, key_of(service, name)
            if not options or not isinstance(entries, list):
                continue
            base = found.get(service, {}).get(name) or []
            known = {identity_of(entry.original, key): entry.original for entry in base}
            for entry in entries:
                given = entry.original
                if identity_of(given, key) in known or _is_whole(name, given, options):
                    continue
                named = name_of(given, key)
                names = [name_of(other, key) for other in known.values()]
                yield (
                    f"{entry.file}: the entry {named} of {name} overrides nothing"
                    f"{did_you_mean(named, names)}: remove it,"
                    f" or describe the whole object with {' or '.join(options)}"
                )


def _repeated(differences: State) -> Iterator[str]:
    """Yield a message for each object that an environment describes twice."""
    for service, values in differences.items():
        for name, entries in values.items():
            key = key_of(service, name)
            known: dict[tuple[Any, ...], _Entry] = {}
            for entry in entries if key and isinstance(entries, list) else ():
                first = known.setdefault(identity_of(entry.original, key), entry)
                if first is not entry:
                    places = " and ".join(dict.fromkeys((first.file, entry.file)))
                    yield (
                        f"{places}: {name} has the entry {name_of(entry.original, key)} twice:"
                        " merge the two entries"
                    )


def _is_whole(name: str, entry: Mapping[str, Any], options: Sequence[str]) -> bool:
    given = [entry[option] for option in options if option in entry]
    built_in = name == "nodes" and entry["name"] in _BUILT_IN
    gone = entry.get("state") == "absent"
    return gone or built_in or any(value not in (None, False, "") for value in given)


def key_of(service: str, name: str) -> Key:
    """Return the options that identify an entry of a list, with their defaults."""
    schema = schema_of(service)["properties"][name]
    options = schema.get("items", {}).get("properties", {})
    return {option: options.get(option, {}).get("default") for option in schema.get(KEY, ())}


def _merge_entries(base: list[_Entry], differences: list[_Entry], key: Key) -> list[_Entry]:
    changes = {identity_of(entry.original, key): entry for entry in differences}
    merged = []
    for entry in base:
        change = changes.get(identity_of(entry.original, key))
        # without the key: if it contains `src`, that path is relative to the file of the base
        options = {
            name: value
            for name, value in (change.resolved if change else {}).items()
            if name not in key
        }
        file = change.file if change else entry.file
        merged.append(_Entry(entry.original, {**entry.resolved, **options}, file))
    known = {identity_of(entry.original, key) for entry in base}
    return [
        *merged,
        *(
            difference
            for difference in differences
            if identity_of(difference.original, key) not in known
        ),
    ]


def identity_of(entry: Mapping[str, Any], key: Key) -> tuple[Any, ...]:
    """Return the values that identify an entry. Empty values and defaults count as missing."""
    values = {name: entry.get(name) or None for name in key}
    return tuple(None if values[name] == key[name] else values[name] for name in key)


def name_of(entry: Mapping[str, Any], key: Key) -> str:
    """Return the name of an object, as in findings."""
    return object_name([*key], dict(zip(key, identity_of(entry, key), strict=True)))
