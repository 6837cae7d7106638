# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the patterns for Ansible Automation Platform against its specification, and against the
playbooks that they run. `test_pattern_importers.py` of the integration tests uses other programs.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from tools.tree import ROOT

FOLDER = ROOT / "extensions" / "patterns"
NAMES = sorted(path.name for path in FOLDER.iterdir())
SURVEYS = yaml_load((ROOT / "playbooks" / "vars" / "awx_surveys.yml").read_text("utf-8"))[
    "awx_setup_surveys"
]
#: The fields that the specification (version 1.0.0) requires, and their longest values.
REQUIRED = {"name": 64, "title": 64, "description": 2000, "short_description": 100}
QUESTION = {"type", "question_name", "question_description", "variable", "required", "default"}


def definition(name: str) -> dict[str, Any]:
    loaded = json.loads((FOLDER / name / "meta" / "pattern.json").read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def template(name: str) -> dict[str, Any]:
    (found,) = definition(name)["aap_resources"]["controller_job_templates"]
    assert isinstance(found, dict)
    return found


def questions(name: str) -> list[dict[str, Any]]:
    return list(template(name)["survey"]["spec"])


def playbook(name: str) -> str:
    """Return the name of the playbook that a pattern runs."""
    text = (FOLDER / name / "playbooks" / template(name)["playbook"]).read_text(encoding="utf-8")
    (found,) = re.findall(r"import_playbook: delivery\.toolchain\.(\w+)", text)
    return str(found)


@pytest.mark.parametrize("name", NAMES)
def test_definition_is_complete(name: str) -> None:
    pattern = definition(name)
    assert pattern["schema_version"] == "1.0.0"
    assert pattern["name"] == name
    assert re.fullmatch("[a-z0-9_]+", name)
    assert all(0 < len(pattern[field]) <= longest for field, longest in REQUIRED.items())
    assert not pattern["short_description"].endswith(".")
    resources = pattern["aap_resources"]
    assert resources["controller_project"].keys() == {"name", "description"}
    image = resources["controller_execution_environment"]
    assert re.fullmatch(r"\w+/\w+", image["image_name"])
    assert image["pull"] == "missing"
    job = template(name)
    assert job["primary"] is True
    assert job["execution_environment"] == image["name"]
    assert set(job["labels"]) <= set(resources["controller_labels"])
    assert (FOLDER / name / "README.md").is_file()
    assert (ROOT / "playbooks" / f"{playbook(name)}.yml").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_questions_are_those_of_the_playbook(name: str) -> None:
    known = {question["variable"]: question for question in SURVEYS[playbook(name)]}
    for question in questions(name):
        assert question.keys() - {"choices"} == QUESTION
        assert isinstance(question["default"], str)
        assert question["question_description"].endswith(".")
        if question["variable"].startswith("survey_"):
            asked = known[question["variable"]]
            assert question["type"] == asked["type"]
            assert question.get("choices", []) == asked["choices"]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_of_the_playbook_are_the_questions(name: str) -> None:
    meta = yaml_load((FOLDER / name / "playbooks" / "site.meta.yml").read_text(encoding="utf-8"))
    options = meta["argument_specs"]["site"]["options"]
    asked = {}
    for question in questions(name):
        option = {"type": "str", "required": question["required"]}
        option |= {"default": question["default"]} if question["default"] else {}
        option |= {"choices": question["choices"]} if "choices" in question else {}
        asked[question["variable"]] = {**option, "description": question["question_description"]}
    assert options == asked
    assert meta["short_description"] == definition(name)["short_description"]
