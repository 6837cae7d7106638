# SPDX-License-Identifier: GPL-3.0-or-later
"""Read connection options from variables such as `toolchain_repo_url` [C1.1]."""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ansible import errors
from ansible.module_utils.parsing.convert_bool import boolean

from ...module_utils._lib.core.connection.connection import require_own_server
from ...module_utils._lib.core.connection.options import settings_options, variable_name
from ...module_utils._lib.core.errors import invalid, single_line
from ...module_utils._lib.core.secret import without_user_info
from .services import SERVICES

_ALIASES = {"user": "username"}
_PREFIX = "toolchain_"
#: Variables that concern no single service, or that the playbooks set.
_GENERAL = (
    *("toolchain_fail_fast", "toolchain_in_process", "toolchain_not_built"),
    *("toolchain_report", "toolchain_sealed"),
)
#: Prefix of the plans of slices, which AWX passes from one job to the next.
_PLANS = "toolchain_plan_"


class _NeverRaised(Exception):
    """Stands for an error that older releases of ansible-core do not have."""


#: Error of ansible-core 2.19 and newer for a template that results in `omit`.
_OMITTED: type[Exception] = getattr(errors, "AnsibleValueOmittedError", _NeverRaised)
#: Errors of a template that uses an undefined name, or that has a wrong syntax.
_UNEVALUATED = (errors.AnsibleUndefinedVariable, errors.AnsibleTemplateError)


def evaluated(value: Any, template: Callable[[Any], Any]) -> Any:
    """Return the value of a template, `None` for `omit`.

    :param template: evaluates templates
    """
    try:
        return template(value)
    except _OMITTED:
        return None


def content_of(name: str, variables: Mapping[str, Any], template: Callable[[Any], Any]) -> Any:
    """Return the value of a variable, `None` if it is not set, or `omit`.

    Raises `invalid` if its value uses an undefined name, or has a template with an error.
    """
    value = variables.get(name)
    try:
        return None if value is None else evaluated(value, template)
    except _UNEVALUATED as error:
        # until ansible-core 2.18, the string of the error contains the reason twice
        reason = single_line(str(error.args[0]))
    raise invalid(f"the variable {name}{_place(value, template)} cannot be evaluated: {reason}")


def _place(value: Any, template: Callable[[Any], Any]) -> str:
    """Return which part of a value cannot be evaluated, such as `[2].name`, "" if no part is
    known.
    """
    parts = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, part in parts if isinstance(value, Mapping | list) else ():
        try:
            evaluated(part, template)
        except _UNEVALUATED:
            shown = f"[{key}]" if isinstance(key, int) else f".{key}"
            return f"{shown}{_place(part, template)}"
    return ""


def value_of(name: str, variables: Mapping[str, Any], template: Callable[[Any], Any]) -> Any:
    """Return the value of a variable as `content_of`, also `None` if it is empty."""
    value = content_of(name, variables, template)
    return None if value in (None, "", variables.get("omit")) else value


def entries_of(text: str) -> list[str]:
    """Return the entries of a list that somebody wrote as a text with commas or lines."""
    return [entry.strip() for entry in re.split(r"[,\n]", text) if entry.strip()]


def is_on(
    name: str, variables: Mapping[str, Any], template: Callable[[Any], Any], *, default: bool
) -> bool:
    """Return the value of a variable that switches something on or off. Raises `invalid`."""
    value = value_of(name, variables, template)
    try:
        return default if value is None else bool(boolean(value))
    except TypeError:
        raise invalid(f"the variable {name} is '{value}': set it to true or false") from None


@functools.cache
def _known() -> frozenset[str]:
    return frozenset(
        variable_name(name, option)
        for name, service in SERVICES.items()
        for option in (*settings_options(service), *service.credentials)
    ).union(_GENERAL)


def require_known(names: Iterable[str]) -> None:
    """Raise `invalid` for a misspelt variable `toolchain_...`, which no task would read.

    :param names: names of all variables of a task
    """
    for name in names:
        if name.startswith(_PREFIX) and name not in _known() and not name.startswith(_PLANS):
            near = difflib.get_close_matches(name, sorted(_known()), 1, 0.75)
            hint = f"did you mean {near[0]}?" if near else "no option has this name; rename it"
            raise invalid(f"the variable {name} is unknown: {hint}")


def from_variables(
    service: str,
    explicit: Mapping[str, Any],
    variables: Mapping[str, Any],
    template: Callable[[Any], Any],
) -> dict[str, Any]:
    """Return the connection options from variables that `explicit` does not contain.

    A credential in `explicit`, also in its address, hides all credentials in variables. Empty
    variables count as unset. Raises `invalid` if `explicit` has the address of another server than
    the variables with the credentials, and for an unknown variable.

    :param explicit: options of the task or lookup
    """
    require_known(variables)
    declared = SERVICES[service]
    named = {_ALIASES.get(name, name) for name, value in explicit.items() if value is not None}

    def values(options: tuple[str, ...]) -> dict[str, Any]:
        found = {
            option: value_of(variable_name(service, option), variables, template)
            for option in options
            if option not in named
        }
        return {  # ansible-core before 2.19 has parsed a text that is JSON
            option: json.dumps(value) if isinstance(value, Mapping) else value
            for option, value in found.items()
            if value is not None
        }

    options = values(tuple(settings_options(declared)))
    credentials = named.intersection(declared.credentials)
    if declared.is_credential(credentials) or _has_user_info(explicit.get("url")):
        if "url" in options:
            options["url"] = without_user_info(str(options["url"]))
        return options
    found = values(tuple(declared.credentials))
    if declared.is_credential(found) and explicit.get("url"):
        name = variable_name(service, "url")
        own = value_of(name, variables, template)
        require_own_server("variables", name, own, str(explicit["url"]))
    return {**options, **found}


def _has_user_info(url: Any) -> bool:
    try:
        return url is not None and urlsplit(str(url)).username is not None
    except ValueError:
        return False  # the parser of the connection rejects the address
