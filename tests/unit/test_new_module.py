# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the files of a new module, and the list of missing parts of a module."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from tools import module_check, new_module, tree
from tools.descriptors import DESCRIPTORS

MARKED = re.compile(r"wiki_label: (\S+):\d+ is to be filled in")


class Trial:
    """A copy of the checkout, in which modules can be added."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / tree.COLLECTION
        ignored = shutil.ignore_patterns(".*", "__pycache__", "dist", "node_modules")
        shutil.copytree(tree.ROOT, self.root, ignore=ignored)
        self._environment = {**os.environ, **tree.environment(folder)}

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

    def missing(self) -> tuple[Counter[str], set[str]]:
        """Return file to the number of its places to fill in, and the other lines of the check."""
        checked = self.run("tools.check", "module", "wiki_label")
        assert checked.stdout, checked.stderr
        *lines, last = checked.stdout.splitlines()
        assert (checked.returncode, last) == (1, f"{len(lines)} missing"), checked.stderr
        marked = Counter(found[1] for line in lines if (found := MARKED.match(line)))
        others = {line.removeprefix("wiki_label: ") for line in lines if not MARKED.match(line)}
        return marked, others


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """The copy after `python -m tools.new_module wiki_label`."""
    made = Trial(tmp_path_factory.mktemp("trial"))
    written = made.run("tools.new_module", "wiki_label")
    assert written.returncode == 0, written.stderr
    paths = [str(path) for path in new_module.files("wiki_label")]
    assert set(paths) <= set(written.stdout.splitlines())
    return made


def test_check_lists_the_gaps_of_an_empty_module(trial: Trial) -> None:
    marked, others = trial.missing()
    assert marked == {
        "plugins/modules/wiki_label.py": 5,
        "plugins/module_utils/_lib/wiki/wiki_label.py": 7,
        "tests/contract/cases/wiki_label.yml": 1,
        "tests/unit/wiki/test_wiki_label.py": 1,
        "changelogs/fragments/wiki-label.yml": 1,
    }
    witness = "add one to tests/strangers/witnesses.yml, or name the module under looked_for"
    assert others == {
        f"no witness confirms wiki_label.read: {witness}",
        f"no witness confirms wiki_label.create: {witness}",
        "the sandbox has no route for GET /FILL_IN",
    }


def test_files_pass_ruff(trial: Trial) -> None:
    assert trial.run("tools.new_module", "ci_queue").returncode == 0
    for command in (["check"], ["format", "--check"]):
        done = trial.run("ruff", *command, ".")
        assert done.returncode == 0, done.stdout


def test_of_an_empty_module_fails(trial: Trial) -> None:
    ran = trial.run("pytest", "-q", "tests/unit/wiki/test_wiki_label.py")
    assert ran.returncode == 1
    assert "FILL_IN: test each option of wiki_label" in ran.stdout


def test_write_of_an_empty_module_runs_after_its_read_is_written(trial: Trial) -> None:
    operation = trial.root / "plugins/module_utils/_lib/wiki/wiki_label.py"
    text = operation.read_text(encoding="utf-8")
    place = '"FILL_IN").json()'
    assert place in text
    operation.write_text(text.replace(place, '"rest/api/content/1002/label").json()'), "utf-8")
    others = {line for line in trial.missing()[1] if not line.startswith("no witness")}
    assert others == {"the sandbox has no route for POST /FILL_IN"}
    text_broken = text.replace("name = self._options.name", "name = 1 / 0")
    operation.write_text(text_broken.replace("writes()", 'writes("edit")'), "utf-8")
    others = trial.missing()[1]
    assert (
        "the first step of the case breaks the module: ZeroDivisionError: division by zero"
        in others
    )
    unknown = "permission 'edit' of wiki_label.create is unknown: use one"
    assert [line for line in others if line.startswith(unknown)]
    operation.write_text(text, "utf-8")


def test_check_lists_forgotten_options_and_files(trial: Trial) -> None:
    operation = trial.root / "plugins/module_utils/_lib/wiki/wiki_label.py"
    text = operation.read_text(encoding="utf-8")
    operation.write_text(
        text.replace("    name: str\n", '    name: str\n    colour: str = "red"\n'),
        encoding="utf-8",
    )
    case = trial.root / "tests/contract/cases/wiki_label.yml"
    case.write_text(case.read_text("utf-8").replace("requests:", "request:"), encoding="utf-8")
    (trial.root / "changelogs/fragments/wiki-label.yml").unlink()
    (trial.root / "plugins/action/wiki_label.py").unlink()
    _marked, others = trial.missing()
    assert {
        "option colour is missing in the documentation",
        "option colour has no test: none of the module names it",
        "no fragment in changelogs/fragments names the module",
        "plugins/action/wiki_label.py is stale: run python -m tools.generated",
        "tests/contract/cases/wiki_label.yml promises no number of requests",
        "docs/requests.md is stale: run python -m tools.generated",
    } <= others
    assert any("'request' was unexpected" in line for line in others)
    case.unlink()
    assert trial.missing() == ({}, {"tests/contract/cases/wiki_label.yml is missing"})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["wikilabel"], "not a name of a module"),
        (["wiki_page"], "plugins/modules/wiki_page.py exists already"),
        (
            ["wiki_other", "--package", "wiki/nowhere"],
            "no folder plugins/module_utils/_lib/wiki/nowhere",
        ),
        (["code_review"], "no folder plugins/module_utils/_lib/code"),
    ],
)
def test_invalid_module_name_is_rejected(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        new_module.main(arguments)
    assert words in capsys.readouterr().err


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox.start(flavour="real") as started:
        yield started


@pytest.mark.parametrize("module", DESCRIPTORS)
def test_no_module_has_gaps(sandbox: Sandbox, module: str) -> None:
    assert module_check.missing(module, sandbox) == []
