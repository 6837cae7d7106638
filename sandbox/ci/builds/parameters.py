# SPDX-License-Identifier: GPL-3.0-or-later
"""Build parameters: definitions of a job, values in a request, and values in responses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sandbox.ci.builds.variables import as_text
from sandbox.ci.formats.exports import Exported, constants
from sandbox.multipart import Upload

_MULTI_PACKAGE = "com.cwctravel.hudson.plugins"
_MULTI = f"{_MULTI_PACKAGE}.extended_choice_parameter.ExtendedChoiceParameter"
DEFINITION_CLASSES = {
    "string": "hudson.model.StringParameterDefinition",
    "text": "hudson.model.TextParameterDefinition",
    "boolean": "hudson.model.BooleanParameterDefinition",
    "choice": "hudson.model.ChoiceParameterDefinition",
    "password": "hudson.model.PasswordParameterDefinition",
    "multi": _MULTI + "Definition",
    "file": "hudson.model.FileParameterDefinition",
    "run": "hudson.model.RunParameterDefinition",
}
VALUE_CLASSES = {
    "string": "hudson.model.StringParameterValue",
    "text": "hudson.model.TextParameterValue",
    "boolean": "hudson.model.BooleanParameterValue",
    "choice": "hudson.model.StringParameterValue",
    "password": "hudson.model.PasswordParameterValue",
    "multi": _MULTI + "Value",
    "file": "hudson.model.FileParameterValue",
    "run": "hudson.model.RunParameterValue",
}
#: Characters that Java's `trim` removes.
_BLANKS = "".join(map(chr, range(33)))


class Unacceptable(Exception):
    """Raised for a value to which the server responds with an exception and status 500 [ci-7]."""


def class_of(definition: dict[str, Any]) -> str:
    """Return the class of a definition. Only the configuration contains the class of a plugin."""
    return str(definition.get("class") or DEFINITION_CLASSES[definition["type"]])


def default(definition: dict[str, Any]) -> Any:
    """Return the default value. The default of a choice is its first choice unless set."""
    if "default" in definition:
        return definition["default"]
    if definition["type"] == "choice":
        return definition["choices"][0]
    return False if definition["type"] == "boolean" else ""


def value_of(definition: dict[str, Any], given: Any) -> dict[str, Any]:
    """Convert a value from a request to `{name, type, value}`.

    Server fact [ci-7]: a parameter with `trim` stores the value without outer blanks.
    """
    name, kind = definition["name"], definition["type"]
    value: Any = given
    if kind == "boolean":
        # server fact [ci-7]: "true" is true, and any other value is false
        value = given is True or given == "true"
    elif kind == "multi":
        value = ",".join(map(as_text, given)) if isinstance(given, list) else as_text(given)
    else:
        value = as_text(given)
    if definition.get("trim"):
        value = value.strip(_BLANKS)
    if kind == "run" and not re.fullmatch(r".+#[0-9]+", value):
        raise Unacceptable(f"Invalid run for parameter {name}: {value}")
    if kind == "choice" and value not in definition["choices"]:
        raise Unacceptable(f"Illegal choice for parameter {name}: {value}")
    return {"name": name, "type": kind, "value": value}


def file_value(name: str, upload: Upload) -> dict[str, Any]:
    """Return the value of a file parameter, with digest and original name of the upload."""
    sent = re.split(r"[/\\]", upload.name)[-1]
    return {"name": name, "type": "file", "value": upload.blob.sha256, "filename": sent}


def from_form(
    definitions: Sequence[dict[str, Any]],
    form: Mapping[str, Sequence[str]],
    files: Mapping[str, Upload],
) -> list[dict[str, Any]]:
    """Return the parameter values of a `buildWithParameters` request.

    Unknown names are ignored, and missing values are replaced by defaults. Server fact [ci-26]: a
    file parameter without an uploaded file is omitted.
    """
    found = []
    for definition in definitions:
        name = definition["name"]
        given = list(form.get(name, ()))
        if definition["type"] == "file":
            if name in files:
                found.append(file_value(name, files[name]))
        elif definition["type"] == "run" and not (given or default(definition)):
            continue
        elif not given:
            found.append(value_of(definition, default(definition)))
        elif definition["type"] == "multi":
            found.append(value_of(definition, given))
        elif len(given) > 1:
            raise Unacceptable(f"Illegal number of parameter values for {name}: {len(given)}")
        else:
            found.append(value_of(definition, given[0]))
    return found


def from_json(
    definitions: Sequence[dict[str, Any]],
    submitted: dict[str, Any],
    files: Mapping[str, Upload],
) -> list[dict[str, Any]]:
    """Return the values in the form field `json` of a `build` request, without defaults."""
    entries = submitted.get("parameter") or []
    by_name = {definition["name"]: definition for definition in definitions}
    found = []
    for entry in entries if isinstance(entries, list) else [entries]:
        name = entry.get("name")
        if name not in by_name:
            raise Unacceptable(f"No such parameter definition: {name}")
        if by_name[name]["type"] == "file":
            if entry.get("file") not in files:
                raise Unacceptable(f"No file for the parameter {name}")
            found.append(file_value(name, files[entry["file"]]))
            continue
        if "value" not in entry:
            raise Unacceptable(f"No value for the parameter {name}")
        found.append(value_of(by_name[name], entry["value"]))
    return found


def shown_value(parameter: dict[str, Any], as_string: bool) -> Exported:
    """Return a parameter value for a response.

    Server fact [ci-7]: a boolean parameter has a JSON boolean, and a password has no value.

    :param as_string: whether all values are strings, as in the interface description [W2.4]
    """
    fields = constants(name=parameter["name"])
    value = parameter["value"]
    if parameter["type"] == "file":
        # server fact [ci-26]: the response contains neither content nor size of the file
        fields |= constants(originalFileName=parameter["filename"])
    elif parameter["type"] == "run":
        job, _mark, number = str(value).rpartition("#")
        fields |= constants(jobName=job, number=number)
    elif parameter["type"] != "password":
        fields |= constants(value=as_text(value) if as_string else value)
    return Exported(VALUE_CLASSES[parameter["type"]], fields, tuple(fields))


def shown_definition(definition: dict[str, Any], as_string: bool) -> Exported:
    kind = definition["type"]
    value = {**definition, "value": default(definition)}
    has_none = kind == "file" or (kind == "run" and not value["value"])
    cls = class_of(definition)
    fields = constants(
        defaultParameterValue=None if has_none else shown_value(value, as_string),
        description=definition.get("description"),
        name=definition["name"],
        type=cls.rpartition(".")[2],
    )
    if kind == "choice":
        fields |= constants(choices=list(definition["choices"]))
    return Exported(cls, fields, tuple(fields))


def queue_text(parameters: Sequence[dict[str, Any]]) -> str:
    """Return the member `params` of a queue item, in which a line break precedes each parameter."""
    return "".join(f"\n{entry['name']}={_brief(entry)}" for entry in parameters)


def _brief(entry: dict[str, Any]) -> str:
    if entry["type"] == "file":
        return str(entry["filename"])
    return "******" if entry["type"] == "password" else as_text(entry["value"])
