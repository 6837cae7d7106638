# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the folder of the desired state: its allowed content, and the error messages for invalid
input.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.plugin_utils import desired_state
from tools import desired_schemas


def read(folder: Path, **files: str) -> dict[str, Any]:
    for name, text in files.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".yml").write_text(text, encoding="utf-8")
    return desired_state.variables(folder, lambda name: yaml.safe_load(Path(name).read_text()))


def test_the_schemas_are_written_from_the_argument_specs() -> None:
    written = {path: path.read_text("utf-8") for path in desired_schemas.FOLDER.iterdir()}
    assert written == desired_schemas.schemas(), "run python -m tools.desired_schemas"


def test_files_and_folders_become_variables_of_roles(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        analysis__users="users:\n  - name: eve\n",
        analysis__more="users:\n  - name: adam\nmax_deletions: 3\n",
        ci="plugins: [{name: git}]\njobs:\n  - job: a\n    src: jobs/a.xml\n",
        tracker="versions: [{project: OPS, name: '1.0'}]",
        wiki="trees: [{src: team, space: REL}]",
        repo="rules: [{repo: libs, created_before: 4w}]",
    )
    assert found == {
        "analysis_config_users": [{"name": "adam"}, {"name": "eve"}],
        "analysis_config_max_deletions": 3,
        "ci_baseline_plugins": [{"name": "git"}],
        "desired_state_jobs": [{"job": "a", "src": str(tmp_path / "jobs/a.xml")}],
        "desired_state_versions": [{"project": "OPS", "name": "1.0"}],
        "desired_state_trees": [{"src": str(tmp_path / "team"), "space": "REL"}],
        "repo_housekeeping_rules": [{"repo": "libs", "created_before": "4w"}],
    }


SLIPS = {
    "users:\n  - nam: eve\n": "analysis.yml:2: users[0].nam is not known (is name meant?)",
    "users:\n  - state: present\n": "analysis.yml:2: users[0] has no name",
    "users: eve": "analysis.yml:1: users is a text, it takes a list",
    "groups:\n  - name: 1.10\n": (
        "analysis.yml:2: groups[0].name is a number, it takes a text: put it into quotes"
    ),
    "users:\n  - name: a\n    state: gone\n": (
        "analysis.yml:3: users[0].state is one of present, absent, not gone"
    ),
    "user:\n  - name: a\n": "analysis.yml:1: user is not known (is users meant?)",
    "users: []\nusers: []\n": "analysis.yml:2: users is there twice",
    "users: [\n": "analysis.yml:2: this is no YAML",
    "- users": "analysis.yml:1: the file is a list, it takes a mapping",
    "groups: [{name: a, users: [2026-01-01]}]": (
        "groups[0].users[0] is a value of another kind (timestamp), it takes a text: put it"
    ),
}


@pytest.mark.parametrize("text", SLIPS)
def test_a_slip_is_named_with_file_and_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(desired_state.DesiredStateError) as raised:
        read(tmp_path, analysis=text)
    assert SLIPS[text] in str(raised.value)


def test_all_slips_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(desired_state.DesiredStateError) as raised:
        read(tmp_path, ci="plugin: []", repo="rule: []", other="x: 1")
    assert "ci.yml:1: plugin is not known (is plugins meant?)" in str(raised.value)
    assert "repo.yml:1: rule is not known (is rules meant?)" in str(raised.value)
    assert "other.yml belongs to no service" in str(raised.value)


def test_a_setting_in_two_files_and_an_empty_folder_are_slips(tmp_path: Path) -> None:
    with pytest.raises(desired_state.DesiredStateError, match="describes nothing"):
        desired_state.variables(tmp_path, lambda name: {})
    with pytest.raises(desired_state.DesiredStateError, match="is no folder"):
        desired_state.variables(tmp_path / "none", lambda name: {})
    with pytest.raises(desired_state.DesiredStateError, match="stands in another file"):
        read(tmp_path, ci__a="check_java: true", ci__b="check_java: false")


IRREGULAR: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a device": lambda file: file.symlink_to("/dev/zero"),
    "a link to nothing": lambda file: file.symlink_to("nothing"),
}


@pytest.mark.parametrize("what", IRREGULAR)
def test_what_is_no_regular_file_is_never_opened(what: str, tmp_path: Path) -> None:
    IRREGULAR[what](tmp_path / "ci.yml")
    with pytest.raises(desired_state.DesiredStateError) as caught:
        read(tmp_path)
    assert str(caught.value) == "ci.yml is no regular file: move it elsewhere"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 3000, "ci.yml:1: this is no YAML: it is nested too deeply"),
        ("a: 2026-13-45", "ci.yml:1: a is not known"),
        ("jobs: [{job: a, parameters: &a [*a]}]", "ci.yml"),
        ("\x00", "ci.yml:1: this is no YAML: unacceptable character"),
    ],
)
def test_a_file_that_yaml_cannot_read_ends_in_one_sentence(
    text: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(desired_state.DesiredStateError) as caught:
        read(tmp_path, ci=text)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_a_value_that_cannot_be_made_is_named_with_its_file(tmp_path: Path) -> None:
    def load(name: str) -> Any:
        return yaml.safe_load("a: 2026-13-45")

    (tmp_path / "ci.yml").write_text("jobs: []", encoding="utf-8")
    with pytest.raises(desired_state.DesiredStateError, match=r"^ci.yml is no YAML: month must be"):
        desired_state.variables(tmp_path, load)
