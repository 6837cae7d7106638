# SPDX-License-Identifier: GPL-3.0-or-later
"""Build parameters: definitions of a job, values to send, and comparison with a build."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from ...core.errors import ToolchainError, invalid, quoted
from ...core.http.multipart import FilePart
from ...core.json_text import as_text, json_objects
from ...core.module.typed_options import Option
from ...core.secret import MASK
from ..client import part

#: Option type for parameter values.
Parameters = Annotated[dict[str, Any], Option(values="text", private=True)]
#: Option type for file parameters: parameter name to local path.
Files = Annotated[dict[str, Any], Option(values="text")]
ListStyle = Literal["repeat", "comma"]
#: Query for parameter values. The value of a run parameter is in `jobName` and `number` [ci-31].
VALUE_FIELDS = "name,value,jobName,number"
_DEFINITIONS = "parameterDefinitions[name,type,choices,defaultParameterValue[value,jobName,number]]"
#: Query for the parameter definitions of a job. Old servers have them only in `actions` [ci-11].
DEFINITION_FIELDS = f"property[{_DEFINITIONS}],actions[{_DEFINITIONS}]"
_KIND = "ParameterDefinition"
# Server fact [ci-7]: these types accept a single value; a repeated form field causes a 500.
_SINGLE = ("String", "Text", "Choice", "Boolean", "Password")
# Server fact [ci-26]: `File` is built in; the other types belong to the plugin file-parameters.
_FILES = ("File", "StashedFile", "Base64File")
#: Characters that Java's `trim` removes: all up to the blank.
_BLANKS = "".join(map(chr, range(33)))


@dataclass(frozen=True)
class ParameterDefinition:
    """A parameter of a job. `default` is `None` if the server does not return it."""

    name: str
    kind: str
    default: str | None
    choices: tuple[str, ...] | None

    def is_a(self, *kinds: str) -> bool:
        return self.kind in {f"{kind}{_KIND}" for kind in kinds}


@dataclass(frozen=True)
class WantedParameters:
    """The parameters of a build to start or to find.

    :param form: form fields to send, as (name, value)
    :param files: files to send as file parameters
    :param expected: parameter names and values as the server returns them, with defaults
    :param incomparable: names of parameters whose values the server does not return
    :param shown: `expected` with masked secrets, for messages
    :param secrets: values of password parameters
    :param repeated: names that `form` contains several times although their type may reject it
    :param is_complete: whether a build with parameters that `expected` lacks is a different build
    """

    form: Sequence[tuple[str, str]] = ()
    files: Sequence[FilePart] = ()
    expected: Mapping[str, str] = field(default_factory=dict)
    incomparable: Sequence[str] = ()
    shown: Mapping[str, str] = field(default_factory=dict)
    secrets: Sequence[str] = ()
    repeated: Sequence[str] = ()
    is_complete: bool = False

    @property
    def comparable_form(self) -> list[tuple[str, str]]:
        """Return `form` with comparable values."""
        return [(name, comparable(value)) for name, value in self.form]


def text(value: object) -> str:
    """Return a value as the server returns it: lower-case booleans, lists joined by commas."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(text(item) for item in value)
    return str(value)


def comparable(value: object) -> str:
    """Return a value without outer blanks and with `\\n` line ends, for comparisons.

    Server fact [ci-7]: a parameter with `trim` is stored without outer blanks.
    """
    return text(value).replace("\r\n", "\n").replace("\r", "\n").strip(_BLANKS)


def definitions_of(job: Mapping[str, Any]) -> tuple[ParameterDefinition, ...] | None:
    """Return the parameter definitions of a job without duplicates [ci-11].

    Returns `None` if the response does not show whether the job has parameters.
    """
    properties = job.get("property")
    if not isinstance(properties, list):
        return None
    found: dict[str, ParameterDefinition] = {}
    for holder in (*json_objects(properties), *json_objects(job.get("actions"))):
        for entry in json_objects(holder.get("parameterDefinitions")):
            default = part(entry.get("defaultParameterValue"))
            choices = entry.get("choices")
            definition = ParameterDefinition(
                as_text(entry.get("name")),
                str(entry.get("type") or entry.get("_class") or "").rpartition(".")[2],
                text(_value_of(default)) if {"value", "jobName"} & set(default) else None,
                tuple(map(str, choices)) if isinstance(choices, list) else None,
            )
            found.setdefault(definition.name, definition)
    return tuple(found.values())


def wanted(
    parameters: Mapping[str, Any],
    definitions: Sequence[ParameterDefinition] | None,
    list_style: str,
    job_name: str,
    files: Sequence[FilePart] = (),
) -> WantedParameters:
    """Return the parameters to send, with the values that the build is expected to have.

    Raises `rejected` for a parameter that the job does not have, because the server would drop it
    silently, and for an invalid value, for example an unknown choice.
    """
    values = {name: value for name, value in parameters.items() if value is not None}
    if definitions is None:
        known = [ParameterDefinition(name, f"String{_KIND}", None, None) for name in values]
    else:
        known = list(definitions)
        _reject_unknown(sorted(values), known, "parameter", job_name)
        uploads = [each for each in known if each.is_a(*_FILES)]
        # the server would drop another file, or treat it as a string
        _reject_unknown([file.name for file in files], uploads, "file parameter", job_name)
    accepted = {
        each.name: _accepted(each, values[each.name], list_style, job_name)
        for each in known
        if each.name in values
    }
    sent = {name: _fields(name, value, list_style) for name, value in accepted.items()}
    texts = {
        each.name: text(accepted[each.name]) if each.name in accepted else each.default
        for each in known
    }
    secret = {each.name for each in known if each.is_a("Password")}
    single = {each.name for each in known if each.is_a(*_SINGLE)}
    expected = {
        name: value for name, value in texts.items() if value is not None and name not in secret
    }
    return WantedParameters(
        form=[pair for fields in sent.values() for pair in fields],
        files=files,
        expected=expected,
        incomparable=[name for name in texts if name not in expected],
        shown={name: expected.get(name, MASK) for name in texts if name in {*expected, *secret}},
        secrets=[value for name in secret for _name, value in sent.get(name, ())],
        repeated=[name for name, fields in sent.items() if len(fields) > 1 and name in single],
        is_complete=definitions is None,
    )


def _fields(name: str, value: object, list_style: str) -> list[tuple[str, str]]:
    """Return the form fields of a parameter. An empty list is sent as an empty string."""
    if isinstance(value, (list, tuple)) and list_style == "repeat" and value:
        return [(name, text(item)) for item in value]
    return [(name, text(value))]


def _reject_unknown(
    names: Sequence[str], known: Sequence[ParameterDefinition], noun: str, job_name: str
) -> None:
    known_names = [definition.name for definition in known]
    unknown = [name for name in names if name not in known_names]
    if unknown:
        has = f"it has {', '.join(known_names)}" if known else "it has none"
        raise _rejected(job_name, f"the job has no {noun} {', '.join(unknown)}: {has}")


def file_parts(paths: Mapping[str, Any], place: str) -> list[FilePart]:
    """Return the files to send. Raises `invalid` for a path that is not a readable file.

    :param paths: parameter name to local path
    :param place: option that contains the paths, for messages
    """
    parts = []
    for name, source in paths.items():
        path = os.path.expanduser(str(source))
        try:
            found = os.stat(path)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise invalid(f"{place}.{name}: '{path}' cannot be read: {reason}") from None
        if not stat.S_ISREG(found.st_mode) or not os.access(path, os.R_OK):
            raise invalid(f"{place}.{name}: '{path}' is not a readable file")
        # server fact [ci-26]: the server stores the file under the name of the parameter, and only
        # displays this file name
        shown = "".join("_" if char in '"\\' or ord(char) < 32 else char for char in path)
        parts.append(FilePart(name, os.path.basename(shown), path, found.st_size))
    return parts


def _accepted(
    definition: ParameterDefinition, value: object, list_style: str, job_name: str
) -> object:
    """Return the value in the form that the server accepts. Raises `rejected` for a value that the
    server would misinterpret.
    """
    name = definition.name
    if definition.is_a(*_FILES):
        # server fact [ci-26]: the server drops a string; it accepts only an upload
        raise _rejected(job_name, f"the parameter '{name}' is a file: set its path in files")
    if isinstance(value, list):
        if list_style == "repeat" and len(value) > 1:
            return value
        value = text(value)
    if definition.is_a("Boolean"):
        value = text(value).lower()
        if value not in ("true", "false"):
            raise _rejected(job_name, f"the parameter '{name}' is a boolean: use true or false")
    if definition.is_a("Choice") and definition.choices and text(value) not in definition.choices:
        allowed = quoted(definition.choices)
        raise _rejected(job_name, f"the parameter '{name}' must be one of {allowed}")
    return value


def _rejected(job_name: str, reason: str) -> ToolchainError:
    return ToolchainError("rejected", f"building the job '{job_name}': {reason}")


def values_of(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameter names and values of a build or queue item.

    A value is `None` if the server does not return it, and a list if the parameter is repeated.
    Server facts [ci-7, ci-11]: `actions` contains empty objects and may repeat parameters. It has
    no values of password and file parameters.
    """
    found: dict[str, Any] = {}
    for action in json_objects(shown.get("actions")):
        values: dict[str, list[Any]] = {}
        for entry in json_objects(action.get("parameters")):
            values.setdefault(as_text(entry.get("name")), []).append(_value_of(entry))
        found |= {name: each if len(each) > 1 else each[0] for name, each in values.items()}
    return found


def _value_of(entry: Mapping[str, Any]) -> Any:
    """Return a parameter value in the form in which it is sent.

    Server fact [ci-31]: a run parameter has `jobName` and `number` instead of `value`; it is sent
    as `job#number`.
    """
    if "jobName" in entry and "value" not in entry:
        return f"{entry['jobName']}#{entry.get('number')}"
    return entry.get("value")


def hidden(wanted_parameters: WantedParameters, shown: Mapping[str, Any]) -> list[str]:
    """Return the names of expected parameters for which the server returns no value."""
    values = values_of(shown)
    return [name for name in wanted_parameters.expected if values.get(name) is None]


def masked(shown: Any) -> Any:
    """Mask the values of password parameters in a JSON value of any depth.

    Real servers do not return these values.
    """
    if isinstance(shown, list):
        return [masked(each) for each in shown]
    if not isinstance(shown, Mapping):
        return shown
    found = {name: masked(value) for name, value in shown.items()}
    if "PasswordParameter" in f"{shown.get('_class')} {shown.get('type')}":
        default = found.get("defaultParameterValue")
        if isinstance(default, Mapping) and "value" in default:
            found["defaultParameterValue"] = {**default, "value": MASK}
        found.update({name: MASK for name in ("value", "defaultValue") if name in found})
    return found


def displayed(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameter names and values of a build, with masked passwords."""
    passwords = {
        as_text(entry.get("name"))
        for action in json_objects(shown.get("actions"))
        for entry in json_objects(action.get("parameters"))
        if "Password" in str(entry.get("_class"))
    }
    return {name: MASK if name in passwords else value for name, value in values_of(shown).items()}


def equal(wanted_parameters: WantedParameters, shown: Mapping[str, Any]) -> bool:
    """Return whether a build or queue item has the expected parameters.

    A missing parameter is a difference. A parameter whose value the server does not return counts
    as equal. Values that differ in outer blanks or line ends are equal.
    """
    values = values_of(shown)
    if wanted_parameters.is_complete and set(values) != set(wanted_parameters.expected):
        return False
    return all(
        name in values and (values[name] is None or comparable(values[name]) == comparable(value))
        for name, value in wanted_parameters.expected.items()
    )
