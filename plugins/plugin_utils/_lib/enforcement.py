# SPDX-License-Identifier: GPL-3.0-or-later
"""Select the roles that the playbooks `enforce` and `drift` run on a host.

This is Python code, because Ansible compiles templates again in every process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ansible import template as ansible_template
from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean

from ...module_utils._lib.core.errors import ToolchainError, printable
from . import role_variables
from .collection import ROLES
from .sentence_error import did_you_mean
from .variables import entries_of, require_known

_SERVICES = ("analysis", "ci", "repo", "tracker", "wiki")
#: Variables of roles that describe no objects. Neither do those that the roles set.
_SETTINGS = (
    *("ci_baseline_in_check_mode", "desired_state_accounts", "desired_state_accounts_required"),
    *("desired_state_environment", "desired_state_folder"),
)
_NOTHING = (
    "There is nothing to enforce: set variables of the roles analysis_config, ci_baseline,"
    " desired_state or repo_housekeeping, or list roles in enforce_roles."
)

#: Marks a template of our own playbooks as one; up to ansible-core 2.18, every string may be one.
_trusted: Callable[[str], Any] = getattr(ansible_template, "trust_as_template", str)
#: Begins the value of `omit` up to ansible-core 2.18.
_OMITTED = "__omit_place_holder__"
_WORD = re.compile(r"\w+")

Template = Callable[[Any], Any]


def roles(variables: Mapping[str, Any], template: Template) -> list[str]:
    """Return the roles in `enforce_roles`, by default all roles for which a variable is set."""
    named = template(variables.get("enforce_roles"))
    if named and isinstance(named, str):
        # from the command line or a survey, which sets "" for an unanswered question
        return entries_of(named)
    if named:
        return [str(role) for role in named] if isinstance(named, list | tuple) else [str(named)]
    describing = []
    for role in ROLES:
        others = {*_SETTINGS, *role_variables.set_by(role)}
        if any(name.startswith(f"{role}_") and name not in others for name in variables):
            describing.append(role)
    return describing


def problem(
    variables: Mapping[str, Any], template: Template, described: Sequence[str] | None
) -> str:
    """Return an error message for invalid input, or "".

    Otherwise a run with a misspelt variable or service would succeed without any effect, or fail
    after the first roles have sent their requests.

    :param described: the roles that run, `None` if a folder describes them that was not read yet
    """
    try:
        require_known(variables)
    except ToolchainError as error:
        return f"{error.message[:1].upper()}{error.message[1:]}"
    unknown = role_variables.unknown("enforce", variables)
    if unknown:
        known = f"does not know {', '.join(unknown)}"
        return f"The playbook enforce, which drift also runs, {known}."
    others = [role for role in described or () if role not in ROLES]
    if others:
        unknown_roles = ", ".join(role or "''" for role in others)
        return f"enforce_roles has no role {unknown_roles}: the roles are {', '.join(ROLES)}."
    checked = ROLES if described is None else described
    return (
        problem_of_connections("enforce_connections", variables, template)
        or next(filter(None, (_problem_of_role(role, variables, template) for role in checked)), "")
        or (_NOTHING if described == [] else "")
    )


def _problem_of_role(role: str, variables: Mapping[str, Any], template: Template) -> str:
    """Return an error message for a variable with a value that the role rejects, or "".

    The role itself would reject it after the roles before it have sent their requests. So it would
    an unknown variable.
    """
    if unknown := role_variables.unknown(role, variables):
        return f"The role {role} does not know {', '.join(unknown)}."
    found = problem_of_values(role, variables, template)
    if found or role != "desired_state":
        return found
    unmanaged = template(variables.get("desired_state_unmanaged"))
    if lacks_folder(unmanaged, variables):
        return (
            "desired_state_unmanaged compares the servers with a folder: set desired_state_folder."
        )
    return problem_of_previous(variables, template)


def problem_of_values(role: str, variables: Mapping[str, Any], template: Template) -> str:
    """Return an error message for a value of a wrong type, or one that is no choice, or ""."""
    for name, option in role_variables.options(role).items():
        given = variables.get(name)
        if given in (None, ""):
            continue
        check = _CHECKS.get(option.get("type", "str"))
        if "choices" in option:
            value, choices = template(given), option["choices"]
            if any(entry not in (None, "", *choices) for entry in _entries(value)):
                return f"{name} must be one of {', '.join(map(str, choices))}, not {value!r:.80}."
        elif check:
            value = template(given)
            if value not in (None, "", variables.get("omit")) and not check.is_valid(value):
                shown = printable(str(value), 80)
                return f"{name} must be {check.noun}, not '{shown}'."
        elif given != variables.get("omit") and (
            problem := _problem_of_entries(name, option, given, template)
        ):
            return problem
    return ""


def _problem_of_entries(
    name: str, option: Mapping[str, Any], given: Any, template: Template
) -> str:
    """Return an error message for a mapping, or a list of mappings or numbers, or "".

    It is without the value of a mapping, which may contain secrets. The argument check of Ansible
    would show all options of the role.
    """
    value = _known(given, template)
    if option.get("elements") == "int":
        entries = [_known(entry, template) for entry in _entries(value)]
        numbers = [one for one in entries if not str(one or _OMITTED).startswith(_OMITTED)]
        wrong = next((one for one in numbers if not _is_number(one)), "")
        shown = printable(str(wrong), 80)
        return f"{name} must be a list of whole numbers, but has '{shown}'." if wrong else ""
    if option.get("elements") == "dict" and (reason := _not_mappings(value, template)):
        return f"{name} must be a list of mappings, but {reason}."
    if "options" not in option:
        return ""
    found = next(_problems_within(name, option, value), "")
    return f"{found}." if found else ""


def _known(value: Any, template: Template) -> Any:
    """Return a value, or that of a template; `None` if it is not known yet."""
    if not isinstance(value, str):
        return value
    try:
        return template(value)
    except AnsibleError:
        return None


def _problems_within(place: str, option: Mapping[str, Any], given: Any) -> Iterator[str]:
    """Yield what is wrong in a mapping with known keys, or in a list of them.

    Templates in it stay unevaluated, because some of them refer to results of later tasks.

    :param place: the value for messages, such as `release_images[0]`
    :param option: specification with `options`
    """
    if isinstance(given, list) and option.get("type") == "list":
        for number, entry in enumerate(given):
            yield from _problems_within(f"{place}[{number}]", {**option, "type": "dict"}, entry)
    if not isinstance(given, Mapping):
        return
    options: Mapping[str, Mapping[str, Any]] = option["options"]
    for name in given:
        if name not in options and not any(
            name in one.get("aliases", ()) for one in options.values()
        ):
            hint = did_you_mean(str(name), options, f" (the keys are {', '.join(options)})")
            yield f"{place}.{name} is unknown{hint}"
    for name, inner in options.items():
        value = next(
            (given[key] for key in (name, *inner.get("aliases", ())) if key in given), None
        )
        if value is None and inner.get("required"):
            yield f"{place} lacks {name}"
        elif "options" in inner:
            yield from _problems_within(f"{place}.{name}", inner, value)
        elif problem := _problem_of_value(inner, value):
            yield f"{place}.{name} {problem}"


def _problem_of_value(option: Mapping[str, Any], value: Any) -> str:
    """Return why a value within an entry is wrong, or ""."""
    is_open = isinstance(value, str) and ("{{" in value or value.startswith(_OMITTED))
    if is_open or value in (None, ""):
        return ""
    check = _CHECKS.get(option.get("type", "str"))
    if "choices" in option:
        wrong = [entry for entry in _entries(value) if entry not in (None, "", *option["choices"])]
        choices = ", ".join(map(str, option["choices"]))
        return f"must be one of {choices}, not {wrong[0]!r:.80}" if wrong else ""
    if check and not check.is_valid(value):
        return f"must be {check.noun}, not '{printable(str(value), 80)}'"
    return ""


def problem_of_included(playbook: str, variables: Mapping[str, Any], template: Template) -> str:
    """Return an error message for a value that a role of a playbook would reject, or "".

    Values that the playbook computes from results of its tasks are left out.
    """

    def known(value: Any) -> Any:
        try:
            found = template(_trusted(value) if isinstance(value, str) else value)
        except AnsibleError:
            return None
        return None if isinstance(found, str) and "{{" in found else found

    for role, given in role_variables.included_by(playbook):
        if problem := problem_of_values(role, {**variables, **given}, known):
            name = re.split(r"[ .\[]", problem, maxsplit=1)[0]
            words = _WORD.findall(str(given.get(name, "")))
            source = next((word for word in words if word in variables), name)
            return f"{source}{problem.removeprefix(name)}"
    return ""


def _not_mappings(value: Any, template: Template) -> str:
    """Return why a value is no list of mappings, or "". Templates in its mappings stay unevaluated,
    because some of them refer to results of later tasks.
    """
    if value in (None, ""):  # a template that is not known yet, or `omit`
        return ""
    if isinstance(value, str):
        may_be = "{{" in value or value.startswith(_OMITTED) or value.lstrip().startswith("[")
        return "" if may_be else "is a text"
    if not isinstance(value, list):
        return f"is a {'mapping' if isinstance(value, Mapping) else 'single value'}"
    for number, entry in enumerate(value):
        known = _known(entry, template) if isinstance(entry, str) else entry
        is_open = isinstance(entry, str) and (known is None or "{{" in str(known))
        if not isinstance(known, Mapping) and not is_open:
            return f"its entry {number} is none"
    return ""


def _is_number(value: Any) -> bool:
    text = str(value).strip()
    return not isinstance(value, bool) and text.isascii() and text.removeprefix("-").isdecimal()


def is_switch(value: Any) -> bool:
    """Return whether a value is true, false, or not given."""
    if value is None:
        return True
    try:
        boolean(value)
    except TypeError:
        return False
    return True


class _Check(NamedTuple):
    noun: str
    is_valid: Callable[[Any], bool]


#: Checks of the values of an option, by its type.
_CHECKS = {
    "int": _Check("a whole number, such as 10", _is_number),
    "bool": _Check("true or false", is_switch),
    "path": _Check("a path", lambda value: isinstance(value, str | int | float)),
}


def problem_of_previous(variables: Mapping[str, Any], template: Template) -> str:
    """Return an error message if a previous folder is given without a present one, or ""."""
    previous = template(variables.get("desired_state_previous"))
    if previous in (None, "") or template(variables.get("desired_state_folder")):
        return ""
    return (
        "desired_state_previous is compared with the present folder: set desired_state_folder to"
        " it, or remove desired_state_previous."
    )


def lacks_folder(unmanaged: Any, variables: Mapping[str, Any]) -> bool:
    """Return whether the servers are to be compared with a folder that no variable names.

    :param unmanaged: value of `desired_state_unmanaged`
    """
    compares = unmanaged not in (None, "", "ignore")
    return compares and "desired_state_folder" not in variables


def _entries(value: Any) -> list[Any]:
    """Return the entries of a list, which Ansible also accepts as a string with commas."""
    if isinstance(value, str):
        return entries_of(value)
    return value if isinstance(value, list) else [value]


def problem_of_connections(name: str, variables: Mapping[str, Any], template: Template) -> str:
    """Return an error message for an invalid variable with connections by service, or ""."""
    given = variables.get(name)
    connections = template(given) if isinstance(given, str) else given
    if not connections:
        return ""
    if not isinstance(connections, Mapping):
        return f"{name} is not a mapping: write url and login below each service."
    others = [str(service) for service in connections if service not in _SERVICES]
    if others:
        taken = f"the services are {', '.join(_SERVICES)}"
        return f"{name} has no service {', '.join(others)}: {taken}."
    for service, value in connections.items():
        if not isinstance((template(value) if isinstance(value, str) else value) or {}, Mapping):
            return f"{name}.{service} is not a mapping: write url and login below it."
    return ""
