# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the files of a new module, and the list of its missing parts, in a copy of the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import new_module, tree

MARKED = re.compile(r"wiki_label: (\S+):\d+ is to be filled in")
OPERATION = "plugins/module_utils/_lib/wiki/wiki_label.py"
CASE = "tests/contract/cases/wiki_label.yml"
KINDS = "plugins/plugin_utils/_lib/kinds.py"
SPECS = "roles/desired_state/meta/argument_specs.yml"
OPTIONS = """\
      desired_state_labels:
        description: The labels, C(labels) in C(wiki.yml).
        type: list
        elements: dict
        default: []
        options: {}
"""


class Trial:
    """A copy of the checkout, in which a module has been added."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / tree.COLLECTION
        # not with `tree.copy_tree`: the checkout of a job has no repository of git
        ignored = shutil.ignore_patterns(".*", "__pycache__", "dist", "node_modules")
        shutil.copytree(tree.ROOT, self.root, ignore=ignored)
        self._environment = {**os.environ, **tree.environment(folder)}
        self.written = self.run("tools.new_module", "wiki_label")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `python -m` with these arguments."""
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self.root,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def replace(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        assert old in text, path
        (self.root / path).write_text(text.replace(old, new), encoding="utf-8")

    def missing(self) -> tuple[set[str], set[str]]:
        """Return the files with places to fill in, and the other lines of the check."""
        checked = self.run("tools.module_check", "wiki_label")
        assert checked.stdout, checked.stderr
        *lines, last = checked.stdout.splitlines()
        assert (checked.returncode, last) == (1, f"{len(lines)} missing"), checked.stderr
        marked = {found[1] for line in lines if (found := MARKED.match(line))}
        others = {line.removeprefix("wiki_label: ") for line in lines if not MARKED.match(line)}
        return marked, others


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """The copy after `python -m tools.new_module wiki_label`."""
    made = Trial(tmp_path_factory.mktemp("trial"))
    assert made.written.returncode == 0, made.written.stderr
    return made


def test_all_files_are_written_and_pass_ruff(trial: Trial) -> None:
    paths = [str(path) for path in new_module.files("wiki_label")]
    assert set(paths) <= set(trial.written.stdout.splitlines())
    # a module of this service has another import, and one that only reads another operation
    assert trial.run("tools.new_module", "ci_queue_info").returncode == 0
    paths += [str(path) for path in new_module.files("ci_queue_info")]
    code = [path for path in paths if path.endswith(".py")]
    for command in (["check"], ["format", "--check"]):
        done = trial.run("ruff", *command, *code)
        assert done.returncode == 0, done.stdout


def test_check_lists_the_gaps_of_an_empty_module(trial: Trial) -> None:
    marked, others = trial.missing()
    assert marked == {
        "plugins/modules/wiki_label.py",
        OPERATION,
        CASE,
        "tests/unit/wiki/test_wiki_label.py",
        "changelogs/fragments/wiki-label.yml",
    }
    witness = "add one to tests/strangers/witnesses.yml, or name the module under looked_for"
    assert others == {
        f"no witness confirms wiki_label.read: {witness}",
        f"no witness confirms wiki_label.create: {witness}",
    }


def test_module_that_only_reads_has_an_operation_of_its_own(trial: Trial) -> None:
    folders = ("plugins/modules", "plugins/module_utils/_lib/ci", "tests/contract/cases")
    module, operation, case = (
        next((trial.root / folder).glob("ci_queue_info.*")).read_text(encoding="utf-8")
        for folder in folders
    )
    assert "- delivery.toolchain.attributes.info\n" in module
    assert "class CiQueueInfoOperation(ReadOnly):" in operation
    assert "run_changed: false" in case


def test_of_an_empty_module_fails(trial: Trial) -> None:
    ran = trial.run("pytest", "-q", "tests/unit/wiki/test_wiki_label.py")
    assert ran.returncode == 1
    assert "FILL_IN: test each option of wiki_label" in ran.stdout


def test_row_and_options_add_a_kind_of_the_desired_state(trial: Trial) -> None:
    """Verify the steps of CONTRIBUTING.md for the objects of the added module."""
    row = 'Kind("wiki", "labels", ("name",), module="wiki_label", title="labels", deletion=4'
    trial.replace(KINDS, "\n)\n_BY_PLACE", f"\n    {row}),\n)\n_BY_PLACE")
    with (trial.root / SPECS).open("a", encoding="utf-8") as specs:
        specs.write(OPTIONS)
    written = trial.run("tools.generated").stdout.splitlines()
    role = "roles/desired_state"
    files = ("defaults/main.yml", "files/wiki.schema.json", "README.md")
    assert {f"{role}/{name}" for name in files} <= {*written}
    for test, cases in (
        ("test_roles.py", "list_of_desired_state or (entries_have and labels)"),
        ("test_desired_state.py", "kind or variable_of_other_roles"),
    ):
        ran = trial.run("pytest", "-q", f"tests/unit/{test}", "-k", cases)
        assert ran.returncode == 0, ran.stdout


def test_check_lists_forgotten_options_and_files(trial: Trial) -> None:
    trial.replace(OPERATION, "    name: str\n", '    name: str\n    colour: str = "red"\n')
    trial.replace(OPERATION, "writes()", 'writes("edit")')
    trial.replace(CASE, "requests:", "request:")
    (trial.root / "changelogs/fragments/wiki-label.yml").unlink()
    (trial.root / "plugins/action/wiki_label.py").unlink()
    others = trial.missing()[1]
    assert {
        "option colour has no test: none of the module names it",
        "no fragment in changelogs/fragments names the module",
        "plugins/action/wiki_label.py is stale: run python -m tools.generated",
        "tests/contract/cases/wiki_label.yml promises no number of requests",
        "docs/requests.md is stale: run python -m tools.generated",
    } <= others
    assert any("'request' was unexpected" in line for line in others)
    unknown = "permission 'edit' of wiki_label.create is unknown: use one"
    assert [line for line in others if line.startswith(unknown)]


def test_missing_case_is_reported(trial: Trial) -> None:
    (trial.root / CASE).unlink()
    assert trial.missing() == (set(), {f"{CASE} is missing"})
