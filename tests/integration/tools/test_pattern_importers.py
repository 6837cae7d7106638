# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that galaxy-importer and ansible-lint accept the patterns for Ansible Automation Platform."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import ansiblelint
import jsonschema
import pytest
from ansible.module_utils.common.yaml import yaml_load
from galaxy_importer.file_parser import PatternsParser
from galaxy_importer.finder import ContentFinder

from tools.tree import ROOT

FOLDER = ROOT / "extensions" / "patterns"
NAMES = sorted(path.name for path in FOLDER.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_arguments_of_the_playbook_have_the_schema(name: str) -> None:
    meta = yaml_load((FOLDER / name / "playbooks" / "site.meta.yml").read_text(encoding="utf-8"))
    schema = Path(ansiblelint.__file__).parent / "schemas" / "play-argspec.json"
    jsonschema.validate(meta, json.loads(schema.read_text(encoding="utf-8")))


def test_importer_finds_the_patterns(capfd: pytest.CaptureFixture[str]) -> None:
    shown = logging.StreamHandler()
    logging.getLogger("galaxy_importer").addHandler(shown)
    found = [
        content.path
        for content in ContentFinder().find_contents(str(ROOT))
        if "patterns" in content.path
    ]
    logging.getLogger("galaxy_importer").removeHandler(shown)
    assert capfd.readouterr().err == ""
    files = ("README.md", "meta/pattern.json", "playbooks/site.meta.yml", "playbooks/site.yml")
    wanted = [f"extensions/patterns/{name}/{file}" for name in NAMES for file in files]
    assert sorted(found) == sorted(wanted)
    parsed = PatternsParser(str(ROOT)).get_meta_patterns()
    assert sorted(each["name"] for each in parsed) == NAMES
