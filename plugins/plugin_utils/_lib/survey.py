# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert the answers of an AWX survey to variables of a playbook.

Answers are strings. Answers to questions of the type `textarea` are parsed as YAML. Empty answers
are omitted. A question is named after its variable, with a prefix. Extra variables without the
prefix, which no fact can replace, are read in the same way before the first play. On a command
line, an empty extra variable is no answer: it switches off what an inventory sets.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from functools import cache
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

from ...module_utils._lib.core.yaml_text import UnreadableYaml, parse_yaml
from . import collection
from .sentence_error import SentenceError, did_you_mean

_SURVEYS = collection.ROOT / "playbooks" / "vars" / "awx_surveys.yml"
_PREFIX = "survey_"
#: Extra variables with which AWX runs each job.
_OF_JOB = ("awx_job_id", "tower_job_id")


class SurveyError(SentenceError):
    """An answer is invalid. The message contains the variable of the question."""


def answers(playbook: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of a playbook for the survey answers in `variables`.

    Raises SurveyError if an answer is invalid or its question is unknown.
    """
    names = sorted(variable for variable in variables if variable.startswith(_PREFIX))
    questions = _questions(playbook) if names else {}  # reading the surveys takes long
    found = {}
    for name in names:
        if name not in questions:
            hint = did_you_mean(name, questions)
            raise SurveyError(f"{name}: the survey of {playbook} has no such question{hint}")
        value = variables[name]
        if isinstance(value, str) and not value.strip():
            continue
        found[name.removeprefix(_PREFIX)] = _parse(name, questions[name], value)
    return found


def read_extra_variables(extra: MutableMapping[str, Any]) -> None:
    """Replace the extra variables that are answers: parse YAML, and in a job of AWX, remove empty
    strings, which it passes for questions without an answer.

    A string that is no list or mapping in YAML, or that is a template, is left as it is.
    """
    is_job = any(name in extra for name in _OF_JOB)
    given = {name: value for name, value in extra.items() if isinstance(value, str)}
    answered = {name for name, value in given.items() if not value.strip() or ":" in value}
    answered |= {name for name, value in given.items() if value.lstrip().startswith(("-", "["))}
    if not answered:
        return  # reading the surveys takes longer than this
    kinds = {name: kind for each in _surveys() for name, kind in _variables(each).items()}
    for name in answered & kinds.keys():
        if not given[name].strip():
            if is_job:
                del extra[name]
        elif kinds[name] == "textarea" and not any(sign in given[name] for sign in ("{{", "{%")):
            with suppress(SurveyError):
                extra[name] = _parse(name, kinds[name], given[name])


def _variables(playbook: str) -> dict[str, str]:
    """Return the types of the questions in a survey, by the name of the variable they set."""
    questions = _questions(playbook)
    return {name.removeprefix(_PREFIX): kind for name, kind in questions.items()}


def _parse(name: str, kind: str, value: Any) -> Any:
    """Return the value of an answer. A value that is not a string has been parsed before.

    :param kind: type of the question
    """
    if kind != "textarea" or not isinstance(value, str):
        return value
    try:
        read = parse_yaml(value)
    except UnreadableYaml as error:
        place = "" if error.line is None else f" in line {error.line}"
        raise SurveyError(f"{name}: the answer is not valid YAML{place}: {error}") from None
    if not isinstance(read, list | dict):
        raise SurveyError(
            f"{name}: the answer is neither a list nor a mapping; begin list items with '- '"
        )
    return read


@cache
def _questions(playbook: str) -> dict[str, str]:
    """Return the types of the questions in a survey, by variable."""
    surveys = _surveys()
    if playbook not in surveys:
        raise SurveyError(f"there is no survey for the playbook {playbook}")
    return {question["variable"]: question["type"] for question in surveys[playbook]}


@cache
def _surveys() -> Mapping[str, list[dict[str, Any]]]:
    found: Mapping[str, list[dict[str, Any]]]
    found = yaml_load(_SURVEYS.read_text(encoding="utf-8"))["awx_setup_surveys"]
    return found
