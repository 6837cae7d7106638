# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert the answers of an AWX survey to variables of a playbook.

An answer is a string. Whether it is YAML depends on the question; a blank answer is left out.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.common.yaml import yaml_load

from .unreadable_yaml import UNREADABLE, told

_SURVEYS = Path(__file__).resolve().parents[2] / "playbooks" / "vars" / "awx_surveys.yml"
_PREFIX = "survey_"


class SurveyError(Exception):
    """An invalid answer; the message names its question."""


def answers(playbook: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of a playbook from the survey answers in `variables`."""
    asked = _asked(playbook)
    found = {}
    for name in sorted(variable for variable in variables if variable.startswith(_PREFIX)):
        if name not in asked:
            near = difflib.get_close_matches(name, list(asked), 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise SurveyError(f"{name}: the survey of {playbook} has no such question{hint}")
        value = variables[name]
        if isinstance(value, str) and not value.strip():
            continue
        found[name.removeprefix(_PREFIX)] = _taken(name, asked[name], value)
    return found


def _taken(name: str, kind: str, value: Any) -> Any:
    """Return the value of an answer; a value that is not a string was parsed before."""
    if kind != "textarea" or not isinstance(value, str):
        return value
    try:
        read = yaml.safe_load(value)
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise SurveyError(f"{name}: the answer is not valid YAML{where}") from None
    except UNREADABLE as error:
        raise SurveyError(f"{name}: the answer is not valid YAML: {told(error)}") from None
    if not isinstance(read, list | dict):
        raise SurveyError(
            f"{name}: the answer is neither a list nor a mapping; begin list items with '- '"
        )
    return read


@cache
def _asked(playbook: str) -> dict[str, str]:
    """Return the type of each question by its variable."""
    surveys = yaml_load(_SURVEYS.read_text(encoding="utf-8"))["awx_setup_surveys"]
    if playbook not in surveys:
        raise SurveyError(f"there is no survey of a playbook {playbook}")
    return {question["variable"]: question["type"] for question in surveys[playbook]}
